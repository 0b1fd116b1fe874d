/* The naive loops of the scalar path.
 *
 * SPDX-License-Identifier: MIT */
#define NAIVE_LOOPS naive_loops_scalar
#include "naive_template.h"
