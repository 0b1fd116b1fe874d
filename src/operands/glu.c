/* Gated linear units, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "glu.h"
#include "activation.h"
#include "quantize.h"

/* numbers */
enum { DIM = 1, PAIRS, ROWS, ROWS2, ROWS3, PACKED_BYTES, PACKED_ROWS, SCALES };

static nrg_status measure(const nrg_glu_args *args, nrg_sizes *s)
{
    s->n[DIM] = args->dim;
    s->n[ROWS] = args->rows;
    s->n[ROWS2] = args->rows2;
    s->n[ROWS3] = args->rows3;
    s->type[0] = args->dtype;
    const nrg_status status = nrg_check_alpha(args->activation, args->alpha);
    if (!(args->limit >= 0) || !(args->b_offset - args->b_offset == 0) || status == NRG_ERR_CONSTANT)
        return NRG_ERR_CONSTANT;
    if (!args->dim)
        return NRG_ERR_DIM;
    return nrg_product(args->dim, 2, &s->n[PAIRS]) ? status : NRG_ERR_OVERFLOW;
}

/* Bytes instead of o. */
static nrg_status measure_quant(const nrg_glu_args *args, nrg_sizes *s)
{
    nrg_quant_sizes q;
    if (args->format == NRG_QUANT_NONE) {
        s->refused |= NRG_BIT(NRG_GLU_PACKED) | NRG_BIT(NRG_GLU_SCALES);
        s->needed |= NRG_BIT(NRG_GLU_O);
        return args->rounding ? NRG_ERR_COMBINATION : NRG_OK;
    }
#ifdef NRG_NO_QUANTIZE
    return NRG_ERR_ENUM;
#endif
    const nrg_status status = nrg_measure_quant(args->format, args->dim, args->rows, &q);
    if (status != NRG_OK)
        return status;
    s->n[PACKED_BYTES] = q.bytes;
    s->n[PACKED_ROWS] = q.rows;
    s->n[SCALES] = q.scales;
    s->refused |= NRG_BIT(NRG_GLU_O);
    s->needed |= NRG_BIT(NRG_GLU_PACKED);
    if (nrg_format_has_scales(args->format))
        s->needed |= NRG_BIT(NRG_GLU_SCALES);
    else
        s->refused |= NRG_BIT(NRG_GLU_SCALES);
    return NRG_OK;
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_glu_args *args = part[0];
    const nrg_status status = measure(args, s);
    const uint32_t two = NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B), one = NRG_BIT(NRG_GLU_X);
    s->refused = args->x ? two : one;
    s->needed = args->x ? one : two;
    if (status != NRG_OK)
        return status;
    return args->d_o || args->da || args->db || args->dx ? NRG_ERR_COMBINATION : measure_quant(args, s);
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_glu_args *args = part[0];
    const nrg_status status = measure(args, s);
    const uint32_t two =
        NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) | NRG_BIT(NRG_GLU_BACKWARD_DB);
    const uint32_t one = NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX);
    s->refused = args->x ? two : one;
    s->needed = args->x ? one : two;
    return status == NRG_OK && (args->o || args->format || args->rounding || args->packed || args->scales) ? NRG_ERR_COMBINATION
                                                                                                           : status;
}

static const nrg_part parts[] = {{.size = sizeof(nrg_glu_args), .least = sizeof(nrg_glu_args)}};

static const nrg_range ranges[] = {
    NRG_DTYPE_RANGE(0, nrg_glu_args, dtype), NRG_ENUM_RANGE(0, nrg_glu_args, activation, NRG_ACTIVATION_COUNT - 1),
    NRG_ENUM_RANGE(0, nrg_glu_args, format, NRG_QUANT_INT8_128), NRG_ENUM_RANGE(0, nrg_glu_args, rounding, NRG_QUANT_ROUND_AWAY),
    NRG_RESERVED_RANGE(0, nrg_glu_args, reserved)};

#define TENSOR(role, field, count_)                                                                                              \
#field, role, NRG_ELEMENT_CHOSEN, .at = NRG_AT(nrg_glu_args, field), .dim = (count_),                                        \
                                      .level = {{.stride = NRG_AT(nrg_glu_args, field##_stride[0]), .count = ROWS },             \
                                               {.stride = NRG_AT(nrg_glu_args, field##_stride[1]), .count = ROWS2 },             \
                                               {.stride = NRG_AT(nrg_glu_args, field##_stride[2]), .count = ROWS3 } }
#define QUANT(element, field, dim_, rows_)                                                                                       \
#field, NRG_OUT, element, .at = NRG_AT(nrg_glu_args, field), .dim = (dim_), .may_be_absent = 1,                              \
                              .level = {{.stride = NRG_AT(nrg_glu_args, field##_stride[0]), .count = (rows_) },                  \
                                       {.stride = NRG_AT(nrg_glu_args, field##_stride[1]), .count = ROWS2 },                     \
                                       {.stride = NRG_AT(nrg_glu_args, field##_stride[2]), .count = ROWS3 } }
#define OPTIONAL(role, field, count_) TENSOR(role, field, count_), .may_be_absent = 1
#define CALL(call_operands, call_measure)                                                                                        \
    .parts = parts, .part_count = NRG_COUNT(parts), .operands = (call_operands), .operand_count = NRG_COUNT(call_operands),      \
    .ranges = ranges, .range_count = NRG_COUNT(ranges), .measure = (call_measure)

static const nrg_operand forward_operands[NRG_GLU_OPERANDS] = {
    [NRG_GLU_A] = {OPTIONAL(NRG_IN, a, DIM)},
    [NRG_GLU_B] = {OPTIONAL(NRG_IN, b, DIM)},
    [NRG_GLU_X] = {OPTIONAL(NRG_IN, x, PAIRS)},
    [NRG_GLU_O] = {OPTIONAL(NRG_OUT, o, DIM), .over = NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B)},
    [NRG_GLU_PACKED] = {QUANT(NRG_ELEMENT_BYTE, packed, PACKED_BYTES, PACKED_ROWS)},
    [NRG_GLU_SCALES] = {QUANT(NRG_ELEMENT_F32, scales, SCALES, ROWS)},
};

const nrg_call nrg_call_glu_forward = {CALL(forward_operands, measure_forward)};

enum {
    INPUTS = NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_D_O),
};

static const nrg_operand backward_operands[NRG_GLU_BACKWARD_OPERANDS] = {
    [NRG_GLU_BACKWARD_A] = {OPTIONAL(NRG_IN, a, DIM)},
    [NRG_GLU_BACKWARD_B] = {OPTIONAL(NRG_IN, b, DIM)},
    [NRG_GLU_BACKWARD_X] = {OPTIONAL(NRG_IN, x, PAIRS)},
    [NRG_GLU_BACKWARD_D_O] = {TENSOR(NRG_IN, d_o, DIM)},
    [NRG_GLU_BACKWARD_DA] = {OPTIONAL(NRG_OUT, da, DIM), .over = INPUTS},
    [NRG_GLU_BACKWARD_DB] = {OPTIONAL(NRG_OUT, db, DIM), .over = INPUTS},
    [NRG_GLU_BACKWARD_DX] = {OPTIONAL(NRG_OUT, dx, PAIRS), .over = NRG_BIT(NRG_GLU_BACKWARD_X)},
};

const nrg_call nrg_call_glu_backward = {CALL(backward_operands, measure_backward)};
