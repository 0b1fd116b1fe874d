/* Kahan-style sums of floats in the one order that every path keeps (docs/numerics.md): 64 lanes, element i in lane i mod 64;
 * after a block of 256 elements the lanes fold to 16, which are joined to the blocks before by compensated addition; after a
 * segment those go on in double.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_LANE_SUM_H
#define NRG_TEMPLATE_LANE_SUM_H

#include "step.h"

enum {
    NORM_SEGMENT = 4096,
    FAST_BLOCK = 256,
    FAST_LEAST = 16,              /* lanes that a block folds to */
    FAST_FOLDED = FAST_LEAST / VN /* vectors of them */
};

/* A sum of segments, with what its additions have lost: so that no bound depends on how many there are. */
typedef struct norm_total {
    double sum, lost;
} norm_total;

NRG_INLINE void add_compensated(norm_total *total, double segment)
{
    const double sum = total->sum + segment, part = sum - total->sum;
    total->lost += (total->sum - (sum - part)) + (segment - part);
    total->sum = sum;
}

NRG_INLINE double value_of(const norm_total *total) { return total->sum + total->lost; }

/* 64 lanes to 16: lane l takes l+32, then l+16. Where they lie in pairs of vectors, they are put in order as soon as a vector has
 * not both. */
NRG_INLINE void fast_fold(vf *lanes, int in_pairs)
{
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_VECTORS / 2; j++)
        lanes[j] = v_add(lanes[j], lanes[j + FAST_VECTORS / 2]);
    if (in_pairs && FAST_FOLDED == 1)
        pairs_to_order(lanes, 2);
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_VECTORS / 4; j++)
        lanes[j] = v_add(lanes[j], lanes[j + FAST_VECTORS / 4]);
    if (in_pairs && FAST_FOLDED > 1)
        pairs_to_order(lanes, FAST_FOLDED);
}

/* Two-sum (Knuth): the rounding error of an addition, whichever operand is larger. */
NRG_INLINE void fast_join(vf *sum, vf *lost, const vf *lanes)
{
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++) {
        const vf s = v_add(sum[j], lanes[j]), part = v_sub(s, sum[j]);
        lost[j] = v_add(lost[j], v_add(v_sub(sum[j], v_sub(s, part)), v_sub(lanes[j], part)));
        sum[j] = s;
    }
}

/* 16 lanes to 8, in double; lost: NULL, or what the additions have lost. */
NRG_INLINE vd8 fast_widen(const vf *sum, const vf *lost)
{
    vd d[2 * FAST_FOLDED];
    vd8 eight;
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++) {
        d[2 * j] = vd_low(sum[j]);
        d[2 * j + 1] = vd_high(sum[j]);
        if (lost) {
            d[2 * j] = vd_add(d[2 * j], vd_low(lost[j]));
            d[2 * j + 1] = vd_add(d[2 * j + 1], vd_high(lost[j]));
        }
    }
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        eight.v[j] = vd_add(d[j], d[j + FAST_FOLDED]);
    return eight;
}

#endif
