/* Rows to blocks of bytes, and back.
 *
 * SPDX-License-Identifier: MIT */
#include "quantize.h"

/* numbers */
enum { DIM = 1, BYTES, SCALES, ROWS, GROUPS, ROWS2, ROWS3 };

static nrg_status measure(nrg_sizes *s, nrg_quant_format format, nrg_dtype dtype, size_t dim, size_t rows, size_t rows2,
                          size_t rows3, uint32_t scales)
{
    nrg_quant_sizes q;
    s->type[0] = dtype;
    s->n[DIM] = dim;
    s->n[ROWS] = rows;
    s->n[ROWS2] = rows2;
    s->n[ROWS3] = rows3;
    if (nrg_format_has_scales(format))
        s->needed = scales;
    else
        s->refused = scales;
    const nrg_status status = dim ? nrg_measure_quant(format, dim, rows, &q) : NRG_ERR_DIM;
    if (status != NRG_OK)
        return status;
    s->n[BYTES] = q.bytes;
    s->n[GROUPS] = q.rows;
    s->n[SCALES] = q.scales;
    return NRG_OK;
}

static nrg_status measure_quantize(const void *const *part, nrg_sizes *s)
{
    const nrg_quantize_args *a = part[0];
    return measure(s, a->format, a->dtype, a->dim, a->rows, a->rows2, a->rows3, NRG_BIT(NRG_QUANTIZE_SCALES));
}

static nrg_status measure_dequantize(const void *const *part, nrg_sizes *s)
{
    const nrg_dequantize_args *a = part[0];
    return measure(s, a->format, a->dtype, a->dim, a->rows, a->rows2, a->rows3, NRG_BIT(NRG_DEQUANTIZE_SCALES));
}

static const nrg_part quantize_parts[] = {{.size = sizeof(nrg_quantize_args), .least = sizeof(nrg_quantize_args)}};
static const nrg_part dequantize_parts[] = {{.size = sizeof(nrg_dequantize_args), .least = sizeof(nrg_dequantize_args)}};

/* NRG_QUANT_NONE is none of them. */
#define FORMAT_RANGE(type)                                                                                                       \
    {                                                                                                                            \
        .part = 0, .status = NRG_ERR_ENUM, .at = NRG_AT(type, format), .low = NRG_QUANT_Q8_0,                                    \
        .span = NRG_QUANT_INT8_128 - NRG_QUANT_Q8_0                                                                              \
    }
static const nrg_range quantize_ranges[] = {FORMAT_RANGE(nrg_quantize_args), NRG_DTYPE_RANGE(0, nrg_quantize_args, dtype),
                                            NRG_ENUM_RANGE(0, nrg_quantize_args, rounding, NRG_QUANT_ROUND_AWAY),
                                            NRG_RESERVED_RANGE(0, nrg_quantize_args, reserved)};
static const nrg_range dequantize_ranges[] = {FORMAT_RANGE(nrg_dequantize_args), NRG_DTYPE_RANGE(0, nrg_dequantize_args, dtype)};

#define TENSOR(args, role, element, field, dim_, rows_)                                                                          \
#field, role, element, .at = NRG_AT(args, field), .dim = (dim_),                                                             \
                           .level = {{.stride = NRG_AT(args, field##_stride[0]), .count = (rows_) },                             \
                                    {.stride = NRG_AT(args, field##_stride[1]), .count = ROWS2 },                                \
                                    {.stride = NRG_AT(args, field##_stride[2]), .count = ROWS3 } }
#define CALL(call_parts, call_operands, call_ranges, call_measure)                                                               \
    .parts = (call_parts), .part_count = NRG_COUNT(call_parts), .operands = (call_operands),                                     \
    .operand_count = NRG_COUNT(call_operands), .ranges = (call_ranges), .range_count = NRG_COUNT(call_ranges),                   \
    .measure = (call_measure)

static const nrg_operand quantize_operands[NRG_QUANTIZE_OPERANDS] = {
    [NRG_QUANTIZE_X] = {TENSOR(nrg_quantize_args, NRG_IN, NRG_ELEMENT_CHOSEN, x, DIM, ROWS)},
    [NRG_QUANTIZE_PACKED] = {TENSOR(nrg_quantize_args, NRG_OUT, NRG_ELEMENT_BYTE, packed, BYTES, GROUPS)},
    [NRG_QUANTIZE_SCALES] = {TENSOR(nrg_quantize_args, NRG_OUT, NRG_ELEMENT_F32, scales, SCALES, ROWS), .may_be_absent = 1},
};

static const nrg_operand dequantize_operands[NRG_DEQUANTIZE_OPERANDS] = {
    [NRG_DEQUANTIZE_PACKED] = {TENSOR(nrg_dequantize_args, NRG_IN, NRG_ELEMENT_BYTE, packed, BYTES, GROUPS)},
    [NRG_DEQUANTIZE_SCALES] = {TENSOR(nrg_dequantize_args, NRG_IN, NRG_ELEMENT_F32, scales, SCALES, ROWS), .may_be_absent = 1},
    [NRG_DEQUANTIZE_O] = {TENSOR(nrg_dequantize_args, NRG_OUT, NRG_ELEMENT_CHOSEN, o, DIM, ROWS)},
};

const nrg_call nrg_call_quantize = {CALL(quantize_parts, quantize_operands, quantize_ranges, measure_quantize)};
const nrg_call nrg_call_dequantize = {CALL(dequantize_parts, dequantize_operands, dequantize_ranges, measure_dequantize)};
