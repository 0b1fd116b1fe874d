/* Positional encodings as the path of a dynamical system. Plain C in double: the time is that of the caller's functions.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/place.h"
#include "../operands/recurrent.h"
#include "call.h"
#include "floater_steps.h"

#define NRG_MAKE_TABLES
#include "../operands/floater_calls.def"

/* Every time, and every step from one to the next. */
static nrg_status check_times(const nrg_floater_spec *s)
{
    if (!s->times)
        return s->positions == 0 || (isfinite(s->t0) && isfinite(s->dt) && isfinite(time_of(s, s->positions))) ? NRG_OK
                                                                                                               : NRG_ERR_POSITION;
    for (size_t k = 0; k < s->positions; k++)
        if (!isfinite(s->times[k + 1] - s->times[k]) || !isfinite(s->times[k]) || !isfinite(s->times[k + 1]))
            return NRG_ERR_POSITION;
    return NRG_OK;
}

/* Apart from the call itself, so that what it needs is not on the stack when h is called. *stride: of operand `at`. */
NRG_OWN_FRAME nrg_status check(size_t *stride, unsigned at, const nrg_call *call, const nrg_floater_spec *spec, const void *args,
                               int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, call, (const void *const[]){spec, args}, ith, nth);
    if (status != NRG_OK)
        return status;
    *stride = c.laid.stride[at][0];
    return check_times(c.part[NRG_FLOATER_SPEC]);
}

/* ---- forward ---- */

nrg_status nrg_floater_workspace(const nrg_floater_spec *spec, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_floater_workspace, (const void *const[]){spec}, NRG_FLOATER_WORKSPACE_N_SPACE,
                         sizeof(double));
}

static void forward(const nrg_floater_spec *s, const nrg_floater_args *a, size_t p_stride)
{
    const size_t dim = s->dim;
    double *state = a->workspace, *sum = state + dim;
    float *slope = (float *)(sum + dim), *input = slope + dim;
    const rk_room room = {state, sum, slope, input, 0};
    set_start(state, s, a->p0, a->state0);
    for (size_t k = 0; k < s->positions; k++) {
        take_interval(s, &room, k);
        for (size_t i = 0; i < dim; i++)
            store((char *)a->p + k * p_stride, i, s->dtype, (float)state[i]);
        if (a->states)
            memcpy(a->states + k * dim, state, dim * sizeof *state);
    }
}

nrg_status nrg_floater_forward(const nrg_floater_spec *spec, const nrg_floater_args *args, int ith, int nth)
{
    size_t p_stride;
    const nrg_status status = check(&p_stride, NRG_FLOATER_P, &nrg_call_floater_forward, spec, args, ith, nth);
    if (status == NRG_OK && ith == 0 && spec->positions)
        forward(spec, args, p_stride);
    return status;
}

nrg_status nrg_floater_forward_check(const nrg_floater_spec *spec, const nrg_floater_args *args)
{
    size_t p_stride;
    return nrg_asked(check(&p_stride, NRG_FLOATER_P, &nrg_call_floater_forward, spec, args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

nrg_status nrg_floater_backward_workspace(const nrg_floater_spec *spec, const nrg_floater_backward_args *args, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_floater_backward_workspace, (const void *const[]){spec, args},
                         NRG_FLOATER_WORKSPACE_N_SPACE, sizeof(double));
}

/* The state at every position but the last into `states`, [n, dim]. */
static void repeat_forward(const nrg_floater_spec *s, const rk_room *room, double *states)
{
    rk_room r = *room;
    r.input_step = 0;
    for (size_t k = 0; k < s->positions; k++) {
        memcpy(states + k * s->dim, r.state, s->dim * sizeof *states);
        if (k + 1 < s->positions)
            take_interval(s, &r, k);
    }
}

static void backward(const nrg_floater_spec *s, const nrg_floater_backward_args *a, size_t dp_stride)
{
    const size_t dim = s->dim;
    double *gradient = a->workspace, *state = gradient + dim, *sum = state + dim, *states = sum + dim;
    float *slope = (float *)(a->states ? states : states + s->positions * dim), *v = slope + dim, *input = v + dim;
    const rk_room room = {state, sum, slope, input, dim};
    if (!a->states) {
        set_start(state, s, a->p0, a->state0);
        repeat_forward(s, &room, states);
    }
    for (size_t i = 0; i < dim; i++)
        gradient[i] = a->d_state_n ? a->d_state_n[i] : 0;
    for (size_t k = s->positions; k--;) {
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
        if (a->d_p0)
            a->d_p0[i] = (float)value;
        if (a->d_state0)
            a->d_state0[i] = value;
    }
}

nrg_status nrg_floater_backward(const nrg_floater_spec *spec, const nrg_floater_backward_args *args, int ith, int nth)
{
    size_t dp_stride;
    const nrg_status status = check(&dp_stride, NRG_FLOATER_BACKWARD_DP, &nrg_call_floater_backward, spec, args, ith, nth);
    if (status != NRG_OK || ith != 0)
        return status;
    if (spec->positions)
        backward(spec, args, dp_stride);
    hand_out(args, spec->positions ? args->workspace : args->d_state_n, spec->dim);
    return NRG_OK;
}

nrg_status nrg_floater_backward_check(const nrg_floater_spec *spec, const nrg_floater_backward_args *args)
{
    size_t dp_stride;
    return nrg_asked(check(&dp_stride, NRG_FLOATER_BACKWARD_DP, &nrg_call_floater_backward, spec, args, 0, 1));
}
#endif
