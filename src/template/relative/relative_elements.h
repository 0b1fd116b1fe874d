/* Relative position representations: what touches elements. Elements as floats and doubles, sums of long runs, results into rows:
 * once for each dtype. Dot products, and the product of matrices in double that two of the three operations are made of: once, of
 * whole vectors of floats; everything else is widened and padded with zeros first, a few rows at a time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_ELEMENTS_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_ELEMENTS_H

#include "../../job/relative.h"
#include "../exact_lanes.h"

#define REL_NOINLINE static __attribute__((noinline))

enum {
    REL_ROWS = 4,   /* queries, or slots, that share what is loaded */
    REL_SLOTS = 64, /* slots on the stack at once */
    REL_COLUMNS = NRG_RELATIVE_COLUMNS,
    REL_SEGMENT = 128,              /* elements of a dot product that are summed before they are folded */
    REL_VECTORS = (int)V_SUM2 / 2,  /* vectors of columns whose sums are in registers at once, for REL_ROWS rows */
    REL_CLASSES = V_SUM2 * VN / 16, /* rows of the table that are multiplied with REL_ROWS queries at once */
    REL_WIDE = 32                   /* floats that are padded to */
};

_Static_assert((int)REL_WIDE % ((int)REL_VECTORS * VN) == 0 && (int)REL_COLUMNS % (int)REL_WIDE == 0,
               "what is padded is whole steps");

/* ---- elements of one dtype ---- */

/* n elements from p on as floats, and zeros up to a multiple of REL_WIDE. */
NRG_INLINE void rel_widen_of(float *to, const char *p, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        v_st_f32(to + i, load_whole(p, i, D));
    if (i < n) {
        v_st_f32(to + i, load_part(p, i, n - i, D));
        i += VN;
    }
    for (; i % REL_WIDE; i += VN)
        v_st_f32(to + i, v_zero());
}

NRG_BY_DTYPE(rel_widen, (to, p, n), float *to, const char *p, size_t n)

NRG_INLINE void add_to_lanes(vd *lanes, const char *p, size_t i, nrg_dtype D)
{
    vd v[2];
    load_doubles(v, p, i, D);
    lanes[0] = vd_add(lanes[0], v[0]);
    lanes[1] = vd_add(lanes[1], v[1]);
}

/* Σ of n elements, the t-th in lane t mod 32. */
NRG_INLINE void rel_sum_of(double *sum, const char *p, size_t n, nrg_dtype D)
{
    vd lanes[EXACT_LANE_VDS];
    size_t i = 0;
    NRG_UNROLL
    for (int j = 0; j < (int)EXACT_LANE_VDS; j++)
        lanes[j] = vd_zero();
    for (; i + EXACT_LANES <= n; i += EXACT_LANES) {
        NRG_UNROLL
        for (int j = 0; j < (int)EXACT_LANE_VDS; j += 2)
            add_to_lanes(lanes + j, p, i + (size_t)j * (VN / 2), D);
    }
    if (i < n) {
        float rest[REL_WIDE];
        rel_widen_of(rest, p + bytes_of(i, D, 0), n - i, D);
        NRG_UNROLL
        for (int j = 0; j < (int)EXACT_LANE_VDS; j += 2)
            add_to_lanes(lanes + j, (const char *)rest, (size_t)j * (VN / 2), NRG_F32);
    }
    const vd8 folded = fold_exact(lanes);
    *sum = vd8_sum(&folded);
}

NRG_BY_DTYPE(rel_sum, (sum, p, n), double *sum, const char *p, size_t n)

/* n elements of a row become what is at `from`, or all of them *from, or take it in addition. */
NRG_INLINE void rel_put_of(char *out, const float *from, size_t n, int slice, int accumulate, nrg_dtype D)
{
    const vf one = v_set1(*from);
    size_t i = 0;
    vf v[V_APPLY], before[V_APPLY];
    for (; i + V_APPLY * VN <= n; i += V_APPLY * VN) {
        NRG_UNROLL
        for (int j = 0; j < V_APPLY; j++)
            v[j] = slice ? v_ld_f32(from + i + j * VN) : one;
        if (accumulate) {
            load_step(before, V_APPLY, out, i, 0, D);
            NRG_UNROLL
            for (int j = 0; j < V_APPLY; j++)
                v[j] = v_add(before[j], v[j]);
        }
        store_step(v, V_APPLY, out, i, 0, D, 0);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        v[0] = slice ? v_ldn_f32(from + i, lanes) : one;
        if (accumulate)
            v[0] = v_add(load_part(out, i, lanes, D), v[0]);
        store_step(v, 1, out, i, lanes, D, 0);
    }
}

NRG_BY_DTYPE(rel_put, (out, from, n, slice, accumulate), char *out, const float *from, size_t n, int slice, int accumulate)

enum { REL_PREFETCH = 32 };

/* n elements, at most 8, of each of so many rows `step` bytes apart, as 8 doubles: zeros behind them. Those of rows further on
 * are fetched: nothing else in the processor knows that they will be asked for. */
NRG_INLINE void rel_gather_of(double *to, const char *p, size_t step, size_t rows, size_t n, nrg_dtype D)
{
    for (; rows; rows--, p += step, to += 8) {
        __builtin_prefetch((const void *)((uintptr_t)p + REL_PREFETCH * step));
        NRG_UNROLL
        for (size_t i = 0; i < 8; i += VN) {
            const vf v = i < n ? load_part(p, i, lanes_at(i, n), D) : v_zero();
            vd_st(to + i, vd_low(v));
            if (i + VN / 2 < 8)
                vd_st(to + i + VN / 2, vd_high(v));
        }
    }
}

NRG_BY_DTYPE(rel_gather, (to, p, step, rows, n), double *to, const char *p, size_t step, size_t rows, size_t n)

enum {
    REL_STAGE = REL_SEGMENT,
    REL_STAGE_STEP = VN > 8 ? VN : 8 /* doubles that are padded to */
};

/* n elements from p on, at most REL_STAGE, as doubles; zeros up to a multiple of REL_STAGE_STEP. */
REL_NOINLINE void rel_stage(double *to, const char *p, size_t n, nrg_dtype D)
{
    float floats[REL_STAGE];
    rel_widen(floats, p, n, D);
    for (size_t i = 0; i < n; i += REL_STAGE_STEP) {
        NRG_UNROLL
        for (size_t j = 0; j < REL_STAGE_STEP; j += VN / 2)
            vd_st(to + i + j, vd_ld_f32(floats + i + j));
    }
}

NRG_INLINE void rel_clear(double *sums, size_t n)
{
    for (size_t i = 0; i < n; i += VN / 2)
        vd_st(sums + i, vd_zero());
}

/* n sums, as they are rounded, to out. */
REL_NOINLINE void rel_put_sums(char *out, const double *sums, size_t n, int accumulate, nrg_dtype D)
{
    float rounded[REL_COLUMNS];
    for (size_t i = 0; i < REL_COLUMNS; i += VN)
        v_st_f32(rounded + i, v_from_vd(vd_ld(sums + i), vd_ld(sums + i + VN / 2)));
    rel_put(out, rounded, n, 1, accumulate, D);
}

#endif
