/* Σt and Σt² of a row, in the one order that every path keeps (docs/numerics.md): 64 lanes, blocks of 512 added plainly, blocks
 * joined by two-sum, segments of 8 blocks joined in double. Plain sums of four vectors run as fast as the loads; a two-sum for
 * each element would be 2 to 4 times slower (23 instead of 53 elements/ns in L1 with AVX-512).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_SUM_H
#define NRG_TEMPLATE_NORM_SUM_H

#include "norm_row.h"

enum { NORM_LANES = 64, NORM_BLOCK = 512, NORM_SEGMENT = 4096 };

/* A block's lanes, folded to 16. */
typedef struct norm_block {
    v16 t, tt;
} norm_block;

/* A row's sums so far. */
typedef struct norm_sums {
    v16 t, t_low, tt, tt_low; /* the segment's, compensated */
    double total_t, total_tt;
} norm_sums;

/* Adds a step of r to its lanes, and stores r where it is asked for. */
NRG_INLINE void sum_step(vf *t, vf *tt, int G, const norm_options *opt, norm_row row, size_t i, size_t n, nrg_dtype D,
                         int centred)
{
    vf v[V_SUM1];
    if (G > 1 && opt->prefetch)
        prefetch_step(G, opt, row, i, D);
    load_r(v, G, opt, row, opt->sum_from, i, n, D);
    if (opt->store_r)
        store_r(v, G, opt, row, i, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        if (centred)
            t[j] = v_add(t[j], v[j]);
        tt[j] = v_fma(v[j], v[j], tt[j]);
    }
}

/* 64 lanes to 16: lane l takes l+32, then l+16. */
NRG_INLINE v16 fold_lanes(const vf *lanes)
{
    enum { F = 16 / VN };
    v16 folded;
    NRG_UNROLL
    for (int j = 0; j < F; j++)
        folded.v[j] = v_add(v_add(lanes[j], lanes[j + 2 * F]), v_add(lanes[j + F], lanes[j + 3 * F]));
    return folded;
}

/* The lanes of G vectors, over all whole steps of 64 elements from begin to end. */
NRG_INLINE void sum_group(vf *t, vf *tt, int G, const norm_options *opt, norm_row row, size_t begin, size_t end, nrg_dtype D,
                          int centred)
{
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        t[j] = tt[j] = v_zero();
    for (size_t i = begin; i < end; i += NORM_LANES)
        sum_step(t, tt, G, opt, row, i, (size_t)G * VN, D, centred);
}

/* Elements begin to end of a row, at most a block. Where the registers do not hold all lanes, two halves of them take turns; what
 * does not fill the 64 lanes goes vector by vector, so that there is one copy of the code for the end of a row. */
NRG_INLINE norm_block sum_block(const norm_options *opt, norm_row row, size_t begin, size_t end, nrg_dtype D, int centred)
{
    enum { ALL = NORM_LANES / VN };
    const int G = centred ? V_SUM2 : V_SUM1;
    const size_t whole = end - (end - begin) % NORM_LANES;
    vf t[ALL], tt[ALL];
    sum_group(t, tt, G, opt, row, begin, whole, D, centred);
    if (G < ALL)
        sum_group(t + ALL / 2, tt + ALL / 2, G, opt, row, begin + NORM_LANES / 2, whole, D, centred);
    if (whole < end) {
        /* through memory: an index that is not a constant must not keep the accumulators above from their registers */
        vf rest_t[ALL], rest_tt[ALL];
        memcpy(rest_t, t, sizeof t);
        memcpy(rest_tt, tt, sizeof tt);
        for (size_t i = whole, j = 0; i < end; i += VN, j++)
            sum_step(rest_t + j, rest_tt + j, 1, opt, row, i, lanes_at(i, end), D, centred);
        memcpy(t, rest_t, sizeof t);
        memcpy(tt, rest_tt, sizeof tt);
    }
    norm_block block;
    block.tt = fold_lanes(tt);
    block.t = centred ? fold_lanes(t) : block.tt;
    return block;
}

/* sum + v = the new sum + an error, exactly; the errors collect in low (Knuth, TAOCP 2, 4.2.2). */
NRG_INLINE void two_sum(v16 *sum, v16 *low, const v16 *v)
{
    NRG_UNROLL
    for (int j = 0; j < 16 / VN; j++) {
        vf s = v_add(sum->v[j], v->v[j]), part = v_sub(s, sum->v[j]);
        low->v[j] = v_add(low->v[j], v_add(v_sub(sum->v[j], v_sub(s, part)), v_sub(v->v[j], part)));
        sum->v[j] = s;
    }
}

NRG_INLINE void v16_clear(v16 *a)
{
    NRG_UNROLL
    for (int j = 0; j < 16 / VN; j++)
        a->v[j] = v_zero();
}

NRG_INLINE void sums_clear_segment(norm_sums *sums)
{
    v16_clear(&sums->t);
    v16_clear(&sums->t_low);
    v16_clear(&sums->tt);
    v16_clear(&sums->tt_low);
}

NRG_INLINE void sums_begin(norm_sums *sums)
{
    sums->total_t = sums->total_tt = 0;
    sums_clear_segment(sums);
}

/* Joins the block that ends at element end of dim. */
NRG_INLINE void sums_add_block(norm_sums *sums, const norm_block *block, size_t end, size_t dim, int centred)
{
    two_sum(&sums->tt, &sums->tt_low, &block->tt);
    if (centred)
        two_sum(&sums->t, &sums->t_low, &block->t);
    if (end == dim || end % NORM_SEGMENT == 0) {
        sums->total_tt += v_sum16(&sums->tt, &sums->tt_low);
        if (centred)
            sums->total_t += v_sum16(&sums->t, &sums->t_low);
        sums_clear_segment(sums);
    }
}

/* Adds elements begin to end of a row to its sums; begin is a multiple of a block, end too or the row's end. */
NRG_INLINE void sum_range(norm_sums *sums, const norm_options *opt, norm_row row, size_t begin, size_t end, nrg_dtype D,
                          int centred)
{
    for (size_t i = begin, next; i < end; i = next) {
        next = end - i > NORM_BLOCK ? i + NORM_BLOCK : end;
        norm_block block = sum_block(opt, row, i, next, D, centred);
        sums_add_block(sums, &block, next, opt->dim, centred);
    }
}

#endif
