/* The loops of the activations: they read steps of x, compute g and g′ (activation_functions.h), multiply and store.
 *
 * What a loop computes is a constant in it (act_kind). Whether it multiplies, prefetches and streams, it tests once a step.
 * Rejected: loops that neither prefetch nor stream, for a tenth of the code. From memory they have 0.8 to 1.05 of the speed if a
 * caller prefetches a block at a time, and 0.55 to 0.9 if results pass through a block (EPYC Zen 4).
 * activations.def lists the loops.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_LOOPS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_LOOPS_H

#include "../../job/activation.h"
#include "../step.h"
#include "activation_functions.h"

/* Of x, f and d, which are elements of in, factor and up. */
typedef enum act_kind {
    ACT_VALUES,  /* f·g(x) */
    ACT_SLOPES,  /* d·g'(x) */
    ACT_BOTH,    /* d·g(x) and d·f·g'(x) */
    ACT_LIMITED, /* f·g(x) of the limited x and f of a gated linear unit */
} act_kind;

enum {
    ACT_STEP = (int)V_ACT * VN,
    ACT_FEW = V_SMALL ? V_ACT_SIDE : V_ACT_SIDE / 2 /* vectors side by side where V_ACT_SIDE of them gain little */
};

/* ---- a step ---- */

/* What a loop prefetches beside in: factor and up, or in again, so that it need not look. */
typedef struct act_ahead {
    const void *factor, *up;
} act_ahead;

/* 2 KB further on, further than the hardware looks past a page. */
NRG_INLINE void act_prefetch(const void *p, size_t byte, size_t bytes)
{
    NRG_UNROLL
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + byte + b + 2048));
}

NRG_INLINE void act_load(vf *v, int count, const void *p, size_t i) { ACT_SIDE v[j] = v_ld_f32((const float *)p + i + j * VN); }

/* Streamed vectors are aligned here, so v_nt_f32 need not look: an eighth of the code of these loops. */
NRG_INLINE void act_store(void *p, size_t i, const vf *v, int count, unsigned stream)
{
    float *const to = (float *)p + i;
    if (NRG_RARELY(stream))
        ACT_SIDE v_nt_f32((float *)__builtin_assume_aligned(to, VN * sizeof *to) + j * VN, v[j]);
    else
        ACT_SIDE v_st_f32(to + j * VN, v[j]);
}

/* A NaN comes through. */
NRG_INLINE vf act_limited(vf x, const nrg_activation_run *run) { return v_min(v_set1(run->limit), x); }
NRG_INLINE vf act_limited_factor(vf f, const nrg_activation_run *run)
{
    return v_add(v_max(v_set1(-run->limit), v_min(v_set1(run->limit), f)), v_set1(run->offset));
}

NRG_INLINE void act_step(nrg_activation g, act_kind kind, int count, const nrg_activation_run *run, act_ahead ahead, size_t i)
{
    const act_want want = {kind != ACT_SLOPES, kind == ACT_SLOPES || kind == ACT_BOTH, run->alpha};
    const unsigned stream = run->how & NRG_RUN_STREAM;
    const size_t byte = i * sizeof(float), bytes = (size_t)count * VN * sizeof(float);
    vf x[V_ACT], value[V_ACT], slope[V_ACT], f[V_ACT], d[V_ACT];
    if (NRG_RARELY(run->how & NRG_RUN_PREFETCH)) {
        act_prefetch(run->in, byte, bytes);
        if (kind != ACT_SLOPES)
            act_prefetch(ahead.factor, byte, bytes);
        if (want.slope)
            act_prefetch(ahead.up, byte, bytes);
    }
    act_load(x, count, run->in, i);
    if (kind == ACT_LIMITED)
        ACT_SIDE x[j] = act_limited(x[j], run);
    act_apply_side(count, g, want, x, value, slope);
    if (!want.slope && run->factor) {
        act_load(f, count, run->factor, i);
        if (kind == ACT_LIMITED)
            ACT_SIDE f[j] = act_limited_factor(f[j], run);
        ACT_SIDE value[j] = v_mul(f[j], value[j]);
    }
    if (want.slope && run->up) {
        act_load(d, count, run->up, i);
        if (kind == ACT_BOTH) {
            ACT_SIDE value[j] = v_mul(d[j], value[j]);
            if (run->factor) {
                act_load(f, count, run->factor, i);
                ACT_SIDE d[j] = v_mul(d[j], f[j]);
            }
        }
        ACT_SIDE slope[j] = v_mul(d[j], slope[j]);
    }
    if (want.value)
        act_store(run->value, i, value, count, stream);
    if (want.slope)
        act_store(run->slope, i, slope, count, stream);
}

/* A pair of vectors. Two pairs take 0.96 to 1.01 times as long. */
NRG_INLINE void act_bf16_step(nrg_activation g, int is_limited, const nrg_activation_run *run, size_t i)
{
    enum { count = 2 };
    const act_want want = {1, 0, run->alpha};
    uint16_t *const to = (uint16_t *)run->value + i;
    vf x[V_ACT], f[V_ACT], value[V_ACT];
    load_pairs(x, count, (const char *)run->in, i);
    if (is_limited)
        ACT_SIDE x[j] = act_limited(x[j], run);
    act_apply_side(count, g, want, x, value, NULL);
    if (run->factor) {
        load_pairs(f, count, (const char *)run->factor, i);
        if (is_limited)
            ACT_SIDE f[j] = act_limited_factor(f[j], run);
        ACT_SIDE value[j] = v_mul(f[j], value[j]);
    }
    const vp h = v_pair_to_bf16(value[0], value[1]);
    if (NRG_RARELY(run->how & NRG_RUN_STREAM))
        v_nt_pair(to, h);
    else
        v_st_pair(to, h);
}

/* ---- loops; n is a multiple of ACT_STEP, of bf16 of two vectors ---- */

/* Activations whose values take a tenth longer with a test for f: two loops. */
NRG_INLINE int act_is_light(nrg_activation g)
{
    return !ACT_IS_SMALL && (g == NRG_ACT_IDENTITY || g == NRG_ACT_RELU || g == NRG_ACT_RELU2 || g == NRG_ACT_HARD_SWISH ||
                             g == NRG_ACT_HARD_SIGMOID || g == NRG_ACT_LEAKY_RELU || g == NRG_ACT_SOFTSIGN);
}

NRG_INLINE act_ahead act_ahead_of(const nrg_activation_run *run)
{
    return (act_ahead){run->factor ? run->factor : run->in, run->up ? run->up : run->in};
}

/* A turn for what goes side by side: SiLU made 4.3 elements/ns by steps of two turns, and 4.5 so (AVX-512). */
NRG_INLINE void act_steps(nrg_activation g, act_kind kind, int count, const nrg_activation_run *at, size_t n)
{
    nrg_activation_run run = *at;
    const act_ahead ahead = act_ahead_of(at);
    size_t i = 0;
    if (kind == ACT_VALUES && act_is_light(g) && !run.factor) {
        run.factor = NULL; /* a constant now */
        for (; i < n; i += (size_t)count * VN)
            act_step(g, kind, count, &run, ahead, i);
        return;
    }
    for (; i < n; i += (size_t)count * VN)
        act_step(g, kind, count, &run, ahead, i);
}

NRG_INLINE void act_bf16_steps(nrg_activation g, int is_limited, const nrg_activation_run *at, size_t n)
{
    const nrg_activation_run run = *at;
    for (size_t i = 0; i < n; i += 2 * VN)
        act_bf16_step(g, is_limited, &run, i);
}

#define ACTIVATION(name, function, values, slopes, both, bf16)                                                                   \
    static void act_##function##_values(const nrg_activation_run *run, size_t n)                                                 \
    {                                                                                                                            \
        act_steps(NRG_ACT_##name, ACT_VALUES, values, run, n);                                                                   \
    }                                                                                                                            \
    static void act_##function##_values_bf16(const nrg_activation_run *run, size_t n)                                            \
    {                                                                                                                            \
        act_bf16_steps(NRG_ACT_##name, 0, run, n);                                                                               \
    }
#include "activations.def"

nrg_activation_loop *const NRG_PATH_NAME(value_loops)[NRG_ACTIVATION_COUNT] = {
#define ACTIVATION(name, function, values, slopes, both, bf16) [NRG_ACT_##name] = act_##function##_values,
#include "activations.def"
};

static nrg_activation_loop *const act_bf16_loops[NRG_ACTIVATION_COUNT] = {
#define ACTIVATION(name, function, values, slopes, both, bf16)                                                                   \
    [NRG_ACT_##name] = !ACT_IS_SMALL && (bf16) ? act_##function##_values_bf16 : NULL,
#include "activations.def"
};

/* With a limit: 1.1 to 1.2 times as fast as by limited copies in a block, and bf16 from memory, with 32 registers, as by floats
 * in a block. 1 KB each. */
NRG_INLINE int act_has_limit(nrg_activation g) { return !ACT_IS_SMALL && (g == NRG_ACT_SILU || g == NRG_ACT_GELU_QUICK); }

#define LIMITED(name, function)                                                                                                  \
    static void act_##function##_limited_values(const nrg_activation_run *run, size_t n)                                         \
    {                                                                                                                            \
        act_steps(NRG_ACT_##name, ACT_LIMITED, V_ACT_SIDE, run, n);                                                              \
    }                                                                                                                            \
    static void act_##function##_limited_values_bf16(const nrg_activation_run *run, size_t n)                                    \
    {                                                                                                                            \
        act_bf16_steps(NRG_ACT_##name, 1, run, n);                                                                               \
    }
LIMITED(SILU, silu)
LIMITED(GELU_QUICK, gelu_quick)
#undef LIMITED

#ifndef NRG_NO_BACKWARD
/* Slopes and values one after the other, SOME at a time: below the deepest calls. */
static __attribute__((noinline)) void act_apart(nrg_activation_loop *values, nrg_activation_loop *slopes,
                                                const nrg_activation_run *run, size_t n)
{
    enum { SOME = 128 };
    float slope[SOME];
    nrg_activation_run of_slope = *run, of_value = *run;
    _Static_assert(SOME % ACT_STEP == 0, "made of whole steps");
    for (size_t i = 0, some; i < n; i += some) {
        const float *const up = run->up ? (const float *)run->up + i : NULL;
        some = n - i < SOME ? n - i : SOME;
        of_slope.in = of_value.in = (const float *)run->in + i;
        of_slope.up = of_value.factor = up;
        if (up && run->factor) {
            for (size_t j = 0; j < some; j += VN)
                v_st_f32(slope + j, v_mul(v_ld_f32(up + j), v_ld_f32((const float *)run->factor + i + j)));
            of_slope.up = slope;
        }
        of_slope.slope = slope;
        of_slope.how = 0;
        slopes(&of_slope, some);
        of_value.value = (float *)run->value + i;
        values(&of_value, some);
        for (size_t j = 0; j < some; j += VN) {
            const vf v = v_ld_f32(slope + j);
            act_store(run->slope, i + j, &v, 1, run->how & NRG_RUN_STREAM);
        }
    }
}

#define ACTIVATION(name, function, values, slopes, both, bf16)                                                                   \
    static void act_##function##_slopes(const nrg_activation_run *run, size_t n)                                                 \
    {                                                                                                                            \
        act_steps(NRG_ACT_##name, ACT_SLOPES, slopes, run, n);                                                                   \
    }                                                                                                                            \
    static void act_##function##_both(const nrg_activation_run *run, size_t n)                                                   \
    {                                                                                                                            \
        if (ACT_IS_SMALL || !(both))                                                                                             \
            act_apart(act_##function##_values, act_##function##_slopes, run, n);                                                 \
        else                                                                                                                     \
            act_steps(NRG_ACT_##name, ACT_BOTH, both, run, n);                                                                   \
    }
#include "activations.def"

static nrg_activation_loop *const act_slope_loops[NRG_ACTIVATION_COUNT] = {
#define ACTIVATION(name, function, values, slopes, both, bf16) [NRG_ACT_##name] = act_##function##_slopes,
#include "activations.def"
};

nrg_activation_loop *const NRG_PATH_NAME(both_loops)[NRG_ACTIVATION_COUNT] = {
#define ACTIVATION(name, function, values, slopes, both, bf16) [NRG_ACT_##name] = act_##function##_both,
#include "activations.def"
};
#endif

#endif
