/* Attention score biases: their tables, adding them, and the gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "score_bias.h"

#include <float.h>

#include "../exact/t5_rule.h"
#include "heads.h"

/* The entries of a head's table. */
static nrg_status count_diagonals(size_t queries, size_t keys, size_t *diagonals)
{
    if (queries > SIZE_MAX - keys)
        return NRG_ERR_OVERFLOW;
    *diagonals = nrg_diagonals(queries, keys);
    return NRG_OK;
}

/* ---- making the table ---- */

/* Distances that a table may have: the product of such a number and a float is exact in double. */
enum { DISTANCE_MOST = 1 << 29 };

enum { TABLE_HEADS = NRG_BIAS_HEADS, DIAGONALS = NRG_BIAS_DIAGONALS, SPEC_HEADS = NRG_BIAS_NUMBERS, BUCKETS };

static int distances_fit(const nrg_score_bias_spec *s)
{
    if (s->queries > DISTANCE_MOST || s->keys > DISTANCE_MOST || s->first_position > DISTANCE_MOST ||
        s->first_position < -DISTANCE_MOST)
        return 0;
    return nrg_bias_lowest(s) >= -DISTANCE_MOST && (int64_t)(s->keys - 1) - s->first_position <= DISTANCE_MOST;
}

static nrg_status measure_spec(const nrg_score_bias_spec *spec, nrg_sizes *s)
{
    size_t diagonals;
    const nrg_status status = count_diagonals(spec->queries, spec->keys, &diagonals);
    if (status != NRG_OK)
        return status;
    s->n[TABLE_HEADS] = diagonals ? spec->heads : 0;
    s->n[DIAGONALS] = spec->heads ? diagonals : 0;
    return !s->n[DIAGONALS] || distances_fit(spec) ? NRG_OK : NRG_ERR_POSITION;
}

#define SPEC_PART                                                                                                                \
    {                                                                                                                            \
        .size = sizeof(nrg_score_bias_spec), .least = sizeof(nrg_score_bias_spec)                                                \
    }

#define FIELD(args, type, field) #field, .part = (args), .at = NRG_AT(type, field)
#define ROWS(args, type, field, number, rows)                                                                                    \
    FIELD(args, type, field), .dim = (number), .level = {{.stride = NRG_AT(type, field##_stride), .count = (rows)}}

/* ---- T5 ---- */

static int rule_is_sound(const nrg_score_bias_spec *spec)
{
    t5_rule rule;
    return nrg_t5_rule_make(&rule, spec->bidirectional, spec->buckets, spec->max_distance);
}

static nrg_status measure_t5(const void *const *part, nrg_sizes *s)
{
    const nrg_score_bias_spec *spec = part[NRG_BIAS_SPEC];
    const nrg_t5_args *args = part[NRG_BIAS_ARGS];
    const nrg_status status = measure_spec(spec, s);
    s->type[0] = args->dtype;
    if (status != NRG_OK)
        return status;
    s->n[SPEC_HEADS] = spec->heads;
    s->n[BUCKETS] = s->n[TABLE_HEADS] ? (size_t)spec->buckets : 0;
    return rule_is_sound(spec) ? NRG_OK : NRG_ERR_CONSTANT;
}

static const nrg_part t5_parts[] = {SPEC_PART, {.size = sizeof(nrg_t5_args)}};

static const nrg_operand t5_operands[NRG_T5_OPERANDS] = {
    [NRG_T5_TABLE] = {ROWS(NRG_BIAS_ARGS, nrg_t5_args, table, SPEC_HEADS, BUCKETS), .role = NRG_IN,
                      .element = NRG_ELEMENT_CHOSEN},
    [NRG_T5_DIAGONALS] = {ROWS(NRG_BIAS_ARGS, nrg_t5_args, diagonals, DIAGONALS, TABLE_HEADS), .role = NRG_OUT,
                          .element = NRG_ELEMENT_F32},
};

static const nrg_range t5_ranges[] = {NRG_DTYPE_RANGE(NRG_BIAS_ARGS, nrg_t5_args, dtype)};

const nrg_call nrg_call_t5_diagonals_forward = {
    .parts = t5_parts,
    .part_count = NRG_COUNT(t5_parts),
    .operands = t5_operands,
    .operand_count = NRG_T5_OPERANDS,
    .ranges = t5_ranges,
    .range_count = NRG_COUNT(t5_ranges),
    .measure = measure_t5,
};

static nrg_status measure_t5_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_score_bias_spec *spec = part[NRG_BIAS_SPEC];
    const nrg_status status = measure_spec(spec, s);
    s->n[SPEC_HEADS] = spec->heads;
    s->n[BUCKETS] = spec->heads ? (size_t)spec->buckets : 0; /* written where there is no diagonal, too */
    return status != NRG_OK || rule_is_sound(spec) ? status : NRG_ERR_CONSTANT;
}

static const nrg_part t5_backward_parts[] = {SPEC_PART, {.size = sizeof(nrg_t5_backward_args)}};

static const nrg_operand t5_backward_operands[NRG_T5_BACKWARD_OPERANDS] = {
    [NRG_T5_BACKWARD_D_DIAGONALS] = {ROWS(NRG_BIAS_ARGS, nrg_t5_backward_args, d_diagonals, DIAGONALS, TABLE_HEADS),
                                     .role = NRG_IN, .element = NRG_ELEMENT_F64},
    [NRG_T5_BACKWARD_D_TABLE] = {ROWS(NRG_BIAS_ARGS, nrg_t5_backward_args, d_table, SPEC_HEADS, BUCKETS), .role = NRG_INOUT,
                                 .element = NRG_ELEMENT_F32},
};

const nrg_call nrg_call_t5_diagonals_backward = {
    .parts = t5_backward_parts,
    .part_count = NRG_COUNT(t5_backward_parts),
    .operands = t5_backward_operands,
    .operand_count = NRG_T5_BACKWARD_OPERANDS,
    .measure = measure_t5_backward,
};

/* ---- ALiBi ---- */

static nrg_status measure_slopes(const void *const *part, nrg_sizes *s)
{
    const nrg_alibi_slopes_args *args = part[NRG_ALIBI_SLOPES_ARGS];
    s->n[TABLE_HEADS] = args->heads;
    return args->max_bias >= 0 && args->max_bias <= DBL_MAX ? NRG_OK : NRG_ERR_CONSTANT;
}

static const nrg_part slopes_parts[] = {{.size = sizeof(nrg_alibi_slopes_args)}};

static const nrg_operand slopes_operands[NRG_ALIBI_SLOPES_OPERANDS] = {
    [NRG_ALIBI_SLOPES_SLOPES] = {"slopes", NRG_OUT, NRG_ELEMENT_F32, .part = NRG_ALIBI_SLOPES_ARGS,
                                 .at = NRG_AT(nrg_alibi_slopes_args, slopes), .dim = TABLE_HEADS},
};

const nrg_call nrg_call_alibi_slopes = {
    .parts = slopes_parts,
    .part_count = NRG_COUNT(slopes_parts),
    .operands = slopes_operands,
    .operand_count = NRG_ALIBI_SLOPES_OPERANDS,
    .measure = measure_slopes,
};

static nrg_status measure_alibi(const void *const *part, nrg_sizes *s)
{
    const nrg_score_bias_spec *spec = part[NRG_BIAS_SPEC];
    return spec->bidirectional || spec->buckets || spec->max_distance ? NRG_ERR_COMBINATION : measure_spec(spec, s);
}

static const nrg_part alibi_parts[] = {SPEC_PART, {.size = sizeof(nrg_alibi_args)}};

static const nrg_operand alibi_operands[NRG_ALIBI_OPERANDS] = {
    [NRG_ALIBI_SLOPES] = {FIELD(NRG_BIAS_ARGS, nrg_alibi_args, slopes), .role = NRG_IN, .element = NRG_ELEMENT_F32,
                          .dim = TABLE_HEADS},
    [NRG_ALIBI_DIAGONALS] = {ROWS(NRG_BIAS_ARGS, nrg_alibi_args, diagonals, DIAGONALS, TABLE_HEADS), .role = NRG_OUT,
                             .element = NRG_ELEMENT_F32},
};

const nrg_call nrg_call_alibi_diagonals = {
    .parts = alibi_parts,
    .part_count = NRG_COUNT(alibi_parts),
    .operands = alibi_operands,
    .operand_count = NRG_ALIBI_OPERANDS,
    .measure = measure_alibi,
};

/* ---- adding it ---- */

enum { BATCH = BUCKETS + 1, HEADS, QUERIES, KEYS };

/* A tensor [batch, heads, queries, keys]. */
static nrg_status measure_scores(size_t batch, size_t heads, size_t queries, size_t keys, nrg_sizes *s)
{
    s->n[BATCH] = batch;
    s->n[HEADS] = heads;
    s->n[QUERIES] = queries;
    s->n[KEYS] = keys;
    return count_diagonals(queries, keys, &s->n[DIAGONALS]);
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_score_bias_args *a = part[NRG_SCORE_BIAS_ARGS];
    if (!(a->scale >= -FLT_MAX && a->scale <= FLT_MAX))
        return NRG_ERR_CONSTANT;
    s->type[0] = a->dtype;
    s->n[TABLE_HEADS] = a->batch ? a->heads : 0;
    return measure_scores(a->batch, a->heads, a->queries, a->keys, s);
}

static const nrg_part forward_parts[] = {
    {.size = sizeof(nrg_score_bias_args), .least = sizeof(nrg_score_bias_args)},
};

#define SCORES(type, field)                                                                                                      \
    FIELD(NRG_SCORE_BIAS_ARGS, type, field), .element = NRG_ELEMENT_CHOSEN, .dim = KEYS,                                         \
                                             .level = NRG_ROWS_TOGETHER(type, field##_strides, BATCH, HEADS, QUERIES)

static const nrg_operand forward_operands[NRG_SCORE_BIAS_OPERANDS] = {
    [NRG_SCORE_BIAS_SCORES] = {SCORES(nrg_score_bias_args, scores), .role = NRG_IN},
    [NRG_SCORE_BIAS_DIAGONALS] = {ROWS(NRG_SCORE_BIAS_ARGS, nrg_score_bias_args, diagonals, DIAGONALS, TABLE_HEADS),
                                  .role = NRG_IN, .element = NRG_ELEMENT_F32},
    [NRG_SCORE_BIAS_O] = {SCORES(nrg_score_bias_args, o), .role = NRG_OUT, .over = NRG_BIT(NRG_SCORE_BIAS_SCORES)},
};

static const nrg_range forward_ranges[] = {
    NRG_DTYPE_RANGE(NRG_SCORE_BIAS_ARGS, nrg_score_bias_args, dtype),
    NRG_ENUM_RANGE(NRG_SCORE_BIAS_ARGS, nrg_score_bias_args, store, NRG_STORE_STREAM),
    NRG_RESERVED_RANGE(NRG_SCORE_BIAS_ARGS, nrg_score_bias_args, reserved),
};

const nrg_call nrg_call_score_bias_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_SCORE_BIAS_OPERANDS,
    .ranges = forward_ranges,
    .range_count = NRG_COUNT(forward_ranges),
    .measure = measure_forward,
};

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_score_bias_backward_args *a = part[NRG_SCORE_BIAS_ARGS];
    s->type[0] = a->dtype;
    s->n[TABLE_HEADS] = a->heads; /* written without a batch, too */
    return measure_scores(a->batch, a->heads, a->queries, a->keys, s);
}

static const nrg_part backward_parts[] = {
    {.size = sizeof(nrg_score_bias_backward_args), .least = sizeof(nrg_score_bias_backward_args)},
};

static const nrg_operand backward_operands[NRG_SCORE_BIAS_BACKWARD_OPERANDS] = {
    [NRG_SCORE_BIAS_BACKWARD_D_O] = {SCORES(nrg_score_bias_backward_args, d_o), .role = NRG_IN},
    [NRG_SCORE_BIAS_BACKWARD_D_DIAGONALS] = {ROWS(NRG_SCORE_BIAS_ARGS, nrg_score_bias_backward_args, d_diagonals, DIAGONALS,
                                                  TABLE_HEADS),
                                             .role = NRG_INOUT, .element = NRG_ELEMENT_F64},
};

static const nrg_range backward_ranges[] = {NRG_DTYPE_RANGE(NRG_SCORE_BIAS_ARGS, nrg_score_bias_backward_args, dtype)};

const nrg_call nrg_call_score_bias_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_SCORE_BIAS_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};
