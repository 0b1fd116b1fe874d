/* The path of a dynamical system, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "floater.h"

/* numbers; WORKSPACE: of the workspace, 0 where there are no positions */
enum { SPACE = NRG_FLOATER_SPACE, DIM, N, TIMES, WORKSPACE };

static nrg_status find_space(const nrg_floater_spec *s, size_t *doubles)
{
    /* state, sum; slope, input: as much as a double */
    size_t bytes;
    return nrg_product(s->dim, 3, doubles) && nrg_product(*doubles, sizeof(double), &bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

static nrg_status find_backward_space(const nrg_floater_spec *s, int has_states, size_t *doubles)
{
    /* gradient, state, sum; slope, v; inputs; states */
    enum { FIXED = 4, INPUTS = NRG_FLOATER_STAGES / 2 };
    const size_t states = has_states ? 0 : s->positions;
    size_t inputs, bytes;
    if (!nrg_product(s->substeps, INPUTS, &inputs) || inputs > SIZE_MAX - FIXED || states > SIZE_MAX - FIXED - inputs)
        return NRG_ERR_OVERFLOW;
    return nrg_product(s->dim, FIXED + inputs + states, doubles) && nrg_product(*doubles, sizeof(double), &bytes)
               ? NRG_OK
               : NRG_ERR_OVERFLOW;
}

/* What both directions have. p0, state0: operands, one of which there has to be. */
static nrg_status measure(const nrg_floater_spec *spec, const void *state0, unsigned times, nrg_sizes *s)
{
    const size_t n = spec->positions;
    if (!spec->dim)
        return NRG_ERR_DIM;
    const nrg_status status = nrg_beside(spec->p0_dtype, spec->dtype, &s->type[NRG_FLOATER_TYPE_P0]);
    if (status != NRG_OK)
        return status;
    if (!spec->substeps)
        return NRG_ERR_CONSTANT;
    if (spec->times && spec->t0 != 0)
        return NRG_ERR_COMBINATION;
    if (n && !spec->h)
        return NRG_ERR_NULL;
    if (n == SIZE_MAX)
        return NRG_ERR_OVERFLOW;
    s->type[NRG_FLOATER_TYPE] = spec->dtype;
    s->n[DIM] = spec->dim;
    s->n[N] = n;
    s->n[TIMES] = n + 1;
    s->n[WORKSPACE] = n ? s->n[SPACE] : 0;
    if (!n)
        s->ignored |= NRG_BIT(times);
    if (state0)
        s->refused |= NRG_BIT(times + 1);
    else if (n)
        s->needed |= NRG_BIT(times + 1);
    return NRG_OK;
}
_Static_assert(NRG_FLOATER_P0 == NRG_FLOATER_TIMES + 1 && NRG_FLOATER_BACKWARD_P0 == NRG_FLOATER_BACKWARD_TIMES + 1,
               "p0 comes after times");

#define SPEC_PART                                                                                                                \
    {                                                                                                                            \
        .size = sizeof(nrg_floater_spec), .least = sizeof(nrg_floater_spec)                                                      \
    }
static const nrg_range ranges[] = {NRG_DTYPE_RANGE(NRG_FLOATER_SPEC, nrg_floater_spec, dtype),
                                   NRG_OTHER_DTYPE_RANGE(NRG_FLOATER_SPEC, nrg_floater_spec, p0_dtype)};

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define FIELD(type, field) #field, .part = NRG_FLOATER_ARGS, .at = NRG_AT(type, field)
#define OPTIONAL .may_be_absent = 1
#define TIMES_OPERAND                                                                                                            \
    {                                                                                                                            \
        "times", NRG_IN, NRG_ELEMENT_F64, OPTIONAL, .part = NRG_FLOATER_SPEC, .at = NRG_AT(nrg_floater_spec, times),             \
                                                    .dim = TIMES                                                                 \
    }
#define P0_OPERAND(type)                                                                                                         \
    {                                                                                                                            \
        FIELD(type, p0), OPTIONAL, .role = NRG_IN, .element = CHOSEN(NRG_FLOATER_TYPE_P0), .dim = DIM                            \
    }
/* Vectors of doubles: one, or one for each position. */
#define STATE(type, field) FIELD(type, field), OPTIONAL, .element = NRG_ELEMENT_F64, .dim = DIM
#define STATES(type) STATE(type, states), .level = {{.count = N}}
#define VECTORS(type, field)                                                                                                     \
    FIELD(type, field), .element = CHOSEN(NRG_FLOATER_TYPE), .dim = DIM,                                                         \
                        .level = {{.stride = NRG_AT(type, field##_stride), .count = N}}
#define WORKSPACE_OPERAND(type)                                                                                                  \
    {                                                                                                                            \
        FIELD(type, workspace), .role = NRG_SCRATCH, .element = NRG_ELEMENT_F64, .dim = WORKSPACE,                               \
                                .room = NRG_AT(type, workspace_size)                                                             \
    }

/* ---- forward ---- */

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_floater_spec *spec = part[NRG_FLOATER_SPEC];
    const nrg_floater_args *a = part[NRG_FLOATER_ARGS];
    const nrg_status status = find_space(spec, &s->n[SPACE]), measured = measure(spec, a->state0, NRG_FLOATER_TIMES, s);
    return measured == NRG_OK ? status : measured;
}

static const nrg_part forward_parts[] = {SPEC_PART, {.size = sizeof(nrg_floater_args), .least = sizeof(nrg_floater_args)}};

static const nrg_operand forward_operands[NRG_FLOATER_OPERANDS] = {
    [NRG_FLOATER_TIMES] = TIMES_OPERAND,
    [NRG_FLOATER_P0] = P0_OPERAND(nrg_floater_args),
    [NRG_FLOATER_STATE0] = {STATE(nrg_floater_args, state0), .role = NRG_IN},
    [NRG_FLOATER_P] = {VECTORS(nrg_floater_args, p), .role = NRG_OUT},
    [NRG_FLOATER_STATES] = {STATES(nrg_floater_args), .role = NRG_OUT},
    [NRG_FLOATER_WORKSPACE] = WORKSPACE_OPERAND(nrg_floater_args),
};

const nrg_call nrg_call_floater_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_FLOATER_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_forward,
};

static nrg_status measure_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_floater_spec *spec = part[NRG_FLOATER_SPEC];
    return spec->dim ? find_space(spec, &s->n[SPACE]) : NRG_ERR_DIM;
}

const nrg_call nrg_call_floater_workspace = {
    .parts = forward_parts,
    .part_count = NRG_FLOATER_ARGS,
    .measure = measure_workspace,
};

/* ---- backward ---- */

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_floater_spec *spec = part[NRG_FLOATER_SPEC];
    const nrg_floater_backward_args *a = part[NRG_FLOATER_ARGS];
    const nrg_status status = find_backward_space(spec, a->states != NULL, &s->n[SPACE]),
                     measured = measure(spec, a->state0, NRG_FLOATER_BACKWARD_TIMES, s);
    if (measured != NRG_OK)
        return measured;
    return spec->positions && !spec->vjp ? NRG_ERR_NULL : status;
}

static const nrg_part backward_parts[] = {
    SPEC_PART, {.size = sizeof(nrg_floater_backward_args), .least = sizeof(nrg_floater_backward_args)}};

static const nrg_operand backward_operands[NRG_FLOATER_BACKWARD_OPERANDS] = {
    [NRG_FLOATER_BACKWARD_TIMES] = TIMES_OPERAND,
    [NRG_FLOATER_BACKWARD_P0] = P0_OPERAND(nrg_floater_backward_args),
    [NRG_FLOATER_BACKWARD_STATE0] = {STATE(nrg_floater_backward_args, state0), .role = NRG_IN},
    [NRG_FLOATER_BACKWARD_STATES] = {STATES(nrg_floater_backward_args), .role = NRG_IN},
    [NRG_FLOATER_BACKWARD_DP] = {VECTORS(nrg_floater_backward_args, dp), .role = NRG_IN},
    [NRG_FLOATER_BACKWARD_D_STATE_N] = {STATE(nrg_floater_backward_args, d_state_n), .role = NRG_IN},
    [NRG_FLOATER_BACKWARD_D_P0] = {FIELD(nrg_floater_backward_args, d_p0), OPTIONAL, .role = NRG_OUT, .element = NRG_ELEMENT_F32,
                                   .dim = DIM},
    [NRG_FLOATER_BACKWARD_D_STATE0] = {STATE(nrg_floater_backward_args, d_state0), .role = NRG_OUT,
                                       .over = NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE_N)},
    [NRG_FLOATER_BACKWARD_WORKSPACE] = WORKSPACE_OPERAND(nrg_floater_backward_args),
};

const nrg_call nrg_call_floater_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_FLOATER_BACKWARD_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_backward,
};

static nrg_status measure_backward_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_floater_spec *spec = part[NRG_FLOATER_SPEC];
    const nrg_floater_backward_args *a = part[NRG_FLOATER_ARGS];
    return !spec->dim        ? NRG_ERR_DIM
           : !spec->substeps ? NRG_ERR_CONSTANT
                             : find_backward_space(spec, a->states != NULL, &s->n[SPACE]);
}

const nrg_call nrg_call_floater_backward_workspace = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .measure = measure_backward_workspace,
};
