/* The naive loops of the generic path: with whatever vectors the compiler makes of them for the base instruction set.
 *
 * SPDX-License-Identifier: MIT */
#define NAIVE_LOOPS naive_loops_generic
#include "naive_template.h"
