/* Cases against each other.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_COMPARE_H
#define NRG_BENCH_MODES_COMPARE_H

#include "../cases.h"
#include "../measure.h"

enum { BENCH_COMPARE_MAX = 3 };

/* n cases take turns, about `seconds` long. They share memory where family, dtype and shape are the same. NULL, or what went
 * wrong. */
const char *bench_compare(const bench_case *c, size_t n, double seconds, bench_contender *result);

#endif
