/* Shaw's relative positions: scores, values, and the gradient of their table.
 *
 * SPDX-License-Identifier: MIT */
#include "relative.h"

#include "heads.h"

/* numbers */
enum { CLASSES = NRG_RELATIVE_CLASSES, TABLES = NRG_RELATIVE_TABLES, BATCH, HEADS, QUERIES, KEYS, DIM, ENDS };

static nrg_status measure(const nrg_relative_args *a, nrg_sizes *s)
{
    s->type[NRG_RELATIVE_TYPE] = a->dtype;
    const nrg_status status = nrg_beside(a->table_dtype, a->dtype, &s->type[NRG_RELATIVE_TYPE_TABLE]);
    if (status != NRG_OK)
        return status;
    if (!a->dim)
        return NRG_ERR_DIM;
    if (!nrg_relative_is_position(a->p_min) || !nrg_relative_is_position(a->p_max) ||
        !nrg_relative_is_position(a->first_position) || a->p_min > a->p_max)
        return NRG_ERR_POSITION;
    const uint64_t classes = (uint64_t)(a->p_max - a->p_min) + 1, most = (uint64_t)NRG_RELATIVE_FARTHEST;
    if (classes > SIZE_MAX || a->queries > most || a->keys > most)
        return NRG_ERR_OVERFLOW;
    s->n[CLASSES] = (size_t)classes;
    s->n[TABLES] = a->table_per_head ? a->heads : 1;
    s->n[BATCH] = a->batch;
    s->n[HEADS] = a->heads;
    s->n[QUERIES] = a->queries;
    s->n[KEYS] = a->keys;
    s->n[DIM] = a->dim;
    s->n[ENDS] = 2;
    return NRG_OK;
}

/* What has no rows, or no keys, is not looked at. */
static int has_rows(const nrg_relative_args *a) { return a->batch && a->heads && a->queries; }

static const nrg_part parts[] = {
    {.size = sizeof(nrg_relative_args), .least = sizeof(nrg_relative_args)},
};

static const nrg_range ranges[] = {
    NRG_DTYPE_RANGE(NRG_RELATIVE_ARGS, nrg_relative_args, dtype),
    NRG_OTHER_DTYPE_RANGE(NRG_RELATIVE_ARGS, nrg_relative_args, table_dtype),
};

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define FIELD(field) #field, .part = NRG_RELATIVE_ARGS, .at = NRG_AT(nrg_relative_args, field)
#define ROWS(field, number)                                                                                                      \
    FIELD(field), .element = CHOSEN(NRG_RELATIVE_TYPE), .dim = (number),                                                         \
                  .level = NRG_ROWS_TOGETHER(nrg_relative_args, field##_strides, BATCH, HEADS, QUERIES)
#define TABLE(field)                                                                                                             \
    FIELD(field), .dim = DIM, .level = NRG_ROWS_TOGETHER(nrg_relative_args, field##_strides, NRG_ONE, TABLES, CLASSES)
#define TABLE_INPUT TABLE(table), .role = NRG_IN, .element = CHOSEN(NRG_RELATIVE_TYPE_TABLE)
/* Two numbers for every row. */
#define ROW_ENDS(field)                                                                                                          \
    FIELD(field), .element = NRG_ELEMENT_F64, .may_be_absent = 1, .dim = ENDS,                                                   \
                  .level = {{.count = QUERIES}, {.count = HEADS}, {.count = BATCH}}

/* ---- scores ---- */

static nrg_status measure_scores(const void *const *part, nrg_sizes *s)
{
    const nrg_relative_args *a = part[NRG_RELATIVE_ARGS];
    if (a->a || a->o || a->ends || a->ends_in || a->d_table)
        return NRG_ERR_COMBINATION;
    if (!has_rows(a) || !a->keys)
        s->ignored |= NRG_BIT(NRG_RELATIVE_SCORES_Q) | NRG_BIT(NRG_RELATIVE_SCORES_TABLE) | NRG_BIT(NRG_RELATIVE_SCORES_SCORES);
    return measure(a, s);
}

static const nrg_operand scores_operands[NRG_RELATIVE_SCORES_OPERANDS] = {
    [NRG_RELATIVE_SCORES_Q] = {ROWS(q, DIM), .role = NRG_IN},
    [NRG_RELATIVE_SCORES_TABLE] = {TABLE_INPUT},
    [NRG_RELATIVE_SCORES_SCORES] = {ROWS(scores, KEYS), .role = NRG_INOUT},
};

const nrg_call nrg_call_relative_scores = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = scores_operands,
    .operand_count = NRG_RELATIVE_SCORES_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_scores,
};

/* ---- values ---- */

static nrg_status measure_values(const void *const *part, nrg_sizes *s)
{
    const nrg_relative_args *a = part[NRG_RELATIVE_ARGS];
    if (a->q || a->scores || a->ends_in || a->d_table)
        return NRG_ERR_COMBINATION;
    if (!has_rows(a) || !a->keys)
        s->ignored |= NRG_BIT(NRG_RELATIVE_VALUES_A) | NRG_BIT(NRG_RELATIVE_VALUES_TABLE);
    if (!has_rows(a))
        s->ignored |= NRG_BIT(NRG_RELATIVE_VALUES_O) | NRG_BIT(NRG_RELATIVE_VALUES_ENDS);
    return measure(a, s);
}

static const nrg_operand values_operands[NRG_RELATIVE_VALUES_OPERANDS] = {
    [NRG_RELATIVE_VALUES_A] = {ROWS(a, KEYS), .role = NRG_IN},
    [NRG_RELATIVE_VALUES_TABLE] = {TABLE_INPUT},
    [NRG_RELATIVE_VALUES_O] = {ROWS(o, DIM), .role = NRG_INOUT},
    [NRG_RELATIVE_VALUES_ENDS] = {ROW_ENDS(ends), .role = NRG_OUT},
};

const nrg_call nrg_call_relative_values = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = values_operands,
    .operand_count = NRG_RELATIVE_VALUES_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_values,
};

/* ---- backward ---- */

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_relative_args *a = part[NRG_RELATIVE_ARGS];
    if (a->table || a->table_dtype || a->scores || a->o || a->ends)
        return NRG_ERR_COMBINATION;
    if (!has_rows(a) || !a->keys)
        s->ignored |= NRG_BIT(NRG_RELATIVE_BACKWARD_Q) | NRG_BIT(NRG_RELATIVE_BACKWARD_A) | NRG_BIT(NRG_RELATIVE_BACKWARD_ENDS);
    s->always |= NRG_BIT(NRG_RELATIVE_BACKWARD_D_TABLE);
    return measure(a, s);
}

static const nrg_operand backward_operands[NRG_RELATIVE_BACKWARD_OPERANDS] = {
    [NRG_RELATIVE_BACKWARD_Q] = {ROWS(q, DIM), .role = NRG_IN},
    [NRG_RELATIVE_BACKWARD_A] = {ROWS(a, KEYS), .role = NRG_IN},
    [NRG_RELATIVE_BACKWARD_ENDS] = {ROW_ENDS(ends_in), .role = NRG_IN},
    [NRG_RELATIVE_BACKWARD_D_TABLE] = {TABLE(d_table), .role = NRG_INOUT, .element = NRG_ELEMENT_F32},
};

const nrg_call nrg_call_relative_backward = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = backward_operands,
    .operand_count = NRG_RELATIVE_BACKWARD_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_backward,
};
