/* check/layout.h: where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_LAYOUT_H
#define NRG_CHECK_LAYOUT_H

#include "../src/operands/operand.h"
#include "sweep.h"

/* An operand, dense and without a place yet. Its rows may be told to the library to lie apart; those of w, b and the like may
 * not. */
void sweep_add_tensor(sweep_case *c, int operand, int type, size_t length, size_t rows);
void sweep_add_dense(sweep_case *c, int operand, int type, size_t length, size_t rows);

/* A tensor whose rows come in runs; these lie apart, too, unless all rows are at equal distances. */
void sweep_add_runs(sweep_case *c, int operand, int type, size_t length, size_t run, size_t runs, int is_even);

/* The operands of a call, as its description has them: those whose bit is set in `there` or that may not be absent; each under
 * the number that slots has for it. part: the structs with their options and numbers set; the pointers in them are overwritten.
 * turned: bits of operands with two levels or three whose second lies inside the first. In place they may be as the description
 * says. */
void sweep_add_call(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there,
                    uint32_t turned);

/* Sets the pointers and strides in a call's structs. */
void sweep_bind_call(const sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots,
                     unsigned char *memory);

/* An operand of a norm: which of the two its name says. */
void sweep_add(sweep_case *c, int operand, int type, size_t length, size_t rows);

/* Gives the operands their places: dense and aligned to 64 bytes; rows at odd multiples of 16 bytes; or anywhere. Half of the
 * time outputs are where they may be: in the place of others. */
void sweep_lay_out(sweep_case *c, uint64_t *random);

/* In place: the output where the input is; nothing, where one is absent or their elements differ in size. */
void sweep_share_place(sweep_case *c, int output, int input);

/* Its stride as a call is told it: 0, where the case says so and an operand of one level is dense; and that of runs. */
size_t sweep_stride(const sweep_case *c, int operand);
size_t sweep_run_stride(const sweep_case *c, int operand);

/* The operand in the case's memory; NULL where absent. */
void *sweep_place(const sweep_case *c, int operand, unsigned char *memory);

#endif
