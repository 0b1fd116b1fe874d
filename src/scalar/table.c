/* The kernel table of the scalar path.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH scalar
#define NRG_PATH_ISA NRG_ISA_SCALAR
#include "../table.h"
