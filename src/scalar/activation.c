/* The activations g and their slopes g′: the reference. What these functions do is, to the last bit, what every path does;
 * docs/activations.md says it in words. Written for reading: nothing but the numbers in activation.h is shared with the template.
 *
 * What is left of 0 is computed, and the right follows from it: x·σ(x) = x - |x|·σ(-|x|) for x > 0, and so on. Exponentials are
 * kept as a power of two and the rest, 2^n·(1 + m), and what becomes very small on the left carries a factor of 2^64, which the
 * last operation takes away. So a result among the subnormals is rounded once there, and nothing on the way underflows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "activation.h"
#include "element.h"

/* ---- small things ---- */

/* A NaN in x comes through both: c is none. */
static float at_most(float c, float x) { return c < x ? c : x; }
static float at_least(float c, float x) { return c > x ? c : x; }

/* max(x, 0), which is -0 for -0. */
static float positive_part(float x) { return at_least(0, x); }

/* c[0] + x·(c[1] + x·(... c[degree])) */
static float polynomial(const float *c, int degree, float x)
{
    float sum = c[degree];
    for (int i = degree - 1; i >= 0; i--)
        sum = fmaf(sum, x, c[i]);
    return sum;
}

/* ---- the exponential, and the tail of the logistic function ---- */

typedef struct exponential {
    float n, m; /* 2^n · (1 + m) */
} exponential;

static float nearest_power(float h) { return fmaf(h, NRG_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC; }
static float exp_less_one(float r) { return fmaf(r * r, polynomial(nrg_exp_q, 4, r), r); }

/* e^h. The inner fma is exact. */
static exponential exp_of(float h)
{
    float n = nearest_power(h), r = fmaf(n, -NRG_LN2_LO, fmaf(n, -NRG_LN2_HI, h));
    exponential e = {n, exp_less_one(r)};
    return e;
}

/* e^(h + rest), where rest is what rounding took from h. */
static exponential exp_of_sum(float h, float rest)
{
    float n = nearest_power(h), r = fmaf(n, -NRG_LN2_HI, h) + fmaf(n, -NRG_LN2_LO, rest);
    exponential e = {n, exp_less_one(r)};
    return e;
}

/* s·2^n. For n = NaN anything: m is NaN as well. */
static float power(float s, float n) { return isnan(n) ? s : ldexpf(s, (int)n); }

/* σ(-h)·2^64 = 1/d for d = (1 + e^h)·2^-64 and h ≥ 0, nearly: r·(1 - error). */
typedef struct logistic_tail {
    float r, error;
} logistic_tail;

static logistic_tail tail_of(exponential e)
{
    float p = power(0x1p-64f, e.n), inner = fmaf(p, e.m, 0x1p-64f), d = p + inner, d_rest = inner - (d - p), r = 1 / d;
    logistic_tail tail = {r, fmaf(r, d_rest, fmaf(r, d, -1))};
    return tail;
}

/* The value itself, rounded. */
static float tail_value(logistic_tail tail) { return fmaf(-tail.r, tail.error, tail.r); }

/* A function with f(x) + f(-x) = 1, from f(-|x|)·2^64. */
static float mirror(float left, float x) { return x < 0 ? left * 0x1p-64f : fmaf(left, -0x1p-64f, 1); }

/* ---- g and, where it is asked for, g′ ---- */

static float identity(float x, float *slope)
{
    if (slope)
        *slope = isnan(x) ? x : 1;
    return x;
}

static float relu(float x, float *slope)
{
    if (slope)
        *slope = isnan(x) ? x : x > 0 ? 1 : 0;
    return positive_part(x);
}

static float relu2(float x, float *slope)
{
    float p = positive_part(x);
    if (slope)
        *slope = p + p;
    return p * p;
}

/* σ(-t) - σ(-t)², from q = σ(-t)·2^64, and still times 2^64. */
static float tail_slope(float q) { return fmaf(-(q * 0x1p-64f), q, q); }

static float sigmoid(float x, float *slope)
{
    float t = at_most(110, fabsf(x)), q = tail_value(tail_of(exp_of(t)));
    if (slope)
        *slope = tail_slope(q) * 0x1p-64f;
    return mirror(q, x);
}

/* t + t³·polynomial(t²), or 1 - 2·σ(-2t) where that is at least 1/2. g′ = 4·σ(-2t)·(1 - σ(-2t)). */
static float hyperbolic_tangent(float x, float *slope)
{
    float t = at_most(55, fabsf(x)), square = t * t, q = tail_value(tail_of(exp_of(t + t)));
    if (slope)
        *slope = tail_slope(q) * 0x1p-62f;
    float near = fmaf(t * square, polynomial(nrg_tanh_c, 4, square), t), far = fmaf(q, -0x1p-63f, 1);
    return copysignf(t < NRG_TANH_BOUND ? near : far, x);
}

/* What silu and gelu_tanh share: x·σ(±h) = x⁺ - t·σ(-h), for t = |x|. The product with t is rounded once, although σ has an error
 * term. The slope is σ(-h)·(1 - t·h′·(1 - σ(-h))) on the left, where t·h′ is rise + rise_rest. */
static float gated(float x, float t, exponential e, float rise, float rise_rest, float *slope)
{
    logistic_tail tail = tail_of(e);
    if (slope) {
        float q = tail_value(tail), other = fmaf(q, -0x1p-64f, 1);
        *slope = mirror(q * fmaf(-rise, other, fmaf(-rise_rest, other, 1)), x);
    }
    float left = fmaf(t, tail.r, -(t * (tail.r * tail.error)));
    return fmaf(left, -0x1p-64f, positive_part(x));
}

static float silu(float x, float *slope)
{
    float t = at_most(110, fabsf(x));
    return gated(x, t, exp_of(t), t, 0, slope);
}

static float gelu_tanh(float x, float *slope)
{
    float t = at_most(11, fabsf(x)), square = t * t, square_rest = fmaf(t, t, -square);
    /* h = t·(c1 + c3·t²), with the rounding errors of t², of the bracket, and of its product with t */
    float w = fmaf(NRG_U_C3_HI, square, NRG_U_C1_HI), w_rest = fmaf(NRG_U_C3_HI, square, NRG_U_C1_HI - w);
    w_rest = fmaf(NRG_U_C3_HI, square_rest, w_rest) + fmaf(NRG_U_C3_LO, square, NRG_U_C1_LO);
    float h = t * w, rest = fmaf(t, w_rest, fmaf(t, w, -h));
    /* t·h′ = h + 2·c3·t³ */
    float twice = NRG_U_2_C3 * square, rise = fmaf(t, twice, h), rise_rest = fmaf(t, twice, h - rise) + rest;
    return gated(x, t, exp_of_sum(h, rest), rise, rise_rest, slope);
}

/* x⁺ + gelu(-t) for t = |x|, where gelu(-t) is e^-(t²/2) · a polynomial; and so is its slope. */
static float gelu(float x, float *slope)
{
    float t = at_most(NRG_GELU_END, fabsf(x)), minus_half = -0.5f * t, h = t * minus_half, octave = 1 + t;
    exponential e = exp_of_sum(h, fmaf(t, minus_half, -h));
    float p = power(0x1p64f, e.n), column[8];
    unsigned k = nrg_f32_bits(octave) >> 22 & 7;
    float d = t - nrg_gelu_centre[k];
    int first = octave < NRG_GELU_FIRST;
    float m = first ? 0 : e.m; /* n is 0 there */
    if (slope) {
        for (int i = 0; i < 7; i++)
            column[i] = nrg_gelu_slope[i][k];
        float c = polynomial(column, 6, d);
        *slope = mirror(fmaf(c, m, c) * p, x);
    }
    for (int i = 0; i < 8; i++)
        column[i] = nrg_gelu[i][k];
    if (first)
        column[0] = minus_half;
    float c = polynomial(column, 7, d);
    return fmaf(fmaf(c, m, c) * p, 0x1p-64f, positive_part(x));
}

/* x⁺ + e·(log1p(e)/e) with e = e^-|x|. g′ is σ: 1/(1 + e), or e/(1 + e) on the left. */
static float softplus(float x, float *slope)
{
    exponential e = exp_of(at_least(-110, -fabsf(x)));
    float p = power(0x1p64f, e.n), far = fmaf(p, e.m, p);
    float c = polynomial(nrg_log1p_c, 9, fmaf(far, 0x1p-64f, -NRG_LOG1P_CENTRE));
    if (slope)
        *slope = (x < 0 ? far : 0x1p64f) / fmaf(far, 0x1p-64f, 1) * 0x1p-64f;
    return fmaf(fmaf(c, e.m, c) * p, 0x1p-64f, positive_part(x));
}

static float evaluate(nrg_activation g, float x, float *slope)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        return sigmoid(x, slope);
    case NRG_ACT_SILU:
        return silu(x, slope);
    case NRG_ACT_RELU:
        return relu(x, slope);
    case NRG_ACT_RELU2:
        return relu2(x, slope);
    case NRG_ACT_TANH:
        return hyperbolic_tangent(x, slope);
    case NRG_ACT_GELU:
        return gelu(x, slope);
    case NRG_ACT_GELU_TANH:
        return gelu_tanh(x, slope);
    case NRG_ACT_SOFTPLUS:
        return softplus(x, slope);
    case NRG_ACT_IDENTITY:
        break;
    }
    return identity(x, slope);
}

void nrg_scalar_activate(nrg_activation g, const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = evaluate(g, in[i], NULL);
}

#ifndef NRG_NO_BACKWARD
void nrg_scalar_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = evaluate(g, in[i], &slope[i]);
}
#endif

/* ---- the kernels ---- */

static void forward(const nrg_activation_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++)
        store(job->o, i, dtype, evaluate(job->activation, load(job->x, i, dtype), NULL));
}

SCALAR_KERNELS(activation, activation, forward)

#ifndef NRG_NO_BACKWARD
static void backward(const nrg_activation_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++) {
        float slope;
        evaluate(job->activation, load(job->x, i, dtype), &slope);
        store(job->o, i, dtype, load(job->d_o, i, dtype) * slope);
    }
}

SCALAR_KERNELS(activation_backward, activation, backward)
#endif
