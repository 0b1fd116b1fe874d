/* A row's sums, part by part, and from them the few factors that its elements are multiplied with.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_FACTORS_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_FACTORS_H

#include "norm_backward_parts.h"
#include "norm_scalars.h"

/* Whatever of a row is being summed, in one place: stacks are small. */
typedef union backward_row_sums {
    norm_sums statistics;
    struct {
        norm_sums mean; /* the fast grade's */
        fast_lanes kept;
    };
    backward_sums gradient;
    fallback_sums fallback;
} backward_row_sums;

/* ---- statistics, where they were not saved: as in the forward pass ---- */

typedef struct backward_statistics {
    double pilot, shift; /* the mean, in two parts */
    double variance;
    double inverse; /* 1/s; 0 where s is 0, NaN for a poisoned row */
} backward_statistics;

static __attribute__((noinline)) void statistics_part(const backward *b, norm_sums *sums, const backward_row *row, size_t begin,
                                                      size_t end)
{
    const int centred = b->job->formula.centred;
    const norm_options opt = {.dim = b->job->dim, .how = (b->job->stream ? NORM_PREFETCH : 0) | (centred ? NORM_CENTRED : 0)};
    for (size_t next; begin < end; begin = next) {
        next = b->D == NRG_F32 && b->sum_chunk != BACKWARD_SUM_CHUNK ? end : staged_end(b, begin);
        const float *p = input_floats(b, row, begin, next - begin);
        const norm_row at = {.x = (const char *)((uintptr_t)p - begin * sizeof *p)}; /* element 0, were it there */
        norm_part part = {.opt = &opt, .row = &at, .count = 1, .begin = begin, .end = next};
        vd8 t, tt;
        part.fold = can_fold(&part);
        memset(&t, 0, sizeof t);
        memset(&tt, 0, sizeof tt);
        if (centred)
            sum_rows(&sums->lanes, &t, &tt, &part, NORM_PREFETCH, NRG_F32, 1);
        else
            sum_rows(&sums->lanes, &t, &tt, &part, NORM_PREFETCH, NRG_F32, 0);
        if (!ends_segment(&part))
            continue;
        if (!part.fold)
            finish_lanes(&sums->lanes, &t, &tt, &part, NRG_F32);
        add_row_segment(sums, &t, &tt, &part);
    }
}

NRG_INLINE void mean_segment(norm_sums *sums, const vf *t, const vf *tt, const norm_part *part)
{
    const int one = part->opt->dim <= FAST_BLOCK;
    const vd8 sum_t = one ? fast_widen(t, NULL) : fast_widen(sums->blocks.t, sums->blocks.t_lost);
    const vd8 sum_tt = one ? fast_widen(tt, NULL) : fast_widen(sums->blocks.tt, sums->blocks.tt_lost);
    add_row_segment(sums, &sum_t, &sum_tt, part);
}

/* The same sums in the fast grade, for the mean: of 16-bit rows as they are in memory, begin a multiple of a block. */
NRG_INLINE void mean_raw_part(const backward *b, norm_sums *sums, const backward_row *row, size_t begin, size_t end, nrg_dtype D)
{
    const norm_options opt = {.dim = b->job->dim, .how = NORM_CENTRED, .fast = 1};
    const norm_row at = {.x = row->x};
    const norm_part part = {.opt = &opt, .row = &at, .count = 1, .begin = begin, .end = end};
    vf t[FAST_VECTORS], tt[FAST_VECTORS];
    if (begin == 0)
        sums->pilot = fast_pilot(&at, 0, 0, opt.dim, D);
    fast_row(t, tt, &sums->blocks, NULL, &part, 0, sums->pilot, 0, D, 1, 0);
    if (ends_segment(&part))
        mean_segment(sums, t, tt, &part);
}

static __attribute__((noinline)) void mean_half_part(const backward *b, norm_sums *sums, const backward_row *row, size_t begin,
                                                     size_t end)
{
    if (b->D == NRG_F16)
        mean_raw_part(b, sums, row, begin, end, NRG_F16);
    else
        mean_raw_part(b, sums, row, begin, end, NRG_BF16);
}

/* The same of any rows, staged where that has to be. */
static __attribute__((noinline)) void mean_part(const backward *b, backward_row_sums *s, const backward_row *row, size_t begin,
                                                size_t end)
{
    const norm_options opt = {.dim = b->job->dim, .how = NORM_CENTRED, .fast = 1};
    for (size_t next; begin < end; begin = next) {
        next = b->D == NRG_F32 && b->sum_chunk != BACKWARD_SUM_CHUNK ? end : staged_end(b, begin);
        const float *p = input_floats(b, row, begin, next - begin);
        const norm_row at = {.x = (const char *)((uintptr_t)p - begin * sizeof *p)};
        const norm_part part = {.opt = &opt, .row = &at, .count = 1, .begin = begin, .end = next};
        vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
        if (begin == 0)
            s->mean.pilot = fast_pilot(&at, 0, 0, opt.dim, NRG_F32);
        fast_row(lanes_t, lanes_tt, &s->mean.blocks, &s->kept, &part, 0, s->mean.pilot, 0, NRG_F32, 1, 1);
        if (!ends_segment(&part))
            continue;
        mean_segment(&s->mean, lanes_t, lanes_tt, &part);
    }
}

static void sum_around(const backward *b, fallback_sums *sums, const backward_row *row, double pilot, const backward_factors *f,
                       int with_d)
{
    for (size_t begin = 0, end; begin < b->job->dim; begin = end) {
        end = staged_end(b, begin);
        const backward_chunk c = sum_floats(b, row, begin, end - begin, f, with_d);
        backward_sum_around(sums, &c, pilot, begin, end, b->job->dim);
    }
}

/* From Σp and Σp² in sums, which are overwritten. */
static __attribute__((noinline)) backward_statistics row_statistics(const backward *b, const backward_row *row,
                                                                    backward_row_sums *sums)
{
    const nrg_norm_formula *f = &b->job->formula;
    const double t = value_of(&sums->statistics.t), tt = value_of(&sums->statistics.tt);
    backward_statistics stat = {0, 0, tt * f->inv_dim, 0};
    if (!(stat.variance <= DBL_MAX))
        stat.pilot = stat.variance = (double)NAN; /* finite floats cannot overflow the sum */
    else if (f->centred) {
        stat.pilot = t / f->d;
        stat.variance -= stat.pilot * stat.pilot;
        if (!variance_is_sound(stat.pilot, stat.variance)) {
            sum_around(b, &sums->fallback, row, stat.pilot, NULL, 0);
            stat.shift = value_of(&sums->fallback.total_t) / f->d;
            stat.variance = value_of(&sums->fallback.total_tt) * f->inv_dim - stat.shift * stat.shift;
            if (!(stat.variance > 0))
                stat.variance = 0;
        }
    }
    stat.inverse = isnan(stat.variance) ? (double)NAN : inverse_divisor(f->divisor, f->eps, stat.variance);
    return stat;
}

static __attribute__((noinline)) backward_statistics exact_statistics(const backward *b, const backward_row *row,
                                                                      backward_row_sums *sums)
{
    for (size_t begin = 0, end; begin < b->job->dim; begin = end) {
        end = staged_end(b, begin);
        statistics_part(b, &sums->statistics, row, begin, end);
    }
    return row_statistics(b, row, sums);
}

/* The mean as the forward pass of this accuracy stores it, from the row's sums. */
static __attribute__((noinline)) float row_mean(const backward *b, const backward_row *row, backward_row_sums *sums)
{
    const nrg_norm_formula *f = &b->job->formula;
    backward_statistics stat;
    if (nrg_norm_is_exact(f, b->D))
        stat = row_statistics(b, row, sums);
    else {
        const double offset = value_of(&sums->mean.t) * f->inv_dim;
        const double square = value_of(&sums->mean.tt) * f->inv_dim, variance = square - offset * offset;
        const double inverse = isnan(variance) ? (double)NAN : inverse_divisor(f->divisor, f->eps, variance);
        if (fast_sums_serve(square, offset, variance, inverse, f->k * inverse))
            return (float)((double)sums->mean.pilot + offset);
        stat = exact_statistics(b, row, sums);
    }
    return (float)(stat.pilot + stat.shift);
}

/* ---- factors ---- */

NRG_INLINE int in_floats(double value) { return fabs(value) <= (double)FLT_MAX; }

NRG_INLINE void ask_for(const char *tensor, size_t begin, size_t n, size_t size)
{
    if (tensor)
        for (size_t at = 0; at < n * size; at += 64)
            __builtin_prefetch((const void *)((uintptr_t)tensor + begin * size + at));
}

/* What the next chunk stages: the loops over a chunk that is staged already have nothing to ask for. */
static __attribute__((noinline)) void ask_for_chunk(const backward *b, const backward_row *row, size_t begin)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t size = bytes_of(1, b->D, 0);
    ask_for(row->d_o, begin, b->sum_chunk, size);
    ask_for(row->z, begin, b->sum_chunk, size);
    ask_for(row->x, begin, b->sum_chunk, bytes_of(1, b->D, job->x_f32));
    ask_for(row->y, begin, b->sum_chunk, bytes_of(1, b->D, job->y_f32));
}

static __attribute__((noinline)) void sum_part(const backward *b, backward_sums *sums, const backward_row *row, size_t begin,
                                               size_t end, const backward_factors *f, int with_d)
{
    if (b->job->stream && b->sum_chunk == BACKWARD_SUM_CHUNK)
        ask_for_chunk(b, row, end);
    backward_chunk c;
    if (b->raw) {
        c.w = weight_floats(b->job, row, b->D, begin, end - begin, b->scratch);
        if (!c.w) {
            fill_floats(b->scratch, 1, end - begin);
            c.w = b->scratch;
        }
        c.d = row->d_o + bytes_of(begin, b->D, 0);
        c.p = row->x + bytes_of(begin, b->D, 0);
    } else
        c = sum_floats(b, row, begin, end - begin, f, with_d);
    backward_sum(sums, &c, f->plain.mean, begin, end, b->job->dim, b->job->formula.centred, b->job->stream,
                 b->raw ? b->D : NRG_F32);
}

/* What the sums of q say of a row. */
typedef struct backward_spread {
    double shift, variance, inverse;
} backward_spread;

/* The factors of h. Returns 0 where floats do not serve. */
NRG_INLINE int spread_factors(const nrg_norm_formula *formula, backward_plain *f, backward_spread *s, double total_q,
                              double total_qq)
{
    s->shift = formula->centred ? total_q / formula->d : 0;
    s->variance = total_qq * formula->inv_dim - s->shift * s->shift;
    if (s->variance < 0)
        s->variance = 0;
    s->inverse = isnan(s->variance) ? (double)NAN : inverse_divisor(formula->divisor, formula->eps, s->variance);
    f->rstd = (float)s->inverse;
    f->left = (float)(s->shift * s->inverse);
    return s->inverse >= 0x1p-40 && s->inverse <= 0x1p40 && (total_qq == 0 || total_qq * formula->inv_dim >= 0x1p-80);
}

/* The factors of dp, likewise. */
NRG_INLINE int slope_factors(const nrg_norm_formula *formula, backward_plain *f, const backward_spread *s, double total_d,
                             double total_dq)
{
    const double shift = s->shift, inverse = s->inverse, sigma = __builtin_sqrt(s->variance);
    double slope = 1;
    if (formula->divisor == NRG_DIV_SIGMA)
        slope = sigma > 0 ? 1 / (sigma * inverse) : 0;
    if (formula->divisor == NRG_DIV_MAX)
        slope = sigma > formula->eps ? 1 : 0;
    const double cross = (formula->centred ? total_dq - shift * total_d : total_dq) * inverse * formula->inv_dim;
    double a_ = formula->k * inverse, b_ = a_ * (cross * slope) * inverse;
    double c_ = formula->centred ? fma(shift, b_, -(a_ * (total_d / formula->d))) : -0.0;
    if (NRG_RARELY(nrg_norm_has_no_gradient(formula, sigma)))
        a_ = b_ = c_ = 0;
    f->a = (float)a_;
    f->b = (float)b_;
    f->c = (float)c_;
    return in_floats(a_) && in_floats(c_) && (a_ == 0 || fabs(a_) >= 0x1p-100) &&
           (b_ == 0 || (fabs(b_) >= 0x1p-100 && fabs(b_) <= 0x1p100));
}

/* The factors of a row whose sums are done. Returns 0 where floats do not serve. */
static __attribute__((noinline)) int plain_factors(const backward *b, backward_factors *f, const backward_row *row,
                                                   backward_sums *s)
{
    const nrg_norm_formula *formula = &b->job->formula;
    const int centred = formula->centred;
    backward_spread spread;
    if (!spread_factors(formula, &f->plain, &spread, centred ? value_of(&s->total_q) : 0, value_of(&s->total_qq)))
        return 0;
    if (b->on_output)
        for (size_t begin = 0, end; begin < b->job->dim; begin = end) {
            end = sum_end(b, begin);
            sum_part(b, s, row, begin, end, f, 1);
        }
    return slope_factors(formula, &f->plain, &spread, centred ? value_of(&s->total_d) : 0, value_of(&s->total_dq));
}

/* The factors of a row in double, from statistics of its own. */
static __attribute__((noinline)) void fallback_factors(const backward *b, backward_factors *f, const backward_row *row,
                                                       backward_row_sums *sums)
{
    const nrg_norm_formula *formula = &b->job->formula;
    const backward_statistics stat = exact_statistics(b, row, sums);
    f->fallback = 1;
    f->pilot = stat.pilot;
    f->shift = stat.shift;
    f->inverse = stat.inverse;
    sum_around(b, &sums->fallback, row, stat.pilot, f, 1);
    /* a/s of the header's formula */
    double over = stat.inverse, sigma = __builtin_sqrt(stat.variance), cross = value_of(&sums->fallback.total_dt);
    if (formula->divisor == NRG_DIV_SIGMA)
        over = sigma > 0 ? 1 / sigma : 0;
    if (formula->divisor == NRG_DIV_MAX && sigma <= formula->eps)
        over = 0;
    if (formula->centred)
        cross -= f->shift * value_of(&sums->fallback.total_d);
    f->fallback_a = formula->k * f->inverse;
    f->fallback_b = f->fallback_a * (cross * formula->inv_dim * over);
    f->fallback_c = formula->centred ? -(f->fallback_a * (value_of(&sums->fallback.total_d) / formula->d)) : -0.0;
    if (nrg_norm_has_no_gradient(formula, sigma))
        f->fallback_a = f->fallback_b = f->fallback_c = 0;
}

#endif
