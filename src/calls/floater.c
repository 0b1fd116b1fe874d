/* Positional encodings as the path of a dynamical system. Plain C in double: the time is that of the caller's functions.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "checks.h"
#include "floater_steps.h"

enum operand {
    TIMES = 1,
    P0 = 2,
    STATE0 = 4,
    STATES = 8,
    P = 16,
    DP = 32,
    DSTATE_N = 64,
    DP0 = 128,
    DSTATE0 = 256,
    WORKSPACE = 512
};

/* ---- checks ---- */

static nrg_status check_spec(const nrg_floater_spec *s, int ith, int nth)
{
    if (!s->dim)
        return NRG_ERR_DIM;
    if (!is_dtype(s->dtype) || !(s->p0_dtype == NRG_DTYPE_SAME || is_dtype(s->p0_dtype)))
        return NRG_ERR_ENUM;
    if (!is_beside(s->p0_dtype, s->dtype))
        return NRG_ERR_DTYPE;
    return ith < 0 || ith >= nth ? NRG_ERR_THREAD : NRG_OK;
}

/* Every time, and every step from one to the next. */
static nrg_status check_times(const nrg_floater_spec *s)
{
    if (!s->times)
        return s->n == 0 || (isfinite(s->t0) && isfinite(s->dt) && isfinite(time_of(s, s->n))) ? NRG_OK : NRG_ERR_POSITION;
    for (size_t k = 0; k < s->n; k++)
        if (!isfinite(s->times[k + 1] - s->times[k]) || !isfinite(s->times[k]) || !isfinite(s->times[k + 1]))
            return NRG_ERR_POSITION;
    return NRG_OK;
}

static nrg_status add_doubles(extents *all, unsigned name, unsigned in_place, const double *pointer, size_t count)
{
    return add_words(all, name, in_place, pointer, count, sizeof(double));
}

/* What both directions read. The times are memory before they are numbers. */
static nrg_status add_inputs(extents *all, const nrg_floater_spec *s, const void *p0, const double *state0)
{
    nrg_status status;
    size_t stride = 0;
    if (p0 && state0)
        return NRG_ERR_COMBINATION;
    if (s->n == SIZE_MAX)
        return NRG_ERR_OVERFLOW;
    if ((status = add_doubles(all, TIMES, ANY_OPERAND, s->n ? s->times : NULL, s->n + 1)) != NRG_OK ||
        (status = add_operand(all, P0, ANY_OPERAND, p0, s->p0_dtype ? s->p0_dtype : s->dtype, s->dim, 1, &stride)) != NRG_OK)
        return status;
    return add_doubles(all, STATE0, ANY_OPERAND, state0, s->dim);
}

static nrg_status check_workspace(extents *all, const void *workspace, size_t size, size_t needed)
{
    if (needed && !workspace)
        return NRG_ERR_NULL;
    if (size < needed)
        return NRG_ERR_WORKSPACE;
    return add_words(all, WORKSPACE, 0, needed ? workspace : NULL, needed / sizeof(double), sizeof(double));
}

static const nrg_floater_spec *read_spec(const nrg_floater_spec *spec, nrg_floater_spec *copy)
{
    return read_struct(spec, copy, sizeof *copy, sizeof *copy);
}

/* ---- forward ---- */

static nrg_status forward_bytes(const nrg_floater_spec *s, size_t *bytes)
{
    /* state, sum; slope, input */
    return product(s->dim, 2 * sizeof(double) + 2 * sizeof(float), bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

nrg_status nrg_floater_workspace(const nrg_floater_spec *spec, size_t *bytes)
{
    nrg_floater_spec copy;
    if (!spec || !bytes)
        return NRG_ERR_NULL;
    spec = read_spec(spec, &copy);
    if (!spec)
        return NRG_ERR_STRUCT_SIZE;
    return spec->dim ? forward_bytes(spec, bytes) : NRG_ERR_DIM;
}

static void forward(const nrg_floater_spec *s, const nrg_floater_args *a, size_t p_stride)
{
    const size_t dim = s->dim;
    double *state = a->workspace, *sum = state + dim;
    float *slope = (float *)(sum + dim), *input = slope + dim;
    const rk_room room = {state, sum, slope, input, 0};
    set_start(state, s, a->p0, a->state0);
    for (size_t k = 0; k < s->n; k++) {
        take_interval(s, &room, k);
        for (size_t i = 0; i < dim; i++)
            store((char *)a->p + k * p_stride, i, s->dtype, (float)state[i]);
        if (a->states)
            memcpy(a->states + k * dim, state, dim * sizeof *state);
    }
}

/* Apart from the call itself, so that what it needs is not on the stack when h is called. */
static __attribute__((noinline)) nrg_status check_forward(const nrg_floater_spec *s, const nrg_floater_args *a, int ith, int nth,
                                                          size_t *p_stride)
{
    nrg_status status = check_spec(s, ith, nth);
    if (status != NRG_OK)
        return status;
    if (s->n && (!s->h || !a->p || (!a->p0 && !a->state0)))
        return NRG_ERR_NULL;
    size_t space, count;
    extent operands[6];
    extents all = {0, operands};
    if ((status = forward_bytes(s, &space)) != NRG_OK)
        return status;
    if (!product(s->n, s->dim, &count))
        return NRG_ERR_OVERFLOW;
    if ((status = add_inputs(&all, s, a->p0, a->state0)) != NRG_OK ||
        (status = add_operand(&all, P, 0, a->p, s->dtype, s->dim, s->n, p_stride)) != NRG_OK ||
        (status = add_doubles(&all, STATES, 0, a->states, count)) != NRG_OK ||
        (status = check_workspace(&all, a->workspace, a->workspace_size, s->n ? space : 0)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    return check_times(s);
}

nrg_status nrg_floater_forward(const nrg_floater_spec *spec, const nrg_floater_args *args, int ith, int nth)
{
    nrg_floater_spec spec_copy;
    nrg_floater_args args_copy;
    if (!spec || !args)
        return NRG_ERR_NULL;
    const nrg_floater_spec *s = read_spec(spec, &spec_copy);
    const nrg_floater_args *a = read_struct(args, &args_copy, sizeof args_copy, sizeof args_copy);
    if (!s || !a)
        return NRG_ERR_STRUCT_SIZE;
    size_t p_stride = a->p_stride;
    nrg_status status = check_forward(s, a, ith, nth, &p_stride);
    if (status == NRG_OK && ith == 0 && s->n)
        forward(s, a, p_stride);
    return status;
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static nrg_status backward_bytes(const nrg_floater_spec *s, int with_states, size_t *bytes)
{
    /* gradient, state, sum; slope, v; inputs; states */
    const size_t fixed = 3 * sizeof(double) + 2 * sizeof(float);
    size_t inputs, states, vectors;
    if (!product(substeps_of(s), STAGES * sizeof(float), &inputs) || !product(with_states ? 0 : s->n, sizeof(double), &states) ||
        inputs > SIZE_MAX - fixed || states > SIZE_MAX - fixed - inputs)
        return NRG_ERR_OVERFLOW;
    vectors = fixed + inputs + states;
    return product(s->dim, vectors, bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

nrg_status nrg_floater_backward_workspace(const nrg_floater_spec *spec, const nrg_floater_backward_args *args, size_t *bytes)
{
    nrg_floater_spec spec_copy;
    nrg_floater_backward_args args_copy;
    if (!spec || !args || !bytes)
        return NRG_ERR_NULL;
    spec = read_spec(spec, &spec_copy);
    args = read_struct(args, &args_copy, sizeof args_copy, sizeof args_copy);
    if (!spec || !args)
        return NRG_ERR_STRUCT_SIZE;
    return spec->dim ? backward_bytes(spec, args->states != NULL, bytes) : NRG_ERR_DIM;
}

/* The state at every position but the last into `states`, [n, dim]. */
static void repeat_forward(const nrg_floater_spec *s, const rk_room *room, double *states)
{
    rk_room r = *room;
    r.input_step = 0;
    for (size_t k = 0; k < s->n; k++) {
        memcpy(states + k * s->dim, r.state, s->dim * sizeof *states);
        if (k + 1 < s->n)
            take_interval(s, &r, k);
    }
}

static void backward(const nrg_floater_spec *s, const nrg_floater_backward_args *a, size_t dp_stride)
{
    const size_t dim = s->dim;
    double *gradient = a->workspace, *state = gradient + dim, *sum = state + dim, *states = sum + dim;
    float *slope = (float *)(a->states ? states : states + s->n * dim), *v = slope + dim, *input = v + dim;
    const rk_room room = {state, sum, slope, input, dim};
    if (!a->states) {
        set_start(state, s, a->p0, a->state0);
        repeat_forward(s, &room, states);
    }
    for (size_t i = 0; i < dim; i++)
        gradient[i] = a->dstate_n ? a->dstate_n[i] : 0;
    for (size_t k = s->n; k--;) {
        const char *dp = (const char *)a->dp + k * dp_stride;
        for (size_t i = 0; i < dim; i++)
            gradient[i] += (double)load(dp, i, s->dtype);
        if (!a->states)
            memcpy(state, states + k * dim, dim * sizeof *state);
        else if (k)
            memcpy(state, a->states + (k - 1) * dim, dim * sizeof *state);
        else
            set_start(state, s, a->p0, a->state0);
        reverse_interval(s, &room, gradient, v, k);
    }
}

/* gradient: NULL for 0. */
static void hand_out(const nrg_floater_backward_args *a, const double *gradient, size_t dim)
{
    for (size_t i = 0; i < dim; i++) {
        const double value = gradient ? gradient[i] : 0;
        if (a->dp0)
            a->dp0[i] = (float)value;
        if (a->dstate0)
            a->dstate0[i] = value;
    }
}

static __attribute__((noinline)) nrg_status check_backward(const nrg_floater_spec *s, const nrg_floater_backward_args *a, int ith,
                                                           int nth, size_t *dp_stride)
{
    nrg_status status = check_spec(s, ith, nth);
    if (status != NRG_OK)
        return status;
    if (s->n && (!s->h || !s->vjp || !a->dp || (!a->p0 && !a->state0)))
        return NRG_ERR_NULL;
    size_t space, count, none = 0;
    extent operands[9];
    extents all = {0, operands};
    if ((status = backward_bytes(s, a->states != NULL, &space)) != NRG_OK)
        return status;
    if (!product(s->n, s->dim, &count))
        return NRG_ERR_OVERFLOW;
    if ((status = add_inputs(&all, s, a->p0, a->state0)) != NRG_OK ||
        (status = add_doubles(&all, STATES, ANY_OPERAND, a->states, count)) != NRG_OK ||
        (status = add_operand(&all, DP, ANY_OPERAND, a->dp, s->dtype, s->dim, s->n, dp_stride)) != NRG_OK ||
        (status = add_doubles(&all, DSTATE_N, ANY_OPERAND, a->dstate_n, s->dim)) != NRG_OK ||
        (status = add_operand(&all, DP0, 0, a->dp0, NRG_F32, s->dim, 1, &none)) != NRG_OK ||
        (status = add_doubles(&all, DSTATE0, DSTATE_N, a->dstate0, s->dim)) != NRG_OK ||
        (status = check_workspace(&all, a->workspace, a->workspace_size, s->n ? space : 0)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    return check_times(s);
}

nrg_status nrg_floater_backward(const nrg_floater_spec *spec, const nrg_floater_backward_args *args, int ith, int nth)
{
    nrg_floater_spec spec_copy;
    nrg_floater_backward_args args_copy;
    if (!spec || !args)
        return NRG_ERR_NULL;
    const nrg_floater_spec *s = read_spec(spec, &spec_copy);
    const nrg_floater_backward_args *a = read_struct(args, &args_copy, sizeof args_copy, sizeof args_copy);
    if (!s || !a)
        return NRG_ERR_STRUCT_SIZE;
    size_t dp_stride = a->dp_stride;
    nrg_status status = check_backward(s, a, ith, nth, &dp_stride);
    if (status != NRG_OK || ith != 0)
        return status;
    if (s->n)
        backward(s, a, dp_stride);
    hand_out(a, s->n ? a->workspace : a->dstate_n, s->dim);
    return NRG_OK;
}
#endif
