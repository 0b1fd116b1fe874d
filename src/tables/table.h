/* The table of one op, NRG_OP: a kernel for every path of the build and every dtype, or the link fails. One file an op, so that a
 * program is linked with the kernels it calls by linkers that take whole files, too.
 *
 * SPDX-License-Identifier: MIT */
#include "../kernels.h"

#define NRG_ROW(path, isa, op) {nrg_##path##_##op##_f32, nrg_##path##_##op##_f16, nrg_##path##_##op##_bf16},
#define NRG_TABLE_(op) nrg_##op##_kernel *const nrg_##op##_kernels[NRG_PATHS][3] = {NRG_EACH_PATH(NRG_ROW, op)};
#define NRG_TABLE(op) NRG_TABLE_(op)

NRG_TABLE(NRG_OP)
