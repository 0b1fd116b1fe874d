/* The activations of nrg/activation.h and their derivatives with 113 bits, from their definitions. Good to about 2^-90 of the
 * value; written here, so that neither libquadmath nor a compiler's long double functions are needed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_QUAD_ACTIVATION_H
#define NRG_TESTS_HARNESS_QUAD_ACTIVATION_H

#include <nrg/nrg.h>

#include "quad.h"

/* Constants as sums of doubles: no suffix for quad literals is in every compiler. */
#define QUAD_LN2 ((quad)0x1.62e42fefa39efp-1 + (quad)0x1.abc9e3b39803fp-56 + (quad)0x1.7b57a079a1934p-111)
#define QUAD_PI ((quad)0x1.921fb54442d18p1 + (quad)0x1.1a62633145c07p-53)

/* e^x - 1 for |x| up to 1: Taylor. */
static inline quad quad_expm1_near(quad x)
{
    quad sum = 0;
    for (int n = 40; n >= 1; n--)
        sum = (sum + 1) * x / n;
    return sum;
}

static inline quad quad_exp(quad x)
{
    if (x < -11000)
        return 0;
    if (x > 11000) /* no float, either */
        x = 11000;
    long n = lrint((double)x * 1.4426950408889634);
    quad power = 1 + quad_expm1_near(x - (quad)n * QUAD_LN2), base = n < 0 ? (quad)0.5 : (quad)2;
    for (unsigned long left = (unsigned long)(n < 0 ? -n : n); left; left /= 2) {
        if (left % 2)
            power *= base;
        base *= base;
    }
    return power;
}

static inline quad quad_expm1(quad x) { return quad_abs(x) <= 1 ? quad_expm1_near(x) : quad_exp(x) - 1; }

/* ln(1 + a) for a from 0 to 1: 2·artanh(a/(2 + a)). */
static inline quad quad_log1p(quad a)
{
    quad t = a / (2 + a), square = t * t, sum = 0;
    for (int n = 80; n >= 0; n--)
        sum = sum * square + (quad)1 / (2 * n + 1);
    return 2 * t * sum;
}

/* σ(x) = 1/(1 + e^-x) */
static inline quad quad_logistic(quad x)
{
    quad e = quad_exp(-quad_abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static inline quad quad_normal_density(quad x) { return quad_exp(-x * x / 2) / quad_sqrt(2 * QUAD_PI); }

/* Φ(x): near 0 by its series, which has no cancellation; beyond 4 by the continued fraction of the tail. */
static inline quad quad_normal_distribution(quad x)
{
    quad a = quad_abs(x), tail = 0;
    if (a < 4) {
        quad term = a, sum = 0;
        for (int n = 1; n < 200 && term > sum * (quad)0x1p-110; n++) {
            sum += term;
            term *= a * a / (2 * n + 1);
        }
        tail = (quad)0.5 - quad_normal_density(a) * sum;
    } else if (a < 150) {
        quad fraction = a;
        for (int n = 120; n >= 1; n--)
            fraction = a + (quad)n / fraction;
        tail = quad_normal_density(a) / fraction;
    }
    return x < 0 ? tail : 1 - tail;
}

/* g(x) and g'(x). size: of the largest term of g', which is what an error of g' is measured against (silu, gelu and gelu_tanh
 * have a minimum, where g' is 0 and its terms are not). */
typedef struct quad_g {
    quad value, slope, size;
} quad_g;

static inline quad_g quad_activation(nrg_activation g, quad x)
{
    quad_g r = {x, 1, 1};
    switch (g) {
    case NRG_ACT_IDENTITY:
        break;
    case NRG_ACT_SIGMOID:
        r.value = quad_logistic(x);
        r.slope = r.size = r.value * quad_logistic(-x);
        break;
    case NRG_ACT_SILU: {
        quad s = quad_logistic(x), bend = x * s * quad_logistic(-x);
        r.value = x * s;
        r.slope = s + bend;
        r.size = s > quad_abs(bend) ? s : quad_abs(bend);
        break;
    }
    case NRG_ACT_RELU:
        r.value = x > 0 ? x : 0;
        r.slope = r.size = x > 0 ? 1 : 0;
        break;
    case NRG_ACT_RELU2:
        r.value = x > 0 ? x * x : 0;
        r.slope = r.size = x > 0 ? 2 * x : 0;
        break;
    case NRG_ACT_TANH: {
        quad a = quad_abs(x), e = quad_exp(-2 * a), magnitude = (1 - e) / (1 + e);
        if (a < (quad)0.25) {
            quad less = quad_expm1_near(2 * a);
            magnitude = less / (2 + less);
        }
        r.value = x < 0 ? -magnitude : magnitude;
        r.slope = r.size = 4 * quad_logistic(2 * x) * quad_logistic(-2 * x);
        break;
    }
    case NRG_ACT_GELU: {
        quad p = quad_normal_distribution(x), bend = x * quad_normal_density(x);
        r.value = x * p;
        r.slope = p + bend;
        r.size = p > quad_abs(bend) ? p : quad_abs(bend);
        break;
    }
    case NRG_ACT_GELU_TANH: {
        /* x/2·(1 + tanh u) = x·σ(2u) */
        quad c = quad_sqrt(8 / QUAD_PI), a = (quad)44715 / 1000000, u2 = c * (x + a * x * x * x);
        quad s = quad_logistic(u2), bend = x * s * quad_logistic(-u2) * c * (1 + 3 * a * x * x);
        if (quad_abs(x) > 1000)
            bend = 0;
        r.value = x * s;
        r.slope = s + bend;
        r.size = s > quad_abs(bend) ? s : quad_abs(bend);
        break;
    }
    case NRG_ACT_SOFTPLUS:
        r.value = (x > 0 ? x : 0) + quad_log1p(quad_exp(-quad_abs(x)));
        r.slope = r.size = quad_logistic(x);
        break;
    case NRG_ACT_GELU_QUICK: {
        quad a = (quad)1.702f, s = quad_logistic(a * x), bend = a * x * s * quad_logistic(-a * x);
        r.value = x * s;
        r.slope = s + bend;
        r.size = s > quad_abs(bend) ? s : quad_abs(bend);
        break;
    }
    case NRG_ACT_HARD_SWISH:
        r.value = x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
        r.slope = x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + (quad)0.5;
        r.size = x <= -3 ? 0 : x >= 3 ? 1 : quad_abs(x) > (quad)1.5 ? quad_abs(x) / 3 : (quad)0.5;
        break;
    case NRG_ACT_HARD_SIGMOID:
        r.value = x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
        r.slope = r.size = x > -3 && x < 3 ? (quad)1 / 6 : 0;
        break;
    case NRG_ACT_ELU:
        r.value = x > 0 ? x : quad_expm1(x);
        r.slope = r.size = x > 0 ? 1 : quad_exp(x);
        break;
    case NRG_ACT_LEAKY_RELU:
        r.value = x > 0 ? x : x * (quad)0.01f;
        r.slope = r.size = x > 0 ? 1 : (quad)0.01f;
        break;
    case NRG_ACT_MISH: {
        /* tanh(ln(1 + e^x)) is above/below, w = e^-|x| */
        quad w = quad_exp(-quad_abs(x)), below = x < 0 ? w * (2 + w) + 2 : 1 + 2 * w * (1 + w);
        quad rise = (x < 0 ? w * (2 + w) : 1 + 2 * w) / below;
        quad bend = x * 4 * w * (1 + w) * (x < 0 ? 1 : w) / (below * below);
        r.value = x * rise;
        r.slope = rise + bend;
        r.size = rise > quad_abs(bend) ? rise : quad_abs(bend);
        break;
    }
    case NRG_ACT_EXP:
        r.value = r.slope = r.size = quad_exp(x);
        break;
    case NRG_ACT_EXPM1:
        r.value = quad_expm1(x);
        r.slope = r.size = quad_exp(x);
        break;
    case NRG_ACT_SOFTSIGN: {
        quad d = 1 + quad_abs(x);
        r.value = x / d;
        r.slope = r.size = 1 / (d * d);
        break;
    }
    }
    return r;
}

#endif
