/* check/family.h: how the cases of one operation are made and run.
 *
 * Every op of src/kernels.def needs a sweep_family_<op>; nrg does not link without it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_FAMILY_H
#define NRG_CHECK_FAMILY_H

#include "sweep.h"

/* Of an op with options that no field of sweep_case has: make, fill, run and describe draw a description of their own, the same
 * each time, from the number, level and n of the case. */
typedef struct sweep_family {
    uint64_t (*count)(sweep_level level); /* of cases for each dtype */
    /* Makes case n of these, in c's dtype. c is empty but for its number, its kernel, spec.size and spec.dtype. */
    void (*make)(sweep_level level, uint64_t n, sweep_case *c);
    /* Gives an input that the case has its data. */
    void (*fill)(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random);
    nrg_status (*run)(const sweep_case *c, unsigned char *memory);
    /* Appends what is asked for. */
    void (*describe)(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);
    const char *const *names; /* of SWEEP_OPERANDS operands; NULL: the norms' */
} sweep_family;

/* Each row of another kind. */
void sweep_fill_rows(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random);

/* One row. */
void sweep_fill_operand_row(const sweep_case *c, int operand, size_t row, int is_weight, unsigned char *memory, uint64_t *random);

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void sweep_append(char text[SWEEP_TEXT_ROOM], const char *format, ...);

#define NRG_KERNEL(family, op, job) extern const sweep_family sweep_family_##op;
#include "../src/kernels.def"
#undef NRG_KERNEL

#endif
