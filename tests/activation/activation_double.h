/* The activations of nrg/activation.h in double, from their definitions: fast enough for differences of a whole tensor's loss.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_ACTIVATION_ACTIVATION_DOUBLE_H
#define NRG_TESTS_ACTIVATION_ACTIVATION_DOUBLE_H

#include <math.h>

#include <nrg/nrg.h>

static inline double activation_double(nrg_activation g, double x)
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
    default:
        return x;
    }
}

#endif
