/* Defines one path's kernel table. The including table.c defines NRG_PATH (avx2) and NRG_PATH_ISA (NRG_ISA_AVX2); every
 * kernel of kernels.def must then exist as nrg_<path>_<op>_<dtype>.
 *
 * SPDX-License-Identifier: MIT */
#include "internal.h"

#define NRG_PASTE_(path, op, dtype) nrg_##path##_##op##_##dtype
#define NRG_PASTE(path, op, dtype) NRG_PASTE_(path, op, dtype)
#define NRG_TABLE_(path) nrg_table_##path
#define NRG_TABLE(path) NRG_TABLE_(path)

const nrg_table NRG_TABLE(NRG_PATH) = {
    .isa = NRG_PATH_ISA,
#define NRG_KERNEL(op, dtype, job) .op##_##dtype = NRG_PASTE(NRG_PATH, op, dtype),
#include "kernels.def"
#undef NRG_KERNEL
};
