/* The activations of nrg/activation.h in double, from their definitions: fast enough for differences of a whole tensor's loss.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_ACTIVATION_ACTIVATION_DOUBLE_H
#define NRG_TESTS_ACTIVATION_ACTIVATION_DOUBLE_H

#include <math.h>

#include <nrg/nrg.h>

/* α where none is given. */
static inline double activation_double_alpha(nrg_activation g)
{
    return g == NRG_ACT_GELU_QUICK ? (double)1.702f : g == NRG_ACT_LEAKY_RELU ? (double)0.01f : 1;
}

/* alpha: of those that have one, never 0. */
static inline double activation_double_of(nrg_activation g, double alpha, double x)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case NRG_ACT_SILU:
        return x / (1 + exp(-x));
    case NRG_ACT_RELU:
        return x > 0 ? x : 0;
    case NRG_ACT_RELU2:
        return x > 0 ? x * x : 0;
    case NRG_ACT_TANH:
        return tanh(x);
    case NRG_ACT_GELU:
        return x / 2 * erfc(-x * sqrt(0.5));
    case NRG_ACT_GELU_TANH:
        return x / (1 + exp(-sqrt(8 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case NRG_ACT_SOFTPLUS:
        return log1p(exp(x));
    case NRG_ACT_GELU_QUICK:
        return x / (1 + exp(-alpha * x));
    case NRG_ACT_HARD_SWISH:
        return x * fmin(1, fmax(0, (x + 3) / 6));
    case NRG_ACT_HARD_SIGMOID:
        return fmin(1, fmax(0, (x + 3) / 6));
    case NRG_ACT_ELU:
        return x > 0 ? x : alpha * expm1(x);
    case NRG_ACT_LEAKY_RELU:
        return x > 0 ? x : alpha * x;
    case NRG_ACT_MISH:
        return x * tanh(log1p(exp(x)));
    case NRG_ACT_EXP:
        return exp(x);
    case NRG_ACT_EXPM1:
        return expm1(x);
    case NRG_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    default:
        return x;
    }
}

/* How far x is from where g or g′ jumps: differences across that are not the slope. */
static inline double activation_double_kink(nrg_activation g, double x)
{
    switch (g) {
    case NRG_ACT_RELU:
    case NRG_ACT_RELU2:
    case NRG_ACT_LEAKY_RELU:
        return fabs(x);
    case NRG_ACT_HARD_SWISH:
    case NRG_ACT_HARD_SIGMOID:
        return fabs(fabs(x) - 3);
    default:
        return (double)INFINITY;
    }
}

/* Whether g grows faster than x. */
static inline int activation_double_is_steep(nrg_activation g)
{
    return g == NRG_ACT_RELU2 || g == NRG_ACT_EXP || g == NRG_ACT_EXPM1;
}

static inline double activation_double(nrg_activation g, double x)
{
    return activation_double_of(g, activation_double_alpha(g), x);
}

#endif
