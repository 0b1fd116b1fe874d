/* Activations, forward and backward, over the vectors of a path's vec.h.
 *
 * Forward and backward passes, gates and gated linear units are runs (job/activation.h) of the loops of activation_loops.h.
 * 16-bit elements and pairs become floats on the stack first, a block at a time (activation_blocks.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_H

#include "activation_blocks.h"
#include "activation_loops.h"

_Static_assert(ACT_BLOCK % ACT_STEP == 0, "a block consists of whole steps");

/* ---- any number of floats ---- */

/* n floats to a step that is 0 behind them. */
NRG_INLINE void act_read_step(float *step, const void *p, size_t i, size_t n)
{
    const float *from = (const float *)p + i;
    for (size_t j = 0; j < ACT_STEP; j += VN)
        v_st_f32(step + j, j < n ? v_ldn_f32(from + j, n - j < VN ? n - j : VN) : v_zero());
}

NRG_INLINE void act_write_step(void *p, size_t i, const float *step, size_t n)
{
    float *to = (float *)p + i;
    for (size_t j = 0; j < n; j += VN)
        v_stn_f32(to + j, v_ld_f32(step + j), n - j < VN ? n - j : VN);
}

/* Elements i to i + n, fewer than a step, by the same loop over copies. */
static __attribute__((noinline)) void act_part(nrg_activation_loop *loop, const nrg_activation_run *run, size_t i, size_t n)
{
    float in[ACT_STEP], factor[ACT_STEP], up[ACT_STEP];
    nrg_activation_run part = *run;
    part.how &= NRG_RUN_LIMITED;
    part.in = in;
    act_read_step(in, run->in, i, n);
    if (run->factor) {
        part.factor = factor;
        act_read_step(factor, run->factor, i, n);
    }
    if (run->up) {
        part.up = up;
        act_read_step(up, run->up, i, n);
    }
    part.value = run->value ? up : NULL;
    part.slope = run->slope ? in : NULL;
    loop(&part, ACT_STEP);
    if (run->value)
        act_write_step(run->value, i, up, n);
    if (run->slope)
        act_write_step(run->slope, i, in, n);
}

/* The same run from a byte on. */
NRG_INLINE nrg_activation_run act_from(const nrg_activation_run *run, size_t byte)
{
    nrg_activation_run from; /* field by field, as in act_blocks */
    unsigned how = run->how;
    NRG_IN_REGISTER(how); /* otherwise one load takes it with alpha, and waits for the stores of both: 30 ns a call */
    from.alpha = run->alpha;
    from.how = how;
    from.in = (const char *)run->in + byte;
    from.factor = run->factor ? (const char *)run->factor + byte : NULL;
    from.up = run->up ? (const char *)run->up + byte : NULL;
    from.value = run->value ? (char *)run->value + byte : NULL;
    from.slope = run->slope ? (char *)run->slope + byte : NULL;
    if (run->how & NRG_RUN_LIMITED) {
        from.limit = run->limit;
        from.offset = run->offset;
    }
    return from;
}

/* Elements before the first that begins a line of the results, or a vector where act_part has no room for so many. */
NRG_INLINE size_t act_head(const nrg_activation_run *run, size_t n)
{
    enum { LINE = 64 / sizeof(float), STEP = (int)LINE <= (int)ACT_STEP ? (int)LINE : (int)VN };
    const size_t past = (uintptr_t)(run->value ? run->value : run->slope) / sizeof(float) % STEP, head = past ? STEP - past : 0;
    return head < n ? head : n;
}

/* Past the cache, from a line on. */
static __attribute__((noinline)) void act_streamed(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n)
{
    const size_t head = act_head(run, n), whole = (n - head) / ACT_STEP * ACT_STEP;
    const nrg_activation_run from = act_from(run, head * sizeof(float));
    if (head)
        act_part(loop, run, 0, head);
    loop(&from, whole);
    if (head + whole < n)
        act_part(loop, run, head + whole, n - head - whole);
}

NRG_INLINE void act_floats(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n)
{
    const size_t whole = n / ACT_STEP * ACT_STEP;
    if (NRG_RARELY(run->how & NRG_RUN_STREAM)) {
        act_streamed(loop, run, n);
        return;
    }
    loop(run, whole);
    if (whole < n)
        act_part(loop, run, whole, n - whole);
}

void NRG_PATH_NAME(activate_floats)(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n)
{
    act_floats(loop, run, n);
}

/* Field by field in the following: a wide load from what has just been written in parts waits for the cache. */
void NRG_PATH_NAME(activate)(nrg_activation g, const float *in, float *out, size_t n)
{
    nrg_activation_run run;
    run.in = in;
    run.factor = run.up = NULL;
    run.value = out;
    run.slope = NULL;
    run.alpha = nrg_default_alpha(g);
    run.how = 0;
    act_floats(NRG_PATH_NAME(value_loops)[g], &run, n);
}

#ifndef NRG_NO_BACKWARD
void NRG_PATH_NAME(activate_both)(nrg_activation g, const float *in, float *out, float *slope, size_t n)
{
    const nrg_activation_run run = {.in = in, .value = out, .slope = slope, .alpha = nrg_default_alpha(g)};
    act_floats(NRG_PATH_NAME(both_loops)[g], &run, n);
}
#endif

/* ---- any number of elements of any dtype ---- */

/* Floats of a block. Where there is a limit, x and f are limited copies; otherwise in and factor. Results replace them. */
typedef struct act_block {
    _Alignas(64) float in[ACT_BLOCK];
    float up[ACT_BLOCK], factor[ACT_BLOCK], x[ACT_BLOCK], f[ACT_BLOCK];
} act_block;

static __attribute__((noinline)) void act_limit_block(act_block *b, const nrg_activation_run *run, size_t n)
{
    for (size_t i = 0; i < n; i += VN) {
        v_st_f32(b->x + i, act_limited(v_ld_f32(b->in + i), run));
        v_st_f32(b->f + i, act_limited_factor(v_ld_f32(b->factor + i), run));
    }
}

/* 0 where the inputs were beyond the limit. */
static __attribute__((noinline)) void act_cut(act_block *b, float limit, size_t n)
{
    const vf most = v_set1(limit);
    for (size_t i = 0; i < n; i += VN) {
        const vm x_is_cut = v_lt(most, v_ld_f32(b->in + i)), f_is_cut = v_lt(most, v_abs(v_ld_f32(b->factor + i)));
        v_st_f32(b->x + i, v_select(x_is_cut, v_zero(), v_ld_f32(b->x + i)));
        v_st_f32(b->f + i, v_select(f_is_cut, v_zero(), v_ld_f32(b->f + i)));
    }
}

/* Zeros after the n elements of a block, up to a whole step. Returns their number with those. */
static __attribute__((noinline)) size_t act_fill(act_block *b, size_t n)
{
    const size_t end = (n + ACT_STEP - 1) / ACT_STEP * ACT_STEP;
    for (size_t i = (n + VN - 1) / VN * VN; i < end; i += VN) {
        v_st_f32(b->in + i, v_zero());
        v_st_f32(b->factor + i, v_zero());
        v_st_f32(b->up + i, v_zero());
    }
    return end;
}

/* Bytes of n elements of in and slope. */
NRG_INLINE size_t act_pair_bytes(const nrg_activation_run *run, size_t n, nrg_dtype D)
{
    return bytes_of(n, D, 0) * (run->how & NRG_RUN_PAIRS ? 2 : 1);
}

NRG_INLINE void act_ask_for(const void *p, size_t i, size_t n, size_t each)
{
    for (size_t b = 0; b < n * each; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + i * each + b));
}

/* Prefetches the next block; for gated linear units the one after it, as far ahead as the loops do. */
static __attribute__((noinline)) void act_ask(const nrg_activation_run *run, size_t i, size_t n, nrg_dtype D)
{
    const size_t each = bytes_of(1, D, 0), at = i + (run->factor || run->how & NRG_RUN_PAIRS ? 2 * ACT_BLOCK : ACT_BLOCK);
    act_ask_for(run->in, at, n, act_pair_bytes(run, 1, D));
    if (run->factor)
        act_ask_for(run->factor, at, n, each);
    if (run->up)
        act_ask_for(run->up, at, n, each);
}

/* Elements from element i to the next line of the results. */
static __attribute__((noinline)) size_t act_to_line(const nrg_activation_run *run, size_t i, nrg_dtype D)
{
    const size_t each = run->slope ? act_pair_bytes(run, 1, D) : bytes_of(1, D, 0);
    const size_t past = ((uintptr_t)(run->slope ? run->slope : run->value) + i * each) % 64;
    return past ? (64 - past) / each : 0;
}

/* A tensor is streamed if its vectors fill lines. */
NRG_INLINE int act_may_stream(const char *p, unsigned how) { return how & NRG_RUN_STREAM && (uintptr_t)p % 16 == 0; }

/* From tensors to a block; what follows the elements up to a whole step is 0. */
NRG_INLINE size_t act_inputs(act_block *b, const nrg_activation_run *run, size_t i, size_t n, nrg_dtype D)
{
    const size_t at = bytes_of(i, D, 0);
    const int in_order = (run->how & (NRG_RUN_PAIRS | NRG_RUN_FLOATS)) != 0;
    if (run->how & NRG_RUN_PREFETCH)
        act_ask(run, i, n, D);
    if (run->how & NRG_RUN_PAIRS)
        act_read_pairs(b->in, b->factor, (const char *)run->in + 2 * at, n, D);
    else
        act_read(b->in, (const char *)run->in + at, n, in_order, D);
    if (run->factor)
        act_read(b->factor, (const char *)run->factor + at, n, in_order, D);
    if (run->up)
        act_read(b->up, (const char *)run->up + at, n, in_order, D);
    return n % ACT_STEP ? act_fill(b, n) : n;
}

/* From a block to tensors. */
NRG_INLINE void act_outputs(const float *value, const float *slope, const nrg_activation_run *run, size_t i, size_t n,
                            nrg_dtype D)
{
    const size_t at = bytes_of(i, D, 0);
    const int is_paired = (run->how & NRG_RUN_PAIRS) != 0;
    if (run->slope) {
        char *const to = (char *)run->slope + (is_paired ? 2 * at : at);
        if (is_paired)
            act_write_pairs(to, slope, value, n, act_may_stream(to, run->how), D);
        else
            act_write(to, slope, n, 0, act_may_stream(to, run->how), D);
    }
    if (run->value && !(run->how & NRG_RUN_FLOATS)) {
        char *const to = (char *)run->value + at;
        act_write(to, value, n, is_paired, act_may_stream(to, run->how), D);
    }
}

/* is_copied: limited before the loop. Streamed blocks end where a line ends: the first one may be short, and is not streamed. */
static __attribute__((noinline)) void act_blocks(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n,
                                                 int is_copied, nrg_dtype D)
{
    act_block b;
    nrg_activation_run part;
    float *const x = is_copied ? b.x : b.in, *const f = is_copied ? b.f : b.factor, *const value = run->slope ? f : x;
    part.in = x;
    part.factor = run->factor || run->how & NRG_RUN_PAIRS ? f : NULL;
    part.up = run->up ? b.up : NULL;
    part.slope = run->slope ? x : NULL;
    part.value = run->value || run->how & NRG_RUN_PAIRS ? value : NULL;
    part.alpha = run->alpha;
    part.how = is_copied ? 0 : run->how & NRG_RUN_LIMITED;
    if (part.how) {
        part.limit = run->limit;
        part.offset = run->offset;
    }
    for (size_t i = 0, some; i < n; i += some) {
        const size_t line = run->how & NRG_RUN_STREAM ? act_to_line(run, i, D) : 0, most = line ? line : ACT_BLOCK;
        some = n - i < most ? n - i : most;
        const size_t filled = act_inputs(&b, run, i, some, D);
        if (is_copied)
            act_limit_block(&b, run, filled);
        if (run->how & NRG_RUN_FLOATS)
            part.value = (float *)run->value + i;
        loop(&part, filled);
        if (is_copied && run->slope)
            act_cut(&b, run->limit, some);
        act_outputs(value, x, run, i, some, D);
    }
}

/* Without options, as calls in cache are. A call of 64 elements of bf16 takes 0.8 times as long as by act_blocks. */
static __attribute__((noinline)) void act_cached(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n, nrg_dtype D)
{
    act_block b;
    nrg_activation_run part;
    float *const value = run->slope ? b.factor : b.in;
    part.in = b.in;
    part.factor = run->factor ? b.factor : NULL;
    part.up = run->up ? b.up : NULL;
    part.slope = run->slope ? b.in : NULL;
    part.value = run->value ? value : NULL;
    part.alpha = run->alpha;
    part.how = 0;
    for (size_t i = 0, some; i < n; i += some) {
        const size_t at = bytes_of(i, D, 0);
        some = n - i < ACT_BLOCK ? n - i : ACT_BLOCK;
        act_read(b.in, (const char *)run->in + at, some, 0, D);
        if (run->factor)
            act_read(b.factor, (const char *)run->factor + at, some, 0, D);
        if (run->up)
            act_read(b.up, (const char *)run->up + at, some, 0, D);
        loop(&part, some % ACT_STEP ? act_fill(&b, some) : some);
        if (run->slope)
            act_write((char *)run->slope + at, b.in, some, 0, 0, D);
        if (run->value)
            act_write((char *)run->value + at, value, some, 0, 0, D);
    }
}

void NRG_PATH_NAME(activate_blocks)(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n, nrg_dtype dtype)
{
    if (ACT_IS_SMALL || run->how)
        act_blocks(loop, run, n, (run->how & NRG_RUN_LIMITED) != 0, dtype);
    else
        act_cached(loop, run, n, dtype);
}

/* By a loop that reads bf16; the rest by floats. Out of cache a block at a time, of which the next is asked for: where loops ask
 * for steps, they take up to 1.3 times as long (2 million elements of leaky ReLU, AVX2, EPYC Zen 4). */
static __attribute__((noinline)) void act_direct(nrg_activation_loop *bf16, nrg_activation_loop *loop,
                                                 const nrg_activation_run *run, size_t n)
{
    const size_t line = run->how & NRG_RUN_STREAM ? act_to_line(run, 0, NRG_BF16) : 0, head = line < n ? line : n;
    const size_t whole = (n - head) / (2 * VN) * (2 * VN);
    if (head)
        act_blocks(loop, run, head, 0, NRG_BF16);
    if (!(run->how & (NRG_RUN_STREAM | NRG_RUN_PREFETCH)))
        bf16(run, whole);
    else
        for (size_t i = head, some; i < head + whole; i += some) {
            const nrg_activation_run from = act_from(run, bytes_of(i, NRG_BF16, 0));
            some = lesser(head + whole - i, ACT_BLOCK);
            act_ask(&from, 0, some, NRG_BF16);
            bf16(&from, some);
        }
    if (head + whole < n) {
        const nrg_activation_run rest = act_from(run, (head + whole) * sizeof(uint16_t));
        act_blocks(loop, &rest, n - head - whole, 0, NRG_BF16);
    }
}

static __attribute__((noinline)) void act_with_limit(nrg_activation g, const nrg_activation_run *run, size_t n, nrg_dtype D)
{
    nrg_activation_loop *const loop = g == NRG_ACT_SILU ? act_silu_limited_values : act_gelu_quick_limited_values;
    if (D == NRG_F32 && !(run->how & NRG_RUN_PAIRS))
        act_floats(loop, run, n);
    else if (VN > 8 && D == NRG_BF16 && !(run->how & (NRG_RUN_PAIRS | NRG_RUN_FLOATS)) && run->how & NRG_RUN_STREAM)
        act_direct(g == NRG_ACT_SILU ? act_silu_limited_values_bf16 : act_gelu_quick_limited_values_bf16, loop, run, n);
    else
        act_blocks(loop, run, n, 0, D);
}

void NRG_PATH_NAME(activate_values)(nrg_activation g, const nrg_activation_run *run, size_t n, nrg_dtype dtype)
{
    nrg_activation_loop *const loop = NRG_PATH_NAME(value_loops)[g];
    const unsigned options = run->how & ~(unsigned)(NRG_RUN_STREAM | NRG_RUN_PREFETCH);
    /* With 16 registers, 4096 elements of silu are 1.17 times as fast by blocks, and others without factors (AVX2, Zen). */
    const int is_direct = VN != 8 || n <= 256 || act_is_light(g) || (run->factor && g != NRG_ACT_SILU);
    if (dtype == NRG_BF16 && !options && is_direct && act_bf16_loops[g])
        act_direct(act_bf16_loops[g], loop, run, n);
    else if (options & NRG_RUN_LIMITED && act_has_limit(g))
        act_with_limit(g, run, n, dtype);
    else
        NRG_PATH_NAME(activate_blocks)(loop, run, n, dtype);
}

/* ---- kernels ---- */

/* Values of 16-bit elements in cache. Inline, since a call of 64 elements is short. */
NRG_INLINE void act_alone(const nrg_activation_job *job, nrg_dtype D)
{
    float block[ACT_BLOCK];
    nrg_activation_loop *const loop = NRG_PATH_NAME(value_loops)[job->activation];
    const nrg_activation_run run = {.in = block, .value = block, .alpha = job->alpha};
    for (size_t i = job->begin, end = job->end, some; i < end; i += some) {
        const size_t at = bytes_of(i, D, 0);
        some = end - i < ACT_BLOCK ? end - i : ACT_BLOCK;
        const size_t filled = (some + ACT_STEP - 1) / ACT_STEP * ACT_STEP;
        act_read_of(block, job->x + at, some, 0, D);
        for (size_t j = (some + VN - 1) / VN * VN; j < filled; j += VN)
            v_st_f32(block + j, v_zero());
        loop(&run, filled);
        act_write_of(job->o + at, block, some, 0, 0, D);
    }
}

/* loops: NULL for values. */
NRG_INLINE void act_kernel(const nrg_activation_job *job, nrg_activation_loop *const *loops, nrg_dtype D)
{
    const size_t at = bytes_of(job->begin, D, 0), n = job->end - job->begin;
    /* lines that are in cache because the call is in place gain nothing by streaming */
    const int stream = job->stream && job->o != job->x && job->o != job->d_o;
    nrg_activation_run run;
    run.in = job->x + at;
    run.factor = NULL;
    run.up = loops ? job->d_o + at : NULL;
    run.value = loops ? NULL : job->o + at;
    run.slope = loops ? job->o + at : NULL;
    run.alpha = job->alpha;
    run.how = stream ? NRG_RUN_STREAM | NRG_RUN_PREFETCH : 0;
    if (D == NRG_F32)
        act_floats((loops ? loops : NRG_PATH_NAME(value_loops))[job->activation], &run, n);
    else if (!loops && !stream && !ACT_IS_SMALL && !(D == NRG_BF16 && act_bf16_loops[job->activation]))
        act_alone(job, D);
    else if (!loops)
        NRG_PATH_NAME(activate_values)(job->activation, &run, n, D);
    else
        NRG_PATH_NAME(activate_blocks)(loops[job->activation], &run, n, D);
    if (stream)
        v_nt_fence();
}

NRG_INLINE void act_forward(const nrg_activation_job *job, nrg_dtype D) { act_kernel(job, NULL, D); }
NRG_PATH_KERNELS(activation, activation, act_forward)

#ifndef NRG_NO_BACKWARD
NRG_INLINE void act_backward(const nrg_activation_job *job, nrg_dtype D) { act_kernel(job, act_slope_loops, D); }
NRG_PATH_KERNELS(activation_backward, activation, act_backward)
#endif

#endif
