/* Sums in double, in the order that every path keeps (docs/ops/channel_norm.md): of elements that lie together, in 32 lanes, and
 * of columns, each in a sum of its own. A forward pass sums x and x², or around a mean x - a and (x - a)²; a backward pass d and
 * d·(x - μ), where d is floats: d_o as it is, or what has been staged of it. The first sum is t, the second q.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_SUM_H
#define NRG_TEMPLATE_CHANNEL_SUM_H

#include "../exact_lanes.h"
#include "source.h"

enum {
    CHANNEL_LANES_S = 64,     /* batch sets of NCHW with fewer positions are summed by columns */
    CHANNEL_COLUMNS = 128,    /* columns that are summed at once: their sums are on the stack */
    CHANNEL_COLUMN_LANES = 8, /* that columns fold to */
    CHANNEL_ROW_BYTES = 8192  /* rows of a block of columns that strips go over in turn: they stay in L1 */
};

typedef enum sum_kind { SUM_SQUARES, SUM_AROUND, SUM_GRADIENT } sum_kind;

/* What is summed. kind: a constant; a test of d would be made as it runs. centre: of each half of a vector. */
typedef struct sum_source {
    sum_kind kind;
    const char *x;
    const float *d;
    const vd *centre;
} sum_source;

/* Adds G vectors from element i on, or the first n lanes of one. */
NRG_INLINE void sum_step(vd *t, vd *q, const sum_source *from, size_t i, int G, size_t n, nrg_dtype D)
{
    vf x[NORM_STEP], d[NORM_STEP];
    if (G == 1 || D != NRG_F32)
        load_step(x, G, from->x, i, n, D);
    if (G == 1 && from->kind == SUM_GRADIENT)
        load_step(d, 1, (const char *)from->d, i, n, NRG_F32);
    NRG_UNROLL
    for (int h = 0; h < 2 * G; h++) {
        const size_t at = i + (size_t)h * (VN / 2);
        const vd e = G > 1 && D == NRG_F32 ? vd_ld_f32((const float *)from->x + at)
                     : h % 2               ? vd_high(x[h / 2])
                                           : vd_low(x[h / 2]);
        if (from->kind == SUM_GRADIENT) {
            const vd g = G > 1 ? vd_ld_f32(from->d + at) : h ? vd_high(d[0]) : vd_low(d[0]);
            t[h] = vd_add(t[h], g);
            q[h] = vd_fma(g, vd_sub(e, from->centre[h]), q[h]);
        } else {
            const vd c = from->kind == SUM_AROUND ? vd_sub(e, from->centre[h]) : e;
            t[h] = vd_add(t[h], c);
            q[h] = vd_fma(c, c, q[h]);
        }
    }
}

/* ---- elements that lie together ---- */

typedef struct channel_lanes {
    vd t[EXACT_LANE_VDS], q[EXACT_LANE_VDS];
} channel_lanes;

NRG_INLINE void clear_lanes(channel_lanes *lanes)
{
    NRG_UNROLL
    for (int j = 0; j < EXACT_LANE_VDS; j++)
        lanes->t[j] = lanes->q[j] = vd_zero();
}

/* The lanes of G vectors from number `first` on, of rounds of all lanes up to element `whole`. */
NRG_INLINE void sum_rounds(channel_lanes *lanes, const sum_source *from, size_t first, int G, size_t whole, int prefetch,
                           nrg_dtype D)
{
    vd t[2 * NORM_STEP], q[2 * NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        t[j] = lanes->t[2 * first + (size_t)j];
        q[j] = lanes->q[2 * first + (size_t)j];
    }
    for (size_t i = first * VN; i < whole; i += EXACT_LANES) {
        if (prefetch)
            prefetch_step_ahead(from->x + bytes_of(i, D, 0), G, bytes_of(1, D, 0), 2048);
        sum_step(t, q, from, i, G, (size_t)G * VN, D);
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        lanes->t[2 * first + (size_t)j] = t[j];
        lanes->q[2 * first + (size_t)j] = q[j];
    }
}

NRG_INLINE void fill_centre(vd *centre, double value)
{
    NRG_UNROLL
    for (int h = 0; h < 2 * NORM_STEP; h++)
        centre[h] = vd_set1(value);
}

/* Adds n elements from the first lane on. */
NRG_INLINE void sum_elements_of(channel_lanes *lanes, const sum_source *from, size_t n, int prefetch, nrg_dtype D)
{
    enum { G = (int)V_SUM2 < (int)EXACT_VECTORS ? (int)V_SUM2 : (int)EXACT_VECTORS };
    for (size_t begin = 0, count; begin < n; begin += count) {
        count = lesser(n - begin, EXACT_CHUNK);
        const float *d = from->kind == SUM_GRADIENT ? from->d + begin : NULL;
        const sum_source at = {from->kind, from->x + bytes_of(begin, D, 0), d, from->centre};
        const size_t whole = count / EXACT_LANES * EXACT_LANES;
        for (size_t first = 0; whole && first < EXACT_VECTORS; first += G)
            sum_rounds(lanes, &at, first, G, whole, prefetch, D);
        for (size_t i = whole, lane = 0; i < count; i += VN, lane += 2)
            sum_step(lanes->t + lane, lanes->q + lane, &at, i, 1, lanes_at(i, count), D);
    }
}

NRG_INLINE void add_elements_of(channel_lanes *lanes, const char *x, size_t n, int prefetch, nrg_dtype D)
{
    const sum_source from = {SUM_SQUARES, x, NULL, NULL};
    sum_elements_of(lanes, &from, n, prefetch, D);
}

NRG_INLINE void add_gradients_of(channel_lanes *lanes, const float *d, const char *x, float mean, size_t n, nrg_dtype D)
{
    vd centre[2 * NORM_STEP];
    fill_centre(centre, (double)mean);
    const sum_source from = {SUM_GRADIENT, x, d, centre};
    sum_elements_of(lanes, &from, n, 0, D);
}

NRG_INLINE void fold_sums(const channel_lanes *lanes, double *t, double *q)
{
    const vd8 folded_t = fold_exact(lanes->t), folded_q = fold_exact(lanes->q);
    *t = vd8_sum(&folded_t);
    *q = vd8_sum(&folded_q);
}

/* Small sets, n elements each, one after the other: at most CHANNEL_BATCH of them, whose folds share their shuffles. */
enum { CHANNEL_SMALL = 512, CHANNEL_BATCH = 8 };

typedef struct channel_folds {
    vd8 t[CHANNEL_BATCH], q[CHANNEL_BATCH];
} channel_folds;

/* Sums a set of n elements. All lanes are in registers, and the last ones found without an index: with add_elements, instances of
 * 49 elements had a speedup of 0.7 to 0.8. */
NRG_INLINE void fold_set(channel_folds *folds, size_t set, const sum_source *from, size_t n, nrg_dtype D)
{
    channel_lanes lanes;
    size_t i = 0;
    clear_lanes(&lanes);
    for (; i + EXACT_LANES <= n; i += EXACT_LANES)
        sum_step(lanes.t, lanes.q, from, i, EXACT_VECTORS, EXACT_LANES, D);
    NRG_UNROLL
    for (int j = 0; j < EXACT_VECTORS; j++, i += VN)
        if (i < n)
            sum_step(lanes.t + 2 * j, lanes.q + 2 * j, from, i, 1, lanes_at(i, n), D);
    folds->t[set] = fold_exact(lanes.t);
    folds->q[set] = fold_exact(lanes.q);
}

/* t and q have room for CHANNEL_BATCH. */
NRG_INLINE void sum_folds(channel_folds *folds, size_t count, double *t, double *q)
{
    for (; count < CHANNEL_BATCH; count++) {
        folds->t[count] = folds->t[0];
        folds->q[count] = folds->q[0];
    }
    vd8_sum_rows(folds->t, t);
    vd8_sum_rows(folds->q, q);
}

/* ---- columns ---- */

/* Rows of at most CHANNEL_COLUMNS columns. d, centre: as sum_source has them. */
typedef struct channel_columns {
    const char *x;
    const float *d, *centre;
    size_t stride, d_stride, rows, width; /* strides in bytes */
    int centred;                          /* forward */
    size_t ahead;                         /* of a strip: bytes from a row to one that is prefetched; 0: none */
    int prefetch; /* forward: what lies right of these columns, the next block, or of rows without a gap the next rows */
} channel_columns;

/* Strips of G vectors, or of the first n columns of one. */
NRG_INLINE void sum_strip(const channel_columns *c, double *t, double *q, int G, size_t n, sum_kind kind, nrg_dtype D)
{
    vd kept_t[2 * NORM_STEP], kept_q[2 * NORM_STEP], centre[2 * NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        kept_t[j] = vd_ld(t + j * (VN / 2));
        kept_q[j] = vd_ld(q + j * (VN / 2));
        if (kind != SUM_SQUARES)
            centre[j] = vd_ld_f32(c->centre + j * (VN / 2));
    }
    for (size_t row = 0; row < c->rows; row++) {
        const float *d = kind == SUM_GRADIENT ? (const float *)(const void *)((const char *)c->d + row * c->d_stride) : NULL;
        const sum_source from = {kind, c->x + row * c->stride, d, centre};
        if (c->ahead) {
            prefetch_step_ahead(from.x, G, bytes_of(1, D, 0), c->ahead);
            if (kind == SUM_GRADIENT)
                prefetch_step_ahead((const char *)d, G, sizeof *d, CHANNEL_GRADIENT_ROWS * c->d_stride);
        }
        sum_step(kept_t, kept_q, &from, 0, G, n, D);
    }
    NRG_UNROLL
    for (int j = 0; j < 2 * G; j++) {
        vd_st(t + j * (VN / 2), kept_t[j]);
        vd_st(q + j * (VN / 2), kept_q[j]);
    }
}

/* Adds rows to the sums of every column; t, q and centre have room for full vectors. */
NRG_INLINE void sum_rows_of(const channel_columns *c, double *t, double *q, sum_kind kind, nrg_dtype D)
{
    const int gradient = kind == SUM_GRADIENT, G = gradient ? V_SUM4 : kind == SUM_SQUARES ? V_SUM2 : 1; /* rare: little code */
    const size_t size = bytes_of(1, D, 0), most = CHANNEL_ROW_BYTES / (c->width * (gradient ? 2 * sizeof(float) : size)) + 1;
    channel_columns strip = *c;
    for (size_t row = 0; row < c->rows; row += most) {
        size_t k = 0, n;
        strip.rows = lesser(c->rows - row, most);
        strip.ahead = 0;
        if (c->prefetch && gradient)
            strip.ahead = CHANNEL_GRADIENT_ROWS * c->stride;
        else if (c->prefetch) /* the rows of the next round; after the last, the first of the columns right of these */
            strip.ahead = row + most < c->rows ? most * c->stride : c->width * size - row * c->stride;
        for (; k < c->width; k += n) {
            const int full = G > 1 && k + (size_t)G * VN <= c->width;
            strip.x = c->x + row * c->stride + k * size;
            if (gradient)
                strip.d = (const float *)(const void *)((const char *)c->d + row * c->d_stride) + k;
            if (kind != SUM_SQUARES)
                strip.centre = c->centre + k;
            n = full ? (size_t)G * VN : lanes_at(k, c->width);
            if (full)
                sum_strip(&strip, t + k, q + k, G, (size_t)G * VN, kind, D);
            else
                sum_strip(&strip, t + k, q + k, 1, n, kind, D);
        }
    }
}

/* Σx and Σx² of every column, to t and q, which have room for CHANNEL_COLUMNS. */
NRG_INLINE void sum_columns_of(const channel_columns *c, double *t, double *q, nrg_dtype D)
{
    for (size_t k = 0; k < (c->width + VN - 1) / VN * VN; k++)
        t[k] = q[k] = 0;
    sum_rows_of(c, t, q, SUM_SQUARES, D);
    for (size_t k = 0; k < c->width && !c->centred; k++)
        t[k] = 0;
}

NRG_INLINE void add_columns_of(const channel_columns *c, double *t, double *q, nrg_dtype D)
{
    sum_rows_of(c, t, q, SUM_GRADIENT, D);
}

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
