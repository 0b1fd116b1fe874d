/* Softmax: whole rows, rows in parts, and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "softmax.h"

#include <float.h>

#include "heads.h"

/* numbers */
enum { KEYS = 1, QUERIES, HEADS, BATCH, DIAGONALS, DIAGONAL_HEADS, HEAD_NUMBERS, ROWS };

/* What all calls have: scale, cap and window, and a position that can be added to. */
static nrg_status check_numbers(float scale, float cap, int causal, size_t window, int64_t first)
{
    if (!(scale >= -FLT_MAX && scale <= FLT_MAX) || !(cap > 0) || !(scale / cap >= -FLT_MAX && scale / cap <= FLT_MAX) || !window)
        return NRG_ERR_CONSTANT;
    const int is_read = causal || window != SIZE_MAX;
    return !is_read || (first >= -((int64_t)1 << 61) && first <= (int64_t)1 << 61) ? NRG_OK : NRG_ERR_POSITION;
}

/* Rows of keys. No stride says that the number of rows that repeat fits. */
static nrg_status measure_rows(nrg_sizes *s, size_t batch, size_t heads, size_t queries, size_t keys)
{
    size_t bytes;
    const uint64_t most = (uint64_t)1 << 61;
    const int is_empty = !batch || !heads || !queries || !keys;
    s->n[BATCH] = batch;
    s->n[HEADS] = heads;
    s->n[QUERIES] = queries;
    s->n[KEYS] = keys;
    s->n[ROWS] = 0;
    if (is_empty)
        return NRG_OK;
    if (queries > SIZE_MAX - keys || (uint64_t)queries > most || (uint64_t)keys > most)
        return NRG_ERR_OVERFLOW;
    return nrg_product(batch, heads, &bytes) && nrg_product(bytes, queries, &s->n[ROWS]) &&
                   nrg_product(s->n[ROWS], keys, &bytes) && nrg_product(bytes, 4, &bytes)
               ? NRG_OK
               : NRG_ERR_OVERFLOW;
}

static nrg_status measure_args(const nrg_softmax_args *a, nrg_sizes *s)
{
    nrg_status status = check_numbers(a->scale, a->cap, a->causal, a->window, a->first_position);
    s->type[0] = a->dtype;
    s->type[1] = a->mask_dtype == NRG_DTYPE_SAME ? a->dtype : a->mask_dtype;
    if (a->mask_repeat > (NRG_REPEAT_ROWS | NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3))
        return NRG_ERR_ENUM;
    if (status == NRG_OK)
        status = measure_rows(s, a->batch, a->heads, a->queries, a->keys);
    if (status != NRG_OK)
        return status;
    s->n[DIAGONALS] = s->n[ROWS] ? nrg_diagonals(a->queries, a->keys) : 0;
    s->n[DIAGONAL_HEADS] = s->n[HEAD_NUMBERS] = s->n[ROWS] ? a->heads : 0;
    if (!a->mask)
        s->refused = NRG_BIT(NRG_SOFTMAX_SLOPES);
    return NRG_OK;
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s) { return measure_args(part[NRG_SOFTMAX_ARGS], s); }

static nrg_status measure_part(const void *const *part, nrg_sizes *s)
{
    const nrg_softmax_args *a = part[NRG_SOFTMAX_ARGS];
    const nrg_softmax_state *state = part[NRG_SOFTMAX_STATE];
    const nrg_status status = measure_args(a, s);
    return status == NRG_OK && (a->log || !state->m_in != !state->sum_in) ? NRG_ERR_COMBINATION : status;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_softmax_backward_args *a = part[NRG_SOFTMAX_ARGS];
    const nrg_status status = check_numbers(a->scale, a->cap, a->causal, a->window, a->first_position);
    s->type[0] = a->dtype;
    if (a->cap < FLT_MAX)
        s->needed = NRG_BIT(NRG_SOFTMAX_BACKWARD_X);
    else
        s->refused = NRG_BIT(NRG_SOFTMAX_BACKWARD_X);
    return status == NRG_OK ? measure_rows(s, a->batch, a->heads, a->queries, a->keys) : status;
}

#define TENSOR(type, role_, field, element_)                                                                                     \
#field, .role = (role_), .element = (element_), .at = NRG_AT(type, field), .dim = KEYS,                                      \
            .level = NRG_ROWS_TOGETHER(type, field##_strides, BATCH, HEADS, QUERIES)
#define SCORES(role, field) TENSOR(nrg_softmax_args, role, field, NRG_ELEMENT_CHOSEN)
#define OF_HEADS(field) #field, NRG_IN, NRG_ELEMENT_F32, .at = NRG_AT(nrg_softmax_args, field), .may_be_absent = 1
#define OF_ROWS(role, field, element_)                                                                                           \
#field, role, element_, .part = NRG_SOFTMAX_STATE, .at = NRG_AT(nrg_softmax_state, field), .dim = ROWS

#define FORWARD_OPERANDS                                                                                                         \
    [NRG_SOFTMAX_X] = {SCORES(NRG_IN, x)},                                                                                       \
    [NRG_SOFTMAX_MASK] = {TENSOR(nrg_softmax_args, NRG_IN, mask, NRG_ELEMENT_CHOSEN + 1), .may_be_absent = 1,                    \
                          .repeat = NRG_AT(nrg_softmax_args, mask_repeat)},                                                      \
    [NRG_SOFTMAX_DIAGONALS] = {OF_HEADS(diagonals), .dim = DIAGONALS,                                                            \
                               .level = {{.stride = NRG_AT(nrg_softmax_args, diagonals_stride), .count = DIAGONAL_HEADS}}},      \
    [NRG_SOFTMAX_SLOPES] = {OF_HEADS(slopes), .dim = HEAD_NUMBERS},                                                              \
    [NRG_SOFTMAX_SINKS] = {OF_HEADS(sinks), .dim = HEAD_NUMBERS},                                                                \
    [NRG_SOFTMAX_O] = {SCORES(NRG_OUT, o), .over = NRG_BIT(NRG_SOFTMAX_X)}

static const nrg_part parts[] = {
    {.size = sizeof(nrg_softmax_args), .least = sizeof(nrg_softmax_args)},
    {.size = sizeof(nrg_softmax_state), .least = sizeof(nrg_softmax_state)},
};

static const nrg_range ranges[] = {
    NRG_DTYPE_RANGE(NRG_SOFTMAX_ARGS, nrg_softmax_args, dtype),
    NRG_OTHER_DTYPE_RANGE(NRG_SOFTMAX_ARGS, nrg_softmax_args, mask_dtype),
    NRG_ENUM_RANGE(NRG_SOFTMAX_ARGS, nrg_softmax_args, store, NRG_STORE_STREAM),
};

static const nrg_operand forward_operands[NRG_SOFTMAX_OPERANDS] = {FORWARD_OPERANDS};

const nrg_call nrg_call_softmax_forward = {
    .parts = parts,
    .part_count = 1,
    .operands = forward_operands,
    .operand_count = NRG_SOFTMAX_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_forward,
};

static const nrg_operand part_operands[NRG_SOFTMAX_PART_OPERANDS] = {
    FORWARD_OPERANDS,
    [NRG_SOFTMAX_PART_M_IN] = {OF_ROWS(NRG_IN, m_in, NRG_ELEMENT_F32), .may_be_absent = 1},
    [NRG_SOFTMAX_PART_SUM_IN] = {OF_ROWS(NRG_IN, sum_in, NRG_ELEMENT_F64), .may_be_absent = 1},
    [NRG_SOFTMAX_PART_M] = {OF_ROWS(NRG_OUT, m, NRG_ELEMENT_F32), .over = NRG_BIT(NRG_SOFTMAX_PART_M_IN)},
    [NRG_SOFTMAX_PART_SUM] = {OF_ROWS(NRG_OUT, sum, NRG_ELEMENT_F64), .over = NRG_BIT(NRG_SOFTMAX_PART_SUM_IN)},
    [NRG_SOFTMAX_PART_FACTOR] = {OF_ROWS(NRG_OUT, factor, NRG_ELEMENT_F32)},
};

const nrg_call nrg_call_softmax_part = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = part_operands,
    .operand_count = NRG_SOFTMAX_PART_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_part,
};

/* ---- states of parts ---- */

enum { PARTS_AND_ROWS = ROWS + 1 };

static nrg_status measure_merge(const void *const *part, nrg_sizes *s)
{
    const nrg_softmax_merge_args *a = part[NRG_SOFTMAX_ARGS];
    s->n[ROWS] = a->rows;
    if (!a->parts)
        return NRG_ERR_COUNT;
    return nrg_product(a->parts, a->rows, &s->n[PARTS_AND_ROWS]) ? NRG_OK : NRG_ERR_OVERFLOW;
}

#define OF_STATES(role, field, element_, number)                                                                                 \
#field, role, element_, .at = NRG_AT(nrg_softmax_merge_args, field), .dim = number

static const nrg_part merge_parts[] = {
    {.size = sizeof(nrg_softmax_merge_args), .least = sizeof(nrg_softmax_merge_args)},
};

static const nrg_operand merge_operands[NRG_SOFTMAX_MERGE_OPERANDS] = {
    [NRG_SOFTMAX_MERGE_M_IN] = {OF_STATES(NRG_IN, m_in, NRG_ELEMENT_F32, PARTS_AND_ROWS)},
    [NRG_SOFTMAX_MERGE_SUM_IN] = {OF_STATES(NRG_IN, sum_in, NRG_ELEMENT_F64, PARTS_AND_ROWS)},
    [NRG_SOFTMAX_MERGE_M] = {OF_STATES(NRG_OUT, m, NRG_ELEMENT_F32, ROWS)},
    [NRG_SOFTMAX_MERGE_SUM] = {OF_STATES(NRG_OUT, sum, NRG_ELEMENT_F64, ROWS)},
    [NRG_SOFTMAX_MERGE_FACTOR] = {OF_STATES(NRG_OUT, factor, NRG_ELEMENT_F32, PARTS_AND_ROWS), .may_be_absent = 1},
    [NRG_SOFTMAX_MERGE_INVERSE] = {OF_STATES(NRG_OUT, inverse, NRG_ELEMENT_F32, ROWS), .may_be_absent = 1},
    [NRG_SOFTMAX_MERGE_LSE] = {OF_STATES(NRG_OUT, lse, NRG_ELEMENT_F64, ROWS), .may_be_absent = 1},
};

const nrg_call nrg_call_softmax_merge = {
    .parts = merge_parts,
    .part_count = NRG_COUNT(merge_parts),
    .operands = merge_operands,
    .operand_count = NRG_SOFTMAX_MERGE_OPERANDS,
    .measure = measure_merge,
};

/* ---- backward ---- */

#define BACK(role, field) TENSOR(nrg_softmax_backward_args, role, field, NRG_ELEMENT_CHOSEN)

static const nrg_part backward_parts[] = {
    {.size = sizeof(nrg_softmax_backward_args), .least = sizeof(nrg_softmax_backward_args)},
};

static const nrg_range backward_ranges[] = {
    NRG_DTYPE_RANGE(NRG_SOFTMAX_ARGS, nrg_softmax_backward_args, dtype),
    NRG_ENUM_RANGE(NRG_SOFTMAX_ARGS, nrg_softmax_backward_args, store, NRG_STORE_STREAM),
};

static const nrg_operand backward_operands[NRG_SOFTMAX_BACKWARD_OPERANDS] = {
    [NRG_SOFTMAX_BACKWARD_O] = {BACK(NRG_IN, o)},
    [NRG_SOFTMAX_BACKWARD_D_O] = {BACK(NRG_IN, d_o)},
    [NRG_SOFTMAX_BACKWARD_X] = {BACK(NRG_IN, x), .may_be_absent = 1},
    [NRG_SOFTMAX_BACKWARD_DX] = {BACK(NRG_OUT, dx), .over = NRG_BIT(NRG_SOFTMAX_BACKWARD_O) | NRG_BIT(NRG_SOFTMAX_BACKWARD_D_O) |
                                                            NRG_BIT(NRG_SOFTMAX_BACKWARD_X)},
};

const nrg_call nrg_call_softmax_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_SOFTMAX_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};
