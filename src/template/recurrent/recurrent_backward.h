/* The backward pass of recurrent.h: the gradients down a chain, and the sums over all chains for W and b. The order of all
 * arithmetic is that of src/scalar/recurrent.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RECURRENT_RECURRENT_BACKWARD_H
#define NRG_TEMPLATE_RECURRENT_RECURRENT_BACKWARD_H

#ifndef NRG_NO_BACKWARD
#include "../store_sums.h"
#include "recurrent.h"

enum {
    COLUMN_CHUNK = 1024, /* columns of W whose sums are on the stack */
    COLUMN_ROWS = 4,     /* rows that a sum takes on its way through the registers */
    COLUMN_BLOCK = 64,   /* elements of a row that is left over */
    /* A tile of dW: its sums are registers while positions pass by. */
    OUTER_ROWS = VN / 2, /* one vector of doubles of g */
    OUTER_VECTORS = VN == 4 ? 4 : 1,
    OUTER_COLUMNS = OUTER_VECTORS * VN,
    OUTER_TILES = 16 / OUTER_ROWS, /* one above the other, for which p is converted once */
    OUTER_POSITIONS = 32           /* whose g and p are doubles on the stack */
};

/* ---- Wᵀ g: lanes run over columns, rows come in order ---- */

/* sums += COLUMN_ROWS rows of W, times g each: n columns, whole vectors. */
NRG_INLINE void add_rows(double *sums, const char *w, size_t w_stride, size_t begin, size_t n, const float *g, nrg_dtype T)
{
    vd factor[COLUMN_ROWS];
    NRG_UNROLL
    for (int r = 0; r < COLUMN_ROWS; r++)
        factor[r] = vd_set1((double)g[r]);
    for (size_t i = 0; i < n; i += VN) {
        vd low = vd_ld(sums + i), high = vd_ld(sums + i + VN / 2);
        NRG_UNROLL
        for (int r = 0; r < COLUMN_ROWS; r++) {
            vd v[2];
            load_doubles(v, w + (size_t)r * w_stride, begin + i, T);
            low = vd_fma(v[0], factor[r], low);
            high = vd_fma(v[1], factor[r], high);
        }
        vd_st(sums + i, low);
        vd_st(sums + i + VN / 2, high);
    }
}

/* The same of rows `first` and on, and any columns: those that are left over. */
static void add_any_rows(double *sums, const nrg_recurrent_backward_job *job, size_t first, size_t begin, size_t n,
                         const float *g, nrg_dtype T)
{
    double wide[COLUMN_BLOCK];
    const char *w = job->w + first * job->w_stride;
    for (size_t r = first; r < job->dim; r++, w += job->w_stride) {
        const vd factor = vd_set1((double)g[r]);
        for (size_t at = 0, some; at < n; at += some) {
            some = n - at < COLUMN_BLOCK ? n - at : COLUMN_BLOCK;
            widen(wide, w, begin + at, some, T);
            for (size_t i = 0; i < some; i += VN / 2)
                vd_st(sums + at + i, vd_fma(vd_ld(wide + i), factor, vd_ld(sums + at + i)));
        }
    }
}

NRG_INLINE void add_row_groups(double *sums, const nrg_recurrent_backward_job *job, size_t rows, size_t begin, size_t n,
                               const float *g, nrg_dtype T)
{
    const size_t stride = job->w_stride;
    const char *w = job->w;
    for (size_t i = 0; i < rows; i += COLUMN_ROWS)
        add_rows(sums, w + i * stride, stride, begin, n, g + i, T);
}

/* sums += columns begin to begin + n of Wᵀ g, whole vectors. */
static __attribute__((noinline)) void add_columns(double *sums, const nrg_recurrent_backward_job *job, size_t begin, size_t n,
                                                  const float *g, nrg_dtype T)
{
    const size_t rows = job->dim / COLUMN_ROWS * COLUMN_ROWS;
    NRG_CALL_BY_DTYPE(T, add_row_groups, sums, job, rows, begin, n, g);
    add_any_rows(sums, job, rows, begin, n, g, T);
}

/* Columns begin to begin + n of Wᵀ g, and anything up to a whole vector; g NULL: 0. */
static void transposed(double *sums, const nrg_recurrent_backward_job *job, size_t begin, size_t n, const float *g, nrg_dtype T)
{
    const size_t whole = n - n % VN, end = begin + n;
    double last[VN];
    memset(sums, 0, (whole + VN) * sizeof *sums);
    if (!g)
        return;
    if (whole)
        add_columns(sums, job, begin, whole, g, T);
    if (whole == n)
        return;
    /* the last vector of columns, most of which have been there already: no part of a vector needs to be loaded */
    memset(last, 0, sizeof last);
    if (end >= VN) {
        add_columns(last, job, end - VN, VN, g, T);
        memcpy(sums + whole, last + VN - (n - whole), (n - whole) * sizeof *sums);
    } else {
        add_any_rows(sums, job, 0, begin, n, g, T);
    }
}

/* ---- down a chain ---- */

/* g = (dp + sums) · (1 - p²), elements begin to begin + n. */
NRG_INLINE void slope_vectors(float *g, const double *sums, const char *dp, const char *p, size_t begin, size_t n, nrg_dtype D)
{
    const vd one = vd_set1(1);
    for (size_t i = 0; i < n; i += VN) {
        const size_t some = lanes_at(i, n);
        const int whole = some == VN;
        const vf value = whole ? load_whole(p, begin + i, D) : load_part(p, begin + i, some, D);
        const vf gradient = whole ? load_whole(dp, begin + i, D) : load_part(dp, begin + i, some, D);
        const vd low = vd_low(value), high = vd_high(value);
        const vd slope_low = vd_sub(one, vd_mul(low, low)), slope_high = vd_sub(one, vd_mul(high, high));
        const vd sum_low = vd_add(vd_low(gradient), vd_ld(sums + i));
        const vd sum_high = vd_add(vd_high(gradient), vd_ld(sums + i + VN / 2));
        store_lanes(g + begin + i, v_from_vd(vd_mul(sum_low, slope_low), vd_mul(sum_high, slope_high)), some);
    }
}

static __attribute__((noinline)) void apply_slope(float *g, const double *sums, const char *dp, const char *p, size_t begin,
                                                  size_t n, nrg_dtype D)
{
    NRG_CALL_BY_DTYPE(D, slope_vectors, g, sums, dp, p, begin, n);
}

static void recurrent_backward(const nrg_recurrent_backward_job *job, nrg_dtype D)
{
    double sums[COLUMN_CHUNK + VN];
    const nrg_dtype T = job->w_f32 ? NRG_F32 : D;
    const size_t dim = job->dim;
    for (size_t chain = job->begin; chain < job->end; chain++) {
        const float *after = NULL;
        for (size_t k = job->n; k--;) {
            const char *p = job->p + chain * job->p_chain_stride + k * job->p_stride;
            const char *dp = job->dp + chain * job->dp_chain_stride + k * job->dp_stride;
            float *g = job->g + (chain * job->n + k) * dim;
            for (size_t begin = 0, n; begin < dim; begin += n) {
                n = dim - begin < COLUMN_CHUNK ? dim - begin : COLUMN_CHUNK;
                transposed(sums, job, begin, n, after, T);
                apply_slope(g, sums, dp, p, begin, n, D);
            }
            after = g;
        }
        if (!job->dp0)
            continue;
        float *dp0 = (float *)((char *)job->dp0 + chain * job->dp0_stride);
        for (size_t begin = 0, n; begin < dim; begin += n) {
            n = dim - begin < COLUMN_CHUNK ? dim - begin : COLUMN_CHUNK;
            transposed(sums, job, begin, n, after, T);
            for (size_t i = 0; i < n; i += VN)
                store_lanes(dp0 + begin + i, v_from_vd(vd_ld(sums + i), vd_ld(sums + i + VN / 2)), lanes_at(i, n));
        }
    }
}

/* ---- dW and db: tiles of dW, positions in order ---- */

/* Where the next vector p_(k-1) is. */
typedef struct outer_walk {
    size_t chain, k;
} outer_walk;

NRG_INLINE void pack_columns(double *to, const char *p, size_t stride, size_t count, size_t begin, size_t n, nrg_dtype D)
{
    for (; count; count--, to += OUTER_COLUMNS, p += stride)
        widen_vectors(to, p, begin, n, D);
}

static __attribute__((noinline)) void pack_run(double *to, const char *p, size_t stride, size_t count, size_t begin, size_t n,
                                               nrg_dtype dtype)
{
    NRG_CALL_BY_DTYPE(dtype, pack_columns, to, p, stride, count, begin, n);
}

/* The next `count` vectors p_(k-1), columns begin to begin + n: those of a chain's end, the p_0 of the next chain, and so on. */
static void pack_vectors(double *to, const nrg_recurrent_backward_job *job, outer_walk *walk, size_t count, size_t begin,
                         size_t n, nrg_dtype D)
{
    for (size_t run; count; count -= run, to += run * OUTER_COLUMNS) {
        if (walk->k == 0) {
            run = 1;
            pack_run(to, job->p0 + walk->chain * job->p0_stride, 0, run, begin, n, job->p0_f32 ? NRG_F32 : D);
        } else {
            run = job->n - walk->k < count ? job->n - walk->k : count;
            pack_run(to, job->p + walk->chain * job->p_chain_stride + (walk->k - 1) * job->p_stride, job->p_stride, run, begin, n,
                     D);
        }
        walk->k += run;
        if (walk->k == job->n) {
            walk->k = 0;
            walk->chain++;
        }
    }
}

/* The same of g, as many of OUTER_ROWS elements as there are. */
NRG_INLINE void pack_gradients(double *to, const float *g, size_t dim, size_t count, size_t rows)
{
    for (; count; count--, to += OUTER_ROWS, g += dim) {
        if (rows >= OUTER_ROWS)
            vd_st(to, vd_ld_f32(g));
        else
            for (size_t r = 0; r < OUTER_ROWS; r++)
                to[r] = r < rows ? (double)g[r] : 0;
    }
}

/* tile += g pᵀ over `count` positions. */
static __attribute__((noinline)) void add_outer(double (*tile)[OUTER_COLUMNS], const double *g, const double *p, size_t count)
{
    enum { V = 2 * OUTER_VECTORS };
    vd sum[OUTER_ROWS * V];
    NRG_UNROLL
    for (int i = 0; i < OUTER_ROWS * V; i++)
        sum[i] = vd_ld(&tile[i / V][i % V * (VN / 2)]);
    for (; count; count--, g += OUTER_ROWS, p += OUTER_COLUMNS) {
        vd v[V];
        NRG_UNROLL
        for (int j = 0; j < V; j++)
            v[j] = vd_ld(p + j * (VN / 2));
        NRG_UNROLL
        for (int i = 0; i < OUTER_ROWS * V; i++)
            sum[i] = vd_fma(vd_set1(g[i / V]), v[i % V], sum[i]);
    }
    NRG_UNROLL
    for (int i = 0; i < OUTER_ROWS * V; i++)
        vd_st(&tile[i / V][i % V * (VN / 2)], sum[i]);
}

/* Rows of dW, as many as tiles have at most. */
static void reduce_rows(const nrg_recurrent_backward_job *job, size_t row, size_t rows, nrg_dtype D)
{
    const size_t dim = job->dim, positions = job->chains * job->n;
    double g[OUTER_POSITIONS * OUTER_ROWS], p[OUTER_POSITIONS * OUTER_COLUMNS], tile[OUTER_TILES * OUTER_ROWS][OUTER_COLUMNS];
    memset(p, 0, sizeof p); /* columns that do not exist are computed, too */
    for (size_t begin = 0, n; begin < dim; begin += n) {
        n = dim - begin < OUTER_COLUMNS ? dim - begin : OUTER_COLUMNS;
        outer_walk walk = {0, 0};
        memset(tile, 0, sizeof tile);
        for (size_t at = 0, count; at < positions; at += count) {
            count = positions - at < OUTER_POSITIONS ? positions - at : OUTER_POSITIONS;
            pack_vectors(p, job, &walk, count, begin, n, D);
            for (size_t r = 0; r < rows; r += OUTER_ROWS) {
                pack_gradients(g, job->g + at * dim + row + r, dim, count, rows - r);
                add_outer(tile + r, g, p, count);
            }
        }
        for (size_t r = 0; r < rows; r++)
            store_sums((float *)((char *)job->dw + (row + r) * job->dw_stride) + begin, tile[r], n, job->accumulate);
    }
}

static void reduce_bias(const nrg_recurrent_backward_job *job)
{
    const size_t dim = job->dim, positions = job->chains * job->n;
    for (size_t i = job->begin; i < job->end; i += VN) {
        const size_t some = lanes_at(i, job->end);
        double sums[VN];
        vd low = vd_zero(), high = vd_zero();
        for (size_t k = 0; k < positions; k++) { /* without positions g may be anything, and is not even added to */
            const vf v = load_lanes(job->g + k * dim + i, some);
            low = vd_add(low, vd_low(v));
            high = vd_add(high, vd_high(v));
        }
        vd_st(sums, low);
        vd_st(sums + VN / 2, high);
        store_sums(job->db + i, sums, some, job->accumulate);
    }
}

static void recurrent_reduce(const nrg_recurrent_backward_job *job, nrg_dtype D)
{
    if (job->db)
        reduce_bias(job);
    if (job->dw)
        for (size_t row = job->begin, rows; row < job->end; row += rows) {
            rows = job->end - row < OUTER_TILES * OUTER_ROWS ? job->end - row : OUTER_TILES * OUTER_ROWS;
            reduce_rows(job, row, rows, D);
        }
}

NRG_PATH_KERNELS(recurrent_backward, recurrent_backward, recurrent_backward)
NRG_PATH_KERNELS(recurrent_reduce, recurrent_backward, recurrent_reduce)
#endif

#endif
