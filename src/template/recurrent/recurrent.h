/* Chains of vectors p_k = tanh(W p_(k-1) + b) over the vectors of a path's vec.h: forward. The order of all arithmetic is that of
 * src/scalar/recurrent.c. The backward pass is in recurrent_backward.h.
 *
 * The time goes into the rows of W, which every position reads once: a conversion to double and a multiplication for each of its
 * elements. So p_(k-1) is converted once a position, to doubles on the stack, and not once a row; where it is too long for that,
 * a chunk of it once for a group of eight rows. What has a dtype is then a conversion of some hundred elements at once or the
 * rows of W, and everything else exists once for all dtypes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RECURRENT_RECURRENT_H
#define NRG_TEMPLATE_RECURRENT_RECURRENT_H

#include "../../job/activation.h"
#include "../../job/recurrent.h"
#include "../exact_lanes.h"

enum {
    DOT_TURNS = VN == 16 ? 1 : 2,            /* the registers hold the lanes of two rows, or half of them at a time */
    DOT_VECTORS = EXACT_VECTORS / DOT_TURNS, /* vectors of floats that fill those of a turn once */
    DOT_STEP = DOT_VECTORS * VN,
    DOT_ROWS = 8,     /* rows whose lanes are folded together */
    DOT_CHUNK = 1024, /* elements of p_(k-1) that are doubles on the stack */
    TANH_BLOCK = 64   /* elements of p_k at once */
};

_Static_assert((int)DOT_CHUNK % (int)EXACT_LANES == 0, "a chunk begins with lane 0");
_Static_assert(TANH_BLOCK % DOT_ROWS == 0 && TANH_BLOCK % VN == 0, "a block is whole groups of rows, and whole vectors");

/* ---- elements of any dtype to doubles, and floats to them ---- */

NRG_INLINE void widen_vectors(double *to, const char *p, size_t begin, size_t n, nrg_dtype D)
{
    for (size_t i = 0; i < n; i += VN) {
        const vf v = n - i < VN ? load_part(p, begin + i, n - i, D) : load_whole(p, begin + i, D);
        vd_st(to + i, vd_low(v));
        vd_st(to + i + VN / 2, vd_high(v));
    }
}

/* Elements begin to begin + n; 0 behind them, up to a whole vector. */
static __attribute__((noinline)) void widen(double *to, const char *p, size_t begin, size_t n, nrg_dtype dtype)
{
    NRG_CALL_BY_DTYPE(dtype, widen_vectors, to, p, begin, n);
}

/* The same, and 0 up to a multiple of the lanes. */
static __attribute__((noinline)) void widen_padded(double *to, const char *p, size_t begin, size_t n, nrg_dtype dtype)
{
    widen(to, p, begin, n, dtype);
    for (size_t i = (n + VN - 1) / VN * VN; i % EXACT_LANES; i += VN / 2)
        vd_st(to + i, vd_zero());
}

NRG_INLINE void narrow_vectors(char *p, size_t begin, const float *from, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        store_whole(p, begin + i, v_ld_f32(from + i), D, 0);
    if (i < n) {
        const vf v = v_ld_f32(from + i);
        store_step(&v, 1, p, begin + i, n - i, D, 0);
    }
}

/* from has whole vectors. */
static __attribute__((noinline)) void narrow(char *p, size_t begin, const float *from, size_t n, nrg_dtype dtype)
{
    NRG_CALL_BY_DTYPE(dtype, narrow_vectors, p, begin, from, n);
}

/* ---- rows of W times p ---- */

/* Columns begin to begin + n of a group of rows; begin is a multiple of the lanes. */
typedef struct dot_chunk {
    const char *w; /* the first row */
    size_t w_stride, begin, n;
    const double *p; /* element `begin`, and 0 behind the last up to a multiple of the lanes */
    int rows;        /* at most DOT_ROWS */
    int first, last; /* of the rows' chunks */
} dot_chunk;

/* Elements i to i + DOT_STEP of two rows, which share what is loaded of p. */
NRG_INLINE void dot_step(vd *lanes0, vd *lanes1, const char *w0, const char *w1, size_t i, const double *p, nrg_dtype T)
{
    NRG_UNROLL
    for (int j = 0; j < DOT_VECTORS; j++) {
        const vd low = vd_ld(p + j * VN), high = vd_ld(p + j * VN + VN / 2);
        vd v0[2], v1[2];
        load_doubles(v0, w0, i + (size_t)j * VN, T);
        load_doubles(v1, w1, i + (size_t)j * VN, T);
        lanes0[2 * j] = vd_fma(v0[0], low, lanes0[2 * j]);
        lanes0[2 * j + 1] = vd_fma(v0[1], high, lanes0[2 * j + 1]);
        lanes1[2 * j] = vd_fma(v1[0], low, lanes1[2 * j]);
        lanes1[2 * j + 1] = vd_fma(v1[1], high, lanes1[2 * j + 1]);
    }
}

/* The same of what is doubles already. */
NRG_INLINE void dot_doubles(vd *lanes0, vd *lanes1, const double *w0, const double *w1, const double *p)
{
    NRG_UNROLL
    for (int j = 0; j < 2 * DOT_VECTORS; j++) {
        const vd v = vd_ld(p + j * (VN / 2));
        lanes0[j] = vd_fma(vd_ld(w0 + j * (VN / 2)), v, lanes0[j]);
        lanes1[j] = vd_fma(vd_ld(w1 + j * (VN / 2)), v, lanes1[j]);
    }
}

/* Two rows. */
NRG_INLINE void dot_pair(vd *lanes0, vd *lanes1, const dot_chunk *c, const char *w0, const char *w1, nrg_dtype T)
{
    const size_t begin = c->begin, left = c->n % EXACT_LANES, end = begin + c->n - left;
    double rest0[EXACT_LANES], rest1[EXACT_LANES];
    if (left) {
        widen_padded(rest0, w0, end, left, T);
        widen_padded(rest1, w1, end, left, T);
    }
    for (int turn = 0; turn < DOT_TURNS; turn++, lanes0 += 2 * DOT_VECTORS, lanes1 += 2 * DOT_VECTORS) {
        vd sum0[2 * DOT_VECTORS], sum1[2 * DOT_VECTORS];
        const size_t first = (size_t)turn * DOT_STEP;
        const double *p = c->p + first;
        NRG_UNROLL
        for (int j = 0; j < 2 * DOT_VECTORS; j++) {
            sum0[j] = c->first ? vd_zero() : lanes0[j];
            sum1[j] = c->first ? vd_zero() : lanes1[j];
        }
        for (size_t i = begin; i < end; i += EXACT_LANES, p += EXACT_LANES)
            dot_step(sum0, sum1, w0, w1, i + first, p, T);
        if (left)
            dot_doubles(sum0, sum1, rest0 + first, rest1 + first, p);
        NRG_UNROLL
        for (int j = 0; j < 2 * DOT_VECTORS; j++) {
            lanes0[j] = sum0[j];
            lanes1[j] = sum1[j];
        }
    }
}

/* lanes: of the rows, from chunk to chunk. sums: of the rows, after the last. */
NRG_INLINE void dot_group_of(const dot_chunk *given, vd (*lanes)[EXACT_LANE_VDS], double sums[DOT_ROWS], nrg_dtype T)
{
    const dot_chunk c = *given;
    for (int row = 0; row < c.rows; row += 2) {
        const char *w = c.w + (size_t)row * c.w_stride;
        /* a row alone goes with itself; what comes of that is not used */
        dot_pair(lanes[row], lanes[row + 1], &c, w, row + 1 < c.rows ? w + c.w_stride : w, T);
    }
    if (!c.last)
        return;
    vd8 folded[DOT_ROWS];
    for (int row = 0; row < DOT_ROWS; row++)
        folded[row] = fold_exact(lanes[row < c.rows ? row : 0]);
    vd8_sum_rows(folded, sums);
}

NRG_BY_DTYPE(dot_group, (c, lanes, sums), const dot_chunk *c, vd (*lanes)[EXACT_LANE_VDS], double *sums)

/* ---- one position ---- */

/* The sums of rows `begin` on of W times before, DOT_ROWS at most. chunk holds before already where that fits. */
NRG_INLINE void row_group(double *sums, const nrg_recurrent_job *job, size_t begin, const char *before, nrg_dtype before_dtype,
                          double *chunk, nrg_dtype T)
{
    const size_t dim = job->dim, rows = dim - begin < DOT_ROWS ? dim - begin : DOT_ROWS;
    vd lanes[DOT_ROWS][EXACT_LANE_VDS];
    dot_chunk c = {.w = job->w + begin * job->w_stride, .w_stride = job->w_stride, .p = chunk, .rows = (int)rows};
    for (; c.begin < dim; c.begin += c.n) {
        c.n = dim - c.begin < DOT_CHUNK ? dim - c.begin : DOT_CHUNK;
        c.first = c.begin == 0;
        c.last = c.begin + c.n == dim;
        if (dim > DOT_CHUNK)
            widen_padded(chunk, before, c.begin, c.n, before_dtype);
        dot_group(&c, lanes, sums, T);
    }
}

/* p_k from p_(k-1). */
static void recurrent_step(const nrg_recurrent_job *job, const char *before, nrg_dtype before_dtype, char *p, nrg_dtype D,
                           double *chunk)
{
    const nrg_dtype T = job->w_f32 ? NRG_F32 : D;
    const size_t dim = job->dim;
    double sums[TANH_BLOCK], bias[TANH_BLOCK];
    float y[TANH_BLOCK];
    if (dim <= DOT_CHUNK)
        widen_padded(chunk, before, 0, dim, before_dtype);
    for (size_t begin = 0, n; begin < dim; begin += n) {
        n = dim - begin < TANH_BLOCK ? dim - begin : TANH_BLOCK;
        for (size_t row = 0; row < n; row += DOT_ROWS)
            row_group(sums + row, job, begin + row, before, before_dtype, chunk, T);
        if (job->b)
            widen(bias, job->b, begin, n, T);
        for (size_t i = 0; i < n; i += VN) {
            vd low = vd_ld(sums + i), high = vd_ld(sums + i + VN / 2);
            if (job->b) {
                low = vd_add(low, vd_ld(bias + i));
                high = vd_add(high, vd_ld(bias + i + VN / 2));
            }
            v_st_f32(y + i, v_from_vd(low, high));
        }
        NRG_PATH_NAME(activate)(NRG_ACT_TANH, y, y, n);
        narrow(p, begin, y, n, D);
    }
}

static void recurrent(const nrg_recurrent_job *job, nrg_dtype D)
{
    double chunk[DOT_CHUNK];
    for (size_t chain = job->begin; chain < job->end; chain++) {
        const char *before = job->p0 + chain * job->p0_stride;
        nrg_dtype before_dtype = job->p0_f32 ? NRG_F32 : D;
        char *p = job->p + chain * job->p_chain_stride;
        for (size_t k = 0; k < job->n; k++, p += job->p_stride) {
            recurrent_step(job, before, before_dtype, p, D, chunk);
            before = p;
            before_dtype = D;
        }
    }
}

NRG_PATH_KERNELS(recurrent, recurrent, recurrent)

#endif
