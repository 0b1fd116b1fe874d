/* The activations g and their slopes g′: the reference. What these functions do is, to the last bit, what every path does;
 * docs/ops/activation.md says it in words, and has the errors. Written for reading: nothing is shared with the template.
 *
 * What is left of 0 is computed, and the right follows from it: x·σ(x) = x - |x|·σ(-|x|) for x > 0, and so on. What becomes very
 * small on the left carries a factor of 2^64, and so does what it is divided by in the end. So a result among the subnormals is
 * rounded once there, and nothing on the way underflows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "activation.h"
#include "element.h"
#include "exponential.h"

/* The numbers below are those of docs/ops/activation.md. Polynomials are the project's own minimax fits with float coefficients,
 * lowest power first. */

/* ---- (e^-r - 1 + r)/r² ---- */

static const float nrg_expm1_c[5] = {0x1.fffffep-2f, -0x1.5554aap-3f, 0x1.55579ap-5f, -0x1.122c3ap-7f, 0x1.6ac018p-10f};

/* ---- 2u = c3·t·(t² + γ) of gelu_tanh: c3 = 0.044715·√(8/π), γ = 1/0.044715. r is in units of c3 ---- */

#define NRG_U_GAMMA_HI 0x1.65d26p4f /* 2^-17 divides it: γ_hi - (γ_hi + t²) is exact */
#define NRG_U_GAMMA_LO -0x1.226128p-20f
#define NRG_U_LOG2_E 0x1.a5a7dp-4f /* c3/ln 2 */
#define NRG_U_LN2_HI 0x1.36dap3f   /* ln 2/c3, 16 bits: times n it is exact */
#define NRG_U_LN2_LO -0x1.549446p-16f
#define NRG_U_C1 0x1.988454p0f
#define NRG_U_3_C3 0x1.b6676cp-3f
#define NRG_U_UNIT 0x1.cp64f
static const float nrg_exp_u[7] = {
    1, -0x1.2444f4p-4f, 0x1.4dad5ep-9f, -0x1.fbece2p-15f, 0x1.21f36p-20f, -0x1.0a4bc8p-26f, 0x1.91e2bcp-33f};

/* ---- log1p(e)/e for e from 0 to 1 ---- */

static const float nrg_log1p_c[9] = {1,
                                     -0x1.ffff14p-2f,
                                     0x1.5535dep-2f,
                                     -0x1.fd136ap-3f,
                                     0x1.884566p-3f,
                                     -0x1.19afcap-3f,
                                     0x1.447138p-4f,
                                     -0x1.eca5dcp-6f,
                                     0x1.5fa38ap-8f};

/* ---- gelu(-t) = -t·e^-h·(q(t) + p(t))/(2·(2 + t)·q(t)) for t in [0, 14.6], h = t²/2. e^-h is 2^n·e^-r, r = h + n·ln 2 but for
 * n·ln2_lo: the quotient makes that good ---- */

#define NRG_GELU_END 0x1.d3p3f       /* 14.59: beyond it everything rounds to 0 */
#define NRG_GELU_PHI 0x1.988454p-2f  /* 1/√(2π) */
#define NRG_GELU_LN2 0x1.79a8dcp-29f /* -ln2_lo/ln 2: times h, what e^-h is too large by, for the slope */
static const float nrg_gelu_p[5] = {0x1.94p0f, 0x1.ed174cp-1f, 0x1.a9eaep-3f, 0x1.a2ade8p-9f, -0x1.eda2cp-8f};
static const float nrg_gelu_q[5] = {0x1.94p0f, 0x1.e73c9cp0f, 0x1.05dbe4p0f, 0x1.1d18eep-2f, 0x1.314ac2p-5f};

/* ---- small things ---- */

/* max(x, 0), which is -0 for -0. The zero is hidden from clang, which turns x < 0 ? 0 : x into an fmax for AArch64 and
 * WebAssembly: that is 0 for -0. A comparison of bits would give another result where subnormal numbers are flushed. */
static float positive_part(float x)
{
    int zero = 0;
    NRG_IN_REGISTER(zero);
    return x < (float)zero ? 0 : x;
}

/* max(x, 0), which is -0 for all x < 0: less a zero, it keeps the sign that g has there. */
static float right_part(float x) { return at_least(-0.0f, x); }

/* ---- the exponential ---- */

/* e^-t = 2^n·e^-r for t ≥ 0. The first step of r is exact. */
typedef struct reduced {
    float n, r;
} reduced;

static reduced reduce(float t)
{
    float n = fmaf(t, -NRG_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC;
    reduced e = {n, fmaf(n, NRG_LN2_LO, fmaf(n, NRG_LN2_HI, t))};
    return e;
}

/* unit·2^n·c(r). The factor is in the coefficients, where a product with it would round. */
static float unit_power(float unit, const float *c, float r, float n)
{
    float scaled[7];
    for (int i = 0; i < 7; i++)
        scaled[i] = unit * c[i];
    return power(polynomial(scaled, 6, r), n);
}

/* unit·e^-t for t from 0 to 110 */
static float decay(float t, float unit)
{
    reduced e = reduce(t);
    return unit_power(unit, nrg_exp_c, e.r, e.n);
}

/* e^-r - 1, with all its bits where r is small */
static float exp_less_one(float r) { return fmaf(r * r, polynomial(nrg_expm1_c, 4, r), -r); }

/* A function with f(x) + f(-x) = 1, from f(-|x|). */
static float mirror(float left, float x) { return signbit(x) ? left : 1 - left; }

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

static float sigmoid(float x, float *slope)
{
    float e = decay(at_most(110, fabsf(x)), NRG_UNIT), a = e / (NRG_UNIT + e);
    if (slope)
        *slope = fmaf(-a, a, a);
    return mirror(a, x);
}

/* (1 - e)/(1 + e) for e = e^-2t = 2^n·(1 + m), where 1 - 2^n is exact. g′ = 4·e/(1 + e)². */
static float hyperbolic_tangent(float x, float *slope)
{
    reduced e = reduce(at_most(110, fabsf(x + x)));
    float p = power(0x1p64f, e.n), m = exp_less_one(e.r);
    float above = fmaf(-p, m, 0x1p64f - p), below = fmaf(p, m, 0x1p64f + p);
    if (slope) {
        float a = fmaf(p, m, p) * 4 / below;
        *slope = fmaf(-(a * 0.25f), a, a);
    }
    return copysignf(above / below, x);
}

/* What silu and gelu_tanh share: x·σ(±h) = x⁺ - t·σ(-h) for t = |x| and e = unit·e^-h. The slope is
 * σ(-h)·(1 - t·h′·(1 - σ(-h))) on the left, where t·h′ is rise, or rise + rise_rest: then the bracket is not rounded, either. */
static float gated(float x, float t, float e, float unit, float rise, const float *rise_rest, float *slope)
{
    float d = unit + e;
    if (slope) {
        float q = e / (d * 0x1p-64f), other = fmaf(-q, 0x1p-64f, 1);
        float factor = fmaf(-rise, other, 1), left = q * factor;
        if (rise_rest)
            left = fmaf(q, factor, q * fmaf(-*rise_rest, other, fmaf(-rise, other, 1 - factor)));
        *slope = mirror(left * 0x1p-64f, x);
    }
    return right_part(x) - t * e / d;
}

static float silu(float x, float *slope)
{
    float t = at_most(110, fabsf(x));
    return gated(x, t, decay(t, NRG_UNIT), NRG_UNIT, t, NULL, slope);
}

static float gelu_tanh(float x, float *slope)
{
    float t = at_most(11, fabsf(x));
    /* h = c3·t·(w + rest), where rest is what rounding took from w = t² + γ */
    float w = fmaf(t, t, NRG_U_GAMMA_HI), rest = fmaf(t, t, NRG_U_GAMMA_HI - w) + NRG_U_GAMMA_LO;
    float n = fmaf(t * w, -NRG_U_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC;
    float r = fmaf(t, w, n * NRG_U_LN2_HI) + fmaf(t, rest, n * NRG_U_LN2_LO);
    /* t·h′ = t·(c1 + 3·c3·t²), with the rounding errors of t², of the bracket, and of its product with t */
    float square = t * t, steep = fmaf(NRG_U_3_C3, square, NRG_U_C1), steep_rest = fmaf(NRG_U_3_C3, square, NRG_U_C1 - steep);
    steep_rest = fmaf(NRG_U_3_C3, fmaf(t, t, -square), steep_rest);
    float rise = t * steep, rise_rest = fmaf(t, steep_rest, fmaf(t, steep, -rise));
    return gated(x, t, unit_power(NRG_U_UNIT, nrg_exp_u, r, n), NRG_U_UNIT, rise, &rise_rest, slope);
}

static float gelu(float x, float *slope)
{
    float t = at_most(NRG_GELU_END, fabsf(x)), half = 0.5f * t, h = t * half;
    float n = fmaf(h, -NRG_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC, r = fmaf(n, NRG_LN2_HI, h) + fmaf(t, half, -h);
    float m = exp_less_one(r);
    float q = 0x1p64f * polynomial(nrg_gelu_q, 4, t), above = 0x1p64f * polynomial(nrg_gelu_p, 4, t);
    float below = fmaf(2 * q, t, 4 * q);
    if (slope) {
        float more = fmaf(-(h * NRG_GELU_LN2), 1 + m, m), a = fmaf(-(t * NRG_GELU_PHI), below, q + above);
        *slope = mirror(power(fmaf(a, more, a), n) / below, x);
    }
    float left = fmaf(t, q, fmaf(t, above, fmaf(t, q, t * above) * m));
    return right_part(x) - power(left, n) / below;
}

/* x⁺ + log1p(u) with u = e^-|x|, log1p(u) = u·c(u); what is multiplied in the end is 2^64·u and 2^-64·c. g′ is σ. */
static float softplus(float x, float *slope)
{
    float e = decay(at_most(110, fabsf(x)), 0x1p64f), u = e * 0x1p-64f;
    if (slope)
        *slope = mirror(e / (0x1p64f + e), x);
    return fmaf(e, polynomial(nrg_log1p_c, 8, u) * 0x1p-64f, positive_part(x));
}

/* x·σ(αx): what is lost when α·|x| is rounded is in r, and in t·h′, which is α·|x| as well. */
static float gelu_quick(float x, float alpha, float *slope)
{
    float t = at_most(128 / alpha, fabsf(x)), h = alpha * t, rest = fmaf(alpha, t, -h);
    float n = fmaf(h, -NRG_LOG2_E, NRG_EXP_MAGIC) - NRG_EXP_MAGIC;
    float r = fmaf(n, NRG_LN2_HI, h) + fmaf(n, NRG_LN2_LO, rest);
    return gated(x, t, unit_power(NRG_UNIT, nrg_exp_c, r, n), NRG_UNIT, h, &rest, slope);
}

/* The sum is exact wherever it is small; six of these sixths are 1 when they are rounded. */
static float hard_sigmoid(float x, float *slope)
{
    const float sixth = 0x1.555556p-3f;
    if (slope)
        *slope = isnan(x) ? x : fabsf(x) < 3 ? sixth : 0;
    return at_most(6, positive_part(x + 3)) * sixth;
}

static float hard_swish(float x, float *slope)
{
    float t = at_least(-3, x);
    if (slope)
        *slope = isnan(x) ? x : x <= -3 ? 0 : x >= 3 ? 1 : fmaf(x, 0x1.555556p-2f, 0.5f);
    return t * hard_sigmoid(t, NULL);
}

static float leaky_relu(float x, float alpha, float *slope)
{
    if (slope)
        *slope = isnan(x) ? x : x > 0 ? 1 : alpha;
    return x > 0 ? x : alpha * x;
}

/* e^x from both sides: powers of two are multiplied by 2^64 on the left, and by 2^-64 on the right, until the last product. */
typedef struct two_sided {
    float power, back;
} two_sided;

static two_sided power_of(float x, float n)
{
    two_sided p = {power(signbit(x) ? 0x1p64f : 0x1p-64f, n), signbit(x) ? 0x1p-64f : 0x1p64f};
    return p;
}

static float exponential(float x, float *slope)
{
    reduced e = reduce(at_most(110, at_least(-90, -x)));
    two_sided p = power_of(x, e.n);
    float value = polynomial(nrg_exp_c, 6, e.r) * p.power * p.back;
    if (slope)
        *slope = value;
    return value;
}

/* 2^n·(1 + m) - 1, of which half can be computed wherever all of it is a number. */
static float exponential_less_one(float x, float *slope)
{
    reduced e = reduce(at_most(110, at_least(-88.8f, -x)));
    float m = exp_less_one(e.r), half = power(0.5f, e.n), sum = fmaf(half, m, half - 0.5f);
    two_sided p = power_of(x, e.n);
    if (slope)
        *slope = fmaf(p.power, m, p.power) * p.back;
    return fabsf(x) < 0x1p-30f ? x : sum + sum;
}

static float elu(float x, float alpha, float *slope)
{
    reduced e = reduce(at_most(125, fabsf(x)));
    float m = exp_less_one(e.r), p = power(0x1p64f, e.n), scaled = p * 0x1p-64f;
    if (slope)
        *slope = x > 0 ? 1 : fmaf(p, m, p) * alpha * 0x1p-64f;
    return signbit(x) ? fmaf(-scaled, m, 1 - scaled) * -alpha : x;
}

/* x·tanh(ln(1 + e^x)). Left of -1/8, with t = -x and w = e^-t, it is -t·w·(2 + w)/(2 + w·(2 + w)); else, with t = x and w = e^-t,
 * x - t·w·2·w/(1 + 2·w·(1 + w)). The slopes of both quotients are (a·d - b)/d², where a/d is the quotient by t, and d² = (v +
 * end)² is computed from the small v. */
static float mish(float x, float *slope)
{
    int left = x < -0.125f;
    float t = at_most(110, left ? -x : x), end = left ? 2 : 1;
    reduced n = reduce(t);
    float m = exp_less_one(n.r), p = power(0x1p64f, n.n), e = fmaf(p, m, p), w = e * 0x1p-64f;
    float te = fmaf(t * p, m, t * p), factor = left ? w : 2 * w, sum = end + w, d = fmaf(factor, sum, end);
    if (slope) {
        float a = left ? fmaf(e, w, 2 * e) : 2 * e * w, b = left ? 4 * te : 4 * (te * w), v = factor * sum;
        float square = fmaf(v, v + 2 * end, end * end), fall = fmaf(a, d, -fmaf(b, w, b)) / (square * 0x1p64f);
        *slope = left ? fall : 1 - fall;
    }
    /* what rounding took from d is taken from the factor 2 + w as well, which is d/1.5 to d */
    float rest = fmaf(factor, sum, end - d), lost = left ? fmaf(te, fmaf(-0.75f, rest, w), 2 * te) : 2 * te * w;
    return copysignf((left ? 0 : x) - lost / (d * 0x1p64f), x);
}

static float softsign(float x, float *slope)
{
    float t = at_most(0x1p80f, fabsf(x)), q = 1 / (1 + t);
    if (slope)
        *slope = q * q;
    return copysignf(t / (1 + t), x);
}

/* α where nothing says otherwise. */
static float usual(nrg_activation g)
{
    switch (g) {
    case NRG_ACT_GELU_QUICK:
        return 0x1.b3b646p0f; /* 1.702 */
    case NRG_ACT_LEAKY_RELU:
        return 0x1.47ae14p-7f; /* 0.01 */
    default:
        return 1;
    }
}

static float evaluate(nrg_activation g, float alpha, float x, float *slope)
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
    case NRG_ACT_GELU_QUICK:
        return gelu_quick(x, alpha, slope);
    case NRG_ACT_HARD_SWISH:
        return hard_swish(x, slope);
    case NRG_ACT_HARD_SIGMOID:
        return hard_sigmoid(x, slope);
    case NRG_ACT_ELU:
        return elu(x, alpha, slope);
    case NRG_ACT_LEAKY_RELU:
        return leaky_relu(x, alpha, slope);
    case NRG_ACT_MISH:
        return mish(x, slope);
    case NRG_ACT_EXP:
        return exponential(x, slope);
    case NRG_ACT_EXPM1:
        return exponential_less_one(x, slope);
    case NRG_ACT_SOFTSIGN:
        return softsign(x, slope);
    case NRG_ACT_IDENTITY:
        break;
    }
    return identity(x, slope);
}

void nrg_scalar_activate(nrg_activation g, const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = evaluate(g, usual(g), in[i], NULL);
}

#ifndef NRG_NO_BACKWARD
void nrg_scalar_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = evaluate(g, usual(g), in[i], &slope[i]);
}
#endif

/* With a parameter, and a slope where it is asked for. */
float nrg_scalar_activate_one(nrg_activation g, float alpha, float x, float *slope) { return evaluate(g, alpha, x, slope); }

/* ---- the kernels ---- */

static void forward(const nrg_activation_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++)
        store(job->o, i, dtype, evaluate(job->activation, job->alpha, load(job->x, i, dtype), NULL));
}

SCALAR_KERNELS(activation, activation, forward)

#ifndef NRG_NO_BACKWARD
static void backward(const nrg_activation_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++) {
        float slope;
        evaluate(job->activation, job->alpha, load(job->x, i, dtype), &slope);
        store(job->o, i, dtype, load(job->d_o, i, dtype) * slope);
    }
}

SCALAR_KERNELS(activation_backward, activation, backward)
#endif
