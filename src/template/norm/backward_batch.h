/* Schedule of the backward pass: batches of four rows, in chunks. While the columns of a batch become outputs, the next batch is
 * summed, so that memory is never idle. For rows of any kind.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_BATCH_H
#define NRG_TEMPLATE_NORM_BACKWARD_BATCH_H

#include "backward_gated.h"

typedef struct gradient_batch {
    size_t n;
    int count;
    backward_row row[NRG_ROW_BATCH];
    row_gradient f[NRG_ROW_BATCH];
} gradient_batch;

/* Sums of a row, of one kind at a time: stacks are small. */
typedef union walk_sums {
    gradient_sums plain;
    fallback_sums statistics;
    fallback_gradient fallback;
} walk_sums;

/* The walk over the rows of a batch that ends with their factors, a chunk at a time. */
typedef struct gradient_walk {
    gradient_batch *batch;
    int row;
    size_t begin;
    walk_sums sums;
} gradient_walk;

/* ---- sums ---- */

/* What is stored on the way: g(z) and g′(z), in rows of dx and dz. */
NRG_INLINE void keep_gates(const backward *b, const backward_row *row, size_t begin, size_t n, gradient_chunk *c)
{
    const nrg_norm_backward_job *job = b->job;
    const float *d_o = (const float *)row->d_o + begin, *x = (const float *)row->x + begin;
    float *const gate = (float *)row->dx + begin, *const product = b->stage;
    const int is_pre = job->gate == NRG_GATE_PRE;
    NRG_PATH_NAME(activate_both)(job->activation, (const float *)row->z + begin, gate, (float *)row->dz + begin, n);
    multiply_floats(product, is_pre ? x : d_o, gate, n);
    c->p = (const char *)(is_pre ? product : x);
    c->d = (const char *)(is_pre ? d_o : product);
}

/* p of a chunk. Where gates are all that is staged, one staging buffer serves. */
NRG_INLINE const float *staged_p(const backward *b, const backward_row *row, size_t begin, size_t n)
{
    const size_t apart = b->gates_only ? 0 : GRADIENT_CHUNK;
    float *const to = b->stage + apart, *const more = to + apart;
    const float *p = residual_floats(b, row, begin, n, to, more);
    if (b->job->gate != NRG_GATE_PRE)
        return p;
    gated_floats(b, row, begin, n, p, to, more);
    return to;
}

/* do1 of a chunk whose p is known. f: the factors, where do1 needs h; it may not be known yet, and do1 is then of no interest. */
NRG_INLINE const float *staged_d(const backward *b, const backward_row *row, size_t begin, size_t n, const gradient_chunk *c,
                                 const row_gradient *f)
{
    const nrg_norm_backward_job *job = b->job;
    float *const to = b->stage, *const more = to + (b->gates_only ? 0 : 2 * GRADIENT_CHUNK);
    if (b->on_output && !f)
        return (const float *)c->p;
    if (b->on_output) {
        const float *bias = b->bias ? as_floats(b->bias, b->D, job->w_f32, begin, n, to) : NULL;
        normalize_floats(more, (const float *)c->p, f, n);
        recompute_outputs(more, more, c->w, bias, job->formula.k, n);
        NRG_PATH_NAME(activate_both)(job->activation, more, more, to, n);
        multiply_floats(to, as_floats(row->d_o, b->D, 0, begin, n, more), to, n);
        return to;
    }
    const float *d = as_floats(row->d_o, b->D, 0, begin, n, to);
    if (job->gate != NRG_GATE_POST)
        return d;
    gated_floats(b, row, begin, n, d, to, more);
    return to;
}

/* A chunk of a row for its sums. */
static __attribute__((noinline)) void stage_gradient(gradient_chunk *c, const backward *b, const backward_row *row, size_t begin,
                                                     size_t n, const row_gradient *f)
{
    if (b->is_half) {
        c->w = weights_of_run(b, begin, n, b->stage);
        c->d = row->d_o + bytes_of(begin, b->D, 0);
        c->p = row->x + bytes_of(begin, b->D, 0);
        return;
    }
    c->w = weights_of_run(b, begin, n, b->stage + 3 * GRADIENT_CHUNK);
    if (b->keeps_gates) {
        keep_gates(b, row, begin, n, c);
        return;
    }
    c->p = (const char *)staged_p(b, row, begin, n);
    c->d = (const char *)staged_d(b, row, begin, n, c, f);
}

NRG_INLINE void prefetch_operand(const char *tensor, size_t begin, size_t n, size_t size)
{
    if (tensor)
        prefetch_ahead(tensor, n * size, begin * size);
}

/* What the next chunk stages: loops over a staged chunk have nothing to prefetch. */
static __attribute__((noinline)) void prefetch_chunk(const backward *b, const backward_row *row, size_t begin)
{
    const size_t size = bytes_of(1, b->D, 0);
    prefetch_operand(row->d_o, begin, GRADIENT_CHUNK, size);
    prefetch_operand(row->z, begin, GRADIENT_CHUNK, size);
    prefetch_operand(row->x, begin, GRADIENT_CHUNK, bytes_of(1, b->D, b->job->x_f32));
    prefetch_operand(row->y, begin, GRADIENT_CHUNK, bytes_of(1, b->D, b->job->y_f32));
}

/* The sums of elements begin to end of row n. f: as staged_d has it. */
static void sum_row_chunk(const backward *b, gradient_sums *sums, const backward_row *row, size_t begin, size_t end,
                          const row_gradient *f, float mean)
{
    const nrg_norm_backward_job *job = b->job;
    gradient_chunk c = {.mean = mean, .prefetch = job->stream};
    if (job->stream && b->sum_chunk == GRADIENT_CHUNK)
        prefetch_chunk(b, row, end);
    stage_gradient(&c, b, row, begin, end - begin, f);
    sum_gradient(sums, &c, begin, end, job->dim, job->formula.centred, b->is_half ? b->D : NRG_F32);
}

/* The factors of a row whose sums are done. Returns 0 where floats do not serve. */
static __attribute__((noinline)) int plain_factors(const backward *b, row_gradient *f, const backward_row *row, gradient_sums *s)
{
    const nrg_norm_formula *formula = &b->job->formula;
    const int has_mean = formula->centred;
    gradient_spread spread;
    if (!factors_of_h(formula, &f->plain, &spread, has_mean ? value_of(&s->total_q) : 0, value_of(&s->total_qq)))
        return 0;
    if (b->on_output)
        for (size_t begin = 0, end; begin < b->job->dim; begin = end) {
            end = lesser(begin + b->sum_chunk, b->job->dim);
            sum_row_chunk(b, s, row, begin, end, f, f->plain.mean);
        }
    return factors_of_dp(formula, &f->plain, &spread, has_mean ? value_of(&s->total_d) : 0, value_of(&s->total_dq));
}

/* The sums of p around the pilot, as in the forward pass; of p as floats. */
static void sum_fallback_p(const backward *b, fallback_sums *sums, const backward_row *row, double pilot)
{
    const size_t dim = b->job->dim;
    for (size_t begin = 0, end; begin < dim; begin = end) {
        end = lesser(begin + GRADIENT_CHUNK, dim);
        const float *p = staged_p(b, row, begin, end - begin);
        const row_operands at = {.x = (const char *)((uintptr_t)p - begin * sizeof *p)}; /* element 0, were it there */
        fallback_sum(sums, &at, 0, pilot, begin, end, dim, NRG_F32);
    }
}

static __attribute__((noinline)) fallback_statistics statistics_of_fallback(const backward *b, const backward_row *row,
                                                                            fallback_sums *sums)
{
    const nrg_norm_formula *formula = &b->job->formula;
    sum_fallback_p(b, sums, row, 0);
    fallback_statistics stat = first_statistics(formula, value_of(&sums->t), value_of(&sums->tt));
    if (needs_second_sum(formula, &stat)) {
        sum_fallback_p(b, sums, row, stat.pilot);
        second_statistics(&stat, formula, sums);
    }
    return stat;
}

/* do1 may need h, whose factors are there. */
static __attribute__((noinline)) void sum_fallback_row(const backward *b, row_gradient *f, const backward_row *row,
                                                       const fallback_statistics *stat, fallback_gradient *sums)
{
    const size_t dim = b->job->dim;
    for (size_t begin = 0, end; begin < dim; begin = end) {
        end = lesser(begin + GRADIENT_CHUNK, dim);
        gradient_chunk c = {.w = weights_of_run(b, begin, end - begin, b->stage + 3 * GRADIENT_CHUNK)};
        c.p = (const char *)staged_p(b, row, begin, end - begin);
        c.d = (const char *)staged_d(b, row, begin, end - begin, &c, f);
        sum_fallback_gradient(sums, &c, stat->pilot, begin, end, dim);
    }
    slopes_of_fallback(&f->fallback, &b->job->formula, stat, value_of(&sums->total_d), value_of(&sums->total_dt));
}

/* The factors of a row in double, from statistics of its own. */
static __attribute__((noinline)) void fallback_factors_of_row(const backward *b, row_gradient *f, const backward_row *row,
                                                              walk_sums *sums)
{
    const fallback_statistics stat = statistics_of_fallback(b, row, &sums->statistics);
    f->is_fallback = 1;
    slopes_of_fallback(&f->fallback, &b->job->formula, &stat, 0, 0);
    sum_fallback_row(b, f, row, &stat, &sums->fallback);
}

/* ---- the walk ---- */

static void start_row(const backward *b, gradient_walk *walk)
{
    walk->begin = 0;
    if (walk->row == walk->batch->count)
        return;
    row_gradient *const f = &walk->batch->f[walk->row];
    memset(f, 0, sizeof *f);
    f->plain.mean = mean_of_row(b, walk->batch->n + (size_t)walk->row);
}

/* The batch from row n on, of rows before `end`; it may be empty. */
static __attribute__((noinline)) void start_batch(const backward *b, gradient_walk *walk, gradient_batch *batch, size_t n,
                                                  size_t end)
{
    batch->n = n;
    batch->count = (int)lesser(end - n, NRG_ROW_BATCH);
    for (int k = 0; k < batch->count; k++)
        find_row_of_run(&batch->row[k], b, n + (size_t)k);
    walk->batch = batch;
    walk->row = 0;
    start_row(b, walk);
}

/* One chunk of one row. */
static void walk_on(const backward *b, gradient_walk *walk)
{
    const size_t end = lesser(walk->begin + b->sum_chunk, b->job->dim);
    const backward_row *row = &walk->batch->row[walk->row];
    row_gradient *f = &walk->batch->f[walk->row];
    sum_row_chunk(b, &walk->sums.plain, row, walk->begin, end, NULL, f->plain.mean);
    walk->begin = end;
    if (end < b->job->dim)
        return;
    if (!plain_factors(b, f, row, &walk->sums.plain))
        fallback_factors_of_row(b, f, row, &walk->sums);
    walk->row++;
    start_row(b, walk);
}

/* ---- columns ---- */

/* dp of a chunk of a row, in `dp`, to dx and dy; more: a staging buffer. */
static __attribute__((noinline)) void finish_dp(const backward *b, const backward_row *row, float *dp, float *more, size_t begin,
                                                size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype y_D = job->y_f32 ? NRG_F32 : b->D;
    if (job->after && row->dy) /* before dx, which may be d_o */
        store_gradient(as_floats(row->d_o, b->D, 0, begin, n, more), row->dy, begin, n, b->stream_dy, y_D);
    if (row->dr_in)
        add_rounded(dp, dp, as_floats(row->dr_in, b->D, job->r_f32, begin, n, more), n, NRG_F32);
    if (row->dx)
        store_gradient(dp, row->dx, begin, n, b->stream_dx, b->D);
    if (!job->after && row->dy)
        store_gradient(dp, row->dy, begin, n, b->stream_dy, y_D);
}

/* n columns of a batch without gates and fallbacks. */
static void plain_chunk(const backward *b, const gradient_batch *batch, size_t begin, size_t n)
{
    enum { C = COLUMN_CHUNK };
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->is_half ? b->D : NRG_F32;
    float *const weights = b->is_half ? b->stage : b->stage + 2 * NRG_ROW_BATCH * C, *const more = weights + C;
    column_rows rows; /* field by field, as in backward_tile.h */
    rows.count = batch->count;
    rows.options = b->is_direct && b->stream_dx ? COLUMN_STREAM : 0;
    rows.w = weights_of_run(b, begin, n, weights);
    find_columns(&rows, b, batch->n, begin);
    for (int k = 0; k < batch->count; k++) {
        const backward_row *row = &batch->row[k];
        float *const d = b->stage + k * C, *const p = d + NRG_ROW_BATCH * C;
        rows.f[k] = column_factors_of(&batch->f[k].plain);
        rows.d[k] = b->is_half ? row->d_o + bytes_of(begin, D, 0) : (const char *)as_floats(row->d_o, b->D, 0, begin, n, d);
        rows.p[k] = b->is_half ? row->x + bytes_of(begin, D, 0) : (const char *)residual_floats(b, row, begin, n, p, more);
        rows.dp[k] = b->is_direct ? row->dx + bytes_of(begin, D, 0) : (char *)d;
        if (b->is_direct && row->dr_in) {
            rows.dr_in[k] = row->dr_in + bytes_of(begin, D, job->r_f32);
            rows.options |= COLUMN_DR_IN | (job->r_f32 ? COLUMN_DR_F32 : 0);
        }
    }
    output_columns(&rows, job, n, D);
    for (int k = 0; !b->is_direct && k < batch->count; k++)
        finish_dp(b, &batch->row[k], b->stage + k * C, more, begin, n);
}

/* The partial sums of the rows of a batch, after its last. */
static void end_partial(const backward *b, const gradient_batch *batch, const float *dw, const float *db, size_t begin, size_t n)
{
    column_rows rows;
    rows.count = batch->count;
    rows.options = 0;
    find_columns(&rows, b, batch->n, begin);
    if (rows.dw)
        add_partial(rows.dw, dw, n, rows.options & COLUMN_FIRST);
    if (rows.db)
        add_partial(rows.db, db, n, rows.options & COLUMN_FIRST);
    end_columns(&rows, b->job, n);
}

/* Whether the loop of backward_gated.h serves. */
NRG_INLINE int gated_columns_serve(const backward *b, const row_gradient *f)
{
    const nrg_norm_backward_job *job = b->job;
    return !NORM_IS_SMALL && !f->is_fallback &&
           (job->gate == NRG_GATE_PRE || (job->gate == NRG_GATE_POST && !(job->dz && (job->b || job->formula.k != 1))));
}

/* The elements of such a row, from g(z) and g′(z). */
NRG_INLINE void output_gated_columns(const backward *b, const gated_columns *c, const row_gradient *f, size_t n)
{
    if (b->job->gate == NRG_GATE_PRE)
        output_gated_before(c, &f->plain, n);
    else
        output_gated_after(c, &f->plain, n);
}

/* n columns of a batch of which nothing but the gates is staged. */
static void gated_batch_chunk(const backward *b, const gradient_batch *batch, size_t begin, size_t n)
{
    enum { C = GATE_COLUMN_CHUNK };
    const nrg_norm_backward_job *job = b->job;
    float *const gate = b->stage, *const slope = gate + C, *const dw = slope + C, *const db = dw + C;
    for (int k = 0; k < batch->count; k++) {
        const backward_row *row = &batch->row[k];
        const gated_columns c = {.d_o = (const float *)row->d_o + begin,
                                 .r = (const float *)row->x + begin,
                                 .gate = b->keeps_gates ? (float *)row->dx + begin : gate,
                                 .slope = b->keeps_gates ? (float *)row->dz + begin : slope,
                                 .w = weights_of_run(b, begin, n, NULL),
                                 .dr = (float *)row->dx + begin,
                                 .dz = row->dz ? (float *)row->dz + begin : NULL,
                                 .dw = job->dw ? dw : NULL,
                                 .db = job->db ? db : NULL,
                                 .is_first = k == 0,
                                 .stream_dr = b->stream_dx,
                                 .stream_dz = b->stream_dz};
        if (!b->keeps_gates)
            NRG_PATH_NAME(activate_both)(job->activation, (const float *)row->z + begin, gate, slope, n);
        output_gated_columns(b, &c, &batch->f[k], n);
    }
    end_partial(b, batch, dw, db, begin, n);
}

/* n columns of row k of any batch. */
static void single_row_chunk(const backward *b, const gradient_batch *batch, int k, size_t begin, size_t n)
{
    enum { C = COLUMN_CHUNK };
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    const backward_row *row = &batch->row[k];
    const row_gradient *f = &batch->f[k];
    float *const d = b->stage, *const p = d + C, *const gate = p + C, *const slope = gate + C, *const residual = slope + C;
    float *const h = residual + C, *const o1 = h + C, *const dw = o1 + C, *const db = dw + C, *const weights = db + C;
    /* buffers that serve twice: the bias is needed where p is r, and the slope no more when the rest is done */
    float *const bias_copy = p, *const more = slope, *const dz = row->dz ? o1 : NULL;
    const float *bias = b->bias ? as_floats(b->bias, D, job->w_f32, begin, n, bias_copy) : NULL;
    const run_weights w = weights_of_run(b, begin, n, weights);
    const float *input = residual_floats(b, row, begin, n, residual, h), *d_o = as_floats(row->d_o, D, 0, begin, n, d);
    single_row single = {.f = f, .w = w, .dp = d, .dw = job->dw ? dw : NULL, .db = job->db ? db : NULL, .is_first = k == 0};
    if (job->gate != NRG_GATE_NONE)
        NRG_PATH_NAME(activate_both)(job->activation, as_floats(row->z, D, 0, begin, n, gate), gate, slope, n);
    if (gated_columns_serve(b, f)) {
        const gated_columns c = {d_o, input, gate, slope, w, d, dz, single.dw, single.db, k == 0, 0, 0};
        output_gated_columns(b, &c, f, n);
    } else {
        if (job->gate == NRG_GATE_PRE) {
            single.r = input;
            multiply_floats(p, input, gate, n);
            input = p;
            single.slope = slope;
            single.dz = dz;
        }
        normalize_floats(h, input, f, n);
        if (b->on_output) {
            recompute_outputs(o1, h, w, bias, job->formula.k, n);
            NRG_PATH_NAME(activate_both)(job->activation, o1, o1, slope, n);
            multiply_floats(d, d_o, slope, n);
            d_o = d;
        }
        if (job->gate == NRG_GATE_POST) {
            if (dz) {
                recompute_outputs(o1, h, w, bias, job->formula.k, n);
                multiply_three(o1, d_o, slope, n);
            }
            multiply_floats(d, d_o, gate, n);
            d_o = d;
        }
        single.d = d_o;
        single.p = input;
        single.h = h;
        output_single_row(&single, n);
        if (job->gate == NRG_GATE_PRE)
            multiply_floats(d, d, gate, n);
    }
    if (dz)
        store_gradient(dz, row->dz, begin, n, b->stream_dz, D);
    finish_dp(b, row, d, more, begin, n);
    if (k + 1 == batch->count)
        end_partial(b, batch, dw, db, begin, n);
}

static void single_rows_chunk(const backward *b, const gradient_batch *batch, size_t begin, size_t end)
{
    for (size_t next; begin < end; begin = next) {
        next = lesser(begin + COLUMN_CHUNK, end);
        for (int k = 0; k < batch->count; k++)
            single_row_chunk(b, batch, k, begin, next - begin);
    }
}

static void batch_chunk(const backward *b, const gradient_batch *batch, size_t begin, size_t end)
{
    int has_fallback = 0, serves = 1;
    for (int k = 0; k < batch->count; k++) {
        has_fallback |= batch->f[k].is_fallback;
        serves &= gated_columns_serve(b, &batch->f[k]);
    }
    if (!b->is_gated && !has_fallback)
        plain_chunk(b, batch, begin, end - begin);
    else if (b->gates_only && serves)
        gated_batch_chunk(b, batch, begin, end - begin);
    else
        single_rows_chunk(b, batch, begin, end);
}

static __attribute__((noinline)) void schedule_batches(const backward *b)
{
    const size_t dim = b->job->dim, sum_chunks = (dim + b->sum_chunk - 1) / b->sum_chunk,
                 chunks = (dim + b->column_chunk - 1) / b->column_chunk;
    gradient_batch batches[2];
    gradient_walk walk;
    size_t n = b->begin;
    start_batch(b, &walk, &batches[0], n, b->end);
    while (walk.row < batches[0].count)
        walk_on(b, &walk);
    for (int turn = 0; n < b->end; turn ^= 1) {
        const gradient_batch *const now = &batches[turn];
        n += (size_t)now->count;
        start_batch(b, &walk, &batches[turn ^ 1], n, b->end);
        const size_t steps = (size_t)walk.batch->count * sum_chunks;
        for (size_t chunk = 0, done = 0; chunk < chunks; chunk++) {
            const size_t begin = chunk * b->column_chunk;
            batch_chunk(b, now, begin, lesser(begin + b->column_chunk, dim));
            for (; done * chunks < (chunk + 1) * steps; done++)
                walk_on(b, &walk);
        }
    }
}

#endif
