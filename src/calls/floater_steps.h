/* The steps of the Runge-Kutta method of nrg/floater.h, and the same reversed. docs/ops/recurrent.md says in words what these
 * loops do to the last bit.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_FLOATER_STEPS_H
#define NRG_CALLS_FLOATER_STEPS_H

#include "../exact/element.h"
#include "../operands/recurrent.h"

enum { STAGES = NRG_FLOATER_STAGES };

/* ---- the steps ---- */

static inline double time_of(const nrg_floater_spec *s, size_t k) { return s->times ? s->times[k] : s->t0 + (double)k * s->dt; }

/* A substep on the way from position k to the next: its times, and the factors of the method. */
typedef struct rk_step {
    double begin, middle, end;
    double whole, half, sixth;
} rk_step;

static inline rk_step step_of(const nrg_floater_spec *s, size_t k, size_t substep)
{
    const size_t substeps = s->substeps;
    const double from = time_of(s, k), to = time_of(s, k + 1);
    rk_step step;
    step.whole = (to - from) / (double)substeps;
    step.half = step.whole / 2;
    step.sixth = step.whole / 6;
    step.begin = from + (double)substep * step.whole;
    step.middle = step.begin + step.half;
    step.end = substep + 1 < substeps ? from + (double)(substep + 1) * step.whole : to;
    return step;
}

/* What a step works on: dim numbers each. */
typedef struct rk_room {
    double *state, *sum;
    float *slope;
    float *input; /* of the stages, `input_step` apart: what h was asked for */
    size_t input_step;
} rk_room;

static inline void add_slope(double *sum, const float *slope, double weight, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        sum[i] += weight * (double)slope[i];
}

static inline void set_input(float *input, const double *state, const float *slope, double step, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        input[i] = (float)(state[i] + step * (double)slope[i]);
}

/* to_end: 0 where the state at the end is of no interest, but only what the stages were asked for. */
static inline void take_step(const nrg_floater_spec *s, const rk_room *r, rk_step step, int to_end)
{
    const size_t dim = s->dim;
    float *input = r->input;
    for (size_t i = 0; i < dim; i++)
        input[i] = (float)r->state[i];
    s->h(s->user, step.begin, dim, input, r->slope);
    for (size_t i = 0; i < dim; i++)
        r->sum[i] = (double)r->slope[i];

    input += r->input_step;
    set_input(input, r->state, r->slope, step.half, dim);
    s->h(s->user, step.middle, dim, input, r->slope);
    add_slope(r->sum, r->slope, 2, dim);

    input += r->input_step;
    set_input(input, r->state, r->slope, step.half, dim);
    s->h(s->user, step.middle, dim, input, r->slope);
    add_slope(r->sum, r->slope, 2, dim);

    input += r->input_step;
    set_input(input, r->state, r->slope, step.whole, dim);
    if (!to_end)
        return;
    s->h(s->user, step.end, dim, input, r->slope);
    for (size_t i = 0; i < dim; i++)
        r->state[i] += step.sixth * (r->sum[i] + (double)r->slope[i]);
}

/* From position k to the next. */
static inline void take_interval(const nrg_floater_spec *s, const rk_room *r, size_t k)
{
    for (size_t substep = 0; substep < s->substeps; substep++)
        take_step(s, r, step_of(s, k, substep), 1);
}

static inline void set_start(double *state, const nrg_floater_spec *s, const void *p0, const double *state0)
{
    for (size_t i = 0; i < s->dim; i++)
        state[i] = state0 ? state0[i] : (double)load(p0, i, s->p0_dtype ? s->p0_dtype : s->dtype);
}

/* ---- the steps reversed ---- */

/* gradient: with regard to the state at the end of a step, becomes that at its beginning. The room's input is what the stages
 * were asked for; v and slope are overwritten. */
static inline void reverse_step(const nrg_floater_spec *s, const rk_room *r, double *gradient, float *v, rk_step step)
{
    const size_t dim = s->dim;
    const double time[STAGES] = {step.begin, step.middle, step.middle, step.end};
    /* of a stage's slope in the state at the end, and in the input of the next stage */
    const double weight[STAGES] = {step.sixth, 2 * step.sixth, 2 * step.sixth, step.sixth};
    const double onward[STAGES] = {step.half, step.half, step.whole, 0};
    for (size_t i = 0; i < dim; i++)
        r->sum[i] = gradient[i];
    for (int stage = STAGES - 1; stage >= 0; stage--) {
        for (size_t i = 0; i < dim; i++) {
            double arriving = weight[stage] * gradient[i];
            if (stage + 1 < STAGES)
                arriving += onward[stage] * (double)r->slope[i];
            v[i] = (float)arriving;
        }
        s->vjp(s->user, time[stage], dim, r->input + (size_t)stage * r->input_step, v, r->slope);
        add_slope(r->sum, r->slope, 1, dim);
    }
    for (size_t i = 0; i < dim; i++)
        gradient[i] = r->sum[i];
}

/* The same of the interval from position k to the next; the room has inputs for all of its steps, and the state at k. */
static inline void reverse_interval(const nrg_floater_spec *s, const rk_room *room, double *gradient, float *v, size_t k)
{
    const size_t substeps = s->substeps;
    rk_room r = *room;
    for (size_t substep = 0; substep < substeps; substep++, r.input += STAGES * r.input_step)
        take_step(s, &r, step_of(s, k, substep), substep + 1 < substeps);
    for (size_t substep = substeps; substep--;) {
        r.input -= STAGES * r.input_step;
        reverse_step(s, &r, gradient, v, step_of(s, k, substep));
    }
}

#endif
