/* Sums of elements that lie together, in 32 lanes, and of columns, each in a sum of its own: Σx and Σx² in double, in the order
 * that every path keeps (docs/ops/channel_norm.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_SUM_H
#define NRG_TEMPLATE_CHANNEL_SUM_H

#include "../exact_lanes.h"

enum {
    CHANNEL_LANES_S = 64,     /* batch sets of NCHW with fewer positions are summed by columns */
    CHANNEL_COLUMNS = 128,    /* columns that are summed at once: their sums are on the stack */
    CHANNEL_COLUMN_LANES = 8, /* that columns fold to */
    CHANNEL_ROW_BYTES = 8192  /* rows of a block of columns that strips go over in turn: they stay in L1 */
};

typedef struct channel_lanes {
    vd t[EXACT_LANE_VDS], q[EXACT_LANE_VDS];
} channel_lanes;

NRG_INLINE void clear_lanes(channel_lanes *lanes)
{
    NRG_UNROLL
    for (int j = 0; j < EXACT_LANE_VDS; j++)
        lanes->t[j] = lanes->q[j] = vd_zero();
}

/* Whole steps of elements begin to end, in registers, as many lanes as these hold; returns where the steps end. */
NRG_INLINE size_t add_whole(channel_lanes *lanes, const char *x, size_t begin, size_t end, int prefetch, nrg_dtype D)
{
    enum {
        G = (int)V_SUM2,
        VECTORS = (int)G < (int)EXACT_VECTORS ? (int)G : (int)EXACT_VECTORS,
        STEP = (int)G * (int)VN > (int)EXACT_LANES ? (int)G * (int)VN : (int)EXACT_LANES
    };
    const size_t whole = end - (end - begin) % STEP;
    if (whole == begin)
        return whole;
    NRG_UNROLL
    for (int first = 0; first < (int)EXACT_VECTORS; first += VECTORS) {
        vd t[2 * VECTORS], q[2 * VECTORS];
        NRG_UNROLL
        for (int j = 0; j < 2 * VECTORS; j++) {
            t[j] = lanes->t[2 * first + j];
            q[j] = lanes->q[2 * first + j];
        }
        for (size_t i = begin + (size_t)first * VN; i < whole; i += STEP) {
            vf v[G];
            if (prefetch)
                prefetch_step_ahead(x + bytes_of(i, D, 0), G, bytes_of(1, D, 0), 2048);
            if (D != NRG_F32)
                load_step(v, G, x, i, (size_t)G * VN, D);
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                const float *const at = (const float *)x + i + j * VN;
                const vd low = D == NRG_F32 ? vd_ld_f32(at) : vd_low(v[j]),
                         high = D == NRG_F32 ? vd_ld_f32(at + VN / 2) : vd_high(v[j]);
                accumulate_exact(t + 2 * (j % VECTORS), q + 2 * (j % VECTORS), low, high, 1);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < 2 * VECTORS; j++) {
            lanes->t[2 * first + j] = t[j];
            lanes->q[2 * first + j] = q[j];
        }
    }
    return whole;
}

/* The first n elements of a round of all lanes, to lanes in memory that are found without an index. */
NRG_INLINE void add_part(channel_lanes *lanes, const char *x, size_t n, nrg_dtype D)
{
    NRG_UNROLL
    for (int j = 0; j < EXACT_VECTORS; j++)
        if ((size_t)j * VN < n) {
            const vf v = load_part(x, (size_t)j * VN, lanes_at((size_t)j * VN, n), D);
            accumulate_exact(lanes->t + 2 * j, lanes->q + 2 * j, vd_low(v), vd_high(v), 1);
        }
}

/* Adds n elements from the first lane on. Ends of runs are frequent here. */
NRG_INLINE void add_elements_of(channel_lanes *lanes, const char *x, size_t n, int prefetch, nrg_dtype D)
{
    size_t i = 0;
    for (size_t begin = 0, next; begin < n; begin = next) {
        next = lesser(begin + EXACT_CHUNK, n);
        i = add_whole(lanes, x, begin, next, prefetch, D);
    }
    for (; i < n; i += EXACT_LANES)
        add_part(lanes, x + bytes_of(i, D, 0), lesser(n - i, EXACT_LANES), D);
}

NRG_BY_DTYPE(add_elements, (lanes, x, n, prefetch), channel_lanes *lanes, const char *x, size_t n, int prefetch)

NRG_INLINE void fold_sums(const channel_lanes *lanes, double *t, double *q)
{
    const vd8 folded_t = fold_exact(lanes->t), folded_q = fold_exact(lanes->q);
    *t = vd8_sum(&folded_t);
    *q = vd8_sum(&folded_q);
}

/* Small sets, n elements each, one after the other: at most CHANNEL_BATCH of them, whose folds share their shuffles. */
enum { CHANNEL_SMALL = 512, CHANNEL_BATCH = 8 };

NRG_INLINE void sum_batch_of(const char *x, size_t n, size_t count, double *t, double *q, nrg_dtype D)
{
    vd8 folded_t[CHANNEL_BATCH], folded_q[CHANNEL_BATCH];
    double sums[CHANNEL_BATCH];
    for (size_t set = 0; set < count; set++, x += bytes_of(n, D, 0)) {
        channel_lanes lanes;
        size_t i = 0;
        clear_lanes(&lanes);
        for (; i + EXACT_LANES <= n; i += EXACT_LANES) {
            NRG_UNROLL
            for (int j = 0; j < EXACT_VECTORS; j++) {
                const vf v = load_whole(x, i + (size_t)j * VN, D);
                accumulate_exact(lanes.t + 2 * j, lanes.q + 2 * j, vd_low(v), vd_high(v), 1);
            }
        }
        add_part(&lanes, x + bytes_of(i, D, 0), n - i, D);
        folded_t[set] = fold_exact(lanes.t);
        folded_q[set] = fold_exact(lanes.q);
    }
    for (size_t set = count; set < CHANNEL_BATCH; set++) {
        folded_t[set] = folded_t[0];
        folded_q[set] = folded_q[0];
    }
    vd8_sum_rows(folded_t, sums);
    memcpy(t, sums, count * sizeof *t);
    vd8_sum_rows(folded_q, sums);
    memcpy(q, sums, count * sizeof *q);
}

#if V_SMALL /* each by itself: the same sums, and a kilobyte less of stack */
static inline void sum_batch(const char *x, size_t n, size_t count, double *t, double *q, nrg_dtype D)
{
    for (size_t set = 0; set < count; set++) {
        channel_lanes lanes;
        clear_lanes(&lanes);
        add_elements(&lanes, x + set * bytes_of(n, D, 0), n, 0, D);
        fold_sums(&lanes, t + set, q + set);
    }
}
#else
NRG_BY_DTYPE(sum_batch, (x, n, count, t, q), const char *x, size_t n, size_t count, double *t, double *q)
#endif

static inline void sum_small(const char *x, size_t n, size_t count, double *t, double *q, int centred, nrg_dtype D)
{
    sum_batch(x, n, count, t, q, D);
    for (size_t i = 0; i < count && !centred; i++)
        t[i] = 0;
}

/* ---- columns ---- */

/* Rows of at most CHANNEL_COLUMNS columns. */
typedef struct channel_columns {
    const char *x;
    size_t stride, rows, width;
    int centred;
    int prefetch; /* what lies right of these columns: the next block, or of rows without a gap the next rows */
} channel_columns;

/* A strip of G vectors, or of the first n columns of one. */
/* prefetch: bytes from a row to one that is prefetched; 0: none. */
NRG_INLINE void sum_strip(const char *x, size_t stride, size_t rows, size_t prefetch, double *t, double *q, int G, size_t n,
                          nrg_dtype D)
{
    vd kept_t[2 * NORM_STEP], kept_q[2 * NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        kept_t[j] = vd_ld(t + j * (VN / 2));
        kept_q[j] = vd_ld(q + j * (VN / 2));
    }
    for (size_t row = 0; row < rows; row++) {
        vf v[NORM_STEP];
        if (prefetch) {
            NRG_UNROLL
            for (size_t b = 0; b < bytes_of((size_t)G * VN, D, 0); b += 64)
                __builtin_prefetch((const void *)((uintptr_t)x + row * stride + prefetch + b));
        }
        if (D != NRG_F32 || G == 1)
            load_step(v, G, x + row * stride, 0, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const float *p = (const float *)(x + row * stride) + j * VN;
            const int direct = D == NRG_F32 && G != 1;
            const vd low = direct ? vd_ld_f32(p) : vd_low(v[j]), high = direct ? vd_ld_f32(p + VN / 2) : vd_high(v[j]);
            kept_t[2 * j] = vd_add(kept_t[2 * j], low);
            kept_t[2 * j + 1] = vd_add(kept_t[2 * j + 1], high);
            kept_q[2 * j] = vd_fma(low, low, kept_q[2 * j]);
            kept_q[2 * j + 1] = vd_fma(high, high, kept_q[2 * j + 1]);
        }
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        vd_st(t + j * (VN / 2), kept_t[j]);
        vd_st(q + j * (VN / 2), kept_q[j]);
    }
}

/* Σx and Σx² of every column, to t and q, which have room for CHANNEL_COLUMNS. */
NRG_INLINE void sum_columns_of(const channel_columns *c, double *t, double *q, nrg_dtype D)
{
    enum { STRIP = V_SUM2 * VN };
    const size_t size = bytes_of(1, D, 0), most = CHANNEL_ROW_BYTES / (c->width * size) + 1;
    for (size_t k = 0; k < (c->width + VN - 1) / VN * VN; k++)
        t[k] = q[k] = 0;
    for (size_t row = 0; row < c->rows; row += most) {
        const size_t rows = c->rows - row < most ? c->rows - row : most;
        const char *x = c->x + row * c->stride;
        size_t k = 0;
        /* the rows of the next round; after the last, the first of the columns right of these */
        const size_t prefetch = !c->prefetch ? 0 : row + most < c->rows ? most * c->stride : c->width * size - row * c->stride;
        for (; k + STRIP <= c->width; k += STRIP)
            sum_strip(x + k * size, c->stride, rows, prefetch, t + k, q + k, V_SUM2, STRIP, D);
        for (; k < c->width; k += VN)
            sum_strip(x + k * size, c->stride, rows, prefetch, t + k, q + k, 1, lanes_at(k, c->width), D);
    }
    if (!c->centred)
        for (size_t k = 0; k < c->width; k++)
            t[k] = 0;
}

NRG_BY_DTYPE(sum_columns, (c, t, q), const channel_columns *c, double *t, double *q)

/* Adds n columns to eight lanes, column k to lane k mod 8. */
static inline void fold_into(double lanes[CHANNEL_COLUMN_LANES], const double *columns, size_t n)
{
    size_t k = 0;
    for (; k + CHANNEL_COLUMN_LANES <= n; k += CHANNEL_COLUMN_LANES)
        for (int l = 0; l < CHANNEL_COLUMN_LANES; l++)
            lanes[l] += columns[k + (size_t)l];
    for (; k < n; k++)
        lanes[k % CHANNEL_COLUMN_LANES] += columns[k];
}

/* By halves. */
static inline double fold_of(double lanes[CHANNEL_COLUMN_LANES])
{
    for (int half = CHANNEL_COLUMN_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static __attribute__((noinline)) double fold_columns(const double *columns, size_t n)
{
    double lanes[CHANNEL_COLUMN_LANES] = {0};
    fold_into(lanes, columns, n);
    return fold_of(lanes);
}

#endif
