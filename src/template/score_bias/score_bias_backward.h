/* The sums of gradients along the diagonals, over the vectors of a path's vec.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_BIAS_SCORE_BIAS_BACKWARD_H
#define NRG_TEMPLATE_BIAS_SCORE_BIAS_BACKWARD_H

#ifndef NRG_NO_BACKWARD
#include "score_bias.h"

/* Rows that are added to a piece of the table while it is in registers, and vectors of that piece. 32 heads of 2048×2048 in f32:
 * 0.33 of what reading takes with 2 rows, 0.45 with 4, 0.50 with 8, and 0.62 with 8 rows that are prefetched. 8 vectors of 16-bit
 * elements with AVX-512: 8 heads of 512×512 in 256 us, with 4 in 278; of f32 in 331, and 315.
 * Eight rows are prefetched half as far as one: 2048×2048 in bf16 takes 28 ms, and 36 with twice as much; 16 heads of one row of
 * 4096 in f32 take 398 us with 1024 bytes, and 490 with 2048. */
enum { SCORE_ROWS = VN < 8 ? VN : 8, SCORE_SUMS = 4, SCORE_HALF_SUMS = VN < 16 ? 4 : 8, SCORE_SUMS_AHEAD = 512 };

/* The table of one head, or a range of it. A sum is never -0, so that adding 0 for what a row does not have changes nothing. */
typedef struct score_sums {
    double *sum;
    size_t begin, end, keys;
    int is_last; /* whether the rows are the last ones of their matrix */
} score_sums;

NRG_INLINE void score_add_vector(vd sum[2], const char *row, size_t j, nrg_dtype D)
{
    if (D == NRG_F32) {
        sum[0] = vd_add(sum[0], vd_ld_f32((const float *)row + j));
        sum[1] = vd_add(sum[1], vd_ld_f32((const float *)row + j + VN / 2));
        return;
    }
    const vf v = from_half(v_ld_half((const uint16_t *)row + j), D);
    vd low, high;
    vd_both(v, &low, &high);
    sum[0] = vd_add(sum[0], low);
    sum[1] = vd_add(sum[1], high);
}

/* G vectors of the table, to which element j of the first row belongs, j + 1 of the second, and so on. */
NRG_INLINE void score_add_step(double *sum, const char *row, size_t stride, size_t rows, size_t j, int G, nrg_dtype D)
{
    vd acc[2 * SCORE_HALF_SUMS];
    const size_t ahead = rows == SCORE_ROWS ? SCORE_SUMS_AHEAD : 2 * SCORE_SUMS_AHEAD;
    NRG_UNROLL
    for (int k = 0; k < 2 * G; k++)
        acc[k] = vd_ld(sum + k * (VN / 2));
    for (size_t r = 0; r < rows; r++) {
        const size_t at = j + r;
        if (G > 1)
            for (size_t line = 0; line < bytes_of((size_t)G * VN, D, 0); line += 64)
                __builtin_prefetch((const void *)((uintptr_t)row + bytes_of(at, D, 0) + line + ahead));
        NRG_UNROLL
        for (int k = 0; k < G; k++)
            score_add_vector(acc + 2 * k, row, at + (size_t)k * VN, D);
        row += stride;
    }
    NRG_UNROLL
    for (int k = 0; k < 2 * G; k++)
        vd_st(sum + k * (VN / 2), acc[k]);
}

/* Entries `from` to `to` of rows that are shorter than a vector, one at a time. What there is of the rows passes through an
 * array, so that there is one copy of this for all dtypes. */
static __attribute__((noinline)) void score_add_short(const score_sums *s, const char *row, size_t stride, size_t rows,
                                                      size_t first, size_t from, size_t to, nrg_dtype D)
{
    float some[SCORE_ROWS][VN];
    const size_t keys = s->keys;
    for (size_t r = 0; r < rows; r++) {
        v_st_f32(some[r], load_part(row, 0, keys, D));
        row += stride;
    }
    for (size_t e = from; e < to; e++) {
        double sum = s->sum[e];
        const size_t end = lesser(rows, first + keys - e);
        for (size_t r = first > e ? first - e : 0; r < end; r++)
            sum += (double)some[r][e + r - first];
        s->sum[e] = sum;
    }
}

NRG_INLINE vf score_lane_numbers(void)
{
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return v_ld_f32(lane);
}

/* v with 0 in the lanes before `begin`. */
NRG_INLINE vf score_lanes_from(vf v, size_t begin)
{
    return v_select(v_lt(score_lane_numbers(), v_set1((float)begin)), v_zero(), v);
}

/* v with 0 in the lanes from `end` on. */
NRG_INLINE vf score_lanes_to(vf v, size_t end) { return v_select(v_lt(score_lane_numbers(), v_set1((float)end)), v, v_zero()); }

/* A vector of entries from `from` on, those before `to`, of which not every row has an element: 0 stands for what a row does not
 * have. Lanes before a row's first element are read from the row before it, and those behind its last one from the next, so that
 * neither an array nor a mask is in the way; the end of the last row of all is read in part. (One entry at a time, out of an
 * array, was two thirds of the time of a matrix of 64 × 64 or 128 × 128.) */
NRG_INLINE void score_add_end(const score_sums *s, double *sum, const char *row, size_t stride, size_t rows, size_t first,
                              size_t from, size_t to, nrg_dtype D)
{
    const size_t keys = s->keys;
    vd low = vd_ld(sum), high = vd_ld(sum + VN / 2);
    for (size_t r = 0; r < rows; r++, row += stride) {
        const size_t begin = first > from + r ? first - from - r : 0, stop = lesser(to, first + keys - r);
        if (stop <= from + begin)
            continue;
        const size_t end = lesser(stop - from, VN), behind = from + r + VN;
        const int is_part = s->is_last && r + 1 == rows && behind > first + keys;
        const char *p = row + bytes_of(from + r, D, 0) - bytes_of(first, D, 0);
        vf v = is_part ? load_part(p, 0, end, D) : score_lanes_to(load_whole(p, 0, D), end);
        if (from < first)
            v = score_lanes_from(v, begin);
        low = vd_add(low, vd_low(v));
        high = vd_add(high, vd_high(v));
    }
    vd_st(sum, low);
    vd_st(sum + VN / 2, high);
}

/* The SCORE_ROWS entries before `first`, of as many rows, of which row r has the last r: on the grid of the other vectors, so
 * that the next rows load what is stored here in the same pieces. From first - 7 on it was in two of them, and their loads waited
 * until both were in the cache: 64 × 64 and 128 × 128 took 1.1 to 1.2 times as long. */
NRG_INLINE void score_add_low_end(double *sum, const char *row, size_t stride, nrg_dtype D)
{
    enum { VECTORS = SCORE_ROWS / (VN / 2) };
    vd some[2];
    NRG_UNROLL
    for (int k = 0; k < VECTORS; k++)
        some[k] = vd_ld(sum + k * (VN / 2));
    NRG_UNROLL
    for (size_t r = 1; r < SCORE_ROWS; r++) {
        const vf v = score_lanes_from(load_whole(row + r * stride - bytes_of(SCORE_ROWS - r, D, 0), 0, D), SCORE_ROWS - r);
        some[0] = vd_add(some[0], vd_low(v));
        if (VECTORS > 1)
            some[1] = vd_add(some[1], vd_high(v));
    }
    NRG_UNROLL
    for (int k = 0; k < VECTORS; k++)
        vd_st(sum + k * (VN / 2), some[k]);
}

NRG_INLINE void score_add_ends(const score_sums *s, const char *row, size_t stride, size_t rows, size_t first, size_t from,
                               size_t to, nrg_dtype D)
{
    if (s->keys < VN) {
        score_add_short(s, row, stride, rows, first, from, to, D);
        return;
    }
    for (; from < to; from += VN) {
        double some[VN], *sum = s->sum + from;
        const size_t left = s->end - from;
        if (left < VN)
            sum = memcpy(some, sum, left * sizeof *sum);
        score_add_end(s, sum, row, stride, rows, first, from, to, D);
        if (left < VN)
            memcpy(s->sum + from, some, left * sizeof *sum);
    }
}

/* Some rows into the table. The first begins at entry `first`, and every other one entry below the one before it. */
NRG_INLINE void score_add_rows(const score_sums *s, const char *row, size_t stride, size_t rows, size_t first, nrg_dtype D)
{
    /* entries that all of the rows have */
    const size_t others = rows - 1, after = first + s->keys, end = lesser(after - others, s->end);
    const int sums = D == NRG_F32 ? SCORE_SUMS : SCORE_HALF_SUMS;
    size_t e = score_larger(first, s->begin);
    for (; e + (size_t)sums * VN <= end; e += (size_t)sums * VN)
        score_add_step(s->sum + e, row, stride, rows, e - first, sums, D);
    for (; e + VN <= end; e += VN)
        score_add_step(s->sum + e, row, stride, rows, e - first, 1, D);
    const size_t last = lesser(after, s->end), low = score_larger(first - others, s->begin);
    if (e < last)
        score_add_ends(s, row, stride, rows, first, e, last, D);
    if (rows == SCORE_ROWS && s->keys >= VN && first >= s->begin + SCORE_ROWS && first <= s->end)
        score_add_low_end(s->sum + first - SCORE_ROWS, row, stride, D);
    else if (low < first)
        score_add_ends(s, row, stride, rows, first, low, lesser(first, s->end), D);
}

NRG_INLINE void score_backward(const nrg_score_bias_backward_job *at, nrg_dtype D)
{
    const nrg_score_bias_backward_job job = *at;
    const size_t queries = job.queries, keys = job.keys, diagonals = queries + keys - 1, stride = job.d_o_stride.row;
    for (size_t n = job.begin, next; n < job.end; n = next) {
        const size_t h = n / diagonals;
        next = lesser((h + 1) * diagonals, job.end);
        score_sums s = {(double *)(job.d_diagonals + h * job.d_diagonals_stride), n - h * diagonals, next - h * diagonals, keys,
                        0};
        for (size_t e = s.begin; e < s.end; e++)
            s.sum[e] = job.accumulate ? s.sum[e] + 0.0 : 0.0;
        /* the queries that have any of these entries */
        const size_t first_row = queries - lesser(queries, s.end), end_row = lesser(queries, diagonals - s.begin);
        for (size_t b = 0; b < job.batch; b++) {
            const char *row = job.d_o + score_row_at(job.d_o_stride, b, h, first_row);
            for (size_t i = first_row, rows; i < end_row; i += rows, row += rows * stride) {
                rows = lesser(SCORE_ROWS, end_row - i);
                s.is_last = i + rows == end_row;
                score_add_rows(&s, row, stride, rows, queries - 1 - i, D);
            }
        }
    }
}

NRG_PATH_KERNELS(score_bias_backward, score_bias_backward, score_backward)
#endif

#endif
