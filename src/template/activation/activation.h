/* Activations, forward and backward, over the vectors of a path's vec.h: the walk over the elements. What is done to a vector is
 * in activation_functions.h.
 *
 * The activation is chosen once a call, outside of the loop over elements. A loop does whole steps only; what is left over takes
 * the same loop once more over a copy, so that there is one copy of the code for both.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_H

#include "../../job/activation.h"
#include "activation_blocks.h"
#include "activation_functions.h"

typedef enum act_mode { ACT_VALUES, ACT_BOTH, ACT_TIMES, ACT_LIMITED, ACT_BACKWARD, ACT_GRADIENTS } act_mode;

/* Where the elements of a call are. */
typedef struct act_data {
    const float *in, *factor; /* factor: of g, times and gradients only; d_o, of its slope, backward only */
    float *out, *slope;       /* slope: both and gradients only. out may be in or factor */
    const float *up;          /* gradients only: d_o, of out = d_o·factor·g' and slope = d_o·g */
    float alpha;              /* of those that have a parameter */
    float limit, offset;      /* limited only: of in and factor, as a gated linear unit has them (nrg/glu.h) */
} act_data;

NRG_INLINE int act_has_factor(act_mode mode)
{
    return mode == ACT_TIMES || mode == ACT_LIMITED || mode == ACT_BACKWARD || mode == ACT_GRADIENTS;
}
NRG_INLINE int act_has_slope(act_mode mode) { return mode == ACT_BOTH || mode == ACT_BACKWARD || mode == ACT_GRADIENTS; }
NRG_INLINE int act_has_two(act_mode mode) { return mode == ACT_BOTH || mode == ACT_GRADIENTS; }

/* ---- whole steps ---- */

/* Streamed vectors are aligned here, so v_nt_f32 need not look: an eighth of the code of these loops. */
NRG_INLINE void act_stream(float *p, vf a) { v_nt_f32(__builtin_assume_aligned(p, VN * sizeof *p), a); }

NRG_INLINE void act_store(float *p, vf a, unsigned stream)
{
    if (stream)
        act_stream(p, a);
    else
        v_st_f32(p, a);
}

/* As in the norms: 2 KB further on, further than the hardware looks past a page. */
NRG_INLINE void act_prefetch(const float *p, size_t i, int count)
{
    NRG_UNROLL
    for (size_t b = 0; b < (size_t)count * VN * sizeof *p; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + i * sizeof *p + b + 2048));
}

/* b' of a gated linear unit. A NaN comes through. */
NRG_INLINE vf act_limit_factor(vf b, float limit, float offset)
{
    return v_add(v_max(v_set1(-limit), v_min(v_set1(limit), b)), v_set1(offset));
}

/* As many vectors as go side by side. */
NRG_INLINE void act_side_of(nrg_activation g, act_mode mode, act_data a, size_t i, unsigned how)
{
    const unsigned stream = how & NRG_TIMES_STREAM;
    const int count = act_side(g, mode == ACT_BACKWARD);
    const int times = mode == ACT_TIMES || mode == ACT_LIMITED;
    if (mode != ACT_BOTH && NRG_RARELY(how & NRG_TIMES_PREFETCH_IN))
        act_prefetch(a.in, i, count);
    if (act_has_factor(mode) && NRG_RARELY(how & NRG_TIMES_PREFETCH_FACTOR)) {
        act_prefetch(a.factor, i, count);
        if (mode == ACT_GRADIENTS)
            act_prefetch(a.up, i, count);
    }
    vf x[V_ACT], out[V_ACT], slope[V_ACT];
    ACT_SIDE x[j] = v_ld_f32(a.in + i + j * VN);
    if (mode == ACT_LIMITED)
        ACT_SIDE x[j] = v_min(v_set1(a.limit), x[j]);
    act_apply_side(count, g, a.alpha, x, out, act_has_slope(mode) ? slope : NULL);
    ACT_SIDE
    {
        if (mode == ACT_GRADIENTS) {
            const vf up = v_ld_f32(a.up + i + j * VN), factor = v_ld_f32(a.factor + i + j * VN);
            slope[j] = v_mul(v_mul(up, factor), slope[j]);
            act_store(a.slope + i + j * VN, v_mul(up, out[j]), stream);
            out[j] = slope[j];
        } else if (act_has_factor(mode)) {
            vf factor = v_ld_f32(a.factor + i + j * VN);
            if (mode == ACT_LIMITED)
                factor = act_limit_factor(factor, a.limit, a.offset);
            out[j] = v_mul(factor, times ? out[j] : slope[j]);
        }
        if (mode == ACT_BOTH)
            v_st_f32(a.slope + i + j * VN, slope[j]);
        act_store(a.out + i + j * VN, out[j], stream);
    }
}

/* ---- values and slopes from the stack ---- */

static void act_values(nrg_activation g, act_data a, size_t n, unsigned how);
static void act_both(nrg_activation g, act_data a, size_t n, unsigned how);

/* Which activations are multiplied by their factors in a loop that all of them share, from a block on the stack. Slopes alone
 * have loops of their own, which leave out the values (4096 in L1, AVX-512: hard_swish 2.7 × as fast, mish 1.47), and so have
 * products of what is a few operations (2.0 to 2.3 ×; elu 1.15, mish 1.08). A path whose operations are calls gains nothing by
 * one loop for both gradients: 7 KB. */
NRG_INLINE int act_is_staged(nrg_activation g, act_mode mode)
{
    const int is_light = g == NRG_ACT_HARD_SWISH || g == NRG_ACT_HARD_SIGMOID || g == NRG_ACT_LEAKY_RELU;
    if (V_SMALL && mode == ACT_GRADIENTS)
        return 1;
    if (!act_has_factor(mode) || g <= NRG_ACT_GELU_QUICK)
        return 0;
    return V_SMALL || !(mode == ACT_BACKWARD || (mode == ACT_TIMES && is_light));
}

/* n is a multiple of ACT_STEP. */
NRG_INLINE void act_staged_of(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    enum { SOME = 128 }; /* below the deepest calls: 1 KB */
    float value[SOME], rise[SOME];
    _Static_assert(SOME % ACT_STEP == 0, "made of whole steps");
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < SOME ? n - i : SOME;
        const act_data part = {a.in + i, NULL, value, mode == ACT_TIMES ? NULL : rise, NULL, a.alpha, 0, 0};
        if (mode == ACT_TIMES)
            act_values(g, part, some, 0);
        else
            act_both(g, part, some, 0);
        const float *const times = mode == ACT_TIMES ? value : rise;
        for (size_t j = 0; j < some; j += VN) {
            vf out = v_ld_f32(a.factor + i + j);
            if (mode == ACT_GRADIENTS) {
                const vf up = v_ld_f32(a.up + i + j);
                act_store(a.slope + i + j, v_mul(up, v_ld_f32(value + j)), how & NRG_TIMES_STREAM);
                out = v_mul(up, out);
            }
            act_store(a.out + i + j, v_mul(out, v_ld_f32(times + j)), how & NRG_TIMES_STREAM);
        }
    }
}

/* Apart from the others: below the deepest calls it has half of their stack. */
static __attribute__((noinline)) void act_staged_times(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_staged_of(g, ACT_TIMES, a, n, how);
}

static __attribute__((noinline)) void act_staged_slopes(nrg_activation g, int has_two, act_data a, size_t n, unsigned how)
{
    if (has_two)
        act_staged_of(g, ACT_GRADIENTS, a, n, how);
    else
        act_staged_of(g, ACT_BACKWARD, a, n, how);
}

NRG_INLINE void act_staged(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    if (mode == ACT_TIMES)
        act_staged_times(g, a, n, how);
    else
        act_staged_slopes(g, mode == ACT_GRADIENTS, a, n, how);
}

/* ---- loops ---- */

/* A turn for what goes side by side: SiLU made 4.3 elements/ns by steps of two turns, and 4.5 so (AVX-512). */
NRG_INLINE void act_steps(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    for (size_t i = 0; i < n; i += (size_t)act_side(g, mode == ACT_BACKWARD) * VN)
        act_side_of(g, mode, a, i, how);
}

NRG_INLINE void act_choose(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    if (act_is_staged(g, mode)) {
        act_staged(g, mode, a, n, how);
        return;
    }
    switch (g) {
    case NRG_ACT_SIGMOID:
        act_steps(NRG_ACT_SIGMOID, mode, a, n, how);
        return;
    case NRG_ACT_SILU:
        act_steps(NRG_ACT_SILU, mode, a, n, how);
        return;
    case NRG_ACT_RELU:
        act_steps(NRG_ACT_RELU, mode, a, n, how);
        return;
    case NRG_ACT_RELU2:
        act_steps(NRG_ACT_RELU2, mode, a, n, how);
        return;
    case NRG_ACT_TANH:
        act_steps(NRG_ACT_TANH, mode, a, n, how);
        return;
    case NRG_ACT_GELU:
        act_steps(NRG_ACT_GELU, mode, a, n, how);
        return;
    case NRG_ACT_GELU_TANH:
        act_steps(NRG_ACT_GELU_TANH, mode, a, n, how);
        return;
    case NRG_ACT_SOFTPLUS:
        act_steps(NRG_ACT_SOFTPLUS, mode, a, n, how);
        return;
    case NRG_ACT_GELU_QUICK:
        act_steps(NRG_ACT_GELU_QUICK, mode, a, n, how);
        return;
    case NRG_ACT_HARD_SWISH:
        if (!act_is_staged(NRG_ACT_HARD_SWISH, mode))
            act_steps(NRG_ACT_HARD_SWISH, mode, a, n, how);
        return;
    case NRG_ACT_HARD_SIGMOID:
        if (!act_is_staged(NRG_ACT_HARD_SIGMOID, mode))
            act_steps(NRG_ACT_HARD_SIGMOID, mode, a, n, how);
        return;
    case NRG_ACT_ELU:
        if (!act_is_staged(NRG_ACT_ELU, mode))
            act_steps(NRG_ACT_ELU, mode, a, n, how);
        return;
    case NRG_ACT_LEAKY_RELU:
        if (!act_is_staged(NRG_ACT_LEAKY_RELU, mode))
            act_steps(NRG_ACT_LEAKY_RELU, mode, a, n, how);
        return;
    case NRG_ACT_MISH:
        if (!act_is_staged(NRG_ACT_MISH, mode))
            act_steps(NRG_ACT_MISH, mode, a, n, how);
        return;
    case NRG_ACT_EXP:
        if (!act_is_staged(NRG_ACT_EXP, mode))
            act_steps(NRG_ACT_EXP, mode, a, n, how);
        return;
    case NRG_ACT_EXPM1:
        if (!act_is_staged(NRG_ACT_EXPM1, mode))
            act_steps(NRG_ACT_EXPM1, mode, a, n, how);
        return;
    case NRG_ACT_SOFTSIGN:
        if (!act_is_staged(NRG_ACT_SOFTSIGN, mode))
            act_steps(NRG_ACT_SOFTSIGN, mode, a, n, how);
        return;
    case NRG_ACT_IDENTITY:
        break;
    }
    act_steps(NRG_ACT_IDENTITY, mode, a, n, how);
}

/* n is a multiple of ACT_STEP. */
static __attribute__((noinline)) void act_values(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_choose(g, ACT_VALUES, a, n, how);
}

static __attribute__((noinline)) void act_both(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_choose(g, ACT_BOTH, a, n, how);
}

/* Of the gate of norms that is common, apart from the others: those are staged there, and multiplied by who reads the stage. */
static __attribute__((noinline)) void act_times_silu(act_data a, size_t n, unsigned how)
{
    act_steps(NRG_ACT_SILU, ACT_TIMES, a, n, how);
}

static __attribute__((noinline)) void act_times(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_choose(g, ACT_TIMES, a, n, how);
}

/* Of the activations that are used with a limit. */
static __attribute__((noinline)) void act_limited(nrg_activation g, act_data a, size_t n, unsigned how)
{
    if (g == NRG_ACT_SILU)
        act_steps(NRG_ACT_SILU, ACT_LIMITED, a, n, how);
    else
        act_steps(NRG_ACT_GELU_QUICK, ACT_LIMITED, a, n, how);
}

static __attribute__((noinline)) void act_gradients(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_choose(g, ACT_GRADIENTS, a, n, how);
}

static __attribute__((noinline)) void act_backward(nrg_activation g, act_data a, size_t n, unsigned how)
{
    act_choose(g, ACT_BACKWARD, a, n, how);
}

NRG_INLINE void act_whole(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    if (mode == ACT_VALUES)
        act_values(g, a, n, how);
    else if (mode == ACT_BOTH)
        act_both(g, a, n, how);
    else if (mode == ACT_GRADIENTS)
        act_gradients(g, a, n, how);
    else if (mode == ACT_TIMES && g == NRG_ACT_SILU)
        act_times_silu(a, n, how);
    else if (mode == ACT_TIMES)
        act_times(g, a, n, how);
    else if (mode == ACT_LIMITED)
        act_limited(g, a, n, how);
    else
        act_backward(g, a, n, how);
}

/* ---- any number of elements ---- */

/* n elements at p to a step that is 0 behind them. */
NRG_INLINE void act_read(float *step, const float *p, size_t n)
{
    for (size_t i = 0; i < ACT_STEP; i += VN)
        v_st_f32(step + i, i < n ? v_ldn_f32(p + i, n - i < VN ? n - i : VN) : v_zero());
}

NRG_INLINE void act_write(float *p, const float *step, size_t n)
{
    for (size_t i = 0; i < n; i += VN)
        v_stn_f32(p + i, v_ld_f32(step + i), n - i < VN ? n - i : VN);
}

/* Elements i to i + n, fewer than a step. */
NRG_INLINE void act_part_of(nrg_activation g, act_mode mode, act_data a, size_t i, size_t n)
{
    float in[ACT_STEP], slope[ACT_STEP], factor[ACT_STEP], up[ACT_STEP];
    const act_data copy = {.in = in,
                           .factor = act_has_factor(mode) ? factor : NULL,
                           .out = in,
                           .slope = act_has_two(mode) ? slope : NULL,
                           .up = mode == ACT_GRADIENTS ? up : NULL, /* otherwise it takes room on the stack */
                           .alpha = a.alpha,
                           .limit = a.limit,
                           .offset = a.offset};
    act_read(in, a.in + i, n);
    if (act_has_factor(mode))
        act_read(factor, a.factor + i, n);
    if (mode == ACT_GRADIENTS)
        act_read(up, a.up + i, n);
    act_whole(g, mode, copy, ACT_STEP, 0);
    act_write(a.out + i, in, n);
    if (act_has_two(mode))
        act_write(a.slope + i, slope, n);
}

/* Of the modes that several functions have. */
static __attribute__((noinline)) void act_part_values(nrg_activation g, act_data a, size_t i, size_t n)
{
    act_part_of(g, ACT_VALUES, a, i, n);
}

static __attribute__((noinline)) void act_part_times_silu(act_data a, size_t i, size_t n)
{
    act_part_of(NRG_ACT_SILU, ACT_TIMES, a, i, n);
}

static __attribute__((noinline)) void act_part_times(nrg_activation g, act_data a, size_t i, size_t n)
{
    act_part_of(g, ACT_TIMES, a, i, n);
}

static __attribute__((noinline)) void act_part_limited(nrg_activation g, act_data a, size_t i, size_t n)
{
    act_part_of(g, ACT_LIMITED, a, i, n);
}

NRG_INLINE void act_part(nrg_activation g, act_mode mode, act_data a, size_t i, size_t n)
{
    if (mode == ACT_VALUES)
        act_part_values(g, a, i, n);
    else if (mode == ACT_TIMES && g == NRG_ACT_SILU)
        act_part_times_silu(a, i, n);
    else if (mode == ACT_TIMES)
        act_part_times(g, a, i, n);
    else if (mode == ACT_LIMITED)
        act_part_limited(g, a, i, n);
    else
        act_part_of(g, mode, a, i, n);
}

NRG_INLINE void act_run(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    size_t whole = n - n % ACT_STEP;
    act_whole(g, mode, a, whole, how);
    if (whole < n)
        act_part(g, mode, a, whole, n - whole);
}

/* Elements before the first that begins a line of out, or a vector where act_part has no room for so many. */
NRG_INLINE size_t act_head(const float *out, size_t n)
{
    enum { LINE = 64 / sizeof *out, STEP = (int)LINE <= (int)ACT_STEP ? (int)LINE : (int)VN };
    size_t past = (uintptr_t)out / sizeof *out % STEP, head = past ? STEP - past : 0;
    return head < n ? head : n;
}

/* Past the cache. */
NRG_INLINE void act_run_streamed(nrg_activation g, act_mode mode, act_data a, size_t n, unsigned how)
{
    size_t head = act_head(a.out, n), whole = (n - head) / ACT_STEP * ACT_STEP, left = n - head - whole;
    if (head)
        act_part(g, mode, a, 0, head);
    act_data body = a;
    body.in += head;
    body.out += head;
    if (act_has_factor(mode))
        body.factor += head;
    if (mode == ACT_GRADIENTS) {
        body.up += head;
        body.slope += head;
    }
    act_whole(g, mode, body, whole, how | NRG_TIMES_STREAM);
    if (left)
        act_part(g, mode, a, head + whole, left);
}

/* ---- kernels for f32 ---- */

NRG_INLINE void act_f32(const nrg_activation_job *job, act_mode mode)
{
    const nrg_activation g = job->activation;
    const size_t n = job->end - job->begin;
    act_data a = {.in = (const float *)job->x + job->begin,
                  .factor = mode == ACT_BACKWARD ? (const float *)job->d_o + job->begin : NULL,
                  .out = (float *)job->o + job->begin,
                  .alpha = job->alpha};
    /* lines that are in cache because the call is in place gain nothing by streaming */
    if (!job->stream || a.out == a.in || a.out == a.factor) {
        act_run(g, mode, a, n, 0);
        return;
    }
    act_run_streamed(g, mode, a, n, NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR);
    v_nt_fence();
}

/* ---- kernels for 16-bit elements: a block of them as floats at a time ---- */

/* For the next block. */
NRG_INLINE void act_ask(const uint16_t *p, size_t n)
{
    for (size_t b = 0; b < n * sizeof *p; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)(p + ACT_BLOCK) + b));
}

NRG_INLINE void act_half(const nrg_activation_job *job, act_mode mode, nrg_dtype dtype)
{
    /* room for the last vector of a block, and the floats of x are replaced by the result */
    float x[ACT_BLOCK], d_o[ACT_BLOCK];
    const nrg_activation g = job->activation;
    const int stream = job->stream && job->o != job->x && job->o != job->d_o;
    const uint16_t *in = (const uint16_t *)job->x, *d_o_in = (const uint16_t *)job->d_o;
    uint16_t *out = (uint16_t *)job->o;
    act_data a = {x, d_o, x, NULL, NULL, job->alpha, 0, 0};
    for (size_t i = job->begin, end = job->end, n; i < end; i += n) {
        n = act_block(out + i, end - i, stream);
        size_t padded = (n + ACT_STEP - 1) / ACT_STEP * ACT_STEP;
        for (size_t j = n - n % VN; j < padded; j += VN)
            v_st_f32(x + j, v_zero());
        if (stream) {
            act_ask(in + i, n);
            if (mode == ACT_BACKWARD)
                act_ask(d_o_in + i, n);
        }
        act_widen(x, in + i, n, dtype);
        if (mode == ACT_BACKWARD) {
            for (size_t j = n - n % VN; j < padded; j += VN)
                v_st_f32(d_o + j, v_zero());
            act_widen(d_o, d_o_in + i, n, dtype);
        }
        act_whole(g, mode, a, padded, 0);
        /* a first block up to the end of a line is not aligned itself */
        act_narrow(out + i, x, n, dtype, stream && (uintptr_t)(out + i) % 16 == 0);
    }
    if (stream)
        v_nt_fence();
}

/* ---- what the kernels of other operations call ---- */

void NRG_PATH_NAME(activate)(nrg_activation g, const float *in, float *out, size_t n)
{
    act_data a = {in, NULL, out, NULL, NULL, nrg_default_alpha(g), 0, 0};
    act_run(g, ACT_VALUES, a, n, 0);
}

void NRG_PATH_NAME(activate_times)(nrg_activation g, float alpha, const float *in, const float *factor, float *out, size_t n,
                                   unsigned how)
{
    act_data a = {in, factor, out, NULL, NULL, alpha, 0, 0};
    if (how & NRG_TIMES_STREAM)
        act_run_streamed(g, ACT_TIMES, a, n, how);
    else
        act_run(g, ACT_TIMES, a, n, how);
}

void NRG_PATH_NAME(activate_limited)(nrg_activation g, float alpha, float limit, float offset, const float *in,
                                     const float *factor, float *out, size_t n, unsigned how)
{
    act_data a = {in, factor, out, NULL, NULL, alpha, limit, offset};
    if (how & NRG_TIMES_STREAM)
        act_run_streamed(g, ACT_LIMITED, a, n, how);
    else
        act_run(g, ACT_LIMITED, a, n, how);
}

/* ---- products of bf16 without a block on the stack ---- */

/* n is a multiple of 2·VN. Four vectors side by side take 0.96 to 1.01 × the time. */
NRG_INLINE void act_pairs_of(nrg_activation g, act_mode mode, nrg_bf16_times a, size_t n, unsigned how)
{
    enum { count = 2 };
    for (size_t i = 0; i < n; i += count * VN) {
        vf x[V_ACT], factor[V_ACT], out[V_ACT];
        if (NRG_RARELY(how & NRG_TIMES_PREFETCH_IN)) {
            __builtin_prefetch((const void *)((uintptr_t)(a.in + i) + 2048));
            __builtin_prefetch((const void *)((uintptr_t)(a.factor + i) + 2048));
        }
        const vp in_pair = v_ld_pair(a.in + i), factor_pair = v_ld_pair(a.factor + i);
        x[0] = v_even_from_bf16(in_pair);
        x[1] = v_odd_from_bf16(in_pair);
        factor[0] = v_even_from_bf16(factor_pair);
        factor[1] = v_odd_from_bf16(factor_pair);
        if (mode == ACT_LIMITED) {
            ACT_SIDE x[j] = v_min(v_set1(a.limit), x[j]);
            ACT_SIDE factor[j] = act_limit_factor(factor[j], a.limit, a.offset);
        }
        act_apply_side(count, g, a.alpha, x, out, NULL);
        const vp h = v_pair_to_bf16(v_mul(factor[0], out[0]), v_mul(factor[1], out[1]));
        if (NRG_RARELY(how & NRG_TIMES_STREAM))
            v_nt_pair(a.out + i, h);
        else
            v_st_pair(a.out + i, h);
    }
}

size_t NRG_PATH_NAME(activate_bf16_times)(nrg_activation g, const nrg_bf16_times *p, size_t n, unsigned how)
{
    const size_t whole = V_SMALL ? 0 : n - n % (2 * VN);
    const int is_limited = p->limit <= FLT_MAX || p->offset != 0;
    /* in cache, blocks take 0.93 × the time with a limit; from memory 1.17 × */
    if (is_limited && !(how & NRG_TIMES_STREAM))
        return 0;
    if (g == NRG_ACT_SILU && is_limited)
        act_pairs_of(NRG_ACT_SILU, ACT_LIMITED, *p, whole, how);
    else if (g == NRG_ACT_SILU)
        act_pairs_of(NRG_ACT_SILU, ACT_TIMES, *p, whole, how);
    else if (g == NRG_ACT_GELU_QUICK && is_limited)
        act_pairs_of(NRG_ACT_GELU_QUICK, ACT_LIMITED, *p, whole, how);
    else if (g == NRG_ACT_GELU_QUICK)
        act_pairs_of(NRG_ACT_GELU_QUICK, ACT_TIMES, *p, whole, how);
    else if (g == NRG_ACT_GELU && !is_limited)
        act_pairs_of(NRG_ACT_GELU, ACT_TIMES, *p, whole, how);
    else if (g == NRG_ACT_GELU_TANH && !is_limited)
        act_pairs_of(NRG_ACT_GELU_TANH, ACT_TIMES, *p, whole, how);
    else if (g == NRG_ACT_RELU && !is_limited)
        act_pairs_of(NRG_ACT_RELU, ACT_TIMES, *p, whole, how);
    else
        return 0;
    return whole;
}

void NRG_PATH_NAME(activate_streamed)(nrg_activation g, const float *in, float *out, size_t n)
{
    act_data a = {in, NULL, out, NULL, NULL, nrg_default_alpha(g), 0, 0};
    act_run_streamed(g, ACT_VALUES, a, n, 0);
}

NRG_PATH_KERNEL(activation, f32, activation, act_f32(job, ACT_VALUES))
NRG_PATH_KERNEL(activation, f16, activation, act_half(job, ACT_VALUES, NRG_F16))
NRG_PATH_KERNEL(activation, bf16, activation, act_half(job, ACT_VALUES, NRG_BF16))

#ifndef NRG_NO_BACKWARD
void NRG_PATH_NAME(activate_both)(nrg_activation g, const float *in, float *out, float *slope, size_t n)
{
    act_data a = {in, NULL, out, slope, NULL, nrg_default_alpha(g), 0, 0};
    act_run(g, ACT_BOTH, a, n, 0);
}

void NRG_PATH_NAME(activate_gradients)(nrg_activation g, float alpha, const float *in, const float *factor, const float *up,
                                       float *out, float *slope, size_t n, unsigned how)
{
    act_data a = {in, factor, out, slope, up, alpha, 0, 0};
    if (how & NRG_TIMES_STREAM)
        act_run_streamed(g, ACT_GRADIENTS, a, n, how);
    else
        act_run(g, ACT_GRADIENTS, a, n, 0);
}

NRG_PATH_KERNEL(activation_backward, f32, activation, act_f32(job, ACT_BACKWARD))
NRG_PATH_KERNEL(activation_backward, f16, activation, act_half(job, ACT_BACKWARD, NRG_F16))
NRG_PATH_KERNEL(activation_backward, bf16, activation, act_half(job, ACT_BACKWARD, NRG_BF16))
#endif

#endif
