/* The loops of the activations: they read steps of x, compute g and g′ (activation_functions.h), multiply and store.
 *
 * What a loop computes is a constant in it (act_kind). Whether it multiplies, prefetches and streams, it tests once a step.
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
    ACT_BF16,    /* f·g(x) of bf16 */
    ACT_KINDS
} act_kind;

enum { ACT_STEP = (int)V_ACT * VN };

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
NRG_INLINE void act_bf16_step(nrg_activation g, const nrg_activation_run *run, act_ahead ahead, size_t i)
{
    enum { count = 2 };
    const act_want want = {1, 0, run->alpha};
    const size_t byte = i * sizeof(uint16_t), bytes = count * VN * sizeof(uint16_t);
    uint16_t *const to = (uint16_t *)run->value + i;
    vf x[V_ACT], f[V_ACT], value[V_ACT];
    if (NRG_RARELY(run->how & NRG_RUN_PREFETCH)) {
        act_prefetch(run->in, byte, bytes);
        act_prefetch(ahead.factor, byte, bytes);
    }
    load_pairs(x, count, (const char *)run->in, i);
    act_apply_side(count, g, want, x, value, NULL);
    if (run->factor) {
        load_pairs(f, count, (const char *)run->factor, i);
        ACT_SIDE value[j] = v_mul(f[j], value[j]);
    }
    const vp h = v_pair_to_bf16(value[0], value[1]);
    if (NRG_RARELY(run->how & NRG_RUN_STREAM))
        v_nt_pair(to, h);
    else
        v_st_pair(to, h);
}

/* ---- loops ---- */

/* Activations whose values take a tenth longer with a test for f: two loops. */
NRG_INLINE int act_is_light(nrg_activation g)
{
    return !ACT_IS_SMALL && (g == NRG_ACT_IDENTITY || g == NRG_ACT_RELU || g == NRG_ACT_RELU2 || g == NRG_ACT_HARD_SWISH ||
                             g == NRG_ACT_HARD_SIGMOID || g == NRG_ACT_LEAKY_RELU);
}

/* A turn for what goes side by side: SiLU made 4.3 elements/ns by steps of two turns, and 4.5 so (AVX-512). n is a multiple of
 * ACT_STEP; of bf16, of two vectors. */
NRG_INLINE void act_steps(nrg_activation g, act_kind kind, int count, const nrg_activation_run *at, size_t n)
{
    nrg_activation_run run = *at;
    const act_ahead ahead = {run.factor ? run.factor : run.in, run.up ? run.up : run.in};
    if (kind == ACT_VALUES && act_is_light(g) && !run.factor) {
        run.factor = NULL; /* a constant now */
        for (size_t i = 0; i < n; i += (size_t)count * VN)
            act_step(g, kind, count, &run, ahead, i);
    } else if (kind == ACT_BF16) {
        for (size_t i = 0; count && i < n; i += 2 * VN)
            act_bf16_step(g, &run, ahead, i);
    } else {
        for (size_t i = 0; i < n; i += (size_t)count * VN)
            act_step(g, kind, count, &run, ahead, i);
    }
}

typedef void act_loop(const nrg_activation_run *run, size_t n);

#define ACTIVATION(name, function, vectors) LOOP(name, function, values, ACT_VALUES, vectors)
#define LOOP(name, function, suffix, kind, vectors)                                                                              \
    static void act_##function##_##suffix(const nrg_activation_run *run, size_t n)                                               \
    {                                                                                                                            \
        act_steps(NRG_ACT_##name, kind, vectors, run, n);                                                                        \
    }
#include "activations.def"

static act_loop *const act_loops[NRG_ACTIVATION_COUNT][ACT_KINDS] = {
#define ACTIVATION(name, function, vectors) [NRG_ACT_##name][ACT_VALUES] = act_##function##_values,
#define LOOP(name, function, suffix, kind, vectors) [NRG_ACT_##name][kind] = (vectors) ? act_##function##_##suffix : NULL,
#include "activations.def"
};

/* Activations with a loop of limited values. */
NRG_INLINE int act_has_limit(nrg_activation g) { return !ACT_IS_SMALL && (g == NRG_ACT_SILU || g == NRG_ACT_GELU_QUICK); }

/* Values and slopes one after the other, and the products from there. */
static __attribute__((noinline)) void act_apart(nrg_activation g, const nrg_activation_run *run, size_t n)
{
    enum { SOME = 128 }; /* below the deepest calls: 1 KB */
    float value[SOME], slope[SOME];
    _Static_assert(SOME % ACT_STEP == 0, "made of whole steps");
    const unsigned stream = run->how & NRG_RUN_STREAM;
    for (size_t i = 0, some; i < n; i += some) {
        const nrg_activation_run part = {.in = (const float *)run->in + i, .value = value, .slope = slope, .alpha = run->alpha};
        some = n - i < SOME ? n - i : SOME;
        act_loops[g][ACT_VALUES](&part, some);
        act_loops[g][ACT_SLOPES](&part, some);
        for (size_t j = 0; j < some; j += VN) {
            vf v = v_ld_f32(value + j), s = v_ld_f32(slope + j);
            if (run->up) {
                vf d = v_ld_f32((const float *)run->up + i + j);
                v = v_mul(d, v);
                if (run->factor)
                    d = v_mul(d, v_ld_f32((const float *)run->factor + i + j));
                s = v_mul(d, s);
            }
            act_store(run->value, i + j, &v, 1, stream);
            act_store(run->slope, i + j, &s, 1, stream);
        }
    }
}

/* n is a multiple of ACT_STEP. */
static void act_whole(nrg_activation g, const nrg_activation_run *run, size_t n)
{
    act_loop *const *const loops = act_loops[g];
    if (!run->slope)
        loops[run->how & NRG_RUN_LIMITED ? ACT_LIMITED : ACT_VALUES](run, n);
    else if (!run->value)
        loops[ACT_SLOPES](run, n);
    else if (loops[ACT_BOTH])
        loops[ACT_BOTH](run, n);
    else
        act_apart(g, run, n);
}

#endif
