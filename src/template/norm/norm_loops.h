/* The loops over elements, for each dtype.
 *
 * Options are tested as they run: in a prototype, 120 instances specialised by option were 15 times as large and 3 % faster. All
 * else, rows and chunks and what is left over at their ends, knows the dtype at run time only and is there once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_LOOPS_H
#define NRG_TEMPLATE_NORM_NORM_LOOPS_H

#include "norm_fast_apply.h"
#include "norm_fast_rows.h"
#include "norm_fast_short.h"

/* The loops of rows of 16 bits. Only kernels of 16 bits name them, in norm_options.half, and all that is there once calls them
 * from there: so a program of f32 norms is linked without them. */
typedef struct norm_half_loops {
    void (*rms)(fast_blocks *, vd8 *, const norm_part *);
    void (*centred)(fast_blocks *, float *, vd8 *, vd8 *, const norm_part *);
    void (*apply)(const norm_part *, const fast_scalars *);
    void (*short_rms)(fast_some *, const nrg_norm_job *, size_t, size_t);
    void (*short_elements)(const fast_some *, const nrg_norm_job *, const norm_options *, const fast_short_weights *);
} norm_half_loops;

/* As NRG_BY_DTYPE, with 16 bits by way of loops->member. */
#if V_SMALL
#define NORM_BY_DTYPE(name, member, loops, args, ...) NRG_BY_DTYPE(name, args, __VA_ARGS__)
#else
#define NORM_BY_DTYPE(name, member, loops, args, ...)                                                                            \
    static __attribute__((noinline)) void name##_f32(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_F32); }                       \
    static __attribute__((noinline)) void name##_f16(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_F16); }                       \
    static __attribute__((noinline)) void name##_bf16(__VA_ARGS__) { name##_of(NRG_UNPACK args, NRG_BF16); }                     \
    static __attribute__((noinline)) void name##_half(__VA_ARGS__) { (loops)->member args; }                                     \
    static inline void name(__VA_ARGS__, nrg_dtype D)                                                                            \
    {                                                                                                                            \
        if (D == NRG_F32)                                                                                                        \
            name##_f32 args;                                                                                                     \
        else                                                                                                                     \
            name##_half args;                                                                                                    \
    }
#endif

NRG_INLINE void fast_rms_of(fast_blocks *blocks, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (V_SMALL || part->opt->how & NORM_FIRST)
        fast_rows(blocks, NULL, NULL, tt, part, NORM_RESIDUAL | (D == NRG_F32 ? 0 : NORM_KEEP_R), D, 0);
    else
        fast_rows(blocks, NULL, NULL, tt, part, NORM_PREFETCH, D, 0);
}

NORM_BY_DTYPE(fast_rms, rms, part->opt->half, (blocks, tt, part), fast_blocks *blocks, vd8 *tt, const norm_part *part)

NRG_INLINE void fast_centred_of(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (V_SMALL || part->opt->how & NORM_FIRST)
        fast_rows(blocks, pilot, t, tt, part, NORM_RESIDUAL | (D == NRG_F32 ? 0 : NORM_KEEP_R), D, 1);
    else
        fast_rows(blocks, pilot, t, tt, part, NORM_PREFETCH, D, 1);
}

NORM_BY_DTYPE(fast_centred, centred, part->opt->half, (blocks, pilot, t, tt, part), fast_blocks *blocks, float *pilot, vd8 *t,
              vd8 *tt, const norm_part *part)

NRG_INLINE void fast_apply_of(const norm_part *part, const fast_scalars *s, nrg_dtype D)
{
    const unsigned how = part->opt->how;
    const int plain = r_serves_as_x(how, D) ? !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN))
                                            : !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN | NORM_READ_R | NORM_ADD_Y));
    if (!V_SMALL && plain)
        fast_apply_part(part, s, fast_apply_vectors(D), NORM_CENTRED | NORM_STREAM_O | NORM_W_F32, D);
    else
        fast_apply_part(part, s, V_FAST_ANY, NORM_ANY, D);
}

NORM_BY_DTYPE(fast_apply, apply, part->opt->half, (part, s), const norm_part *part, const fast_scalars *s)

NRG_INLINE void fast_short_rms_of(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    fast_short_sums(b, job, n, most, D, 0);
}

NORM_BY_DTYPE(fast_short_rms, short_rms, b->half, (b, job, n, most), fast_some *b, const nrg_norm_job *job, size_t n, size_t most)

NORM_BY_DTYPE(fast_short_elements, short_elements, opt->half, (b, job, opt, weights), const fast_some *b, const nrg_norm_job *job,
              const norm_options *opt, const fast_short_weights *weights)

#if !V_SMALL
static const norm_half_loops loops_of_f16 = {fast_rms_f16, fast_centred_f16, fast_apply_f16, fast_short_rms_f16,
                                             fast_short_elements_f16};
static const norm_half_loops loops_of_bf16 = {fast_rms_bf16, fast_centred_bf16, fast_apply_bf16, fast_short_rms_bf16,
                                              fast_short_elements_bf16};
#endif

/* What a kernel's options want beside options_of. */
NRG_INLINE const norm_half_loops *half_loops(nrg_dtype D)
{
#if V_SMALL
    (void)D;
    return NULL;
#else
    return D == NRG_F16 ? &loops_of_f16 : D == NRG_BF16 ? &loops_of_bf16 : NULL;
#endif
}

#endif
