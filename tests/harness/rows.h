/* Kinds of rows: the stress set of docs/numerics.md, and what else a kernel may stumble over.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_ROWS_H
#define NRG_TESTS_HARNESS_ROWS_H

#include "support.h"

enum row_kind {
    /* the stress set */
    ROW_NORMAL,
    ROW_MEAN_1E3,
    ROW_MEAN_1E4,
    ROW_OUTLIER,
    ROW_EQUAL,
    ROW_ALTERNATING,
    ROW_1E_20,
    ROW_1E_30,
    ROW_NEAR_MAX,
    ROW_SUBNORMAL,
    ROW_EXTREMES,
    ROW_SORTED,
    ROW_FIRST_64,
    ROW_NEARLY_EQUAL,  /* all equal but one, which is a float below: the mean is a thousand σ and more */
    ROW_AT_MEAN_LIMIT, /* around the mean, in units of sigma, where a row begins to need the fallback */
    ROW_STRESS_KINDS,
    /* and for comparing paths */
    ROW_HUGE = ROW_STRESS_KINDS,
    ROW_ZEROS,
    ROW_ONE_INF,
    ROW_ONE_NAN,
    ROW_LAST_OUTLIER,
    ROW_ANY_MAGNITUDE,
    ROW_AT_QUIET_LIMIT, /* around the mean squares where a row begins to need the fallback */
    ROW_KINDS,
    /* and where a test names them: what the sums of a set over channels may stumble over */
    ROW_LARGE_MEAN = ROW_KINDS, /* from 2^8 to 2^30 σ, of any magnitude */
    ROW_LEVELS,                 /* pieces of one value each, which segments cross */
    ROW_SCALES,                 /* pieces of magnitudes that no two doubles hold a sum of */
    /* and ordinary data, which tests of truth take in numbers: a seed gives other values throughout */
    ROW_ORDINARY,
    ROW_SD_1 = ROW_ORDINARY,
    ROW_SD_4,
    ROW_SD_10,
    ROW_UNIFORM,
    ROW_OF_BF16, /* N(0,1), rounded to bf16 */
    ROW_ALL_KINDS,
    ROW_ORDINARY_KINDS = ROW_ALL_KINDS - ROW_ORDINARY
};

const char *row_kind_name(enum row_kind kind);

/* dim values that dtype represents. Kinds beyond the range of f16 take the nearest thing f16 has. */
void row_fill(float *row, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);

/* The same in new memory. */
float *row_new(size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);

#endif
