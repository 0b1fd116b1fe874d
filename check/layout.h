/* check/layout.h: where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_LAYOUT_H
#define NRG_CHECK_LAYOUT_H

#include "invoke.h"
#include "sweep.h"

/* A call that cases make. The case has its structs, with options and numbers set. */
typedef struct sweep_call {
    const invoke_function *run, *reduce; /* reduce: after all shares of run; NULL: there is no second phase */
    const unsigned char *slots;          /* of operands, as the description has them in turn; NULL: SWEEP_IN, SWEEP_OUT, ... on */
    uint16_t part[NRG_PARTS];            /* where in the case its structs are: SWEEP_AT */
    uint16_t store;                      /* where in the case the field is that has c->store; 0: none */
    void (*fix)(void *const *part);      /* sets what else depends on the pointers, which are bound; NULL: nothing does */
} sweep_call;

/* The place of the one struct that a family's cases keep in sweep_case.structs; or of a field, where they keep several, in a
 * struct for which a case has room. */
#define SWEEP_STRUCTS_AT offsetof(sweep_case, structs)
#define SWEEP_AT(type, field)                                                                                                    \
    (SWEEP_STRUCTS_AT + offsetof(type, field) + 0 * sizeof(char[sizeof(type) <= SWEEP_STRUCTS ? 1 : -1]))

/* What a family's cases keep there. */
static inline void *sweep_structs(sweep_case *c) { return c->structs; }
static inline const void *sweep_const_structs(const sweep_case *c) { return c->structs; }

/* Adds a call, after those before it, and its operands, as its description has them: those whose bit is set in `there` or that
 * may not be absent. What another call has added stays as it is. transposed: bits of operands with two levels or three whose
 * second lies inside the first. In place, or absent, they may be as the descriptions of all calls say. */
void sweep_add(sweep_case *c, sweep_when when, const sweep_call *call, uint32_t there, uint32_t transposed);

/* Adds a call before all others, which take what this one writes. */
void sweep_add_first(sweep_case *c, sweep_when when, const sweep_call *call, uint32_t there);

/* Adds a call after those before it, of operands that these have. */
void sweep_add_last(sweep_case *c, sweep_when when, const sweep_call *call);

/* Runs all shares of a function, in the case's order, up to the first that fails. part: its structs. */
nrg_status sweep_run_shares(const sweep_case *c, const invoke_function *function, void *const *part, int shares);

/* Runs the calls of a case in turn. */
nrg_status sweep_run_calls(const sweep_case *c, unsigned char *memory);

/* The operands of a call alone. part: its structs. */
void sweep_add_call(sweep_case *c, const nrg_call *call, void *const *part, const unsigned char *slots, uint32_t there,
                    uint32_t transposed);
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
