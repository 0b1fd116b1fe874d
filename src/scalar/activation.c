/* The activations g and their slopes g′: the reference. What these functions do is, to the last bit, what every path does;
 * docs/activations.md says it in words, and has the errors. Written for reading: nothing is shared with the template.
 *
 * What is left of 0 is computed, and the right follows from it: x·σ(x) = x - |x|·σ(-|x|) for x > 0, and so on. Exponentials are
 * kept as a power of two and the rest, 2^n·(1 + m), and what becomes very small on the left carries a factor of 2^64, which the
 * last operation takes away. So a result among the subnormals is rounded once there, and nothing on the way underflows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/activation.h"
#include "element.h"

/* The numbers below are those of docs/activations.md. Polynomials are the project's own minimax fits with float coefficients,
 * lowest power first. */

/* ---- e^h = 2^n · (1 + m), m = e^r - 1 = r + r²·q(r), |r| ≤ 0.3467 ---- */

#define NRG_EXP_MAGIC 0x1.8p23f /* added to a small number it leaves the nearest integer in the lower bits */
#define NRG_LOG2_E 0x1.715476p0f
#define NRG_LN2_HI 0x1.62e4p-1f /* 15 bits: times an n of 8 bits it is exact */
#define NRG_LN2_LO 0x1.7f7d1cp-20f
static const float nrg_exp_q[5] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.123a1ep-7f, 0x1.6a23d4p-10f};

/* ---- 2u = x·(c1 + c3·x²) of gelu_tanh: c1 = √(8/π), c3 = 0.044715·c1 ---- */

#define NRG_U_C1_HI 0x1.98846p0f /* 20 bits: c1_hi - (c1_hi + c3·x²) is exact */
#define NRG_U_C1_LO -0x1.985794p-21f
#define NRG_U_C3_HI 0x1.2444f2p-4f
#define NRG_U_C3_LO 0x1.49b16ap-29f
#define NRG_U_2_C3 0x1.2444f2p-3f

/* ---- log1p(e)/e for e in [0, 1], a polynomial in e - centre. The centre is where c[0] is log1p(e)/e to 2^-29 ---- */

#define NRG_LOG1P_CENTRE 0x1.1ap-1f
static const float nrg_log1p_c[10] = {0x1.97dd8p-1f,   -0x1.1a2d7ap-2f, 0x1.f7256p-4f,   -0x1.f1a69ep-5f, 0x1.04bf2p-5f,
                                      -0x1.1c8a4cp-6f, 0x1.3862c8p-7f,  -0x1.436cb6p-8f, 0x1.eae126p-9f,  -0x1.a7a69cp-9f};

/* ---- (1/t²)·(tanh(t)/t - 1) for t below the bound, a polynomial in t² ---- */

#define NRG_TANH_BOUND 0x1.194p-1f /* 0.549: tanh of it is 1/2 */
static const float nrg_tanh_c[5] = {-0x1.55554ap-2f, 0x1.110dp-3f, -0x1.b92372p-5f, 0x1.591a86p-6f, -0x1.9a8a7ep-8f};

/* ---- gelu(-t)·e^(t²/2) and gelu′(-t)·e^(t²/2) for t in [0, 14.6] ----
 *
 * Eight intervals, from 0, 0.5, 1, 2, 3, 5, 7 and 11 on: halves of the octaves of 1 + t. In column k is the one for which bits 22
 * to 24 of 1 + t are k. Polynomials in t - centre, where gelu(-t)·e^(t²/2) is very near a float. The first interval (column 6)
 * has the functions themselves, without the exponential, and lacks the term -t/2 of gelu: it is added last, exactly. -2^-100 is
 * in the place of its factor, for the sign of gelu(-0). */

#define NRG_GELU_END 0x1.d3p3f /* 14.59: beyond it everything rounds to 0 */
#define NRG_GELU_FIRST 1.5f    /* 1 + t below it: the first interval */
static const float nrg_gelu_centre[8] = {0x1.7ep0f, 0x1.31p1f, 0x1.f4p1f, 0x1.848p2f, 0x1.2b8p3f, 0x1.99p3f, 0, 0x1.88p-1f};
static const float nrg_gelu[8][8] = {
    {-0x1.3b8386p-2f, -0x1.665d32p-2f, -0x1.81cb8cp-2f, -0x1.8e3ac2p-2f, -0x1.94012ep-2f, -0x1.960f8ep-2f, 0, -0x1.d28a1cp-3f},
    {-0x1.22a9a4p-4f, -0x1.ee3fbcp-6f, -0x1.4035c4p-7f, -0x1.93dee2p-9f, -0x1.ddfdf6p-11f, -0x1.829f7ap-12f, -0x1p-100f,
     -0x1.5502bp-3f},
    {0x1.364daep-5f, 0x1.ab30cap-7f, 0x1.96c284p-9f, 0x1.6be494p-11f, 0x1.25b28p-13f, 0x1.62916ap-15f, 0x1.98845cp-2f,
     0x1.b7e70cp-4f},
    {-0x1.10a444p-6f, -0x1.35e356p-8f, -0x1.bb1f44p-11f, -0x1.1db9dep-13f, -0x1.3de914p-16f, -0x1.1f6706p-18f, -0x1.5a149ap-18f,
     -0x1.c97d58p-5f},
    {0x1.a457c2p-8f, 0x1.909198p-10f, 0x1.b5446p-13f, 0x1.9c8af8p-16f, 0x1.3f0418p-19f, 0x1.b13db4p-22f, -0x1.1011c8p-4f,
     0x1.9b6016p-6f},
    {-0x1.2600d6p-9f, -0x1.dc4c46p-12f, -0x1.95cfa4p-15f, -0x1.17eeep-18f, -0x1.267306p-22f, -0x1.39334ep-25f, -0x1.a6d194p-12f,
     -0x1.4b2e26p-7f},
    {0x1.8c9826p-11f, 0x1.0eee64p-13f, 0x1.79639ap-17f, 0x1.7d37e2p-21f, 0x1.23b2f8p-25f, 0x1.dfd298p-29f, 0x1.6f47e4p-7f,
     0x1.ef53dep-9f},
    {-0x1.de32c2p-13f, -0x1.fdd11cp-16f, -0x1.14ce4cp-19f, -0x1.0845b8p-23f, -0x1.8766acp-28f, -0x1.39b66ep-32f, -0x1.f0e672p-10f,
     -0x1.6ae4p-10f},
};
static const float nrg_gelu_slope[7][8] = {
    {-0x1.8e23d8p-2f, -0x1.9b830ap-1f, -0x1.76405cp0f, -0x1.2dc71ep1f, -0x1.d88982p1f, -0x1.445962p2f, 0x1p-1f, -0x1.02f0d2p-7f},
    {-0x1.f58526p-2f, -0x1.caab74p-2f, -0x1.af3d1ep-2f, -0x1.a2cde6p-2f, -0x1.9d0778p-2f, -0x1.9af918p-2f, -0x1.988478p-1f,
     -0x1.23e1ccp-1f},
    {0x1.22a9bap-5f, 0x1.ee3706p-7f, 0x1.403836p-8f, 0x1.93e02ep-10f, 0x1.de43aap-12f, 0x1.81a18ap-13f, 0x1.5b849cp-15f,
     0x1.5502b2p-4f},
    {-0x1.9d967cp-7f, -0x1.1cca2cp-8f, -0x1.0eee6ap-10f, -0x1.e4e3fep-13f, -0x1.87728cp-15f, -0x1.d93846p-17f, 0x1.0fcd8p-2f,
     -0x1.25439p-5f},
    {0x1.10762ep-8f, 0x1.385d3ap-10f, 0x1.bb3be8p-13f, 0x1.1d4b7ep-15f, 0x1.32d7b6p-18f, 0x1.829684p-20f, 0x1.9cdc2cp-9f,
     0x1.c95e7p-7f},
    {-0x1.5baaf6p-10f, -0x1.4558e6p-12f, -0x1.71aebap-15f, -0x1.593abep-18f, -0x1.0b643ap-21f, -0x1.4c166ap-24f, -0x1.1c95c2p-4f,
     -0x1.4bd64p-8f},
    {0x1.9925c6p-12f, 0x1.ca94b4p-15f, 0x1.0cd09ap-17f, 0x1.8e70aep-21f, 0x1.415f04p-24f, -0x1.23b24ap-24f, 0x1.e7e1fp-7f,
     0x1.ce41a4p-10f},
};

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
