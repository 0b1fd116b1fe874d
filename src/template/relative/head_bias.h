/* The two biases of a query, and their gradients.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_HEAD_BIAS_H
#define NRG_TEMPLATE_RELATIVE_HEAD_BIAS_H

#include "../../job/relative.h"
#include "../runs.h"

enum {
    BIAS_PIECE = 1024, /* elements of a row that both outputs are made of, one after the other */
    BIAS_ROWS = 2,     /* rows whose elements are added to a sum between its load and its store */
    BIAS_F32_ROWS = 4, /* the same of f32: 64 rows of 1024 in 13.7 us instead of 18 (AVX-512); the 16-bit types lose with it */
    BIAS_PAIRED = 8,   /* rows from which on sums of bf16 are kept in pairs */
    BIAS_PREFETCH = 4, /* rows between the one that is added up and the one that is prefetched */
    BIAS_STRIP = 512   /* columns whose sums are on the stack */
};

/* ---- forward: the two outputs of a piece of a row one after the other, while it is in the cache ---- */

static __attribute__((noinline)) void head_bias_pair(const nrg_head_bias_job *job, nrg_dtype D)
{
    const nrg_head_strides qs = job->q_strides, us = job->o_u_strides, vs = job->o_v_strides;
    const size_t heads = job->heads, rows = job->rows, dim = job->dim, end = job->end;
    const int bias_f32 = D == NRG_F32 || job->bias_f32, stream = job->stream;
    /* the output that is in the place of q comes last */
    const int u_last = job->o_u == job->q;
    for (size_t n = job->begin; n < end; n++) {
        const size_t head = n % heads, row = n / heads % rows, batch = n / heads / rows;
        const char *q = job->q + batch * qs.batch + row * qs.row + head * qs.head;
        const size_t u_at = batch * us.batch + row * us.row + head * us.head;
        const size_t v_at = batch * vs.batch + row * vs.row + head * vs.head;
        for (size_t c = 0; c < dim; c += BIAS_PIECE) {
            const size_t count = dim - c < BIAS_PIECE ? dim - c : BIAS_PIECE, at = bytes_of(c, D, 0);
            const size_t bias_at = bytes_of(head * dim + c, D, bias_f32);
            for (int turn = 0; turn < 2; turn++) {
                const int is_u = turn == u_last;
                char *o = is_u ? job->o_u : job->o_v;
                if (!o)
                    continue;
                const add_run run = {
                    .out = o + (is_u ? u_at : v_at) + at,
                    .a = q + at,
                    .b = (is_u ? job->u : job->v) + bias_at,
                    .n = count,
                    .b_f32 = bias_f32,
                    .stream = stream,
                    .out_far = job->out_far,
                    .a_prefetch = job->prefetch && turn == 0 ? bytes_of(BIAS_PIECE, D, 0) : 0,
                };
                run_add(&run, D);
            }
        }
    }
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(head_bias_pair, head_bias, head_bias_pair)

#ifndef NRG_NO_BACKWARD
#include "../store_sums.h"

/* ---- backward ---- */

/* Rows that are taken together, at the first column of a strip, and the sums of the strip. An input that is not there is a row of
 * zeros, the same for every row. */
typedef struct bias_strip {
    const char *d_o_u, *d_o_v;
    char *dq;                            /* NULL where not asked for */
    size_t d_o_u_row, d_o_v_row, dq_row; /* bytes to the next row */
    double *du, *dv;
    int prefetch, stream;
    size_t paired; /* columns of bf16 whose sums are kept as v_even_from_bf16 and v_odd_from_bf16 give them, 2·VN at a time */
} bias_strip;

/* A strip is a fraction of a row, and the next row's is on another page: the processor does not see it coming. Waiting for it
 * would be a third of the time of a call out of the cache (AVX-512, 8192 × 1024 f32). */
NRG_INLINE void bias_prefetch(const char *p, size_t row_bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + BIAS_PREFETCH * row_bytes));
}

NRG_INLINE vf bias_load(const char *p, size_t n, nrg_dtype D) { return n ? load_part(p, 0, n, D) : load_whole(p, 0, D); }

NRG_INLINE void bias_widen(vf v, vd *low, vd *high, nrg_dtype D)
{
    if (D == NRG_F32) {
        *low = vd_low(v);
        *high = vd_high(v);
    } else {
        vd_both(v, low, high);
    }
}

NRG_INLINE void bias_store_dq(char *p, vf sum, size_t n, nrg_dtype D, int stream)
{
    if (n)
        store_step(&sum, 1, p, 0, n, D, stream);
    else if (D == NRG_F32)
        stream ? v_nt_f32((float *)p, sum) : v_st_f32((float *)p, sum);
    else
        stream ? v_nt_half((uint16_t *)p, to_half(sum, D)) : v_st_half((uint16_t *)p, to_half(sum, D));
}

/* A vector of columns from column i on, of R rows: n lanes, or with n = 0 all. */
NRG_INLINE void bias_sum_step(const bias_strip *s, int R, size_t i, size_t n, nrg_dtype D)
{
    const size_t bytes = bytes_of(i, D, 0);
    vd u_low = vd_ld(s->du + i), u_high = vd_ld(s->du + i + VN / 2);
    vd v_low = vd_ld(s->dv + i), v_high = vd_ld(s->dv + i + VN / 2);
    NRG_UNROLL
    for (int r = 0; r < R; r++) {
        const char *from_u = s->d_o_u + (size_t)r * s->d_o_u_row + bytes, *from_v = s->d_o_v + (size_t)r * s->d_o_v_row + bytes;
        const vf u = bias_load(from_u, n, D), v = bias_load(from_v, n, D);
        if (!n && s->prefetch) {
            bias_prefetch(from_u, s->d_o_u_row);
            bias_prefetch(from_v, s->d_o_v_row);
        }
        vd low, high;
        bias_widen(u, &low, &high, D);
        u_low = vd_add(u_low, low);
        u_high = vd_add(u_high, high);
        bias_widen(v, &low, &high, D);
        v_low = vd_add(v_low, low);
        v_high = vd_add(v_high, high);
        if (s->dq)
            bias_store_dq(s->dq + (size_t)r * s->dq_row + bytes, v_add(u, v), n, D, s->stream);
    }
    vd_st(s->du + i, u_low);
    vd_st(s->du + i + VN / 2, u_high);
    vd_st(s->dv + i, v_low);
    vd_st(s->dv + i + VN / 2, v_high);
}

/* 2·VN columns of bf16 from column i on, of R rows, in pairs of vectors: nothing is shuffled, and dq is rounded at once. */
NRG_INLINE void bias_sum_pairs(const bias_strip *s, int R, size_t i)
{
    const size_t bytes = bytes_of(i, NRG_BF16, 0);
    vd du[4], dv[4];
    NRG_UNROLL
    for (int k = 0; k < 4; k++) {
        du[k] = vd_ld(s->du + i + k * (VN / 2));
        dv[k] = vd_ld(s->dv + i + k * (VN / 2));
    }
    NRG_UNROLL
    for (int r = 0; r < R; r++) {
        const char *from_u = s->d_o_u + (size_t)r * s->d_o_u_row + bytes, *from_v = s->d_o_v + (size_t)r * s->d_o_v_row + bytes;
        vf u[2], v[2];
        load_pairs(u, 2, from_u, 0);
        load_pairs(v, 2, from_v, 0);
        if (s->prefetch) {
            bias_prefetch(from_u, s->d_o_u_row);
            bias_prefetch(from_v, s->d_o_v_row);
        }
        NRG_UNROLL
        for (int k = 0; k < 2; k++) {
            vd low, high;
            vd_both(u[k], &low, &high);
            du[2 * k] = vd_add(du[2 * k], low);
            du[2 * k + 1] = vd_add(du[2 * k + 1], high);
            vd_both(v[k], &low, &high);
            dv[2 * k] = vd_add(dv[2 * k], low);
            dv[2 * k + 1] = vd_add(dv[2 * k + 1], high);
        }
        if (s->dq) {
            const vp h = v_calm_to_bf16(v_add(u[0], v[0]), v_add(u[1], v[1]));
            store_pair_step(&h, 2, (uint16_t *)(s->dq + (size_t)r * s->dq_row + bytes), s->stream);
        }
    }
    NRG_UNROLL
    for (int k = 0; k < 4; k++) {
        vd_st(s->du + i + k * (VN / 2), du[k]);
        vd_st(s->dv + i + k * (VN / 2), dv[k]);
    }
}

/* Sums of pairs in the order of columns. */
static __attribute__((noinline)) void bias_order(double *sums, size_t paired)
{
    double some[2 * VN];
    for (; paired; paired -= 2 * VN, sums += 2 * VN) {
        for (size_t k = 0; k < VN; k++) {
            some[2 * k] = sums[k];
            some[2 * k + 1] = sums[VN + k];
        }
        memcpy(sums, some, sizeof some);
    }
}

/* So many rows together, or one: whole vectors of all together, whatever is left row by row. */
NRG_INLINE void bias_sum_rows_of(const bias_strip *at, size_t rows, size_t columns, nrg_dtype D)
{
    bias_strip s = *at;
    const int together = D == NRG_F32 ? BIAS_F32_ROWS : BIAS_ROWS;
    size_t done = 0;
    if (rows == (size_t)together) {
        for (; D == NRG_BF16 && done < s.paired; done += 2 * VN)
            bias_sum_pairs(&s, together, done);
        for (; done + VN <= columns; done += VN)
            bias_sum_step(&s, together, done, 0, D);
    }
    for (; rows && done < columns; rows--) {
        size_t i = done;
        for (; D == NRG_BF16 && i < s.paired; i += 2 * VN)
            bias_sum_pairs(&s, 1, i);
        for (; i < columns; i += VN)
            bias_sum_step(&s, 1, i, lanes_at(i, columns), D);
        s.d_o_u += s.d_o_u_row;
        s.d_o_v += s.d_o_v_row;
        s.dq = s.dq ? s.dq + s.dq_row : NULL;
    }
}

NRG_BY_DTYPE(bias_sum_rows, (at, rows, columns), const bias_strip *at, size_t rows, size_t columns)

/* out: NULL if it is not asked for. */
static __attribute__((noinline)) void bias_store(float *out, const double *sums, size_t n, int accumulate)
{
    if (out)
        store_sums(out, sums, n, accumulate);
}

NRG_INLINE size_t bias_at(nrg_head_strides s, size_t batch, size_t head, size_t row)
{
    return batch * s.batch + head * s.head + row * s.row;
}

/* Columns begin to end of one head, at most a strip. */
NRG_INLINE void bias_strip_sums(const nrg_head_bias_backward_job *job, size_t head, size_t begin, size_t end, nrg_dtype D)
{
    double du[BIAS_STRIP], dv[BIAS_STRIP];
    float zeros[BIAS_STRIP];
    const nrg_head_strides us = job->d_o_u_strides, vs = job->d_o_v_strides, qs = job->dq_strides;
    const size_t columns = end - begin, bytes = bytes_of(begin, D, 0), batches = job->batch, rows = job->rows;
    /* the rows of dq start at a multiple of 16, all of them */
    const int stream =
        job->stream && ((uintptr_t)job->dq | (bias_at(qs, 0, head, 0) + bytes) | qs.row | (batches > 1 ? qs.batch : 0)) % 16 == 0;
    const size_t most = D == NRG_F32 ? BIAS_F32_ROWS : BIAS_ROWS;
    const size_t paired = D == NRG_BF16 && batches * rows >= BIAS_PAIRED ? columns / (2 * VN) * (2 * VN) : 0;
    for (size_t i = 0; i < BIAS_STRIP; i += VN / 2) {
        vd_st(du + i, vd_zero());
        vd_st(dv + i, vd_zero());
    }
    for (size_t i = 0; i < BIAS_STRIP; i += VN)
        v_st_f32(zeros + i, v_zero());
    for (size_t batch = 0; batch < batches; batch++)
        for (size_t row = 0, together; row < rows; row += together) {
            together = rows - row < most ? 1 : most;
            const bias_strip strip = {
                .d_o_u = job->d_o_u ? job->d_o_u + bias_at(us, batch, head, row) + bytes : (const char *)zeros,
                .d_o_v = job->d_o_v ? job->d_o_v + bias_at(vs, batch, head, row) + bytes : (const char *)zeros,
                .dq = job->dq ? job->dq + bias_at(qs, batch, head, row) + bytes : NULL,
                .d_o_u_row = job->d_o_u ? us.row : 0,
                .d_o_v_row = job->d_o_v ? vs.row : 0,
                .dq_row = qs.row,
                .du = du,
                .dv = dv,
                .prefetch = job->prefetch,
                .stream = stream,
                .paired = paired,
            };
            bias_sum_rows(&strip, together, columns, D);
        }
    bias_order(du, paired);
    bias_order(dv, paired);
    const size_t at = head * job->dim + begin;
    bias_store(job->du ? job->du + at : NULL, du, columns, job->accumulate);
    bias_store(job->dv ? job->dv + at : NULL, dv, columns, job->accumulate);
}

static __attribute__((noinline)) void head_bias_pair_backward(const nrg_head_bias_backward_job *job, nrg_dtype D)
{
    const size_t dim = job->dim;
    for (size_t column = job->begin, next; column < job->end; column = next) {
        const size_t head = column / dim, head_end = (head + 1) * dim;
        next = head_end < job->end ? head_end : job->end;
        next = next - column < BIAS_STRIP ? next : column + BIAS_STRIP;
        bias_strip_sums(job, head, column - head * dim, next - head * dim, D);
    }
    if (job->stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(head_bias_pair_backward, head_bias_backward, head_bias_pair_backward)
#endif

#endif
