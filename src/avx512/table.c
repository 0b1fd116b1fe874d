/* The kernel table of the avx512 path.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx512
#define NRG_PATH_ISA NRG_ISA_AVX512
#include "../table.h"
