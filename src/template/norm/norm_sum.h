/* The sums of the exact grade: Σr and Σr² of a row, in double, in the one order that every path keeps (docs/numerics.md): 32
 * lanes, element i in lane i mod 32; after a segment of 4096 elements the lanes fold by halves, and segments are added in index
 * order, compensated. Squares of floats are exact in double and cannot overflow or underflow there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_SUM_H
#define NRG_TEMPLATE_NORM_NORM_SUM_H

#include "../lane_sum.h"
#include "norm_row.h"

enum {
    NORM_LANES = 32,
    NORM_BLOCK = 512,                         /* what a turn of a lane group walks: stays in L1 for the next group */
    NORM_LANE_VECTORS = NORM_LANES / VN,      /* vectors of floats that fill the lanes once */
    NORM_LANE_REGISTERS = 2 * NORM_LANES / VN /* vectors of doubles that hold them */
};

NRG_INLINE void add_to_lanes(vd *t, vd *tt, vd low, vd high, int centred)
{
    if (centred) {
        t[0] = vd_add(t[0], low);
        t[1] = vd_add(t[1], high);
    }
    tt[0] = vd_fma(low, low, tt[0]);
    tt[1] = vd_fma(high, high, tt[1]);
}

/* Adds a step of r to lanes, which begin with those of its first vector and are `vectors` vectors long. */
NRG_INLINE void sum_step(vd *t, vd *tt, int vectors, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D,
                         int centred)
{
    if (G > 1 && how & NORM_PREFETCH)
        prefetch_step(G, how, row, i, D);
    if (D == NRG_F32 && G > 1 && !(how & NORM_FIRST)) {
        const float *x = (const float *)row.x + i;
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const int lane = 2 * (j % vectors);
            add_to_lanes(t + lane, tt + lane, vd_ld_f32(x + j * VN), vd_ld_f32(x + j * VN + VN / 2), centred);
        }
        return;
    }
    vf v[NORM_STEP];
    if (G > 1 && !(how & NORM_FIRST)) { /* of its own: what is made of x otherwise would be copied for it, 7 % of a LayerNorm */
        load_step(v, G, row.x, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const int lane = 2 * (j % vectors);
            add_to_lanes(t + lane, tt + lane, vd_low(v[j]), vd_high(v[j]), centred);
        }
        return;
    }
    load_first(v, G, how, row, i, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const int lane = 2 * (j % vectors);
        add_to_lanes(t + lane, tt + lane, vd_low(v[j]), vd_high(v[j]), centred);
    }
}

/* All whole steps from begin to end, which is begin plus a multiple of `stride` elements, for the lanes of a step's vectors. */
NRG_INLINE void sum_group(vd *t, vd *tt, int G, unsigned how, unsigned may, norm_row row, size_t begin, size_t end, size_t stride,
                          nrg_dtype D, int centred)
{
    const int vectors = G < NORM_LANE_VECTORS ? G : NORM_LANE_VECTORS;
    vd kept_t[NORM_LANE_REGISTERS], kept_tt[NORM_LANE_REGISTERS];
    NRG_UNROLL
    for (int j = 0; j < 2 * vectors; j++) {
        if (centred)
            kept_t[j] = t[j];
        kept_tt[j] = tt[j];
    }
    for (size_t i = begin; i < end; i += stride)
        sum_step(kept_t, kept_tt, vectors, G, options_in_register(how, may), row, i, (size_t)G * VN, D, centred);
    NRG_UNROLL
    for (int j = 0; j < 2 * vectors; j++) {
        if (centred)
            t[j] = kept_t[j];
        tt[j] = kept_tt[j];
    }
}

/* 32 lanes to 8: lane l takes l+16, then l+8. */
NRG_INLINE vd8 fold_lanes(const vd *lanes)
{
    enum { Q = NORM_LANE_REGISTERS / 4 };
    vd8 folded;
    NRG_UNROLL
    for (int j = 0; j < Q; j++)
        folded.v[j] = vd_add(vd_add(lanes[j], lanes[j + 2 * Q]), vd_add(lanes[j + Q], lanes[j + 3 * Q]));
    return folded;
}

NRG_INLINE void clear_lanes(vd *t, vd *tt, int centred)
{
    NRG_UNROLL
    for (int j = 0; j < NORM_LANE_REGISTERS; j++) {
        if (centred)
            t[j] = vd_zero();
        tt[j] = vd_zero();
    }
}

#endif
