/* The rows of a job, for one dtype: norm.h includes this file once for each, with NORM_DTYPE (f32), NORM_D (NRG_F32) and
 * NORM_HAS_RMS: 1 for short rows that have code of their own where nothing is subtracted. (16-bit rows spend their time on
 * conversions and share the centred code, with a mean of 0, which saves a sixth of the library's size.)
 *
 * SPDX-License-Identifier: MIT */

#define NORM_PASTE_(name, dtype) name##_##dtype
#define NORM_PASTE(name, dtype) NORM_PASTE_(name, dtype)
#define NORM_(name) NORM_PASTE(name, NORM_DTYPE)

/* The two loops as functions for long rows, where a call weighs nothing: inlined wherever they are needed, with a part of a
 * vector in each, a path took 233 KB instead of 58. */
static __attribute__((noinline)) void NORM_(sum_rms)(norm_sums *sums, const norm_options *options, const norm_row *row,
                                                     size_t begin, size_t end)
{
    const norm_options opt = *options;
    sum_range(sums, &opt, *row, begin, end, NORM_D, 0);
}

static __attribute__((noinline)) void NORM_(sum_centred)(norm_sums *sums, const norm_options *options, const norm_row *row,
                                                         size_t begin, size_t end)
{
    const norm_options opt = *options;
    sum_range(sums, &opt, *row, begin, end, NORM_D, 1);
}

static __attribute__((noinline)) void NORM_(apply)(const norm_options *options, const norm_row *row, const norm_scalars *s,
                                                   size_t begin, size_t end)
{
    const norm_options opt = *options;
    const norm_factors f = factors_of(s, 0);
    apply_range(&opt, *row, &f, begin, end, NORM_D, opt.centred, 0, 0);
}

/* For rows with a gate or an activation. */
static __attribute__((noinline)) void NORM_(apply_staged)(const norm_options *options, const norm_row *row, const norm_scalars *s,
                                                          size_t begin, size_t end)
{
    const norm_options opt = *options;
    const norm_factors f = factors_of(s, 0);
    apply_range(&opt, *row, &f, begin, end, NORM_D, opt.centred, 0, 1);
}

NRG_INLINE void NORM_(sum)(norm_sums *sums, const norm_options *opt, const norm_row *row, size_t begin, size_t end)
{
    if (opt->centred)
        NORM_(sum_centred)(sums, opt, row, begin, end);
    else
        NORM_(sum_rms)(sums, opt, row, begin, end);
}

/* Rows of one block: the sums of up to eight rows first, then their scalars side by side, then the elements, still in L1. any, a
 * constant: the rows may be centred or not; otherwise they are not. */
NRG_INLINE void NORM_(short_rows)(const nrg_norm_job *job, const norm_options *options, int any)
{
    const norm_options opt = *options;
    const int centred = any && opt.centred;
    for (size_t n = job->row_begin; n < job->row_end; n += NORM_BATCH) {
        int count = job->row_end - n < NORM_BATCH ? (int)(job->row_end - n) : NORM_BATCH;
        vd8 t[NORM_BATCH], tt[NORM_BATCH];
        double total_t[NORM_BATCH] = {0}, total_tt[NORM_BATCH];
        norm_scalars s;
        for (int i = 0; i < count; i++) {
            vd lanes_t[NORM_LANE_REGISTERS], lanes_tt[NORM_LANE_REGISTERS];
            clear_lanes(lanes_t, lanes_tt, any);
            sum_block(lanes_t, lanes_tt, &opt, row_at(job, n + (size_t)i, NORM_D), 0, opt.dim, NORM_D, any);
            tt[i] = fold_lanes(lanes_tt);
            if (any)
                t[i] = fold_lanes(lanes_t);
        }
        if (count == 1) {
            total_tt[0] = vd8_sum(&tt[0]);
            if (centred)
                total_t[0] = vd8_sum(&t[0]);
            row_scalars(&s, job, total_t[0], total_tt[0]);
        } else {
            for (int i = count; i < NORM_BATCH; i++) {
                tt[i] = tt[0];
                if (any)
                    t[i] = t[0];
            }
            vd8_sum_rows(tt, total_tt);
            if (centred)
                vd8_sum_rows(t, total_t);
            batch_scalars(&s, job, total_t, total_tt);
        }
        for (int i = 0; i < count; i++) {
            size_t at = n + (size_t)i;
            if (s.doubt[i] != 0) {
                careful_row(job, at, total_t[i], total_tt[i], NORM_D);
                continue;
            }
            const norm_factors f = factors_of(&s, i);
            store_statistics(job, &s, i, at);
            apply_range(&opt, row_at(job, at, NORM_D), &f, 0, opt.dim, NORM_D, centred, 0, 0);
        }
    }
}

static __attribute__((noinline)) void NORM_(short_rows_any)(const nrg_norm_job *job, const norm_options *opt)
{
    NORM_(short_rows)(job, opt, 1);
}

#if NORM_HAS_RMS
static __attribute__((noinline)) void NORM_(short_rows_rms)(const nrg_norm_job *job, const norm_options *opt)
{
    NORM_(short_rows)(job, opt, 0);
}
#endif

/* Longer rows: one loop applies a row while it sums the next, piece by piece, so that the memory never waits for arithmetic nor a
 * row's tail for its statistics. Measured in docs/speed.md, with what did not help: several places of the tensor in turn. */
static __attribute__((noinline)) void NORM_(long_rows)(const nrg_norm_job *job, const norm_options *opt)
{
    norm_sums sums;
    norm_scalars s;
    norm_row row = row_at(job, job->row_begin, NORM_D);
    NORM_(sum)(&sums, opt, &row, 0, opt->dim);
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        const int last = n + 1 == job->row_end;
        norm_row next = row_at(job, last ? n : n + 1, NORM_D);
        row_scalars(&s, job, sums.total_t, sums.total_tt);
        if (s.doubt[0] != 0) {
            careful_row(job, n, sums.total_t, sums.total_tt, NORM_D);
            if (!last)
                NORM_(sum)(&sums, opt, &next, 0, opt->dim);
        } else {
            store_statistics(job, &s, 0, n);
            for (size_t begin = 0, end; begin < opt->dim; begin = end) {
                end = last ? opt->dim : piece_end(begin, opt->dim);
                if (!last)
                    NORM_(sum)(&sums, opt, &next, begin, end);
                NORM_(apply)(opt, &row, &s, begin, end);
            }
        }
        row = next;
    }
}

#include "norm_gated.h"

/* One instance a dtype, options tested as it runs: in a prototype, 120 instances specialised by option were 15 times as large and
 * 3 % faster. */
static void NORM_(norm_forward)(const nrg_norm_job *job)
{
    norm_options opt = options_of(job, NORM_D);
    if (job->gate != NRG_GATE_NONE || job->activation != NRG_ACT_IDENTITY)
        NORM_(gated_rows)(job, &opt);
    else
#if NORM_HAS_RMS
        if (opt.dim <= NORM_BLOCK && !opt.centred)
        NORM_(short_rows_rms)(job, &opt);
    else
#endif
        if (opt.dim <= NORM_BLOCK)
        NORM_(short_rows_any)(job, &opt);
    else
        NORM_(long_rows)(job, &opt);
    if (opt.stream_r || opt.stream_o)
        v_nt_fence();
}

#undef NORM_PASTE_
#undef NORM_PASTE
#undef NORM_
#undef NORM_DTYPE
#undef NORM_D
#undef NORM_HAS_RMS
