/* The naive loops of the avx2 path.
 *
 * SPDX-License-Identifier: MIT */
#define NAIVE_LOOPS naive_loops_avx2
#include "naive_template.h"
