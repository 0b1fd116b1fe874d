/* The rows of a job, for one dtype: norm.h includes this file once for each, with NORM_DTYPE (f32) and NORM_D (NRG_F32).
 *
 * SPDX-License-Identifier: MIT */

#define NORM_PASTE_(name, dtype) name##_##dtype
#define NORM_PASTE(name, dtype) NORM_PASTE_(name, dtype)
#define NORM_(name) NORM_PASTE(name, NORM_DTYPE)

/* The two loops as functions, since they are called from several places: inlined everywhere they took 15 times the space. */
static __attribute__((noinline)) void NORM_(sum_rms)(norm_sums *sums, const norm_options *options, norm_row row, size_t begin,
                                                     size_t end)
{
    const norm_options opt = *options;
    const norm_pass first = {0, opt.sum_from, v_zero(), v_zero()};
    sum_range(sums, &opt, row, first, begin, end, NORM_D, 0);
}

static __attribute__((noinline)) void NORM_(sum_centred)(norm_sums *sums, const norm_options *options, norm_row row, size_t begin,
                                                         size_t end)
{
    const norm_options opt = *options;
    const norm_pass first = {0, opt.sum_from, v_zero(), v_zero()};
    sum_range(sums, &opt, row, first, begin, end, NORM_D, 1);
}

static __attribute__((noinline)) void NORM_(apply)(const norm_options *options, norm_row row, const norm_factors *factors,
                                                   size_t begin, size_t end)
{
    const norm_options opt = *options;
    apply_range(&opt, row, *factors, begin, end, NORM_D, opt.centred, 0);
}

NRG_INLINE void NORM_(sum)(norm_sums *sums, const norm_options *opt, norm_row row, size_t begin, size_t end)
{
    if (begin == 0)
        sums_begin(sums);
    if (opt->centred)
        NORM_(sum_centred)(sums, opt, row, begin, end);
    else
        NORM_(sum_rms)(sums, opt, row, begin, end);
}

/* Rows of one block: the sums of up to eight rows first, then their scalars side by side, then the elements, still in L1. */
static void NORM_(short_rows)(const nrg_norm_job *job, const norm_options *opt)
{
    for (size_t n = job->row_begin; n < job->row_end; n += NORM_BATCH) {
        int count = job->row_end - n < NORM_BATCH ? (int)(job->row_end - n) : NORM_BATCH;
        double t[NORM_BATCH] = {0}, tt[NORM_BATCH] = {0};
        norm_scalars s;
        norm_sums sums;
        for (int i = 0; i < count; i++) {
            NORM_(sum)(&sums, opt, row_at(job, n + (size_t)i), 0, opt->dim);
            t[i] = sums.total_t;
            tt[i] = sums.total_tt;
        }
        row_scalars(&s, job, t, tt, NORM_BATCH);
        for (int i = 0; i < count; i++) {
            size_t at = n + (size_t)i;
            if (s.doubt[i] != 0) {
                careful_row(job, at, s.mean[i], NORM_D);
                continue;
            }
            norm_factors f = factors_of(&s, i);
            store_statistics(job, &s, i, at);
            NORM_(apply)(opt, row_at(job, at), &f, 0, opt->dim);
        }
    }
}

/* Longer rows: one loop applies a row while it sums the next, piece by piece, so that the memory never waits for arithmetic nor a
 * row's tail for its statistics (worth 1.1 to 1.4 × out of cache; docs/speed.md). */
static void NORM_(long_rows)(const nrg_norm_job *job, const norm_options *opt)
{
    norm_sums sums;
    norm_scalars s;
    NORM_(sum)(&sums, opt, row_at(job, job->row_begin), 0, opt->dim);
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        row_scalars(&s, job, &sums.total_t, &sums.total_tt, 1);
        int last = n + 1 == job->row_end;
        norm_row row = row_at(job, n), next = row_at(job, last ? n : n + 1);
        if (s.doubt[0] != 0) {
            careful_row(job, n, s.mean[0], NORM_D);
            if (!last)
                NORM_(sum)(&sums, opt, next, 0, opt->dim);
            continue;
        }
        norm_factors f = factors_of(&s, 0);
        store_statistics(job, &s, 0, n);
        for (size_t begin = 0, end; begin < opt->dim; begin = end) {
            end = last ? opt->dim : piece_end(begin, opt->dim);
            if (!last)
                NORM_(sum)(&sums, opt, next, begin, end);
            NORM_(apply)(opt, row, &f, begin, end);
        }
    }
}

/* One instance a dtype, options tested as it runs: 120 instances specialised by option were 15 times as large and no faster. */
static void NORM_(norm_forward)(const nrg_norm_job *job)
{
    norm_options opt = options_of(job);
    if (opt.dim <= NORM_BLOCK)
        NORM_(short_rows)(job, &opt);
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
