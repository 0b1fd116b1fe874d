/* The kernel table of the avx2 path.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH avx2
#define NRG_PATH_ISA NRG_ISA_AVX2
#include "../table.h"
