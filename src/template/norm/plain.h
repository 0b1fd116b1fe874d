/* Row norms without gate and activation, forward: the dispatcher over instances.def.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_PLAIN_H
#define NRG_TEMPLATE_NORM_PLAIN_H

#include "tile.h"

#if !NORM_IS_SMALL
#define ELEMENTS(n) .least = (n), .most = (n), .multiple = (n), .rows = TILE
#define TILE128 ELEMENTS(128), .absent = VN < 16 /* with AVX2 64x128 takes 0.92 to 1.08 of the time */
#define BLOCK .least = 1, .most = FAST_BLOCK, .multiple = 1, .recomputes = 1
#define TOKEN_ROW .least = FAST_LANES, .most = OUTPUT_CHUNK, .multiple = FAST_LANES
#define CACHED_ROW .least = FAST_LANES, .most = SIZE_MAX, .multiple = 1, .rare_tail = 1
#define LONG_64                                                                                                                  \
    .least = FAST_BLOCK + 1, .most = SIZE_MAX, .multiple = FAST_LANES, .ahead = 2048, .recomputes = 1, .interleaved = 1
#define ONE_ROW (OPT_CACHED_R | OPT_WEIGHT | OPT_DIVISOR | OPT_BIAS | OPT_STATISTICS)
#define FULL_TILES (OPT_CACHED_R | OPT_BIAS | OPT_HEADS)
#define SHORT_ROWS                                                                                                               \
    (OPT_CENTRED | OPT_RESIDUAL | OPT_PREFETCH | OPT_STREAM_O | OPT_WEIGHT | OPT_W_OFFSET | OPT_BIAS | OPT_STATISTICS | OPT_HEADS)
#define SHORT_EXACT (SHORT_ROWS & ~(unsigned)OPT_W_OFFSET)
#define SHORT_16 (SHORT_ROWS | OPT_Y_F32 | OPT_W_F32)
#define POLICY(element, ...) ((norm_policy){.dtype = (element), __VA_ARGS__})
#ifndef NORM_LEAVES_OUT
#define NORM_LEAVES_OUT(name) 0 /* nrg-bench --instances measures what an instance gains */
#endif

#define INSTANCE(name, element, schedule, ...)                                                                                   \
    static __attribute__((noinline, aligned(64))) void instance_##name(const nrg_norm_job *job, unsigned options)                \
    {                                                                                                                            \
        schedule_##schedule(job, options, POLICY(element, __VA_ARGS__));                                                         \
    }
#include "instances.def"
#undef INSTANCE

/* The rows after full tiles, if there are any. */
static __attribute__((noinline)) void norm_remaining_rows(const nrg_norm_job *job, unsigned options)
{
    const size_t left = (job->row_end - job->row_begin) % TILE;
    nrg_norm_job rest = *job;
    rest.row_begin = rest.row_end - left;
    if (left)
        instance_tiles_f32(&rest, options);
}

/* Whether tiles have done rows whose statistics are given. */
static __attribute__((noinline)) int apply_by_tiles(const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    const int exact = (options & OPT_EXACT) != 0;
    const unsigned may = exact ? SHORT_EXACT | OPT_EXACT : D == NRG_F32 ? SHORT_ROWS : SHORT_16;
    if (job->dim > FAST_BLOCK || options & (~may | OPT_RESIDUAL) || !fit_tiles(job))
        return 0;
    (exact          ? instance_tiles_exact
     : D == NRG_F32 ? instance_tiles_f32
     : D == NRG_F16 ? instance_tiles_f16
                    : instance_tiles_bf16)(job, options & ~(unsigned)OPT_STATISTICS);
    return 1;
}

/* Whether an instance may do rows of these kinds; f32 rows of no kind have a kernel of their own. */
NRG_INLINE int policy_has_kinds(norm_policy P, unsigned kinds)
{
    return kinds ? P.dtype != NRG_F32 || may_have(P, kinds) : !(P.must & ROW_KINDS);
}

/* Whether an instance has done the rows, all of which are of one of these kinds. */
NRG_INLINE int norm_by_instance(const nrg_norm_job *job, unsigned options, unsigned kinds, nrg_dtype D)
{
    const size_t dim = job->dim;
#define INSTANCE(name, element, schedule, ...)                                                                                   \
    if (D == (element) && policy_has_kinds(POLICY(element, __VA_ARGS__), kinds) &&                                               \
        policy_accepts(POLICY(element, __VA_ARGS__), options, dim) && fit_##schedule(job) && !NORM_LEAVES_OUT(name)) {           \
        instance_##name(job, options);                                                                                           \
        if (POLICY(element, __VA_ARGS__).rows)                                                                                   \
            norm_remaining_rows(job, options);                                                                                   \
        return 1;                                                                                                                \
    }
#include "instances.def"
#undef INSTANCE
    return 0;
}

#else
NRG_INLINE int apply_by_tiles(const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    return (void)job, (void)options, (void)D, 0;
}

NRG_INLINE int norm_by_instance(const nrg_norm_job *job, unsigned options, unsigned kinds, nrg_dtype D)
{
    return (void)job, (void)options, (void)kinds, (void)D, 0;
}
#endif

/* f32 rows without a mean, in the fast grade: what a program of nrg_rms_norm_f32 links. */
NRG_INLINE int is_fast_rms(const nrg_norm_job *job, nrg_dtype D)
{
    return D == NRG_F32 && !job->formula.centred && !job->formula.exact;
}

NRG_INLINE void norm_rms(const nrg_norm_job *job)
{
    const unsigned options = options_of_job(job, NRG_F32) & ~(unsigned)ROW_KINDS;
    if (!norm_by_instance(job, options, 0, NRG_F32))
        general_rms_rows(job, options);
}

/* Rows of all kinds. In functions of their own: a kernel then saves no register before it jumps to norm_rms_f32. */
NRG_INLINE void norm_any_of(const nrg_norm_job *job, nrg_dtype D)
{
    const unsigned options = options_of_job(job, D);
    if (!norm_by_instance(job, options, ROW_KINDS, D))
        general_rows(job, options, D);
}
NRG_BY_DTYPE(norm_any, (job), const nrg_norm_job *job)

/* Rows of a part of a pass (nrg/norm_parts.h), one after the other. */
static __attribute__((noinline)) void part_rows(const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    const int exact = (options & OPT_EXACT) != 0, is_given = job->part == NRG_NORM_APPLY;
    row_chunk c = {.options = options, .end = job->dim, .dim = job->dim};
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        row_sums sums;
        row_scalars s;
        find_row(&c.row, job, n, options, D);
        if (is_given)
            s = given_scalars(job, n, exact);
        else {
            for (c.begin = 0; c.begin < c.dim; c.begin = c.end) {
                c.end = chunk_end(c.begin, c.dim, NORM_SEGMENT);
                sum_rows_chunk(&sums, &c, D);
            }
            s = general_scalars(job, &sums, options);
        }
        if (NRG_RARELY(!s.in_range))
            fallback_of(job, &c.row, options, n, D);
        else if (is_given) {
            const row_outputs to = outputs_of_row(c.row, &s, job);
            general_output(&to, &c, policy_of_rows(D, OPT_EXACT));
        } else {
            store_statistics(job, options & OPT_CENTRED ? s.centre : 0, s.rstd, n);
            if (job->statistics)
                keep_statistics(job, options & OPT_CENTRED ? sums.pilot : 0, general_totals(&sums, options), exact, n);
        }
    }
    if (options & (OPT_STREAM_R | OPT_STREAM_O | OPT_LINES_O))
        v_nt_fence();
}

/* A part of a pass, or a pass that reads r, or that stores o in f32. */
static __attribute__((noinline)) void norm_part(const nrg_norm_job *job, nrg_dtype D)
{
    const unsigned options = options_of_part(job, D);
    if (job->part == NRG_NORM_WHOLE)
        general_rows(job, options, D);
    else if (job->part == NRG_NORM_SUMS || job->row_end - job->row_begin == 1 || !apply_by_tiles(job, options, D))
        part_rows(job, options, D);
}

#endif
