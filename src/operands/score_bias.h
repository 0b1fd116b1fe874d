/* What the calls of nrg/score_bias.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SCORE_BIAS_H
#define NRG_OPERANDS_SCORE_BIAS_H

#include <float.h>

#include "../../include/nrg/score_bias.h"
#include "../exact/t5_rule.h"
#include "heads.h"

/* The distance of entry 0. */
static inline int64_t nrg_bias_lowest(const nrg_score_bias_spec *s) { return -((int64_t)s->queries - 1) - s->first_position; }

/* What functions take beside a spec. */
typedef struct nrg_t5_args {
    const void *table;
    float *diagonals;
    size_t table_stride, diagonals_stride;
    nrg_dtype dtype;
} nrg_t5_args;
typedef struct nrg_t5_backward_args {
    const double *d_diagonals;
    float *d_table;
    size_t d_diagonals_stride, d_table_stride;
} nrg_t5_backward_args;
typedef struct nrg_alibi_slopes_args {
    float *slopes;
    size_t heads;
    double max_bias;
} nrg_alibi_slopes_args;
typedef struct nrg_alibi_args {
    const float *slopes;
    float *diagonals;
    size_t diagonals_stride;
} nrg_alibi_args;

enum { NRG_BIAS_DISTANCE_MOST = 1 << 29 };

/* Whether the product of each distance and a float is exact in double. */
static inline int nrg_bias_distances_fit(const nrg_score_bias_spec *s)
{
    const int64_t most = NRG_BIAS_DISTANCE_MOST, first = s->first_position;
    return s->queries <= NRG_BIAS_DISTANCE_MOST && s->keys <= NRG_BIAS_DISTANCE_MOST && first >= -most && first <= most &&
           nrg_bias_lowest(s) >= -most && (int64_t)(s->keys - 1) - first <= most;
}

/* Whether buckets and distances make a rule of T5. */
static inline int nrg_t5_is_rule(const nrg_score_bias_spec *spec)
{
    t5_rule rule;
    return nrg_t5_rule_make(&rule, spec->bidirectional, spec->buckets, spec->max_distance);
}

#include "score_bias_calls.def"

#endif
