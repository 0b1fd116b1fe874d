/* Activations, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "activation.h"

/* numbers */
enum { COUNT = 1 };

static nrg_status measure(const void *const *part, nrg_sizes *s)
{
    const nrg_activation_flat *args = part[0];
    s->n[COUNT] = args->count;
    s->type[0] = args->dtype;
    return NRG_OK;
}

static const nrg_part parts[] = {{.size = sizeof(nrg_activation_flat)}};

static const nrg_range ranges[] = {NRG_DTYPE_RANGE(0, nrg_activation_flat, dtype),
                                   NRG_ENUM_RANGE(0, nrg_activation_flat, activation, NRG_ACTIVATION_COUNT - 1)};

#define ELEMENTS(name, role, field) name, role, NRG_ELEMENT_CHOSEN, .at = NRG_AT(nrg_activation_flat, field), .dim = COUNT
#define CALL(call_operands)                                                                                                      \
    .parts = parts, .part_count = NRG_COUNT(parts), .operands = (call_operands), .operand_count = NRG_COUNT(call_operands),      \
    .ranges = ranges, .range_count = NRG_COUNT(ranges), .measure = measure

static const nrg_operand forward_operands[NRG_ACTIVATION_OPERANDS] = {
    [NRG_ACTIVATION_X] = {ELEMENTS("x", NRG_IN, x)},
    [NRG_ACTIVATION_O] = {ELEMENTS("o", NRG_OUT, out), .over = NRG_BIT(NRG_ACTIVATION_X)},
};

const nrg_call nrg_call_activation_forward = {CALL(forward_operands)};

static const nrg_operand backward_operands[NRG_ACTIVATION_BACKWARD_OPERANDS] = {
    [NRG_ACTIVATION_BACKWARD_X] = {ELEMENTS("x", NRG_IN, x)},
    [NRG_ACTIVATION_BACKWARD_D_O] = {ELEMENTS("d_o", NRG_IN, d_o)},
    [NRG_ACTIVATION_BACKWARD_DX] = {ELEMENTS("dx", NRG_OUT, out),
                                    .over = NRG_BIT(NRG_ACTIVATION_BACKWARD_X) | NRG_BIT(NRG_ACTIVATION_BACKWARD_D_O)},
};

const nrg_call nrg_call_activation_backward = {CALL(backward_operands)};

/* ---- rows ---- */

enum { DIM = 1, ROWS, ROWS2, ROWS3 };

static nrg_status measure_rows(const void *const *part, nrg_sizes *s)
{
    const nrg_activation_args *args = part[0];
    s->n[DIM] = args->dim;
    s->n[ROWS] = args->rows;
    s->n[ROWS2] = args->rows2;
    s->n[ROWS3] = args->rows3;
    s->type[0] = args->dtype;
    const nrg_status status = nrg_check_alpha(args->activation, args->alpha);
    if (status == NRG_ERR_CONSTANT)
        return status;
    return args->dim ? status : NRG_ERR_DIM;
}

static nrg_status measure_rows_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_activation_args *args = part[0];
    const nrg_status status = measure_rows(part, s);
    return status == NRG_OK && (args->d_o || args->dx) ? NRG_ERR_COMBINATION : status;
}

static nrg_status measure_rows_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_activation_args *args = part[0];
    const nrg_status status = measure_rows(part, s);
    return status == NRG_OK && args->o ? NRG_ERR_COMBINATION : status;
}

static const nrg_part rows_parts[] = {{.size = sizeof(nrg_activation_args), .least = sizeof(nrg_activation_args)}};

static const nrg_range rows_ranges[] = {NRG_DTYPE_RANGE(0, nrg_activation_args, dtype),
                                        NRG_ENUM_RANGE(0, nrg_activation_args, activation, NRG_ACTIVATION_COUNT - 1),
                                        NRG_RESERVED_RANGE(0, nrg_activation_args, reserved)};

#define TENSOR(role, field)                                                                                                      \
#field, role, NRG_ELEMENT_CHOSEN, .at = NRG_AT(nrg_activation_args, field), .dim = DIM,                                      \
                                      .level = {{.stride = NRG_AT(nrg_activation_args, field##_stride[0]), .count = ROWS },      \
                                               {.stride = NRG_AT(nrg_activation_args, field##_stride[1]), .count = ROWS2 },      \
                                               {.stride = NRG_AT(nrg_activation_args, field##_stride[2]), .count = ROWS3 } }
#define ROWS_CALL(call_operands, call_measure)                                                                                   \
    .parts = rows_parts, .part_count = NRG_COUNT(rows_parts), .operands = (call_operands),                                       \
    .operand_count = NRG_COUNT(call_operands), .ranges = rows_ranges, .range_count = NRG_COUNT(rows_ranges),                     \
    .measure = (call_measure)

static const nrg_operand rows_forward_operands[NRG_ACTIVATION_OPERANDS] = {
    [NRG_ACTIVATION_X] = {TENSOR(NRG_IN, x)},
    [NRG_ACTIVATION_O] = {TENSOR(NRG_OUT, o), .over = NRG_BIT(NRG_ACTIVATION_X)},
};

const nrg_call nrg_call_activation_rows_forward = {ROWS_CALL(rows_forward_operands, measure_rows_forward)};

static const nrg_operand rows_backward_operands[NRG_ACTIVATION_BACKWARD_OPERANDS] = {
    [NRG_ACTIVATION_BACKWARD_X] = {TENSOR(NRG_IN, x)},
    [NRG_ACTIVATION_BACKWARD_D_O] = {TENSOR(NRG_IN, d_o)},
    [NRG_ACTIVATION_BACKWARD_DX] = {TENSOR(NRG_OUT, dx),
                                    .over = NRG_BIT(NRG_ACTIVATION_BACKWARD_X) | NRG_BIT(NRG_ACTIVATION_BACKWARD_D_O)},
};

const nrg_call nrg_call_activation_rows_backward = {ROWS_CALL(rows_backward_operands, measure_rows_backward)};
