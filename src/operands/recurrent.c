/* Recurrent encodings, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "recurrent.h"

/* numbers; W_ROWS, B_DIM, P0_ROWS: 0 where there is nothing to compute */
enum { SPACE = NRG_RECURRENT_SPACE, DIM, N, CHAINS, W_ROWS, B_DIM, P0_ROWS };

/* What both directions have. */
static nrg_status measure(size_t dim, size_t n, size_t chains, nrg_dtype dtype, nrg_dtype w_dtype, nrg_dtype p0_dtype,
                          nrg_sizes *s)
{
    const int some = n && chains;
    if (!dim)
        return NRG_ERR_DIM;
    s->type[NRG_RECURRENT_TYPE] = dtype;
    s->n[DIM] = dim;
    s->n[N] = n;
    s->n[CHAINS] = chains;
    s->n[W_ROWS] = s->n[B_DIM] = some ? dim : 0;
    s->n[P0_ROWS] = some ? chains : 0;
    const nrg_status status = nrg_beside(w_dtype, dtype, &s->type[NRG_RECURRENT_TYPE_W]);
    return status == NRG_OK ? nrg_beside(p0_dtype, dtype, &s->type[NRG_RECURRENT_TYPE_P0]) : status;
}

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define FIELD(type, field) #field, .part = NRG_RECURRENT_ARGS, .at = NRG_AT(type, field)
#define ROWS(type, field, rows)                                                                                                  \
    FIELD(type, field), .dim = DIM, .level = {{.stride = NRG_AT(type, field##_stride), .count = (rows)}}
#define CHAIN(type, field)                                                                                                       \
    FIELD(type, field), .element = CHOSEN(NRG_RECURRENT_TYPE), .dim = DIM,                                                       \
                        .level = {{.stride = NRG_AT(type, field##_stride[0]), .count = N},                                       \
                                  {.stride = NRG_AT(type, field##_stride[1]), .count = CHAINS}}
#define RANGES(type)                                                                                                             \
    NRG_DTYPE_RANGE(NRG_RECURRENT_ARGS, type, dtype), NRG_OTHER_DTYPE_RANGE(NRG_RECURRENT_ARGS, type, w_dtype),                  \
        NRG_OTHER_DTYPE_RANGE(NRG_RECURRENT_ARGS, type, p0_dtype)

/* ---- forward ---- */

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_recurrent_args *a = part[NRG_RECURRENT_ARGS];
    return measure(a->dim, a->positions, a->chains, a->dtype, a->w_dtype, a->p0_dtype, s);
}

static const nrg_part forward_parts[] = {{.size = sizeof(nrg_recurrent_args), .least = sizeof(nrg_recurrent_args)}};

static const nrg_operand forward_operands[NRG_RECURRENT_OPERANDS] = {
    [NRG_RECURRENT_W] = {ROWS(nrg_recurrent_args, w, W_ROWS), .role = NRG_IN, .element = CHOSEN(NRG_RECURRENT_TYPE_W)},
    [NRG_RECURRENT_B] = {FIELD(nrg_recurrent_args, b), .role = NRG_IN, .element = CHOSEN(NRG_RECURRENT_TYPE_W),
                         .may_be_absent = 1, .dim = B_DIM},
    [NRG_RECURRENT_P0] = {ROWS(nrg_recurrent_args, p0, P0_ROWS), .role = NRG_IN, .element = CHOSEN(NRG_RECURRENT_TYPE_P0)},
    [NRG_RECURRENT_P] = {CHAIN(nrg_recurrent_args, p), .role = NRG_OUT},
};

static const nrg_range forward_ranges[] = {RANGES(nrg_recurrent_args),
                                           NRG_RESERVED_RANGE(NRG_RECURRENT_ARGS, nrg_recurrent_args, reserved)};

const nrg_call nrg_call_recurrent_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_RECURRENT_OPERANDS,
    .ranges = forward_ranges,
    .range_count = NRG_COUNT(forward_ranges),
    .measure = measure_forward,
};

/* ---- backward ---- */

static nrg_status find_space(const nrg_recurrent_backward_args *a, size_t *floats)
{
    size_t bytes;
    const int fits = nrg_product(a->chains, a->positions, floats) && nrg_product(*floats, a->dim, floats) &&
                     *floats <= SIZE_MAX - NRG_RECURRENT_MARK;
    *floats += *floats ? NRG_RECURRENT_MARK : 0;
    return fits && nrg_product(*floats, sizeof(float), &bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_recurrent_backward_args *a = part[NRG_RECURRENT_ARGS];
    const nrg_status status = measure(a->dim, a->positions, a->chains, a->dtype, a->w_dtype, a->p0_dtype, s);
    if (!a->dw)
        s->ignored |= NRG_BIT(NRG_RECURRENT_BACKWARD_P0);
    return status == NRG_OK ? find_space(a, &s->n[SPACE]) : status;
}

static const nrg_part backward_parts[] = {
    {.size = sizeof(nrg_recurrent_backward_args), .least = sizeof(nrg_recurrent_backward_args)},
};

#define INPUT .role = NRG_IN
#define OUTPUT .element = NRG_ELEMENT_F32, .may_be_absent = 1

static const nrg_operand backward_operands[NRG_RECURRENT_BACKWARD_OPERANDS] = {
    [NRG_RECURRENT_BACKWARD_W] = {ROWS(nrg_recurrent_backward_args, w, W_ROWS), INPUT, .element = CHOSEN(NRG_RECURRENT_TYPE_W)},
    [NRG_RECURRENT_BACKWARD_P0] = {ROWS(nrg_recurrent_backward_args, p0, P0_ROWS), INPUT,
                                   .element = CHOSEN(NRG_RECURRENT_TYPE_P0)},
    [NRG_RECURRENT_BACKWARD_P] = {CHAIN(nrg_recurrent_backward_args, p), INPUT},
    [NRG_RECURRENT_BACKWARD_DP] = {CHAIN(nrg_recurrent_backward_args, dp), INPUT},
    /* these are written where there is no position, too */
    [NRG_RECURRENT_BACKWARD_D_P0] = {ROWS(nrg_recurrent_backward_args, d_p0, CHAINS), OUTPUT, .role = NRG_OUT},
    [NRG_RECURRENT_BACKWARD_DW] = {ROWS(nrg_recurrent_backward_args, dw, DIM), OUTPUT, .role = NRG_INOUT},
    [NRG_RECURRENT_BACKWARD_DB] = {FIELD(nrg_recurrent_backward_args, db), OUTPUT, .role = NRG_INOUT, .dim = DIM},
    [NRG_RECURRENT_BACKWARD_WORKSPACE] = {FIELD(nrg_recurrent_backward_args, workspace), .role = NRG_SCRATCH,
                                          .element = NRG_ELEMENT_F32, .dim = SPACE,
                                          .room = NRG_AT(nrg_recurrent_backward_args, workspace_size)},
};

static const nrg_range backward_ranges[] = {RANGES(nrg_recurrent_backward_args)};

const nrg_call nrg_call_recurrent_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_RECURRENT_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};

/* The size of a workspace: of the options only three numbers are looked at. */
static nrg_status measure_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_recurrent_backward_args *a = part[NRG_RECURRENT_ARGS];
    return a->dim ? find_space(a, &s->n[SPACE]) : NRG_ERR_DIM;
}

const nrg_call nrg_call_recurrent_backward_workspace = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .measure = measure_workspace,
};
