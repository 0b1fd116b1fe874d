/* T5's table of biases to diagonals, and back. No kernel: a table is small, and long runs of its diagonals are alike.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../exact/element.h"
#include "../exact/t5_rule.h"
#include "score_bias_checks.h"

enum operand { TABLE = 1, DIAGONALS = 2 };

int nrg_t5_bucket(int64_t distance, int bidirectional, int buckets, int max_distance)
{
    t5_rule rule;
    if (!nrg_t5_rule_make(&rule, bidirectional, buckets, max_distance))
        return -1;
    if (distance > 0)
        return bidirectional ? rule.side + nrg_t5_rule_bucket(&rule, distance) : 0;
    return nrg_t5_rule_bucket(&rule, distance < -INT64_MAX ? INT64_MAX : -distance);
}

/* Diagonals begin to end, all of one bucket. */
typedef struct bucket_run {
    int bucket;
    int64_t begin, end;
} bucket_run;

/* The run that starts at diagonal begin. All diagonals of a bucket are neighbours. */
static bucket_run run_from(const t5_rule *rule, const nrg_bias_spec *s, const bias_table *t, int64_t begin)
{
    const int64_t distance = t->lowest + begin;
    bucket_run run = {0, begin, (int64_t)t->diagonals};
    int64_t last = INT64_MAX; /* the last distance of the bucket */
    if (distance > 0 && s->bidirectional) {
        const int near = nrg_t5_rule_bucket(rule, distance);
        run.bucket = rule->side + near;
        last = nrg_t5_rule_first(rule, near + 1) - 1;
    } else if (distance <= 0) {
        run.bucket = nrg_t5_rule_bucket(rule, -distance);
        if (run.bucket || s->bidirectional)
            last = -nrg_t5_rule_first(rule, run.bucket);
    }
    if (last - distance < run.end - begin)
        run.end = begin + (last - distance) + 1;
    return run;
}

/* The diagonals that have a bucket: all, or those whose key does not come after the query. */
static int64_t bucket_diagonals(const nrg_bias_spec *s, const bias_table *t)
{
    if (!s->mask_future || t->lowest + (int64_t)t->diagonals <= 1)
        return (int64_t)t->diagonals;
    return t->lowest <= 0 ? 1 - t->lowest : 0;
}

/* What both directions check. rows: of the table of numbers. */
static nrg_status read_rule(t5_rule *rule, const nrg_bias_spec *s)
{
    return nrg_t5_rule_make(rule, s->bidirectional, s->buckets, s->max_distance) ? NRG_OK : NRG_ERR_CONSTANT;
}

nrg_status nrg_t5_diagonals(const nrg_bias_spec *spec, nrg_dtype dtype, const void *table, size_t table_stride, float *diagonals,
                            size_t diagonals_stride, int ith, int nth)
{
    nrg_bias_spec copy;
    bias_table t;
    t5_rule rule;
    const nrg_bias_spec *s = spec;
    if (!is_dtype(dtype))
        return NRG_ERR_ENUM;
    nrg_status status = read_bias_spec(&s, &copy, &t, ith, nth);
    if (status != NRG_OK || (status = read_rule(&rule, s)) != NRG_OK)
        return status;
    if (t.diagonals && (!table || !diagonals))
        return NRG_ERR_NULL;
    extent operands[2];
    extents all = {0, operands};
    if ((status = add_operand(&all, TABLE, ANY_OPERAND, table, dtype, s->heads, t.heads ? (size_t)s->buckets : 0,
                              &table_stride)) != NRG_OK ||
        (status = add_operand(&all, DIAGONALS, 0, diagonals, NRG_F32, t.diagonals, t.heads, &diagonals_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const size_t begin = share(t.heads, ith, nth), end = share(t.heads, ith + 1, nth);
    if (begin == end)
        return NRG_OK;

    char *to = (char *)diagonals;
    const int64_t with_bucket = bucket_diagonals(s, &t);
    for (bucket_run run = {0, 0, 0}; run.end < with_bucket;) {
        run = run_from(&rule, s, &t, run.end);
        if (run.end > with_bucket)
            run.end = with_bucket;
        const char *numbers = (const char *)table + (size_t)run.bucket * table_stride;
        for (size_t h = begin; h < end; h++) {
            float *of_head = (float *)(to + h * diagonals_stride);
            const float bias = load(numbers, h, dtype);
            for (int64_t e = run.begin; e < run.end; e++)
                of_head[e] = bias;
        }
    }
    for (size_t h = begin; h < end; h++)
        for (size_t e = (size_t)with_bucket; e < t.diagonals; e++)
            ((float *)(to + h * diagonals_stride))[e] = -INFINITY;
    return NRG_OK;
}

nrg_status nrg_t5_backward(const nrg_bias_spec *spec, const double *d_diagonals, size_t d_diagonals_stride, float *d_table,
                           size_t d_table_stride, int accumulate, int ith, int nth)
{
    nrg_bias_spec copy;
    bias_table t;
    t5_rule rule;
    const nrg_bias_spec *s = spec;
    nrg_status status = read_bias_spec(&s, &copy, &t, ith, nth);
    if (status != NRG_OK || (status = read_rule(&rule, s)) != NRG_OK)
        return status;
    if ((t.diagonals && !d_diagonals) || (s->heads && !d_table))
        return NRG_ERR_NULL;
    extent operands[2];
    extents all = {0, operands};
    if ((status = add_doubles(&all, DIAGONALS, ANY_OPERAND, d_diagonals, t.diagonals, t.heads, &d_diagonals_stride)) != NRG_OK ||
        (status = add_operand(&all, TABLE, 0, d_table, NRG_F32, s->heads, s->heads ? (size_t)s->buckets : 0, &d_table_stride)) !=
            NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const size_t begin = share(s->heads, ith, nth), end = share(s->heads, ith + 1, nth);
    if (begin == end)
        return NRG_OK;

    char *to = (char *)d_table;
    if (!accumulate)
        for (size_t bucket = 0; bucket < (size_t)s->buckets; bucket++)
            for (size_t h = begin; h < end; h++)
                ((float *)(to + bucket * d_table_stride))[h] = 0;
    const int64_t with_bucket = t.diagonals ? bucket_diagonals(s, &t) : 0;
    for (bucket_run run = {0, 0, 0}; run.end < with_bucket;) {
        run = run_from(&rule, s, &t, run.end);
        if (run.end > with_bucket)
            run.end = with_bucket;
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
