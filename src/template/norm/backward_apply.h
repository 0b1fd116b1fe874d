/* Apply and sink of the backward pass: from p, do1 and the factors of a row to dp, and to the column sums of dw and db.
 *
 * Up to four rows of one group share an addition to the column sums: their shares of a column add in f32, and then once in
 * double. A block that has no other rows needs no sums: those shares are its gradients.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_APPLY_H
#define NRG_TEMPLATE_NORM_BACKWARD_APPLY_H

#include "backward_scalars.h"

enum column_option {
    COLUMN_CENTRED = OPT_CENTRED, /* or db is an output */
    COLUMN_DR_IN = 1 << 1,        /* dr_in is added to dp, */
    COLUMN_DR_F32 = 1 << 2,       /* and is f32 beside 16-bit rows */
    COLUMN_STREAM = 1 << 3,       /* dp goes past the cache, */
    COLUMN_AHEAD = 1 << 4,        /* and rows ahead are prefetched, so that memory has loads to do beside the stores */
    COLUMN_DW = 1 << 5,
    COLUMN_DB = 1 << 6,
    COLUMN_FIRST = 1 << 7, /* the sums begin with these rows, */
    COLUMN_ONLY = 1 << 8,  /* and end with them, and are the gradients as they are */
    COLUMN_ALL = (1 << 9) - 1
};

enum { COLUMN_VECTORS = V_SMALL ? 1 : VN >= 8 ? 4 : 2 };

/* The factors of a row, in all lanes. */
typedef struct column_factors {
    vf mean, rstd, minus_left, a, minus_b, c;
} column_factors;

/* Rows of a batch. */
typedef struct column_rows {
    int count;
    unsigned options;
    const char *d[NRG_ROW_BATCH], *p[NRG_ROW_BATCH], *dr_in[NRG_ROW_BATCH]; /* d and p: floats, or 16-bit rows where they are */
    char *dp[NRG_ROW_BATCH];
    column_factors f[NRG_ROW_BATCH];
    run_weights w;
    double *dw, *db;         /* column sums; NULL: not asked for */
    float *dw_out, *db_out;  /* the gradients, where these are the last rows of the only block; otherwise NULL */
    size_t ahead_d, ahead_p; /* bytes to the rows that are prefetched */
} column_rows;

/* Columns that the rows add to. */
typedef struct column_vectors {
    vf w[COLUMN_VECTORS], dw[COLUMN_VECTORS], db[COLUMN_VECTORS];
} column_vectors;

NRG_INLINE column_factors column_factors_of(const gradient_factors *f)
{
    return (column_factors){v_set1(f->mean), v_set1(f->rstd), v_set1(-f->left), v_set1(f->a), v_set1(-f->b), v_set1(f->c)};
}

/* Whether a step has bf16 in pairs (step.h), its weights and sums too: with AVX2 rms in 0.78 to 0.92 of the time, LayerNorm in
 * 0.89 to 0.95, with AVX-512 in 0.87 to 0.98. */
NRG_INLINE int has_pairs(int G, size_t n, nrg_dtype D) { return VN >= 8 && D == NRG_BF16 && G == 4 && !is_part(G, n); }

NRG_INLINE void load_columns(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (has_pairs(G, n, D))
        load_pairs(v, G, p, i);
    else
        load_step(v, G, p, i, n, D);
}

/* Adds a vector of floats to n sums. */
NRG_INLINE void add_to_column(double *sums, vf partial, size_t n, unsigned is_first)
{
    const vd low = vd_low(partial), high = vd_high(partial);
    if (n == VN) {
        vd_st(sums, is_first ? low : vd_add(vd_ld(sums), low));
        vd_st(sums + VN / 2, is_first ? high : vd_add(vd_ld(sums + VN / 2), high));
        return;
    }
    double part[VN];
    vd_st(part, low);
    vd_st(part + VN / 2, high);
    for (size_t i = 0; i < n; i++)
        sums[i] = is_first ? part[i] : sums[i] + part[i];
}

/* What the rows have added up to: to the sums, or to the gradient, for which -0 counts as 0. */
NRG_INLINE void add_columns(vf *partial, int G, double *sums, float *out, size_t i, size_t n, unsigned options)
{
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const size_t at = i + (size_t)j * VN, lanes = G == 1 ? n : VN;
        if (options & COLUMN_ONLY)
            store_lanes(out + at, v_add(partial[j], v_zero()), lanes);
        else
            add_to_column(sums + at, partial[j], lanes, options & COLUMN_FIRST);
    }
}

/* Not to L1, where they would drive out the rows of this tile: f32 rms 20000x1024 in 0.82 of the time (Zen 4, AVX-512). p as a
 * number: there may be nothing. */
NRG_INLINE void prefetch_to_l2(uintptr_t p, size_t bytes)
{
    NRG_UNROLL
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)(p + b), 0, 2);
}

/* Columns i to i + n of one row: G vectors, or the first n lanes of one. Without a mean, mean and left are 0 and c is -0: leaving
 * them out keeps the bits. */
NRG_INLINE void column_row(column_vectors *c, const column_rows *rows, int row, int G, size_t i, size_t n, norm_policy P)
{
    const column_factors *const f = &rows->f[row];
    const unsigned options = options_in(rows->options, P);
    const int has_mean = is_centred(P), pairs = has_pairs(G, n, P.dtype);
    vf d[COLUMN_VECTORS], p[COLUMN_VECTORS], dp[COLUMN_VECTORS];
    if (NRG_RARELY(options & COLUMN_AHEAD)) {
        prefetch_to_l2((uintptr_t)rows->d[row] + bytes_of(i, P.dtype, 0) + rows->ahead_d, bytes_of((size_t)G * VN, P.dtype, 0));
        prefetch_to_l2((uintptr_t)rows->p[row] + bytes_of(i, P.dtype, 0) + rows->ahead_p, bytes_of((size_t)G * VN, P.dtype, 0));
    }
    load_columns(d, G, rows->d[row], i, n, P.dtype);
    load_columns(p, G, rows->p[row], i, n, P.dtype);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const vf q = has_mean ? v_sub(p[j], f->mean) : p[j];
        const vf h = has_mean ? v_fma(q, f->rstd, f->minus_left) : v_mul(q, f->rstd);
        dp[j] = v_fma(v_mul(d[j], c->w[j]), f->a, has_mean ? v_fma(q, f->minus_b, f->c) : v_mul(q, f->minus_b));
        c->dw[j] = row ? v_fma(d[j], h, c->dw[j]) : v_mul(d[j], h);
        if (has_mean)
            c->db[j] = row ? v_add(c->db[j], d[j]) : d[j];
    }
    if (options & COLUMN_DR_IN) {
        vf dr_in[COLUMN_VECTORS];
        load_step_or_f32(dr_in, G, rows->dr_in[row], i, n, P.dtype, options & COLUMN_DR_F32);
        if (pairs)
            order_to_pairs(dr_in, G);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            dp[j] = v_add(dp[j], dr_in[j]);
    }
    if (pairs) {
        vp h[COLUMN_VECTORS];
        round_pairs(h, dp, G, 0);
        store_pair_step(h, G, (uint16_t *)rows->dp[row] + i, (options & COLUMN_STREAM) != 0);
    } else
        store_step(dp, G, rows->dp[row], i, n, P.dtype, (options & COLUMN_STREAM) != 0);
}

/* The rows follow each other in a loop: all at once are three pointers a row, more than there are registers for: 1.01 to 1.04
 * times as long with AVX-512, with AVX2 about the same. */
NRG_INLINE void columns_step(const column_rows *rows, int G, size_t i, size_t n, norm_policy P)
{
    column_vectors c;
    load_step(c.w, G, (const char *)(rows->w.at + (i & rows->w.mask)), 0, n, NRG_F32);
    if (has_pairs(G, n, P.dtype))
        order_to_pairs(c.w, G);
    column_row(&c, rows, 0, G, i, n, P);
    for (int row = 1; row < rows->count; row++)
        column_row(&c, rows, row, G, i, n, P);
    const unsigned options = options_in(rows->options, P);
    if (options & COLUMN_DW) {
        if (has_pairs(G, n, P.dtype))
            pairs_to_order(c.dw, G);
        add_columns(c.dw, G, rows->dw, rows->dw_out, i, n, options);
    }
    if (is_centred(P) && options & COLUMN_DB) {
        if (has_pairs(G, n, P.dtype))
            pairs_to_order(c.db, G);
        add_columns(c.db, G, rows->db, rows->db_out, i, n, options);
    }
}

NRG_INLINE norm_policy column_policy(nrg_dtype D, unsigned must)
{
    return (norm_policy){.dtype = D, .must = must, .may = COLUMN_ALL & ~(unsigned)COLUMN_CENTRED};
}

/* Columns i to n, less than a step. */
NRG_INLINE void columns_tail_of(const column_rows *rows, size_t i, size_t n, nrg_dtype D)
{
    for (; i < n; i += VN)
        columns_step(rows, 1, i, lanes_at(i, n), column_policy(D, COLUMN_CENTRED));
}
NRG_BY_DTYPE(columns_tail, (rows, i, n), const column_rows *rows, size_t i, size_t n)

NRG_INLINE void columns_by(const column_rows *rows, size_t n, norm_policy P)
{
    const size_t step = (size_t)COLUMN_VECTORS * VN;
    size_t i = 0;
    for (; i + step <= n; i += step)
        columns_step(rows, COLUMN_VECTORS, i, step, P);
    if (i < n)
        columns_tail(rows, i, n, P.dtype);
}

NRG_INLINE void columns_rms_of(const column_rows *rows, size_t n, nrg_dtype D) { columns_by(rows, n, column_policy(D, 0)); }
NRG_BY_DTYPE(columns_rms, (rows, n), const column_rows *rows, size_t n)

NRG_INLINE void columns_layer_of(const column_rows *rows, size_t n, nrg_dtype D)
{
    columns_by(rows, n, column_policy(D, COLUMN_CENTRED));
}
NRG_BY_DTYPE(columns_layer, (rows, n), const column_rows *rows, size_t n)

/* A column's sums to its gradient, as the second phase does it of several blocks (calls/reduce.h). */
static __attribute__((noinline)) void sums_to_gradient(float *out, const double *sums, double factor, int accumulate, size_t n)
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

/* Where columns from `begin` on of rows n to n + rows->count go. */
NRG_INLINE void find_columns(column_rows *rows, const backward *b, size_t n, size_t begin)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t at = (n / job->block_rows * job->groups + b->group) * job->dim + begin;
    const int is_last = n + (size_t)rows->count == job->row_end;
    rows->dw = job->dw ? job->dw + at : NULL;
    rows->db = job->db ? job->db + at : NULL;
    rows->dw_out = is_last && job->dw_out ? job->dw_out + at : NULL;
    rows->db_out = is_last && job->db_out ? job->db_out + at : NULL;
    rows->options |= (job->dw ? COLUMN_DW : 0) | (job->db ? COLUMN_DB : 0) | (n % job->block_rows == 0 ? COLUMN_FIRST : 0);
}

/* The gradients of the only block, when all of its rows have added to the sums. */
NRG_INLINE void end_columns(const column_rows *rows, const nrg_norm_backward_job *job, size_t n)
{
    if (rows->dw_out)
        sums_to_gradient(rows->dw_out, rows->dw, job->formula.k, job->accumulate, n);
    if (rows->db_out)
        sums_to_gradient(rows->db_out, rows->db, 1, job->accumulate, n);
}

/* n columns of plain rows of dtype D. */
NRG_INLINE void output_columns(column_rows *rows, const nrg_norm_backward_job *job, size_t n, nrg_dtype D)
{
    const int has_out = rows->dw_out || rows->db_out;
    if (rows->options & COLUMN_FIRST && has_out && job->formula.k == 1 && !job->accumulate)
        rows->options |= COLUMN_ONLY;
    /* db goes with LayerNorm; that of an RMSNorm takes the same way. One element has no gradient: c is 0 then, not -0 */
    if (NORM_IS_SMALL || job->formula.centred || job->db || job->dim == 1)
        columns_layer(rows, n, D);
    else
        columns_rms(rows, n, D);
    if (!(rows->options & COLUMN_ONLY))
        end_columns(rows, job, n);
}

/* ---- a row by itself: with an activation on the output, with a gate where gated_columns.h does not serve, or in double ---- */

/* Columns of such a row, in floats. */
typedef struct single_row {
    const row_gradient *f;
    const float *d, *p, *h; /* do1, p and h */
    const float *r, *slope; /* of a gate before the norm: dz = dp·r·g′(z) */
    run_weights w;
    float *dp, *dz; /* dz: NULL where not asked for */
    float *dw, *db; /* what the rows before it in its batch have added up to; NULL where not asked for */
    int is_first;   /* in its batch */
} single_row;

/* h; p may be h. */
static __attribute__((noinline)) void normalize_floats(float *h, const float *p, const row_gradient *factors, size_t n)
{
    const row_gradient f = *factors;
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf v = load_lanes(p + i, lanes);
        if (f.is_fallback) {
            const vd low = vd_sub(vd_sub(vd_low(v), vd_set1(f.fallback.pilot)), vd_set1(f.fallback.offset));
            const vd high = vd_sub(vd_sub(vd_high(v), vd_set1(f.fallback.pilot)), vd_set1(f.fallback.offset));
            v = v_from_vd(vd_mul(low, vd_set1(f.fallback.inverse)), vd_mul(high, vd_set1(f.fallback.inverse)));
        } else
            v = v_fma(v_sub(v, v_set1(f.plain.mean)), v_set1(f.plain.rstd), v_set1(-f.plain.left));
        store_lanes(h + i, v, lanes);
    }
}

/* o1 = k·h·(w + weight_offset) + bias, as in the forward pass but for its last bit. bias: NULL where absent. */
static __attribute__((noinline)) void recompute_outputs(float *o1, const float *h, run_weights w, const float *bias, double k,
                                                        size_t n)
{
    const vd factor = vd_set1(k);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf v = load_lanes(h + i, lanes), weight = load_lanes(w.at + (i & w.mask), lanes);
        vd low = vd_mul(vd_mul(vd_low(v), factor), vd_low(weight)), high = vd_mul(vd_mul(vd_high(v), factor), vd_high(weight));
        if (bias) {
            const vf b = load_lanes(bias + i, lanes);
            low = vd_add(low, vd_low(b));
            high = vd_add(high, vd_high(b));
        }
        store_lanes(o1 + i, v_from_vd(low, high), lanes);
    }
}

/* dp in double, of one half of a vector. */
NRG_INLINE vd fallback_dp(const fallback_slopes *f, vd p, vd dh)
{
    const vd h = vd_mul(vd_sub(vd_sub(p, vd_set1(f->pilot)), vd_set1(f->offset)), vd_set1(f->inverse));
    return vd_fma(dh, vd_set1(f->a), vd_fma(h, vd_set1(-f->b), vd_set1(f->c)));
}

static __attribute__((noinline)) void output_single_row(const single_row *row, size_t n)
{
    const single_row r = *row;
    const row_gradient *f = r.f;
    const column_factors v = column_factors_of(&f->plain);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf d = load_lanes(r.d + i, lanes), h = load_lanes(r.h + i, lanes), p = load_lanes(r.p + i, lanes),
                 w = load_lanes(r.w.at + (i & r.w.mask), lanes);
        vf dp = v_fma(v_mul(d, w), v.a, v_fma(v_sub(p, v.mean), v.minus_b, v.c));
        vd low = vd_low(dp), high = vd_high(dp);
        if (f->is_fallback) {
            low = fallback_dp(&f->fallback, vd_low(p), vd_mul(vd_low(d), vd_low(w)));
            high = fallback_dp(&f->fallback, vd_high(p), vd_mul(vd_high(d), vd_high(w)));
            dp = v_from_vd(low, high);
        }
        if (r.dz) {
            const vf x = load_lanes(r.r + i, lanes), slope = load_lanes(r.slope + i, lanes);
            low = vd_mul(vd_mul(low, vd_low(x)), vd_low(slope));
            high = vd_mul(vd_mul(high, vd_high(x)), vd_high(slope));
            store_lanes(r.dz + i, v_from_vd(low, high), lanes);
        }
        if (r.dw)
            store_lanes(r.dw + i, r.is_first ? v_mul(d, h) : v_fma(d, h, load_lanes(r.dw + i, lanes)), lanes);
        if (r.db)
            store_lanes(r.db + i, r.is_first ? d : v_add(load_lanes(r.db + i, lanes), d), lanes);
        store_lanes(r.dp + i, dp, lanes);
    }
}

/* What the rows of a batch have added up to, into the column sums. */
static __attribute__((noinline)) void add_partial(double *sums, const float *partial, size_t n, unsigned is_first)
{
    for (size_t i = 0; i < n; i += VN)
        add_to_column(sums + i, load_lanes(partial + i, lanes_at(i, n)), lanes_at(i, n), is_first);
}

#endif
