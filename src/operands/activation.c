/* Activations, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "activation.h"

/* numbers */
enum { N = 1 };

static nrg_status measure(const void *const *part, nrg_sizes *s)
{
    const nrg_activation_args *args = part[0];
    s->n[N] = args->n;
    s->type[0] = args->dtype;
    return NRG_OK;
}

static const nrg_part parts[] = {{.size = sizeof(nrg_activation_args)}};

static const nrg_range ranges[] = {NRG_DTYPE_RANGE(0, nrg_activation_args, dtype),
                                   NRG_ENUM_RANGE(0, nrg_activation_args, activation, NRG_ACT_SOFTPLUS)};

#define ELEMENTS(name, role, field) name, role, NRG_ELEMENT_CHOSEN, .at = NRG_AT(nrg_activation_args, field), .dim = N
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
