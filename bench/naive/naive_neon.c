/* The naive loops of the neon path.
 *
 * SPDX-License-Identifier: MIT */
#define NAIVE_LOOPS naive_loops_neon
#include "naive_template.h"
