/* The naive loops of the avx512 path.
 *
 * SPDX-License-Identifier: MIT */
#define NAIVE_LOOPS naive_loops_avx512
#include "naive_template.h"
