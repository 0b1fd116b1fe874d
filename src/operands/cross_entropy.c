/* Cross-entropy, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "cross_entropy.h"

/* numbers */
enum { CLASSES = 1, ROWS };

static nrg_status measure(const nrg_cross_entropy_args *a, nrg_sizes *s)
{
    s->type[0] = a->dtype;
    s->n[CLASSES] = a->classes;
    s->n[ROWS] = a->rows;
    return a->classes ? NRG_OK : NRG_ERR_DIM;
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_cross_entropy_args *a = part[0];
    const nrg_status status = measure(a, s);
    return status == NRG_OK && (a->m_in || a->others_in || a->d_loss || a->dx) ? NRG_ERR_COMBINATION : status;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_cross_entropy_args *a = part[0];
    const nrg_status status = measure(a, s);
    return status == NRG_OK && (a->loss || a->m || a->others) ? NRG_ERR_COMBINATION : status;
}

#define FIELD(field, role, element_) #field, role, element_, .at = NRG_AT(nrg_cross_entropy_args, field)
#define MATRIX(field, role)                                                                                                      \
    FIELD(field, role, NRG_ELEMENT_CHOSEN), .dim = CLASSES,                                                                      \
                                            .level = {{.stride = NRG_AT(nrg_cross_entropy_args, field##_stride), .count = ROWS}}
#define OF_ROWS(field, role, element_) FIELD(field, role, element_), .dim = ROWS
#define CALL(call_operands, call_measure)                                                                                        \
    .parts = parts, .part_count = NRG_COUNT(parts), .operands = (call_operands), .operand_count = NRG_COUNT(call_operands),      \
    .ranges = ranges, .range_count = NRG_COUNT(ranges), .measure = (call_measure)

static const nrg_part parts[] = {{.size = sizeof(nrg_cross_entropy_args), .least = sizeof(nrg_cross_entropy_args)}};

static const nrg_range ranges[] = {NRG_DTYPE_RANGE(0, nrg_cross_entropy_args, dtype)};

static const nrg_operand forward_operands[NRG_CROSS_ENTROPY_OPERANDS] = {
    [NRG_CROSS_ENTROPY_X] = {MATRIX(x, NRG_IN)},
    [NRG_CROSS_ENTROPY_IDS] = {OF_ROWS(ids, NRG_IN, NRG_ELEMENT_I32)},
    [NRG_CROSS_ENTROPY_LOSS] = {OF_ROWS(loss, NRG_OUT, NRG_ELEMENT_F32)},
    [NRG_CROSS_ENTROPY_M] = {OF_ROWS(m, NRG_OUT, NRG_ELEMENT_F32)},
    [NRG_CROSS_ENTROPY_OTHERS] = {OF_ROWS(others, NRG_OUT, NRG_ELEMENT_F64)},
};

const nrg_call nrg_call_cross_entropy_forward = {CALL(forward_operands, measure_forward)};

static const nrg_operand backward_operands[NRG_CROSS_ENTROPY_BACKWARD_OPERANDS] = {
    [NRG_CROSS_ENTROPY_BACKWARD_X] = {MATRIX(x, NRG_IN)},
    [NRG_CROSS_ENTROPY_BACKWARD_IDS] = {OF_ROWS(ids, NRG_IN, NRG_ELEMENT_I32)},
    [NRG_CROSS_ENTROPY_BACKWARD_M_IN] = {OF_ROWS(m_in, NRG_IN, NRG_ELEMENT_F32)},
    [NRG_CROSS_ENTROPY_BACKWARD_OTHERS_IN] = {OF_ROWS(others_in, NRG_IN, NRG_ELEMENT_F64)},
    [NRG_CROSS_ENTROPY_BACKWARD_D_LOSS] = {OF_ROWS(d_loss, NRG_IN, NRG_ELEMENT_F32)},
    [NRG_CROSS_ENTROPY_BACKWARD_DX] = {MATRIX(dx, NRG_OUT), .over = NRG_BIT(NRG_CROSS_ENTROPY_BACKWARD_X)},
};

const nrg_call nrg_call_cross_entropy_backward = {CALL(backward_operands, measure_backward)};
