/* tools/sweep_family.h: how the cases of one operation are made and run.
 *
 * Every op of src/kernels.def needs a sweep_family_<op>; nrg does not link without it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SWEEP_FAMILY_H
#define NRG_TOOLS_SWEEP_FAMILY_H

#include "sweep.h"

typedef struct sweep_family {
    uint64_t (*count)(sweep_level level); /* of cases for each dtype */
    /* Makes case n of these, in c's dtype. c is empty but for its number, its kernel, spec.size and spec.dtype. */
    void (*make)(sweep_level level, uint64_t n, sweep_case *c);
    nrg_status (*run)(const sweep_case *c, unsigned char *memory);
} sweep_family;

#define NRG_KERNEL(op, dtype, job) extern const sweep_family sweep_family_##op;
#include "../src/kernels.def"
#undef NRG_KERNEL

#endif
