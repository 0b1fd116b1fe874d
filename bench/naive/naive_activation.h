/* Activations and their slopes, a float at a time; g is a constant wherever they are called.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_NAIVE_NAIVE_ACTIVATION_H
#define NRG_BENCH_NAIVE_NAIVE_ACTIVATION_H

INLINE float activate(nrg_activation g, float x)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        return 1 / (1 + expf(-x));
    case NRG_ACT_SILU:
        return x / (1 + expf(-x));
    case NRG_ACT_RELU:
        return x > 0 ? x : 0;
    case NRG_ACT_RELU2:
        return x > 0 ? x * x : 0;
    case NRG_ACT_TANH:
        return tanhf(x);
    case NRG_ACT_GELU:
        return 0.5f * x * (1 + erff(x * 0.70710678f));
    case NRG_ACT_GELU_TANH:
        return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case NRG_ACT_SOFTPLUS:
        return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
    case NRG_ACT_GELU_QUICK:
        return x / (1 + expf(-1.702f * x));
    case NRG_ACT_HARD_SWISH:
        return x * fminf(1, fmaxf(0, (x + 3) / 6));
    case NRG_ACT_HARD_SIGMOID:
        return fminf(1, fmaxf(0, (x + 3) / 6));
    case NRG_ACT_ELU:
        return x > 0 ? x : expm1f(x);
    case NRG_ACT_LEAKY_RELU:
        return x > 0 ? x : 0.01f * x;
    case NRG_ACT_MISH:
        return x * tanhf(log1pf(expf(x)));
    case NRG_ACT_EXP:
        return expf(x);
    case NRG_ACT_EXPM1:
        return expm1f(x);
    case NRG_ACT_SOFTSIGN:
        return x / (1 + fabsf(x));
    default:
        return x;
    }
}

/* Those that there are benchmarks of. */
INLINE float slope(nrg_activation g, float x)
{
    switch (g) {
    case NRG_ACT_SILU: {
        const float s = 1 / (1 + expf(-x));
        return s * (1 + x * (1 - s));
    }
    case NRG_ACT_RELU:
        return x > 0 ? 1 : 0;
    case NRG_ACT_TANH: {
        const float t = tanhf(x);
        return 1 - t * t;
    }
    case NRG_ACT_GELU:
        return 0.5f * (1 + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
    case NRG_ACT_GELU_QUICK: {
        const float s = 1 / (1 + expf(-1.702f * x));
        return s * (1 + 1.702f * x * (1 - s));
    }
    case NRG_ACT_HARD_SWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5f;
    case NRG_ACT_ELU:
        return x > 0 ? 1 : expf(x);
    case NRG_ACT_MISH: {
        const float t = tanhf(log1pf(expf(x)));
        return t + x * (1 - t * t) / (1 + expf(-x));
    }
    default:
        return 1;
    }
}

#endif
