/* The tables of one op, NRG_OP, one for each dtype: a kernel for every path of the build, or the link fails. One file an op, so
 * that a program is linked with the kernels it calls by linkers that take whole files, too; others leave out unused dtypes.
 *
 * SPDX-License-Identifier: MIT */
#include "../kernels.h"

#define NRG_ENTRY(path, isa, op, dtype) nrg_##path##_##op##_##dtype,
#define NRG_TABLE_(op, dtype)                                                                                                    \
    nrg_##op##_kernel *const nrg_##op##_##dtype##_kernels[NRG_PATHS] = {NRG_EACH_PATH(NRG_ENTRY, op, dtype)};
#define NRG_TABLE(op, dtype) NRG_TABLE_(op, dtype)

NRG_TABLE(NRG_OP, f32)
NRG_TABLE(NRG_OP, f16)
NRG_TABLE(NRG_OP, bf16)
