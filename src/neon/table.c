/* The kernel table of the neon path.
 *
 * SPDX-License-Identifier: MIT */
#define NRG_PATH neon
#define NRG_PATH_ISA NRG_ISA_NEON
#include "../table.h"
