/* Sums of elements that lie together, in 32 lanes, and of columns, each in a sum of its own: Σx and Σx² in double, in the order
 * that every path keeps (docs/ops/channel_norm.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_SUM_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_SUM_H

#include "../norm/exact_sum.h"
#include "../norm/norm_scalars.h"

enum {
    CHANNEL_LANES_S = 64,     /* batch sets of NCHW with fewer positions are summed by columns */
    CHANNEL_COLUMNS = 128,    /* columns that are summed at once: their sums are on the stack */
    CHANNEL_COLUMN_LANES = 8, /* that columns fold to */
    CHANNEL_ROW_BYTES = 8192  /* rows of a block of columns that strips go over in turn: they stay in L1 */
};

typedef struct channel_lanes {
    vd t[EXACT_LANE_VDS], q[EXACT_LANE_VDS];
} channel_lanes;

NRG_INLINE void clear_lane_sums(vd *t, vd *q, int centred)
{
    NRG_UNROLL
    for (int j = 0; j < EXACT_LANE_VDS; j++) {
        if (centred)
            t[j] = vd_zero();
        q[j] = vd_zero();
    }
}

/* All steps of G vectors from begin to end, `stride` elements apart, to the lanes of the first. */
NRG_INLINE void add_exact_steps(vd *t, vd *q, int G, const char *x, size_t begin, size_t end, size_t stride, norm_policy P)
{
    const int vectors = G < EXACT_VECTORS ? G : EXACT_VECTORS;
    vd sum_t[EXACT_LANE_VDS], sum_q[EXACT_LANE_VDS];
    NRG_UNROLL
    for (int j = 0; j < 2 * vectors; j++) {
        sum_t[j] = t[j];
        sum_q[j] = q[j];
    }
    for (size_t i = begin; i < end; i += stride) {
        vf v[NORM_STEP];
        if (P.ahead)
            prefetch_step_ahead(x + bytes_of(i, P.dtype, 0), G, bytes_of(1, P.dtype, 0), P.ahead);
        if (P.dtype != NRG_F32)
            load_step(v, G, x, i, (size_t)G * VN, P.dtype);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const float *const at = (const float *)x + i + j * VN;
            const vd low = P.dtype == NRG_F32 ? vd_ld_f32(at) : vd_low(v[j]),
                     high = P.dtype == NRG_F32 ? vd_ld_f32(at + VN / 2) : vd_high(v[j]);
            accumulate_exact(sum_t + 2 * (j % vectors), sum_q + 2 * (j % vectors), low, high, is_centred(P));
        }
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * vectors; j++) {
        t[j] = sum_t[j];
        q[j] = sum_q[j];
    }
}

/* Whole steps of a block, in registers; returns where they end. */
NRG_INLINE size_t add_whole(channel_lanes *lanes, const char *x, size_t begin, size_t end, norm_policy P)
{
    const int G = is_centred(P) ? V_SUM2 : V_SUM1;
    const size_t stride = (size_t)G * VN > EXACT_LANES ? (size_t)G * VN : EXACT_LANES;
    const size_t whole = end - (end - begin) % stride;
    if (begin == whole)
        return whole;
    add_exact_steps(lanes->t, lanes->q, G, x, begin, whole, stride, P);
    if (G < EXACT_VECTORS)
        add_exact_steps(lanes->t + 2 * G, lanes->q + 2 * G, G, x, begin + (size_t)G * VN, whole, stride, P);
    return whole;
}

/* Adds n elements from the first lane on. Ends of runs are frequent here: what does not fill a step goes to the lanes in memory,
 * which are found without an index. */
NRG_INLINE void add_elements_of(channel_lanes *lanes, const char *x, size_t n, int centred, int prefetch, nrg_dtype D)
{
    const norm_policy rms = {.dtype = D, .ahead = prefetch ? 2048 : 0}, layer = {D, .must = OPT_CENTRED, .ahead = rms.ahead};
    size_t i = 0;
    for (size_t begin = 0, next; begin < n; begin = next) {
        next = n - begin > EXACT_CHUNK ? begin + EXACT_CHUNK : n;
        i = centred ? add_whole(lanes, x, begin, next, layer) : add_whole(lanes, x, begin, next, rms);
    }
    for (; i < n; i += EXACT_LANES) {
        NRG_UNROLL
        for (int j = 0; j < EXACT_VECTORS; j++)
            if (i + (size_t)j * VN < n) {
                const vf v = load_part(x, i + (size_t)j * VN, lanes_at(i + (size_t)j * VN, n), D);
                accumulate_exact(lanes->t + 2 * j, lanes->q + 2 * j, vd_low(v), vd_high(v), 1);
            }
    }
}

NRG_BY_DTYPE(add_elements, (lanes, x, n, centred, prefetch), channel_lanes *lanes, const char *x, size_t n, int centred,
             int prefetch)

NRG_INLINE void fold_sums(channel_lanes *lanes, double *t, double *q, int centred)
{
    const vd8 folded = fold_exact(lanes->q);
    *q = vd8_sum(&folded);
    *t = 0;
    if (centred) { /* where it is not, some of the elements are in t nevertheless */
        const vd8 folded_t = fold_exact(lanes->t);
        *t = vd8_sum(&folded_t);
    }
}

/* Small sets, n elements each, one after the other: at most NORM_BATCH of them, whose folds share their shuffles. */
enum {
    CHANNEL_SMALL = 512,
    CHANNEL_FOLDED = 8 /* lanes that those of a run fold to */
};

/* A set that fills no more than the lanes that others fold to: there is nothing to fold. Instances of 4 and 7 elements with AVX2:
 * 9.0 ns a set where clearing and folding all lanes took 11.4. A sum may be -0 here. */
NRG_INLINE void square_few(const char *x, size_t n, vd8 *t, vd8 *q, nrg_dtype D)
{
    enum { COUNT = sizeof t->v / sizeof t->v[0] };
    NRG_UNROLL
    for (int j = 0; j < COUNT; j += 2) {
        const size_t i = (size_t)j * (VN / 2);
        const vf v = i < n ? load_part(x, i, lanes_at(i, n), D) : v_zero();
        const vd low = vd_low(v);
        t->v[j] = low;
        q->v[j] = vd_mul(low, low);
        if (COUNT > 1) {
            const vd high = vd_high(v);
            t->v[(j + 1) % COUNT] = high;
            q->v[(j + 1) % COUNT] = vd_mul(high, high);
        }
    }
}

NRG_INLINE void sum_squares_of(const char *x, size_t n, size_t count, double *t, double *q, nrg_dtype D)
{
    vd8 folded_t[NORM_BATCH], folded_q[NORM_BATCH];
    double sums[NORM_BATCH];
    for (size_t set = 0; set < count; set++) {
        const char *at = x + set * bytes_of(n, D, 0);
        if (!V_SMALL && n <= CHANNEL_FOLDED) {
            square_few(at, n, &folded_t[set], &folded_q[set], D);
            continue;
        }
        vd lanes_t[EXACT_LANE_VDS], lanes_q[EXACT_LANE_VDS];
        size_t i = 0;
        clear_lane_sums(lanes_t, lanes_q, 1);
        for (; i + EXACT_LANES <= n; i += EXACT_LANES) {
            NRG_UNROLL
            for (int j = 0; j < EXACT_VECTORS; j++) {
                const vf v = load_whole(at, i + (size_t)j * VN, D);
                accumulate_exact(lanes_t + 2 * j, lanes_q + 2 * j, vd_low(v), vd_high(v), 1);
            }
        }
        NRG_UNROLL
        for (int j = 0; j < EXACT_VECTORS; j++)
            if (i + (size_t)j * VN < n) {
                const vf v = load_part(at, i + (size_t)j * VN, lanes_at(i + (size_t)j * VN, n), D);
                accumulate_exact(lanes_t + 2 * j, lanes_q + 2 * j, vd_low(v), vd_high(v), 1);
            }
        if (V_SMALL) { /* each by itself: the same sums, and a kilobyte less of stack */
            const vd8 fold_t = fold_exact(lanes_t), fold_q = fold_exact(lanes_q);
            t[set] = vd8_sum(&fold_t);
            q[set] = vd8_sum(&fold_q);
            continue;
        }
        folded_t[set] = fold_exact(lanes_t);
        folded_q[set] = fold_exact(lanes_q);
    }
    if (V_SMALL)
        return;
    for (size_t set = count; set < NORM_BATCH; set++) {
        folded_t[set] = folded_t[0];
        folded_q[set] = folded_q[0];
    }
    vd8_sum_rows(folded_t, sums);
    /* of a set without lanes to fold, -0 becomes 0; here it is an addition for several sets */
    NRG_UNROLL
    for (int i = 0; i < NORM_BATCH; i += VN / 2)
        vd_st(sums + i, vd_add(vd_zero(), vd_ld(sums + i)));
    memcpy(t, sums, count * sizeof *t);
    vd8_sum_rows(folded_q, sums);
    memcpy(q, sums, count * sizeof *q);
}

NRG_BY_DTYPE(sum_squares, (x, n, count, t, q), const char *x, size_t n, size_t count, double *t, double *q)

static inline void sum_small(const char *x, size_t n, size_t count, double *t, double *q, int centred, nrg_dtype D)
{
    sum_squares(x, n, count, t, q, D);
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
