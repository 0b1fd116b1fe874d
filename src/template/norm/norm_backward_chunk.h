/* The elements of a chunk of a batch, from its rows' factors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_CHUNK_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_CHUNK_H

#include "norm_backward_gated.h"
#include "norm_backward_parts.h"

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

/* Of rows n to n + count: where their sums go. */
NRG_INLINE void column_sums(backward_rows *rows, const nrg_norm_backward_job *job, size_t n, int count, size_t group,
                            size_t begin)
{
    const size_t at = (n / job->block_rows * job->groups + group) * job->dim + begin;
    rows->dw = job->dw ? job->dw + at : NULL;
    rows->db = job->db ? job->db + at : NULL;
    rows->fresh = n % job->block_rows == 0;
    if (n + (size_t)count == job->row_end) {
        rows->dw_out = job->dw_out ? job->dw_out + at : NULL;
        rows->db_out = job->db_out ? job->db_out + at : NULL;
    }
}

/* Of the only block, when all of its rows have been added up. */
NRG_INLINE void finish_columns(const backward_rows *rows, const nrg_norm_backward_job *job, size_t n)
{
    if (rows->dw_out)
        backward_finish_sums(rows->dw_out, rows->dw, job->formula.k, job->accumulate, n);
    if (rows->db_out)
        backward_finish_sums(rows->db_out, rows->db, 1, job->accumulate, n);
}

/* n columns of plain rows without gates, of dtype D, and what becomes of their sums. */
static void plain_elements(backward_rows *rows, const nrg_norm_backward_job *job, size_t n, nrg_dtype D)
{
    rows->straight = rows->fresh && (rows->dw_out || rows->db_out) && job->formula.k == 1 && !job->accumulate;
    backward_batch_elements(rows, n, job->formula.centred, D);
    if (!rows->straight)
        finish_columns(rows, job, n);
}

/* The same of a batch, staged where that has to be. */
static void batch_chunk(const backward *b, const backward_batch *batch, size_t begin, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    enum { C = BACKWARD_ELEMENT_CHUNK };
    float *weights = b->raw ? b->scratch : b->scratch + 2 * NRG_ROW_BATCH * C, *more = weights + C;
    backward_rows rows = {.count = batch->rows, .stream = b->direct && b->stream_dx, .dr_f32 = job->r_f32};
    rows.w = weight_floats(job, &batch->row[0], D, begin, n, weights);
    column_sums(&rows, job, batch->n, batch->rows, batch->group, begin);
    for (int k = 0; k < batch->rows; k++) {
        const backward_row *row = &batch->row[k];
        float *d = b->scratch + k * C, *p = d + NRG_ROW_BATCH * C;
        rows.f[k] = &batch->f[k].plain;
        rows.d[k] = b->raw ? row->d_o + bytes_of(begin, D, 0) : (const char *)as_floats(row->d_o, D, 0, begin, n, d);
        rows.p[k] = b->raw ? row->x + bytes_of(begin, D, 0) : (const char *)residual_floats(job, row, D, begin, n, p, more);
        rows.dp[k] = b->direct ? row->dx + bytes_of(begin, D, 0) : (char *)d;
        rows.dr_in[k] = b->direct && row->dr_in ? row->dr_in + bytes_of(begin, D, job->r_f32) : NULL;
    }
    plain_elements(&rows, job, n, b->raw ? D : NRG_F32);
    if (!b->direct)
        for (int k = 0; k < batch->rows; k++)
            finish(b, &batch->row[k], b->scratch + k * C, more, begin, n);
}

/* What the rows of a batch have added up to, after its last. */
static void finish_row_sums(const backward_rows *rows, const backward_batch *batch, const nrg_norm_backward_job *job, int k,
                            size_t n)
{
    if (k + 1 < batch->rows)
        return;
    if (rows->dw)
        backward_add_partial(rows->dw, rows->partial_w, n, rows->fresh);
    if (rows->db)
        backward_add_partial(rows->db, rows->partial_b, n, rows->fresh);
    finish_columns(rows, job, n);
}

/* Whether the loop of norm_backward_gated.h serves. */
NRG_INLINE int gated_loop_serves(const backward *b, const backward_row *row, const backward_factors *f)
{
    const nrg_norm_backward_job *job = b->job;
    return !V_SMALL && !f->fallback &&
           (job->gate == NRG_GATE_PRE || (job->gate == NRG_GATE_POST && !(row->dz && (row->b || job->formula.k != 1))));
}

/* The same for all rows of a batch of which nothing but the gates is staged. */
NRG_INLINE int is_lean(const backward *b, const backward_batch *batch)
{
    int lean = b->lean;
    for (int k = 0; k < batch->rows; k++)
        lean = lean && gated_loop_serves(b, &batch->row[k], &batch->f[k]);
    return lean;
}

/* The elements of such a row, from g(z) and g′(z); or from z, where these are not kept. */
static void gated_row(const backward *b, const backward_row *row, const backward_factors *f, const backward_rows *rows,
                      size_t begin, size_t n, gated_chunk *chunk, int kept)
{
    const nrg_norm_backward_job *job = b->job;
    if (!kept)
        NRG_PATH_NAME(activate_both)
    (job->activation, as_floats(row->z, b->D, 0, begin, n, chunk->gate), chunk->gate, chunk->slope, n);
    chunk->w = rows->w;
    chunk->partial_w = rows->partial_w;
    chunk->partial_b = rows->partial_b;
    chunk->first = rows->first;
    if (job->gate == NRG_GATE_PRE)
        gated_elements_pre(chunk, &f->plain, n);
    else
        gated_elements_post(chunk, &f->plain, n);
}

/* n columns of such a batch. */
static void lean_chunk(const backward *b, const backward_batch *batch, size_t begin, size_t n)
{
    enum { C = BACKWARD_LEAN_ELEMENT_CHUNK };
    const nrg_norm_backward_job *job = b->job;
    float *gate = b->scratch, *slope = gate + C, *partial_w = slope + C, *partial_b = partial_w + C;
    backward_rows rows = {.w = batch->row[0].w ? (const float *)batch->row[0].w + begin : NULL};
    column_sums(&rows, job, batch->n, batch->rows, batch->group, begin);
    rows.partial_w = rows.dw ? partial_w : NULL;
    rows.partial_b = rows.db ? partial_b : NULL;
    for (int k = 0; k < batch->rows; k++) {
        const backward_row *row = &batch->row[k];
        gated_chunk chunk = {.d_o = (const float *)row->d_o + begin,
                             .r = (const float *)row->x + begin,
                             .gate = b->keeps ? (float *)row->dx + begin : gate,
                             .slope = b->keeps ? (float *)row->dz + begin : slope,
                             .dr = (float *)row->dx + begin,
                             .dz = row->dz ? (float *)row->dz + begin : NULL,
                             .stream_dr = b->stream_dx,
                             .stream_dz = b->stream_dz};
        rows.first = k == 0;
        gated_row(b, row, &batch->f[k], &rows, begin, n, &chunk, b->keeps);
    }
    finish_row_sums(&rows, batch, job, batch->rows - 1, n);
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
    backward_rows rows = {.any = f, .dp = {(char *)d}, .first = k == 0};
    rows.w = weight_floats(job, row, D, begin, n, weights);
    column_sums(&rows, job, batch->n, batch->rows, batch->group, begin);
    rows.partial_w = rows.dw ? partial_w : NULL;
    rows.partial_b = rows.db ? partial_b : NULL;
    const float *input = residual_floats(job, row, D, begin, n, residual, h);
    const float *d_o = as_floats(row->d_o, D, 0, begin, n, d);
    if (gated_loop_serves(b, row, f)) {
        gated_chunk chunk = {.d_o = d_o, .r = input, .gate = gate, .slope = slope, .dr = d, .dz = row->dz ? dz : NULL};
        gated_row(b, row, f, &rows, begin, n, &chunk, 0);
        if (row->dz)
            store_floats(dz, row->dz, begin, n, D, b->stream_dz);
        finish(b, row, d, more, begin, n);
        finish_row_sums(&rows, batch, job, k, n);
        return;
    }
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
    finish_row_sums(&rows, batch, job, k, n);
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
    return !b->gated && !fallback;
}

#endif
