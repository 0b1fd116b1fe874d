/* The relative attention of Transformer-XL and XLNet: the shift of scores, and the query's two biases.
 *
 * SPDX-License-Identifier: MIT */
#include "relative_shift.h"

#include "heads.h"
#include "relative.h"

/* ---- the shift ---- */

enum { BATCH = 1, HEADS, ROWS, KEYS, REL, DIM };

static nrg_status measure_shift(const nrg_relative_shift_args *a, nrg_sizes *s)
{
    const uint64_t most = (uint64_t)NRG_RELATIVE_FARTHEST;
    if (!nrg_relative_is_position(a->shift))
        return NRG_ERR_POSITION;
    if (a->queries > most || a->keys > most || a->rel > most)
        return NRG_ERR_OVERFLOW;
    s->type[0] = a->dtype;
    s->n[BATCH] = a->batch;
    s->n[HEADS] = a->heads;
    s->n[ROWS] = a->queries;
    s->n[KEYS] = a->keys;
    s->n[REL] = a->rel;
    return NRG_OK;
}

static nrg_status measure_shift_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_relative_shift_args *a = part[NRG_RELATIVE_SHIFT_ARGS];
    return a->d_scores || a->dx ? NRG_ERR_COMBINATION : measure_shift(a, s);
}

static nrg_status measure_shift_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_relative_shift_args *a = part[NRG_RELATIVE_SHIFT_ARGS];
    return a->x || a->scores ? NRG_ERR_COMBINATION : measure_shift(a, s);
}

static const nrg_part shift_parts[] = {
    {.size = sizeof(nrg_relative_shift_args), .least = sizeof(nrg_relative_shift_args)},
};

static const nrg_range shift_ranges[] = {
    NRG_DTYPE_RANGE(NRG_RELATIVE_SHIFT_ARGS, nrg_relative_shift_args, dtype),
    NRG_ENUM_RANGE(NRG_RELATIVE_SHIFT_ARGS, nrg_relative_shift_args, store, NRG_STORE_STREAM),
    NRG_RESERVED_RANGE(NRG_RELATIVE_SHIFT_ARGS, nrg_relative_shift_args, reserved),
};

#define MOVED(field, role, number)                                                                                               \
    {                                                                                                                            \
#field, role, NRG_ELEMENT_CHOSEN,                                                                                        \
            .part = NRG_RELATIVE_SHIFT_ARGS, .at = NRG_AT(nrg_relative_shift_args, field), .dim = (number),                      \
            .level = NRG_ROWS_TOGETHER(nrg_relative_shift_args, field##_strides, BATCH, HEADS, ROWS)                             \
    }

static const nrg_operand shift_operands[NRG_RELATIVE_SHIFT_OPERANDS] = {
    [NRG_RELATIVE_SHIFT_IN] = MOVED(x, NRG_IN, REL),
    [NRG_RELATIVE_SHIFT_OUT] = MOVED(scores, NRG_INOUT, KEYS),
};

const nrg_call nrg_call_relative_shift_forward = {
    .parts = shift_parts,
    .part_count = NRG_COUNT(shift_parts),
    .operands = shift_operands,
    .operand_count = NRG_RELATIVE_SHIFT_OPERANDS,
    .ranges = shift_ranges,
    .range_count = NRG_COUNT(shift_ranges),
    .measure = measure_shift_forward,
};

static const nrg_operand shift_backward_operands[NRG_RELATIVE_SHIFT_OPERANDS] = {
    [NRG_RELATIVE_SHIFT_IN] = MOVED(d_scores, NRG_IN, KEYS),
    [NRG_RELATIVE_SHIFT_OUT] = MOVED(dx, NRG_INOUT, REL),
};

const nrg_call nrg_call_relative_shift_backward = {
    .parts = shift_parts,
    .part_count = NRG_COUNT(shift_parts),
    .operands = shift_backward_operands,
    .operand_count = NRG_RELATIVE_SHIFT_OPERANDS,
    .ranges = shift_ranges,
    .range_count = NRG_COUNT(shift_ranges),
    .measure = measure_shift_backward,
};

/* ---- the two biases ---- */

static nrg_status measure_bias(const nrg_head_bias_args *a, nrg_sizes *s)
{
    s->type[NRG_HEAD_BIAS_TYPE] = a->dtype;
    const nrg_status status = nrg_beside(a->bias_dtype, a->dtype, &s->type[NRG_HEAD_BIAS_TYPE_BIAS]);
    s->n[BATCH] = a->batch;
    s->n[HEADS] = a->heads;
    s->n[ROWS] = a->rows;
    s->n[DIM] = a->dim;
    return status != NRG_OK ? status : a->dim ? NRG_OK : NRG_ERR_DIM;
}

static const nrg_part bias_parts[] = {
    {.size = sizeof(nrg_head_bias_args), .least = sizeof(nrg_head_bias_args)},
};

static const nrg_range bias_ranges[] = {
    NRG_DTYPE_RANGE(NRG_HEAD_BIAS_ARGS, nrg_head_bias_args, dtype),
    NRG_OTHER_DTYPE_RANGE(NRG_HEAD_BIAS_ARGS, nrg_head_bias_args, bias_dtype),
    NRG_ENUM_RANGE(NRG_HEAD_BIAS_ARGS, nrg_head_bias_args, store, NRG_STORE_STREAM),
};

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define VECTORS(field)                                                                                                           \
    CHOSEN(NRG_HEAD_BIAS_TYPE), .part = NRG_HEAD_BIAS_ARGS, .at = NRG_AT(nrg_head_bias_args, field), .dim = DIM,                 \
                                .level = NRG_HEADS_TOGETHER(nrg_head_bias_args, field##_strides, BATCH, HEADS, ROWS)
/* One row of each head, without strides. */
#define OF_HEADS(field)                                                                                                          \
    .part = NRG_HEAD_BIAS_ARGS, .at = NRG_AT(nrg_head_bias_args, field), .dim = DIM, .level = {{.count = HEADS}}

static nrg_status measure_bias_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_head_bias_args *a = part[NRG_HEAD_BIAS_ARGS];
    if (a->d_o_u || a->d_o_v || a->accumulate || a->dq || a->du || a->dv)
        return NRG_ERR_COMBINATION;
    /* without rows, o_u and o_v may be NULL as well */
    uint32_t *const without = a->batch && a->rows ? &s->refused : &s->ignored;
    *(a->o_u ? &s->needed : without) |= NRG_BIT(NRG_HEAD_BIAS_U);
    *(a->o_v ? &s->needed : without) |= NRG_BIT(NRG_HEAD_BIAS_V);
    return measure_bias(a, s);
}

static const nrg_operand bias_forward_operands[NRG_HEAD_BIAS_OPERANDS] = {
    [NRG_HEAD_BIAS_Q] = {"q", NRG_IN, VECTORS(q)},
    [NRG_HEAD_BIAS_U] = {"u", NRG_IN, CHOSEN(NRG_HEAD_BIAS_TYPE_BIAS), .may_be_absent = 1, OF_HEADS(u)},
    [NRG_HEAD_BIAS_V] = {"v", NRG_IN, CHOSEN(NRG_HEAD_BIAS_TYPE_BIAS), .may_be_absent = 1, OF_HEADS(v)},
    [NRG_HEAD_BIAS_O_U] = {"o_u", NRG_OUT, VECTORS(o_u), .may_be_absent = 1, .over = NRG_BIT(NRG_HEAD_BIAS_Q)},
    [NRG_HEAD_BIAS_O_V] = {"o_v", NRG_OUT, VECTORS(o_v), .may_be_absent = 1, .over = NRG_BIT(NRG_HEAD_BIAS_Q)},
};

const nrg_call nrg_call_head_bias_forward = {
    .parts = bias_parts,
    .part_count = NRG_COUNT(bias_parts),
    .operands = bias_forward_operands,
    .operand_count = NRG_HEAD_BIAS_OPERANDS,
    .ranges = bias_ranges,
    .range_count = NRG_COUNT(bias_ranges),
    .measure = measure_bias_forward,
};

static nrg_status measure_bias_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_head_bias_args *a = part[NRG_HEAD_BIAS_ARGS];
    if (a->bias_dtype || a->q || a->u || a->v || a->o_u || a->o_v)
        return NRG_ERR_COMBINATION;
    /* one of them is enough */
    if ((a->dq || a->du || a->dv) && !a->d_o_v)
        s->needed |= NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U);
    return measure_bias(a, s);
}

static const nrg_operand bias_backward_operands[NRG_HEAD_BIAS_BACKWARD_OPERANDS] = {
    [NRG_HEAD_BIAS_BACKWARD_D_O_U] = {"d_o_u", NRG_IN, VECTORS(d_o_u), .may_be_absent = 1},
    [NRG_HEAD_BIAS_BACKWARD_D_O_V] = {"d_o_v", NRG_IN, VECTORS(d_o_v), .may_be_absent = 1},
    [NRG_HEAD_BIAS_BACKWARD_DQ] = {"dq", NRG_OUT, VECTORS(dq), .may_be_absent = 1,
                                   .over = NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_V)},
    [NRG_HEAD_BIAS_BACKWARD_DU] = {"du", NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, OF_HEADS(du)},
    [NRG_HEAD_BIAS_BACKWARD_DV] = {"dv", NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, OF_HEADS(dv)},
};

const nrg_call nrg_call_head_bias_backward = {
    .parts = bias_parts,
    .part_count = NRG_COUNT(bias_parts),
    .operands = bias_backward_operands,
    .operand_count = NRG_HEAD_BIAS_BACKWARD_OPERANDS,
    .ranges = bias_ranges,
    .range_count = NRG_COUNT(bias_ranges),
    .measure = measure_bias_backward,
};
