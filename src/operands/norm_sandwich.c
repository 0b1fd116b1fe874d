/* A norm, a residual, and a norm of the sum, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_sandwich.h"

/* numbers */
enum {
    ROWS = 1,
    ROWS2,
    ROWS3,
    DIM,
    W_DIM, /* 0 where there are no rows */
    STATISTICS1,
    STATISTICS2,
    SPACE_FIRST = NRG_SANDWICH_SPACE_FIRST,
    SPACE = NRG_SANDWICH_SPACE,
    BYTES,
    BYTES_ROWS,
    SCALES
};
enum { FIRST = NRG_SANDWICH_FIRST, SECOND = NRG_SANDWICH_SECOND, ARGS = NRG_SANDWICH_ARGS };

/* Both specs, and rows in planes. */
static nrg_status measure(const void *const *part, size_t rows, size_t rows2, size_t rows3, uint32_t repeated, nrg_sizes *s)
{
    const nrg_norm_spec *first = part[FIRST], *second = part[SECOND];
    nrg_dtype type[NRG_TYPES] = {NRG_DTYPE_SAME};
    nrg_status status = nrg_norm_measure_spec(first, s->type);
    if (status != NRG_OK || (status = nrg_norm_measure_spec(second, type)) != NRG_OK)
        return status;
    s->type[NRG_SANDWICH_TYPE_W2] = type[NRG_NORM_TYPE_W];
    if (first->dim != second->dim)
        return NRG_ERR_DIM;
    if (first->dtype != second->dtype)
        return NRG_ERR_DTYPE;
    if (first->gate || second->gate || first->activation || second->activation || first->residual_mode || second->residual_mode ||
        nrg_norm_alike(first) > 1 || nrg_norm_alike(second) > 1 || first->format)
        return NRG_ERR_COMBINATION;
    if (repeated > (NRG_REPEAT_ROWS | NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3))
        return NRG_ERR_ENUM;
    size_t all;
    if (!nrg_product(rows2, rows3, &all) || !nrg_product(all, rows, &all))
        return NRG_ERR_OVERFLOW;
    s->n[ROWS] = rows;
    s->n[ROWS2] = rows2;
    s->n[ROWS3] = rows3;
    s->n[DIM] = first->dim;
    s->n[W_DIM] = all ? first->dim : 0;
    /* these fit if rows · dim elements of x do, which come first */
    s->n[STATISTICS1] = all * nrg_norm_groups(first);
    s->n[STATISTICS2] = all * nrg_norm_groups(second);
    return NRG_OK;
}

#define SPEC_PARTS [FIRST] = NRG_NORM_SPEC_PART, [SECOND] = NRG_NORM_SPEC_PART
#define SPEC_RANGES NRG_NORM_SPEC_RANGES(FIRST), NRG_NORM_SPEC_RANGES(SECOND)

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define TENSOR(field, args_type)                                                                                                 \
    .part = ARGS, .at = NRG_AT(args_type, field), .dim = DIM,                                                                    \
    .level = NRG_ROW_LEVELS(args_type, field##_stride, ROWS, ROWS2, ROWS3)
#define LINE(field, args_type, number) .part = ARGS, .at = NRG_AT(args_type, field), .dim = (number)
#define WEIGHT(field, args_type, type) #field, NRG_IN, CHOSEN(type), .may_be_absent = 1, LINE(field, args_type, W_DIM)

/* ---- forward ---- */

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *second = part[SECOND];
    const nrg_norm_sandwich_args *args = part[ARGS];
    static const nrg_quant_operands quant = {NRG_SANDWICH_O, NRG_SANDWICH_PACKED, NRG_SANDWICH_SCALES, BYTES, BYTES_ROWS, SCALES};
    const nrg_status status = measure(part, args->rows, args->rows2, args->rows3, args->y_repeat, s);
    if (status != NRG_OK)
        return status;
    if (!nrg_norm_offset_fits(part[FIRST], args->w1) || !nrg_norm_offset_fits(second, args->w2))
        return NRG_ERR_COMBINATION;
    if (second->format || s->type[NRG_NORM_TYPE_R] != s->type[NRG_NORM_TYPE_X])
        s->needed |= NRG_BIT(NRG_SANDWICH_R);
    return nrg_norm_measure_quant(s, second, args->rows, &quant);
}

static const nrg_part forward_parts[] = {
    SPEC_PARTS, [ARGS] = {.size = sizeof(nrg_norm_sandwich_args), .least = sizeof(nrg_norm_sandwich_args)}};

#define QUANT(field, dim_, rows_)                                                                                                \
    .part = ARGS, .at = NRG_AT(nrg_norm_sandwich_args, field), .dim = (dim_),                                                    \
    .level = NRG_ROW_LEVELS(nrg_norm_sandwich_args, field##_stride, rows_, ROWS2, ROWS3)

#define STATISTIC(field, number) #field, NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(field, nrg_norm_sandwich_args, number)

static const nrg_operand forward_operands[NRG_SANDWICH_OPERANDS] = {
    [NRG_SANDWICH_X] = {"x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), TENSOR(x, nrg_norm_sandwich_args)},
    [NRG_SANDWICH_Y] = {"y", NRG_IN, CHOSEN(NRG_NORM_TYPE_Y), TENSOR(y, nrg_norm_sandwich_args),
                        .repeat = NRG_AT(nrg_norm_sandwich_args, y_repeat)},
    [NRG_SANDWICH_W1] = {WEIGHT(w1, nrg_norm_sandwich_args, NRG_NORM_TYPE_W)},
    [NRG_SANDWICH_B1] = {WEIGHT(b1, nrg_norm_sandwich_args, NRG_NORM_TYPE_W)},
    [NRG_SANDWICH_W2] = {WEIGHT(w2, nrg_norm_sandwich_args, NRG_SANDWICH_TYPE_W2)},
    [NRG_SANDWICH_B2] = {WEIGHT(b2, nrg_norm_sandwich_args, NRG_SANDWICH_TYPE_W2)},
    [NRG_SANDWICH_R] = {"r", NRG_OUT, CHOSEN(NRG_NORM_TYPE_R), .may_be_absent = 1, TENSOR(r, nrg_norm_sandwich_args),
                        .over = NRG_BIT(NRG_SANDWICH_X) | NRG_BIT(NRG_SANDWICH_Y)},
    [NRG_SANDWICH_O] = {"o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(o, nrg_norm_sandwich_args),
                        .over = NRG_BIT(NRG_SANDWICH_X) | NRG_BIT(NRG_SANDWICH_Y)},
    [NRG_SANDWICH_MEAN1] = {STATISTIC(mean1, STATISTICS1)},
    [NRG_SANDWICH_RSTD1] = {STATISTIC(rstd1, STATISTICS1)},
    [NRG_SANDWICH_MEAN2] = {STATISTIC(mean2, STATISTICS2)},
    [NRG_SANDWICH_RSTD2] = {STATISTIC(rstd2, STATISTICS2)},
    [NRG_SANDWICH_PACKED] = {"packed", NRG_OUT, NRG_ELEMENT_BYTE, .may_be_absent = 1, QUANT(packed, BYTES, BYTES_ROWS)},
    [NRG_SANDWICH_SCALES] = {"scales", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, QUANT(scales, SCALES, ROWS)},
};

static const nrg_range forward_ranges[] = {SPEC_RANGES, NRG_ENUM_RANGE(ARGS, nrg_norm_sandwich_args, store, NRG_STORE_STREAM)};

const nrg_call nrg_call_norm_sandwich_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_SANDWICH_OPERANDS,
    .ranges = forward_ranges,
    .range_count = NRG_COUNT(forward_ranges),
    .measure = measure_forward,
};

/* ---- backward ---- */

static nrg_status measure_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *first = part[FIRST], *second = part[SECOND];
    const nrg_norm_sandwich_backward_args *args = part[ARGS];
    const size_t rows = args->rows * args->rows2 * args->rows3;
    const nrg_norm_backward_args one = {.dw = args->dw1, .db = args->db1}, two = {.dw = args->dw2, .db = args->db2};
    size_t space, bytes;
    nrg_status status = measure(part, args->rows, args->rows2, args->rows3, 0, s);
    if (status != NRG_OK || (status = nrg_norm_measure_space(first, rows, &one, &s->n[SPACE_FIRST])) != NRG_OK ||
        (status = nrg_norm_measure_space(second, rows, &two, &space)) != NRG_OK)
        return status;
    s->n[SPACE] = s->n[SPACE_FIRST] + space;
    if (!nrg_product(s->n[SPACE], sizeof(double), &bytes))
        return NRG_ERR_OVERFLOW;
    return second->format ? NRG_ERR_COMBINATION : NRG_OK;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *first = part[FIRST], *second = part[SECOND];
    const nrg_norm_sandwich_backward_args *args = part[ARGS];
    const nrg_status status = measure_workspace(part, s);
    if (status != NRG_OK)
        return status;
    if (!nrg_norm_offset_fits(first, args->w1) || !nrg_norm_offset_fits(second, args->w2))
        return NRG_ERR_COMBINATION;
    if (!first->centred)
        s->refused |= NRG_BIT(NRG_SANDWICH_BACKWARD_MEAN1);
    if (!second->centred)
        s->refused |= NRG_BIT(NRG_SANDWICH_BACKWARD_MEAN2);
    return NRG_OK;
}

static const nrg_part backward_parts[] = {
    SPEC_PARTS, [ARGS] = {.size = sizeof(nrg_norm_sandwich_backward_args), .least = sizeof(nrg_norm_sandwich_backward_args)}};

#define OPERAND(name) NRG_BIT(NRG_SANDWICH_BACKWARD_##name)
#define BACKWARD_TENSOR(field, role, type) #field, role, CHOSEN(type), TENSOR(field, nrg_norm_sandwich_backward_args)
#define MEAN(field, number)                                                                                                      \
#field, NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(field, nrg_norm_sandwich_backward_args, number)
#define SUM(field) #field, NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(field, nrg_norm_sandwich_backward_args, DIM)

static const nrg_operand backward_operands[NRG_SANDWICH_BACKWARD_OPERANDS] = {
    [NRG_SANDWICH_BACKWARD_X] = {BACKWARD_TENSOR(x, NRG_IN, NRG_NORM_TYPE_X)},
    [NRG_SANDWICH_BACKWARD_R] = {BACKWARD_TENSOR(r, NRG_IN, NRG_NORM_TYPE_R)},
    [NRG_SANDWICH_BACKWARD_D_O] = {BACKWARD_TENSOR(d_o, NRG_IN, NRG_NORM_TYPE_X)},
    [NRG_SANDWICH_BACKWARD_DR_IN] = {BACKWARD_TENSOR(dr_in, NRG_IN, NRG_NORM_TYPE_R), .may_be_absent = 1},
    [NRG_SANDWICH_BACKWARD_W1] = {WEIGHT(w1, nrg_norm_sandwich_backward_args, NRG_NORM_TYPE_W)},
    [NRG_SANDWICH_BACKWARD_W2] = {WEIGHT(w2, nrg_norm_sandwich_backward_args, NRG_SANDWICH_TYPE_W2)},
    [NRG_SANDWICH_BACKWARD_MEAN1] = {MEAN(mean1, STATISTICS1)},
    [NRG_SANDWICH_BACKWARD_MEAN2] = {MEAN(mean2, STATISTICS2)},
    [NRG_SANDWICH_BACKWARD_DX] = {BACKWARD_TENSOR(dx, NRG_OUT, NRG_NORM_TYPE_X),
                                  .over = OPERAND(D_O) | OPERAND(DR_IN) | OPERAND(R)},
    [NRG_SANDWICH_BACKWARD_DY] = {BACKWARD_TENSOR(dy, NRG_OUT, NRG_NORM_TYPE_Y), .may_be_absent = 1,
                                  .over = OPERAND(D_O) | OPERAND(DR_IN) | OPERAND(R)},
    [NRG_SANDWICH_BACKWARD_DW1] = {SUM(dw1)},
    [NRG_SANDWICH_BACKWARD_DB1] = {SUM(db1)},
    [NRG_SANDWICH_BACKWARD_DW2] = {SUM(dw2)},
    [NRG_SANDWICH_BACKWARD_DB2] = {SUM(db2)},
    [NRG_SANDWICH_BACKWARD_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64,
                                         LINE(workspace, nrg_norm_sandwich_backward_args, SPACE),
                                         .room = NRG_AT(nrg_norm_sandwich_backward_args, workspace_size)},
};

static const nrg_range backward_ranges[] = {SPEC_RANGES,
                                            NRG_ENUM_RANGE(ARGS, nrg_norm_sandwich_backward_args, store, NRG_STORE_STREAM)};

const nrg_call nrg_call_norm_sandwich_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_SANDWICH_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};

const nrg_call nrg_call_norm_sandwich_backward_workspace = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_workspace,
};
