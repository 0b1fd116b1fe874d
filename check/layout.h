/* check/layout.h: where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_LAYOUT_H
#define NRG_CHECK_LAYOUT_H

#include "../src/operands/operand.h"
#include "sweep.h"

/* The operands of a call, as its description has them: those whose bit is set in `there` or that may not be absent; each under
 * the number that slots has for it, or, where slots is NULL, after those before it: inputs from SWEEP_IN on, outputs from
 * SWEEP_OUT on, scratch from SWEEP_SCRATCH on. What another call has added stays as it is. part: the structs with their options
 * and numbers set; the pointers in them are overwritten. transposed: bits of operands with two levels or three whose second lies
 * inside the first. In place, or absent, they may be as the descriptions of all calls say. */
void sweep_add_call(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there,
                    uint32_t transposed);

/* The same of a call that the case makes before another one, which takes what this one writes. */
void sweep_add_before(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there);

/* Sets the pointers and strides in a call's structs. */
void sweep_bind_call(const sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots,
                     unsigned char *memory);

/* Gives the operands their places: dense and aligned to 64 bytes; rows at odd multiples of 16 bytes; or anywhere. Half of the
 * time outputs are where they may be: in the place of others. */
void sweep_lay_out(sweep_case *c, uint64_t *random);

/* Its stride as a call is told it: 0, where the case says so and an operand of one level is dense; and that of runs. */
size_t sweep_stride(const sweep_case *c, int operand);
size_t sweep_run_stride(const sweep_case *c, int operand);

/* The operand in the case's memory; NULL where absent. */
void *sweep_place(const sweep_case *c, int operand, unsigned char *memory);

#endif
