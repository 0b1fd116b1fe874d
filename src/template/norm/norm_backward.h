/* Row normalization, backward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/norm_backward.c.
 *
 * Two walks over a row, or three: its mean where it was not saved (norm_sum.h), the sums of its gradient
 * (norm_backward_sum.h), from which its few factors follow, then its elements (norm_backward_element.h). Rows go in batches of
 * four, which share one addition to the column sums. As in the forward pass, one loop walks the elements of a batch while it sums
 * the next, so that the memory is never idle.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_H

#include "norm_backward_element.h"
#include "norm_backward_stage.h"
#include "norm_scalars.h"

enum {
    BACKWARD_SUM_CHUNK = 256,        /* elements of a row that are staged and summed at once */
    BACKWARD_ELEMENT_CHUNK = 128,    /* columns of a batch: whole steps of the activations, whose ends are slow */
    BACKWARD_WHOLE_SUM_CHUNK = 4096, /* the same where nothing is staged */
    BACKWARD_WHOLE_ELEMENT_CHUNK = 4096,
    BACKWARD_RAW_CHUNK = 1024, /* where only the weights are */
    BACKWARD_SCRATCH = 1536    /* floats: four chunks of the one, ten of the other; with clang a call takes 15 KB of stack */
};

typedef struct backward {
    const nrg_norm_backward_job *job;
    nrg_dtype D;
    int gated;     /* a gate, or an activation on the output */
    int on_output; /* the latter */
    int raw;       /* 16-bit rows without gates and residuals: the loops read and write them as they are */
    int direct;    /* dp is dx, as it is */
    int stream_dx, stream_dy, stream_dz;
    size_t sum_chunk, element_chunk; /* elements at once: what the scratch holds, or more where nothing is staged */
    float *scratch;                  /* BACKWARD_SCRATCH */
} backward;

/* Some rows of one group. */
typedef struct backward_batch {
    size_t n, group;
    int rows;
    backward_row row[NRG_ROW_BATCH];
    backward_factors f[NRG_ROW_BATCH];
} backward_batch;

/* ---- chunks for the sums ---- */

/* Where a chunk that begins at `begin` ends. */
NRG_INLINE size_t sum_end(const backward *b, size_t begin)
{
    return b->job->dim - begin > b->sum_chunk ? begin + b->sum_chunk : b->job->dim;
}

/* The same for what is staged in any case. */
NRG_INLINE size_t staged_end(const backward *b, size_t begin)
{
    return b->job->dim - begin > BACKWARD_SUM_CHUNK ? begin + BACKWARD_SUM_CHUNK : b->job->dim;
}

/* p of a chunk of at most BACKWARD_SUM_CHUNK; the first three quarters of the scratch may be used, and p may be in the second. */
NRG_INLINE const float *input_floats(const backward *b, const backward_row *row, size_t begin, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    float *s1 = b->scratch + BACKWARD_SUM_CHUNK, *s2 = s1 + BACKWARD_SUM_CHUNK;
    const float *p = residual_floats(job, row, b->D, begin, n, s1, s2);
    if (job->gate != NRG_GATE_PRE)
        return p;
    NRG_PATH_NAME(activate)(job->activation, as_floats(row->z, b->D, 0, begin, n, s2), s2, n);
    multiply_floats(s1, p, s2, n);
    return s1;
}

/* p and do1. f: the row's factors, where do1 needs h; with_d: 0 where do1 is of no interest. */
NRG_INLINE backward_chunk sum_floats(const backward *b, const backward_row *row, size_t begin, size_t n,
                                     const backward_factors *f, int with_d)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    float *s0 = b->scratch, *s2 = s0 + 2 * BACKWARD_SUM_CHUNK, *s3 = s2 + BACKWARD_SUM_CHUNK;
    backward_chunk c = {.w = weight_floats(job, row, D, begin, n, s3)};
    const float *p = input_floats(b, row, begin, n), *d;
    c.p = (const char *)p;
    if (!with_d) {
        c.d = c.p;
        return c;
    }
    if (b->on_output) {
        const float *bias = row->b ? as_floats(row->b, D, job->w_f32, begin, n, s0) : NULL;
        backward_normalized(s2, p, f, n);
        backward_outputs(s2, s2, c.w, bias, job->formula.k, n);
        NRG_PATH_NAME(activate_both)(job->activation, s2, s2, s0, n);
        multiply_floats(s0, as_floats(row->d_o, D, 0, begin, n, s2), s0, n);
        c.d = (const char *)s0;
        return c;
    }
    d = as_floats(row->d_o, D, 0, begin, n, s0);
    if (job->gate == NRG_GATE_POST) {
        NRG_PATH_NAME(activate)(job->activation, as_floats(row->z, D, 0, begin, n, s2), s2, n);
        multiply_floats(s0, d, s2, n);
        d = s0;
    }
    c.d = (const char *)d;
    return c;
}

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

/* The same sums in the fast grade, for the mean. */
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
        const int one = opt.dim <= FAST_BLOCK;
        const vd8 t = one ? fast_widen(lanes_t, NULL) : fast_widen(s->mean.blocks.t, s->mean.blocks.t_lost);
        const vd8 tt = one ? fast_widen(lanes_tt, NULL) : fast_widen(s->mean.blocks.tt, s->mean.blocks.tt_lost);
        add_row_segment(&s->mean, &t, &tt, &part);
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
    backward_sum(sums, &c, f->mean, begin, end, b->job->dim, b->job->formula.centred, b->job->stream, b->raw ? b->D : NRG_F32);
}

/* The factors of a row whose sums are done. Returns 0 where floats do not serve. */
static __attribute__((noinline)) int plain_factors(const backward *b, backward_factors *f, const backward_row *row,
                                                   backward_sums *s)
{
    const nrg_norm_formula *formula = &b->job->formula;
    const double total_q = formula->centred ? value_of(&s->total_q) : 0, total_qq = value_of(&s->total_qq);
    const double shift = formula->centred ? total_q / formula->d : 0;
    double variance = total_qq * formula->inv_dim - shift * shift, slope = 1;
    if (variance < 0)
        variance = 0;
    const double inverse = isnan(variance) ? (double)NAN : inverse_divisor(formula->divisor, formula->eps, variance);
    const double sigma = __builtin_sqrt(variance);
    if (!(inverse >= 0x1p-40 && inverse <= 0x1p40 && (total_qq == 0 || total_qq * formula->inv_dim >= 0x1p-80)))
        return 0;
    f->rstd = (float)inverse;
    f->left = (float)(shift * inverse);
    if (b->on_output)
        for (size_t begin = 0, end; begin < b->job->dim; begin = end) {
            end = sum_end(b, begin);
            sum_part(b, s, row, begin, end, f, 1);
        }
    const double total_d = formula->centred ? value_of(&s->total_d) : 0, total_dq = value_of(&s->total_dq);
    if (formula->divisor == NRG_DIV_SIGMA)
        slope = sigma > 0 ? 1 / (sigma * inverse) : 0;
    if (formula->divisor == NRG_DIV_MAX)
        slope = sigma > formula->eps ? 1 : 0;
    const double cross = (formula->centred ? total_dq - shift * total_d : total_dq) * inverse * formula->inv_dim;
    const double a_ = formula->k * inverse, b_ = a_ * (cross * slope) * inverse;
    const double c_ = formula->centred ? __builtin_fma(shift, b_, -(a_ * (total_d / formula->d))) : -0.0;
    f->a = (float)a_;
    f->b = (float)b_;
    f->c = (float)c_;
    return in_floats(a_) && in_floats(c_) && (a_ == 0 || fabs(a_) >= 0x1p-100) &&
           (b_ == 0 || (fabs(b_) >= 0x1p-100 && fabs(b_) <= 0x1p100));
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
}

/* ---- the walk over the rows of a batch that ends with their factors ---- */

typedef struct backward_walk {
    backward_batch *batch;
    int row;
    int summing; /* 0: statistics */
    size_t begin;
    backward_row_sums sums;
} backward_walk;

/* The mean of a centred norm takes a walk of its own, where it was not saved. */
NRG_INLINE int walks_of(const backward *b) { return b->job->formula.centred && !b->job->mean ? 2 : 1; }

static void start_row(const backward *b, backward_walk *walk)
{
    walk->begin = 0;
    walk->summing = walks_of(b) == 1;
    if (walk->row == walk->batch->rows)
        return;
    const size_t at = (walk->batch->n + (size_t)walk->row) * b->job->groups + walk->batch->group;
    backward_factors *f = &walk->batch->f[walk->row];
    memset(f, 0, sizeof *f);
    f->mean = b->job->mean ? b->job->mean[at] : 0;
}

static void start_batch(const backward *b, backward_walk *walk, backward_batch *batch)
{
    walk->batch = batch;
    walk->row = 0;
    start_row(b, walk);
}

/* One chunk of one row. */
static void walk_on(const backward *b, backward_walk *walk)
{
    const size_t dim = b->job->dim, end = sum_end(b, walk->begin);
    const backward_row *row = &walk->batch->row[walk->row];
    backward_factors *f = &walk->batch->f[walk->row];
    if (!walk->summing) {
        if (nrg_norm_is_exact(&b->job->formula, b->D))
            statistics_part(b, &walk->sums.statistics, row, walk->begin, end);
        else
            mean_part(b, &walk->sums, row, walk->begin, end);
        walk->begin = end;
        if (end < dim)
            return;
        f->mean = row_mean(b, row, &walk->sums);
        walk->begin = 0;
        walk->summing = 1;
        return;
    }
    sum_part(b, &walk->sums.gradient, row, walk->begin, end, f, !b->on_output);
    walk->begin = end;
    if (end < dim)
        return;
    if (!plain_factors(b, f, row, &walk->sums.gradient))
        fallback_factors(b, f, row, &walk->sums);
    walk->row++;
    start_row(b, walk);
}

/* ---- elements ---- */

/* dp of a chunk of a row, in `dp`, to dx and dy; more: an array to use. */
static __attribute__((noinline)) void finish(const backward *b, const backward_row *row, float *dp, float *more, size_t begin,
                                             size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype y_D = job->y_f32 ? NRG_F32 : b->D;
    if (job->after && row->dy) /* before dx, which may lie over d_o */
        store_floats(as_floats(row->d_o, b->D, 0, begin, n, more), row->dy, begin, n, y_D, b->stream_dy);
    if (row->dr_in)
        add_floats(dp, dp, as_floats(row->dr_in, b->D, job->r_f32, begin, n, more), n, NRG_F32);
    if (row->dx)
        store_floats(dp, row->dx, begin, n, b->D, b->stream_dx);
    if (!job->after && row->dy)
        store_floats(dp, row->dy, begin, n, y_D, b->stream_dy);
}

NRG_INLINE void column_sums(backward_rows *rows, const backward *b, const backward_batch *batch, size_t begin)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t at = (batch->n / job->block_rows * job->groups + batch->group) * job->dim + begin;
    rows->dw = job->dw ? job->dw + at : NULL;
    rows->db = job->db ? job->db + at : NULL;
    rows->fresh = batch->n % job->block_rows == 0;
}

/* n columns of a whole batch of plain rows without gates. */
static void batch_chunk(const backward *b, const backward_batch *batch, size_t begin, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    enum { C = BACKWARD_ELEMENT_CHUNK };
    float *weights = b->raw ? b->scratch : b->scratch + 2 * NRG_ROW_BATCH * C, *more = weights + C;
    backward_rows rows = {.stream = b->direct && b->stream_dx, .dr_f32 = job->r_f32};
    rows.w = weight_floats(job, &batch->row[0], D, begin, n, weights);
    column_sums(&rows, b, batch, begin);
    for (int k = 0; k < NRG_ROW_BATCH; k++) {
        const backward_row *row = &batch->row[k];
        float *d = b->scratch + k * C, *p = d + NRG_ROW_BATCH * C;
        rows.f[k] = &batch->f[k];
        rows.d[k] = b->raw ? row->d_o + bytes_of(begin, D, 0) : (const char *)as_floats(row->d_o, D, 0, begin, n, d);
        rows.p[k] = b->raw ? row->x + bytes_of(begin, D, 0) : (const char *)residual_floats(job, row, D, begin, n, p, more);
        rows.dp[k] = b->direct ? row->dx + bytes_of(begin, D, 0) : (char *)d;
        rows.dr_in[k] = b->direct && row->dr_in ? row->dr_in + bytes_of(begin, D, job->r_f32) : NULL;
    }
    backward_batch_elements(&rows, n, job->formula.centred, b->raw ? D : NRG_F32);
    if (!b->direct)
        for (int k = 0; k < NRG_ROW_BATCH; k++)
            finish(b, &batch->row[k], b->scratch + k * C, more, begin, n);
}

/* n columns of row k of any batch. */
static void row_chunk(const backward *b, const backward_batch *batch, int k, size_t begin, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    const backward_row *row = &batch->row[k];
    const backward_factors *f = &batch->f[k];
    enum { C = BACKWARD_ELEMENT_CHUNK };
    float *d = b->scratch, *p = d + C, *gate = p + C, *slope = gate + C, *residual = slope + C, *h = residual + C;
    float *o1 = h + C, *dz = o1, *partial_w = o1 + C, *partial_b = partial_w + C, *weights = partial_b + C;
    /* arrays that serve twice: b is needed where p is r, and the slope no more when the rest is done */
    float *const bias_copy = p, *const more = slope;
    const float *bias = row->b ? as_floats(row->b, D, job->w_f32, begin, n, bias_copy) : NULL;
    backward_rows rows = {.f = {f}, .dp = {(char *)d}, .first = k == 0};
    rows.w = weight_floats(job, row, D, begin, n, weights);
    column_sums(&rows, b, batch, begin);
    rows.partial_w = rows.dw ? partial_w : NULL;
    rows.partial_b = rows.db ? partial_b : NULL;
    const float *input = residual_floats(job, row, D, begin, n, residual, h);
    const float *d_o = as_floats(row->d_o, D, 0, begin, n, d);
    if (job->gate != NRG_GATE_NONE)
        NRG_PATH_NAME(activate_both)(job->activation, as_floats(row->z, D, 0, begin, n, gate), gate, slope, n);
    if (job->gate == NRG_GATE_PRE) {
        rows.r = input;
        multiply_floats(p, input, gate, n);
        input = p;
        rows.slope = slope;
        rows.dz = row->dz ? dz : NULL;
    }
    backward_normalized(h, input, f, n);
    if (b->on_output) {
        backward_outputs(o1, h, rows.w, bias, job->formula.k, n);
        NRG_PATH_NAME(activate_both)(job->activation, o1, o1, slope, n);
        multiply_floats(d, d_o, slope, n);
        d_o = d;
    }
    if (job->gate == NRG_GATE_POST) {
        if (row->dz) {
            backward_outputs(o1, h, rows.w, bias, job->formula.k, n);
            multiply_three(o1, d_o, o1, slope, n);
            store_floats(o1, row->dz, begin, n, D, b->stream_dz);
        }
        multiply_floats(d, d_o, gate, n);
        d_o = d;
    }
    rows.d[0] = (const char *)d_o;
    rows.p[0] = (const char *)input;
    backward_row_elements(&rows, h, n);
    if (job->gate == NRG_GATE_PRE) {
        multiply_floats(d, d, gate, n);
        if (row->dz)
            store_floats(dz, row->dz, begin, n, D, b->stream_dz);
    }
    finish(b, row, d, more, begin, n);
    if (k + 1 < batch->rows)
        return;
    if (rows.dw)
        backward_add_partial(rows.dw, partial_w, n, rows.fresh);
    if (rows.db)
        backward_add_partial(rows.db, partial_b, n, rows.fresh);
}

static void row_chunks(const backward *b, const backward_batch *batch, size_t begin, size_t end)
{
    for (size_t next; begin < end; begin = next) {
        next = end - begin > BACKWARD_ELEMENT_CHUNK ? begin + BACKWARD_ELEMENT_CHUNK : end;
        for (int k = 0; k < batch->rows; k++)
            row_chunk(b, batch, k, begin, next - begin);
    }
}

NRG_INLINE int is_plain(const backward *b, const backward_batch *batch)
{
    int fallback = 0;
    for (int k = 0; k < batch->rows; k++)
        fallback |= batch->f[k].fallback;
    return !b->gated && !fallback && batch->rows == NRG_ROW_BATCH;
}

/* ---- rows ---- */

/* The rows of a batch, which may be in several planes. Apart from the walk over a matrix, which has nothing to divide. */
static __attribute__((noinline)) void find_in_planes(const backward *b, backward_batch *batch)
{
    const nrg_planes *p = b->job->planes;
    for (int k = 0; k < batch->rows; k++) {
        const size_t n = batch->n + (size_t)k, plane = n / p->count[0];
        batch->row[k] = backward_row_at(b->job, n % p->count[0], batch->group, b->D);
        move_to_plane(&batch->row[k], p, plane);
    }
}

/* The rows after `before` (NULL: the first), which may be none. */
static void next_batch(const backward *b, backward_batch *batch, const backward_batch *before)
{
    const nrg_norm_backward_job *job = b->job;
    batch->n = before ? before->n : job->row_begin;
    batch->group = before ? before->group + 1 : 0;
    if (batch->group == job->groups) {
        batch->group = 0;
        batch->n += (size_t)before->rows;
    }
    batch->rows = job->row_end - batch->n < NRG_ROW_BATCH ? (int)(job->row_end - batch->n) : NRG_ROW_BATCH;
    if (job->planes) {
        find_in_planes(b, batch);
        return;
    }
    for (int k = 0; k < batch->rows; k++)
        batch->row[k] = backward_row_at(job, batch->n + (size_t)k, batch->group, b->D);
}

/* tensor: of the planes. */
NRG_INLINE int backward_can_stream(const nrg_norm_backward_job *job, const char *out, size_t stride, int tensor,
                                   size_t group_bytes)
{
    if (!job->stream || !out || out == job->d_o || out == job->dr_in || out == job->x || out == job->y || out == job->z)
        return 0;
    size_t steps = (uintptr_t)out | stride | (job->groups > 1 ? group_bytes : 0);
    for (int k = 1; job->planes && k < NRG_PLANE_LEVELS; k++)
        steps |= job->planes->stride[tensor][k];
    return (steps & 15) == 0;
}

static void norm_backward(const nrg_norm_backward_job *job, nrg_dtype D)
{
    float scratch[BACKWARD_SCRATCH];
    const size_t dim = job->dim;
    backward b = {.job = job, .D = D, .scratch = scratch};
    b.on_output = job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY;
    b.gated = b.on_output || job->gate != NRG_GATE_NONE;
    b.raw = D != NRG_F32 && !b.gated && !job->y && !job->x_f32 && !job->dy && job->dx;
    b.direct = b.raw || (D == NRG_F32 && !b.gated && !job->dy && job->dx);
    b.stream_dx = backward_can_stream(job, job->dx, job->dx_stride, NRG_PLANES_DX, bytes_of(dim, D, 0));
    b.stream_dy = backward_can_stream(job, job->dy, job->dy_stride, NRG_PLANES_DY, bytes_of(dim, D, job->y_f32));
    b.stream_dz = backward_can_stream(job, job->dz, job->dz_stride, NRG_PLANES_DZ, bytes_of(dim, D, 0));

    const int as_it_is = D == NRG_F32 && !b.gated && !job->y && job->formula.w_offset == 0;
    b.sum_chunk = b.raw ? BACKWARD_RAW_CHUNK : as_it_is ? BACKWARD_WHOLE_SUM_CHUNK : BACKWARD_SUM_CHUNK;
    b.element_chunk = b.raw ? BACKWARD_RAW_CHUNK : as_it_is && b.direct ? BACKWARD_WHOLE_ELEMENT_CHUNK : BACKWARD_ELEMENT_CHUNK;
    const size_t sum_chunks = (dim + b.sum_chunk - 1) / b.sum_chunk;
    const size_t chunks = (dim + b.element_chunk - 1) / b.element_chunk;
    backward_batch batches[2], *now = &batches[0], *next = &batches[1];
    backward_walk walk;
    next_batch(&b, now, NULL);
    start_batch(&b, &walk, now);
    while (walk.row < now->rows)
        walk_on(&b, &walk);
    while (now->rows) {
        next_batch(&b, next, now);
        start_batch(&b, &walk, next);
        const size_t steps = (size_t)(next->rows * walks_of(&b)) * sum_chunks;
        const int plain = is_plain(&b, now);
        size_t done = 0;
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            const size_t begin = chunk * b.element_chunk, end = dim - begin < b.element_chunk ? dim : begin + b.element_chunk;
            if (plain)
                batch_chunk(&b, now, begin, end - begin);
            else
                row_chunks(&b, now, begin, end);
            for (; done * chunks < (chunk + 1) * steps; done++)
                walk_on(&b, &walk);
        }
        backward_batch *last = now;
        now = next;
        next = last;
    }
    if (b.stream_dx || b.stream_dy || b.stream_dz)
        v_nt_fence();
}

NRG_PATH_KERNELS(norm_backward, norm_backward, norm_backward)

#endif
