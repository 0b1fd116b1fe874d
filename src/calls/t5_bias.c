/* T5's table of biases to diagonals, and back. No kernel: a table is small, and long runs of its diagonals are alike.
 *
 * SPDX-License-Identifier: MIT */
#include "../exact/element.h"
#include "../operands/check.h"
#include "../operands/score_bias.h"
#include "call.h"

int nrg_t5_bucket(int64_t distance, int bidirectional, int buckets, int max_distance)
{
    t5_rule rule;
    if (!nrg_t5_rule_make(&rule, bidirectional, buckets, max_distance))
        return -1;
    if (distance > 0)
        return bidirectional ? rule.side + nrg_t5_rule_bucket(&rule, distance) : 0;
    return nrg_t5_rule_bucket(&rule, distance < -INT64_MAX ? INT64_MAX : -distance);
}

/* A table of diagonals that a spec describes. */
typedef struct bias_table {
    const nrg_score_bias_spec *spec;
    t5_rule rule;
    int64_t lowest;      /* the distance of entry 0 */
    int64_t with_bucket; /* diagonals that have a bucket: all, or those whose key does not come after the query */
} bias_table;

static bias_table table_of(const nrg_score_bias_spec *s, size_t diagonals)
{
    bias_table t = {.spec = s, .with_bucket = (int64_t)diagonals};
    nrg_t5_rule_make(&t.rule, s->bidirectional, s->buckets, s->max_distance);
    if (diagonals)
        t.lowest = nrg_bias_lowest(s);
    if (s->causal && t.lowest + t.with_bucket > 1)
        t.with_bucket = t.lowest <= 0 ? 1 - t.lowest : 0;
    return t;
}

/* Diagonals begin to end, all of one bucket. */
typedef struct bucket_run {
    int bucket;
    int64_t begin, end;
} bucket_run;

/* The run that starts at diagonal begin. All diagonals of a bucket are neighbours. */
static bucket_run run_from(const bias_table *t, int64_t begin)
{
    const t5_rule *rule = &t->rule;
    const int64_t distance = t->lowest + begin;
    bucket_run run = {0, begin, t->with_bucket};
    int64_t last = INT64_MAX; /* the last distance of the bucket */
    if (distance > 0 && t->spec->bidirectional) {
        const int near = nrg_t5_rule_bucket(rule, distance);
        run.bucket = rule->side + near;
        last = nrg_t5_rule_first(rule, near + 1) - 1;
    } else if (distance <= 0) {
        run.bucket = nrg_t5_rule_bucket(rule, -distance);
        if (run.bucket || t->spec->bidirectional)
            last = -nrg_t5_rule_first(rule, run.bucket);
    }
    if (last - distance < run.end - begin)
        run.end = begin + (last - distance) + 1;
    return run;
}

/* Eight at a time: gcc makes vectors of no other loop at -O2. */
static void fill(float *to, float value, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            to[i + j] = value;
    for (; i < n; i++)
        to[i] = value;
}

nrg_status nrg_t5_diagonals_forward(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table, size_t table_stride,
                                    float *diagonals, size_t diagonals_stride, int ith, int nth)
{
    nrg_checked c;
    const nrg_t5_args args = {table, diagonals, table_stride, diagonals_stride, dtype};
    const nrg_status status = nrg_check(&c, &nrg_call_t5_diagonals_forward, (const void *const[]){spec, &args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t heads = c.sizes.n[NRG_T5_N_TABLE_HEADS], entries = c.sizes.n[NRG_T5_N_DIAGONALS];
    const bias_table t = table_of(c.part[NRG_T5_SPEC], entries);
    const size_t begin = nrg_share(heads, ith, nth), end = nrg_share(heads, ith + 1, nth);
    if (begin == end)
        return NRG_OK;
    char *to = (char *)diagonals;
    table_stride = c.laid.stride[NRG_T5_TABLE][0];
    diagonals_stride = c.laid.stride[NRG_T5_DIAGONALS][0];
    for (bucket_run run = {0, 0, 0}; run.end < t.with_bucket;) {
        run = run_from(&t, run.end);
        const char *numbers = (const char *)table + (size_t)run.bucket * table_stride;
        for (size_t h = begin; h < end; h++) {
            float *of_head = (float *)(to + h * diagonals_stride);
            fill(of_head + run.begin, load(numbers, h, dtype), (size_t)(run.end - run.begin));
        }
    }
    for (size_t h = begin; h < end; h++)
        fill((float *)(to + h * diagonals_stride) + t.with_bucket, -INFINITY, entries - (size_t)t.with_bucket);
    return NRG_OK;
}

nrg_status nrg_t5_diagonals_forward_check(const nrg_score_bias_spec *spec, nrg_dtype dtype, const void *table,
                                          size_t table_stride, float *diagonals, size_t diagonals_stride)
{
    const nrg_t5_args args = {table, diagonals, table_stride, diagonals_stride, dtype};
    return NRG_ASK(t5_diagonals_forward, spec, &args);
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_t5_diagonals_backward(const nrg_score_bias_spec *spec, const double *d_diagonals, size_t d_diagonals_stride,
                                     float *d_table, size_t d_table_stride, int accumulate, int ith, int nth)
{
    nrg_checked c;
    const nrg_t5_backward_args args = {d_diagonals, d_table, d_diagonals_stride, d_table_stride};
    const nrg_status status = nrg_check(&c, &nrg_call_t5_diagonals_backward, (const void *const[]){spec, &args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const bias_table t = table_of(c.part[NRG_T5_SPEC], c.sizes.n[NRG_T5_BACKWARD_N_DIAGONALS]);
    const size_t begin = nrg_share(t.spec->heads, ith, nth), end = nrg_share(t.spec->heads, ith + 1, nth);
    if (begin == end)
        return NRG_OK;
    char *to = (char *)d_table;
    d_diagonals_stride = c.laid.stride[NRG_T5_BACKWARD_D_DIAGONALS][0];
    d_table_stride = c.laid.stride[NRG_T5_BACKWARD_D_TABLE][0];
    if (!accumulate)
        for (size_t bucket = 0; bucket < (size_t)t.spec->buckets; bucket++)
            for (size_t h = begin; h < end; h++)
                ((float *)(to + bucket * d_table_stride))[h] = 0;
    for (bucket_run run = {0, 0, 0}; run.end < t.with_bucket;) {
        run = run_from(&t, run.end);
        float *numbers = (float *)(to + (size_t)run.bucket * d_table_stride);
        for (size_t h = begin; h < end; h++) {
            const double *of_head = (const double *)((const char *)d_diagonals + h * d_diagonals_stride);
            double sum = 0;
            for (int64_t e = run.begin; e < run.end; e++)
                sum += of_head[e];
            numbers[h] = (float)(accumulate ? (double)numbers[h] + sum : sum);
        }
    }
    return NRG_OK;
}

nrg_status nrg_t5_diagonals_backward_check(const nrg_score_bias_spec *spec, const double *d_diagonals, size_t d_diagonals_stride,
                                           float *d_table, size_t d_table_stride, int accumulate)
{
    const nrg_t5_backward_args args = {d_diagonals, d_table, d_diagonals_stride, d_table_stride};
    (void)accumulate;
    return NRG_ASK(t5_diagonals_backward, spec, &args);
}
#endif
