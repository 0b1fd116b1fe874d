/* From p and do1 to dp, and to the partial sums of dw and db: the last walk over a row.
 *
 * Up to four rows at once: their shares of a column's sum add up in f32 before one addition in double; or, where a block has no
 * other rows, they are the gradient.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_ELEMENT_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_ELEMENT_H

#include "norm_backward_sum.h"

/* A chunk of several rows. */
typedef struct backward_rows {
    int count;
    const char *d[NRG_ROW_BATCH], *p[NRG_ROW_BATCH]; /* floats, or of a batch 16-bit elements as they are in memory */
    const float *w;                                  /* with the weight offset; NULL: ones */
    const backward_plain *f[NRG_ROW_BATCH];
    const backward_factors *any;      /* of a single row, in the place of f */
    char *dp[NRG_ROW_BATCH];          /* of the elements that d and p are of */
    const char *dr_in[NRG_ROW_BATCH]; /* of a batch: added to dp; all or none NULL */
    int dr_f32;                       /* it is f32 beside 16-bit elements */
    int stream;                       /* dp past the cache */
    size_t ahead_d, ahead_p;          /* of a batch that is streamed: bytes from these rows to others that are asked for; or 0s */
    double *dw, *db;                  /* column sums; NULL where not asked for */
    float *dw_out, *db_out;           /* the gradients themselves, where these are the last rows of the only block; or NULL */
    int fresh;                        /* the sums begin with these rows */
    int straight;                     /* of a batch: they end with them too, and are the gradients as they are */
    const float *r, *slope;           /* of a single row: with dz, dp·r·slope is wanted too */
    float *dz;
    float *partial_w,
        *partial_b; /* of a single row: what the rows before it in its batch have added up to; NULL where not asked for */
    int first;      /* it is the first of its batch */
} backward_rows;

/* Adds a vector of floats to n sums. */
NRG_INLINE void add_to_sums(double *sums, vf partial, size_t n, int fresh)
{
    vd low = vd_low(partial), high = vd_high(partial);
    if (n == VN) {
        vd_st(sums, fresh ? low : vd_add(vd_ld(sums), low));
        vd_st(sums + VN / 2, fresh ? high : vd_add(vd_ld(sums + VN / 2), high));
        return;
    }
    double part[VN];
    vd_st(part, low);
    vd_st(part + VN / 2, high);
    for (size_t i = 0; i < n; i++)
        sums[i] = fresh ? part[i] : sums[i] + part[i];
}

/* A row's multipliers as vectors. */
typedef struct backward_vf {
    vf mean, rstd, minus_left, a, minus_b, c;
} backward_vf;

NRG_INLINE backward_vf vectors_of(const backward_plain *f)
{
    backward_vf v = {v_set1(f->mean), v_set1(f->rstd), v_set1(-f->left), v_set1(f->a), v_set1(-f->b), v_set1(f->c)};
    return v;
}

/* What some rows have added up to: to the block's sums, or straight to the gradient, for which -0 counts as 0. */
NRG_INLINE void backward_column(double *sums, float *out, size_t i, vf partial, size_t n, int fresh, int straight)
{
    if (straight)
        store_lanes(out + i, v_add(partial, v_zero()), n);
    else
        add_to_sums(sums + i, partial, n, fresh);
}

enum {
    BACKWARD_MOST = VN >= 8 ? 4 : 2, /* vectors in a step */
    BACKWARD_AHEAD = 2 /* streaming, and asking for the rows ahead: so that the memory has loads to do beside the stores */
};

/* Columns of some rows on their way. */
typedef struct backward_columns {
    vf w[BACKWARD_MOST], partial_w[BACKWARD_MOST], partial_b[BACKWARD_MOST];
} backward_columns;

/* Whether a step has bf16 by pairs (step.h), its weights and sums too: with AVX2 rms in 0.78 to 0.92 of the time, LayerNorm in
 * 0.89 to 0.95, with AVX-512 in 0.87 to 0.98. */
NRG_INLINE int backward_in_pairs(int G, size_t n, nrg_dtype D) { return VN >= 8 && D == NRG_BF16 && G == 4 && !is_part(G, n); }

/* Columns i to i + n of one row. Where the norm is not centred, mean and left are 0, and c is -0: leaving them out keeps the
 * bits. */
NRG_INLINE void backward_row_step(backward_columns *c, const backward_rows *b, const backward_vf *f, int row, int G, size_t i,
                                  size_t n, int centred, int stream, nrg_dtype D)
{
    vf d[BACKWARD_MOST], p[BACKWARD_MOST], dp[BACKWARD_MOST];
    if (stream == BACKWARD_AHEAD) {
        NRG_UNROLL
        for (size_t at = 0; at < bytes_of((size_t)G * VN, D, 0); at += 64) {
            __builtin_prefetch((const void *)((uintptr_t)b->d[row] + b->ahead_d + bytes_of(i, D, 0) + at), 0, 2);
            __builtin_prefetch((const void *)((uintptr_t)b->p[row] + b->ahead_p + bytes_of(i, D, 0) + at), 0, 2);
        }
    }
    const int pairs = backward_in_pairs(G, n, D);
    if (pairs) {
        load_pairs(d, G, b->d[row], i);
        load_pairs(p, G, b->p[row], i);
    } else {
        load_step(d, G, b->d[row], i, n, D);
        load_step(p, G, b->p[row], i, n, D);
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        vf q = centred ? v_sub(p[j], f->mean) : p[j];
        vf h = centred ? v_fma(q, f->rstd, f->minus_left) : v_mul(q, f->rstd);
        dp[j] = v_fma(v_mul(d[j], c->w[j]), f->a, centred ? v_fma(q, f->minus_b, f->c) : v_mul(q, f->minus_b));
        c->partial_w[j] = row ? v_fma(d[j], h, c->partial_w[j]) : v_mul(d[j], h);
        if (centred)
            c->partial_b[j] = row ? v_add(c->partial_b[j], d[j]) : d[j];
        else if (V_SMALL) /* where centred is no constant, compilers do not see that nobody looks at it */
            c->partial_b[j] = v_zero();
    }
    if (b->dr_in[row]) {
        vf dr_in[BACKWARD_MOST];
        load_step_or_f32(dr_in, G, b->dr_in[row], i, n, D, b->dr_f32);
        if (pairs)
            order_to_pairs(dr_in, G);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            dp[j] = v_add(dp[j], dr_in[j]);
    }
    if (pairs) {
        vp h[BACKWARD_MOST / 2];
        round_pairs(h, dp, G, 0);
        store_pair_step(h, G, (uint16_t *)b->dp[row] + i, stream != 0);
    } else
        store_step(dp, G, b->dp[row], i, n, D, stream != 0);
}

/* Columns i to i + n of R rows, or of b->count, two or more, where R is 0: G whole vectors, or the first n lanes of one. */
NRG_INLINE void backward_step(const backward_rows *b, const backward_vf *f, int R, int G, size_t i, size_t n, int centred,
                              int stream, int straight, nrg_dtype D)
{
    backward_columns c;
    if (b->w)
        load_step(c.w, G, (const char *)b->w, i, n, NRG_F32);
    else
        for (int j = 0; j < G; j++)
            c.w[j] = v_set1(1);
    if (backward_in_pairs(G, n, D))
        order_to_pairs(c.w, G);
    backward_row_step(&c, b, f, 0, G, i, n, centred, stream, D);
    for (int row = 1; row < (R ? R : b->count); row++)
        backward_row_step(&c, b, f + row, row, G, i, n, centred, stream, D);
    if (b->dw) {
        if (backward_in_pairs(G, n, D))
            pairs_to_order(c.partial_w, G);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            backward_column(b->dw, b->dw_out, i + j * VN, c.partial_w[j], G == 1 ? n : VN, b->fresh, straight);
    }
    if (centred && b->db) {
        if (backward_in_pairs(G, n, D))
            pairs_to_order(c.partial_b, G);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            backward_column(b->db, b->db_out, i + j * VN, c.partial_b[j], G == 1 ? n : VN, b->fresh, straight);
    }
}

/* Vectors of a row in a step that is streamed: a whole line at least. Halves of lines of 16 bits, four rows in turn, took 1.01
 * to 1.06 times as long, and now and then 1.6 times, when something else drove them out before they were whole. */
NRG_INLINE int backward_line(nrg_dtype D) { return VN > 8 || (VN == 8 && D != NRG_F32) ? 4 : 2; }

NRG_INLINE void backward_steps(const backward_rows *b, const backward_vf *f, int R, int G, size_t n, int centred, int straight,
                               nrg_dtype D)
{
    const int L = backward_line(D);
    const size_t step = (size_t)G * VN, most = (size_t)L * VN;
    size_t i = 0;
    if (R == NRG_ROW_BATCH && streams(b->stream) && b->ahead_d)
        for (; i + most <= n; i += most)
            backward_step(b, f, R, L, i, most, centred, BACKWARD_AHEAD, straight, D);
    else if (R == NRG_ROW_BATCH && streams(b->stream))
        for (; i + most <= n; i += most)
            backward_step(b, f, R, L, i, most, centred, 1, straight, D);
    else
        for (; i + step <= n; i += step)
            backward_step(b, f, R, G, i, step, centred, 0, straight, D);
    for (; i < n; i += VN)
        backward_step(b, f, R == NRG_ROW_BATCH ? 0 : R, 1, i, lanes_at(i, n), centred, R == NRG_ROW_BATCH && b->stream, straight,
                      D);
}

NRG_INLINE void backward_steps_any(const backward_rows *rows, int R, int G, size_t n, int centred, int straight, nrg_dtype D)
{
    const int most = R ? R : NRG_ROW_BATCH;
    backward_vf f[NRG_ROW_BATCH];
    NRG_UNROLL
    for (int row = 0; row < most; row++)
        f[row] = vectors_of(rows->f[row < rows->count ? row : 0]);
    if (V_SMALL)
        backward_steps(rows, f, R, G, n, centred || rows->db, straight, D);
    else if (centred || rows->db) /* db goes with LayerNorm: that of an RMSNorm takes the same way */
        backward_steps(rows, f, R, G, n, 1, straight, D);
    else
        backward_steps(rows, f, R, G, n, 0, straight, D);
}

/* Vectors in a step of four rows that are not streamed. The rows follow each other in a loop: two vectors of four rows at once
 * are three pointers a row, more than there are registers for: 1.01 to 1.04 times as long with AVX-512, with AVX2 about the same.
 */
enum { BACKWARD_STEP = VN >= 8 ? 4 : 1 };

/* Batches that are whole; and those that are not, of which a row alone has loops of its own where its sums are the gradients. */
NRG_INLINE void backward_batch_of(const backward_rows *rows, size_t n, int centred, nrg_dtype D)
{
    if (V_SMALL)
        backward_steps_any(rows, 0, 1, n, centred, rows->straight, D);
    else if (rows->count == NRG_ROW_BATCH && !rows->straight)
        backward_steps_any(rows, NRG_ROW_BATCH, BACKWARD_STEP, n, centred, 0, D);
    else if (rows->count == 1 && rows->straight)
        backward_steps_any(rows, 1, 2, n, centred, 1, D);
    else if (rows->straight)
        backward_steps_any(rows, 0, 2, n, centred, 1, D);
    else
        backward_steps_any(rows, 0, 2, n, centred, 0, D);
}

/* n columns of a batch of plain rows of dtype D. */
static __attribute__((noinline)) void backward_batch_elements(const backward_rows *rows, size_t n, int centred, nrg_dtype D)
{
    NRG_CALL_BY_DTYPE(D, backward_batch_of, rows, n, centred);
}

/* A column's sums to its gradient, as the second phase does it of several blocks (calls/reduce.h). */
static __attribute__((noinline)) void backward_finish_sums(float *out, const double *sums, double factor, int accumulate,
                                                           size_t n)
{
    const vd k = vd_set1(factor);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        double part[VN] = {0};
        const double *from = sums + i;
        if (lanes < VN) {
            memcpy(part, from, lanes * sizeof *from);
            from = part;
        }
        vd low = vd_mul(k, vd_add(vd_zero(), vd_ld(from))), high = vd_mul(k, vd_add(vd_zero(), vd_ld(from + VN / 2)));
        if (accumulate) {
            const vf before = load_lanes(out + i, lanes);
            low = vd_add(vd_low(before), low);
            high = vd_add(vd_high(before), high);
        }
        store_lanes(out + i, v_from_vd(low, high), lanes);
    }
}

/* h of a chunk; p may be h. */
static __attribute__((noinline)) void backward_normalized(float *h, const float *p, const backward_factors *factors, size_t n)
{
    const backward_factors f = *factors;
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf v = load_lanes(p + i, lanes);
        if (f.fallback) {
            vd low = vd_sub(vd_sub(vd_low(v), vd_set1(f.pilot)), vd_set1(f.shift));
            vd high = vd_sub(vd_sub(vd_high(v), vd_set1(f.pilot)), vd_set1(f.shift));
            v = v_from_vd(vd_mul(low, vd_set1(f.inverse)), vd_mul(high, vd_set1(f.inverse)));
        } else
            v = v_fma(v_sub(v, v_set1(f.plain.mean)), v_set1(f.plain.rstd), v_set1(-f.plain.left));
        store_lanes(h + i, v, lanes);
    }
}

/* dp in double, for one half of a vector. */
NRG_INLINE vd fallback_dp(const backward_factors *f, vd p, vd d, vd w, int weighted)
{
    vd h = vd_mul(vd_sub(vd_sub(p, vd_set1(f->pilot)), vd_set1(f->shift)), vd_set1(f->inverse));
    vd dh = weighted ? vd_mul(d, w) : d;
    return vd_fma(dh, vd_set1(f->fallback_a), vd_fma(h, vd_set1(-f->fallback_b), vd_set1(f->fallback_c)));
}

NRG_INLINE void store_dz(const backward_rows *b, vd low, vd high, size_t i, size_t lanes)
{
    vf r = load_lanes(b->r + i, lanes), slope = load_lanes(b->slope + i, lanes);
    low = vd_mul(vd_mul(low, vd_low(r)), vd_low(slope));
    high = vd_mul(vd_mul(high, vd_high(r)), vd_high(slope));
    store_lanes(b->dz + i, v_from_vd(low, high), lanes);
}

/* n columns of a row by itself: one of a batch that is not whole, or needs the fallback, or has a gate. h: of the chunk. */
static __attribute__((noinline)) void backward_row_elements(const backward_rows *rows, const float *chunk_h, size_t n)
{
    const backward_rows b = *rows;
    const backward_factors *f = b.any;
    const backward_vf v = vectors_of(&f->plain);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf d = load_lanes((const float *)b.d[0] + i, lanes), h = load_lanes(chunk_h + i, lanes), w = v_set1(0), dp;
        if (b.w)
            w = load_lanes(b.w + i, lanes);
        vf p = load_lanes((const float *)b.p[0] + i, lanes);
        if (f->fallback) {
            vd low = fallback_dp(f, vd_low(p), vd_low(d), vd_low(w), b.w != NULL);
            vd high = fallback_dp(f, vd_high(p), vd_high(d), vd_high(w), b.w != NULL);
            dp = v_from_vd(low, high);
            if (b.dz)
                store_dz(&b, low, high, i, lanes);
        } else {
            vf dh = b.w ? v_mul(d, w) : d;
            dp = v_fma(dh, v.a, v_fma(v_sub(p, v.mean), v.minus_b, v.c));
            if (b.dz)
                store_dz(&b, vd_low(dp), vd_high(dp), i, lanes);
        }
        if (b.partial_w)
            store_lanes(b.partial_w + i, b.first ? v_mul(d, h) : v_fma(d, h, load_lanes(b.partial_w + i, lanes)), lanes);
        if (b.partial_b)
            store_lanes(b.partial_b + i, b.first ? d : v_add(load_lanes(b.partial_b + i, lanes), d), lanes);
        store_lanes((float *)b.dp[0] + i, dp, lanes);
    }
}

/* What a batch's rows have added up to, into the column sums. */
static __attribute__((noinline)) void backward_add_partial(double *sums, const float *partial, size_t n, int fresh)
{
    for (size_t i = 0; i < n; i += VN)
        add_to_sums(sums + i, load_lanes(partial + i, lanes_at(i, n)), lanes_at(i, n), fresh);
}

/* o1 = k·h·(w + weight_offset) + b of a row's chunk, as the forward pass had it but for its last bit. */
static __attribute__((noinline)) void backward_outputs(float *o1, const float *h, const float *w, const float *bias, double k,
                                                       size_t n)
{
    const vd factor = vd_set1(k);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf v = load_lanes(h + i, lanes);
        vd low = vd_mul(vd_low(v), factor), high = vd_mul(vd_high(v), factor);
        if (w) {
            v = load_lanes(w + i, lanes);
            low = vd_mul(low, vd_low(v));
            high = vd_mul(high, vd_high(v));
        }
        if (bias) {
            v = load_lanes(bias + i, lanes);
            low = vd_add(low, vd_low(v));
            high = vd_add(high, vd_high(v));
        }
        store_lanes(o1 + i, v_from_vd(low, high), lanes);
    }
}

#endif
