/* From p and do1 to dp, and to the partial sums of dw and db: the last walk over a row.
 *
 * Up to four rows at once: their shares of a column's sum add up in f32 before one addition in double.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_ELEMENT_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_ELEMENT_H

#include "norm_backward_sum.h"

/* A chunk of several rows. */
typedef struct backward_rows {
    const char *d[NRG_ROW_BATCH], *p[NRG_ROW_BATCH]; /* floats, or of a batch 16-bit elements as they are in memory */
    const float *w;                                  /* with the weight offset; NULL: ones */
    const backward_factors *f[NRG_ROW_BATCH];
    char *dp[NRG_ROW_BATCH];          /* of the elements that d and p are of */
    const char *dr_in[NRG_ROW_BATCH]; /* of a batch: added to dp; all or none NULL */
    int dr_f32;                       /* it is f32 beside 16-bit elements */
    int stream;                       /* dp past the cache */
    double *dw, *db;                  /* column sums; NULL where not asked for */
    int fresh;                        /* they begin with these rows */
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

NRG_INLINE backward_vf vectors_of(const backward_factors *f)
{
    backward_vf v = {v_set1(f->mean), v_set1(f->rstd), v_set1(-f->left), v_set1(f->a), v_set1(-f->b), v_set1(f->c)};
    return v;
}

/* Columns i to i + n of a batch: G whole vectors, or the first n lanes of one. Where the norm is not centred, mean and left are
 * 0, and c is -0: leaving them out keeps the bits. */
NRG_INLINE void backward_step(const backward_rows *b, const backward_vf *f, int G, size_t i, size_t n, int centred, int stream,
                              nrg_dtype D)
{
    enum { MOST = 2 };
    vf w[MOST], partial_w[MOST], partial_b[MOST];
    if (b->w)
        load_step(w, G, (const char *)b->w, i, n, NRG_F32);
    else
        for (int j = 0; j < G; j++)
            w[j] = v_set1(1);
    NRG_UNROLL
    for (int row = 0; row < NRG_ROW_BATCH; row++) {
        vf d[MOST], p[MOST], dp[MOST];
        load_step(d, G, b->d[row], i, n, D);
        load_step(p, G, b->p[row], i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            vf q = centred ? v_sub(p[j], f[row].mean) : p[j];
            vf h = centred ? v_fma(q, f[row].rstd, f[row].minus_left) : v_mul(q, f[row].rstd);
            dp[j] = v_fma(v_mul(d[j], w[j]), f[row].a, centred ? v_fma(q, f[row].minus_b, f[row].c) : v_mul(q, f[row].minus_b));
            partial_w[j] = row ? v_fma(d[j], h, partial_w[j]) : v_mul(d[j], h);
            if (centred)
                partial_b[j] = row ? v_add(partial_b[j], d[j]) : d[j];
        }
        if (b->dr_in[row]) {
            vf dr_in[MOST];
            load_step_or_f32(dr_in, G, b->dr_in[row], i, n, D, b->dr_f32);
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                dp[j] = v_add(dp[j], dr_in[j]);
        }
        store_step(dp, G, b->dp[row], i, n, D, stream);
    }
    if (b->dw) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            add_to_sums(b->dw + i + j * VN, partial_w[j], G == 1 ? n : VN, b->fresh);
    }
    if (centred && b->db) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            add_to_sums(b->db + i + j * VN, partial_b[j], G == 1 ? n : VN, b->fresh);
    }
}

NRG_INLINE void backward_steps(const backward_rows *b, const backward_vf *f, size_t n, int centred, nrg_dtype D)
{
    size_t i = 0;
    if (b->stream)
        for (; i + 2 * VN <= n; i += 2 * VN)
            backward_step(b, f, 2, i, 2 * VN, centred, 1, D);
    else
        for (; i + 2 * VN <= n; i += 2 * VN)
            backward_step(b, f, 2, i, 2 * VN, centred, 0, D);
    for (; i < n; i += VN)
        backward_step(b, f, 1, i, lanes_at(i, n), centred, 0, D);
}

NRG_INLINE void backward_steps_any(const backward_rows *b, const backward_vf *f, size_t n, int centred, nrg_dtype D)
{
    if (centred || b->db) /* db goes with LayerNorm: that of an RMSNorm takes the same way */
        backward_steps(b, f, n, 1, D);
    else
        backward_steps(b, f, n, 0, D);
}

/* n columns of a whole batch of plain rows of dtype D. */
static __attribute__((noinline)) void backward_batch_elements(const backward_rows *rows, size_t n, int centred, nrg_dtype D)
{
    const backward_rows b = *rows;
    backward_vf f[NRG_ROW_BATCH];
    NRG_UNROLL
    for (int row = 0; row < NRG_ROW_BATCH; row++)
        f[row] = vectors_of(b.f[row]);
    if (D == NRG_F32)
        backward_steps_any(&b, f, n, centred, NRG_F32);
    else if (D == NRG_F16)
        backward_steps_any(&b, f, n, centred, NRG_F16);
    else
        backward_steps_any(&b, f, n, centred, NRG_BF16);
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
            v = v_fma(v_sub(v, v_set1(f.mean)), v_set1(f.rstd), v_set1(-f.left));
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
    const backward_factors *f = b.f[0];
    const backward_vf v = vectors_of(f);
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
