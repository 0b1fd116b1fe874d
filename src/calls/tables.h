/* The tables of an op, one for each dtype: a kernel for every path of the build, or the link fails. The file of a call has
 * NRG_TABLES, once for each op. A program that is linked with --gc-sections keeps the tables of what it calls, and their kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_TABLES_H
#define NRG_CALLS_TABLES_H

#include "../kernels.h"

#define NRG_ENTRY(path, isa, op, dtype) nrg_##path##_##op##_##dtype,
#define NRG_TABLE(op, dtype)                                                                                                     \
    nrg_##op##_kernel *const nrg_##op##_##dtype##_kernels[NRG_PATHS] = {NRG_EACH_PATH(NRG_ENTRY, op, dtype)};
#define NRG_TABLES(op) NRG_TABLE(op, f32) NRG_TABLE(op, f16) NRG_TABLE(op, bf16)

#endif
