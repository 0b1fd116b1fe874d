/* Σp and Σp² in the exact grade: in double, in the order that every path keeps (docs/numerics.md). Element i belongs to lane i
 * mod 32; after a segment of 4096 elements the lanes fold by halves. Squares of floats are exact in double, and cannot overflow
 * or underflow there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_EXACT_SUM_H
#define NRG_TEMPLATE_NORM_EXACT_SUM_H

#include "../exact_lanes.h"
#include "sum.h"

typedef struct exact_lanes {
    vd t[EXACT_LANE_VDS], tt[EXACT_LANE_VDS];
} exact_lanes;

NRG_INLINE void clear_exact_lanes(exact_lanes *sum)
{
    NRG_UNROLL
    for (int j = 0; j < EXACT_LANE_VDS; j++)
        sum->t[j] = sum->tt[j] = vd_zero();
}

/* A step of G vectors, added to lanes that begin with those of its first vector. */
NRG_INLINE void exact_step(vd *t, vd *tt, int G, const summed_row *s, size_t i, size_t n, unsigned options, norm_policy P)
{
    const int vectors = G < EXACT_VECTORS ? G : EXACT_VECTORS;
    vf v[NORM_STEP];
    if (G > 1 && options & OPT_PREFETCH)
        prefetch_source(G, s->row, i, options, P);
    if (G > 1 && !(options & (OPT_ADD_Y | OPT_STORE_R))) { /* conversions from memory need no shuffle */
        const float *x = (const float *)s->row.x + i;
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            accumulate_exact(t + 2 * (j % vectors), tt + 2 * (j % vectors), vd_ld_f32(x + j * VN), vd_ld_f32(x + j * VN + VN / 2),
                             is_centred(P));
        return;
    }
    source_step(v, G, s->row, i, n, options, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        accumulate_exact(t + 2 * (j % vectors), tt + 2 * (j % vectors), vd_low(v[j]), vd_high(v[j]), is_centred(P));
}

/* All steps of G vectors from begin to end, `stride` elements apart. */
NRG_INLINE void exact_steps(vd *t, vd *tt, int G, const summed_row *from, size_t begin, size_t end, size_t stride,
                            unsigned options, norm_policy P)
{
    const summed_row s = *from;
    const int vds = 2 * (G < EXACT_VECTORS ? G : EXACT_VECTORS);
    vd sum_t[EXACT_LANE_VDS], sum_tt[EXACT_LANE_VDS];
    NRG_UNROLL
    for (int j = 0; j < vds; j++) {
        sum_t[j] = t[j];
        sum_tt[j] = tt[j];
    }
    for (size_t i = begin; i < end; i += stride)
        exact_step(sum_t, sum_tt, G, &s, i, (size_t)G * VN, options_in(options, P), P);
    NRG_UNROLL
    for (int j = 0; j < vds; j++) {
        t[j] = sum_t[j];
        tt[j] = sum_tt[j];
    }
}

/* The elements of a part of a row that fill no step, a vector at a time. */
static __attribute__((noinline)) void add_exact_tail(exact_lanes *sum, const summed_row *from, size_t begin, size_t end,
                                                     unsigned options)
{
    const norm_policy P = {.dtype = NRG_F32, .must = OPT_EXACT | OPT_CENTRED, .may = OPT_ALL};
    const summed_row s = {operands_in_registers(&from->row), from->pilot, NULL};
    for (size_t i = begin, lane = 0; i < end; i += VN, lane = (lane + 2) % EXACT_LANE_VDS)
        exact_step(sum->t + lane, sum->tt + lane, 1, &s, i, lanes_at(i, end), options, P);
}

/* Elements begin to end of one segment; begin is a multiple of 64. Where registers do not hold the lanes of both sums, two halves
 * of them take turns, EXACT_CHUNK elements each; below 128 elements the compiler keeps some in memory, which is 10 % faster. */
NRG_INLINE void sum_exact_chunk(exact_lanes *sum, const summed_row *from, size_t begin, size_t end, unsigned options,
                                norm_policy P)
{
    enum { STEP = (int)V_SUM1 * (int)VN > (int)EXACT_LANES ? (int)V_SUM1 * (int)VN : (int)EXACT_LANES, HALVES_FROM = 128 };
    const int G = is_centred(P) ? V_SUM2 : V_SUM1;
    size_t whole = P.multiple % STEP == 0 ? end : end - (end - begin) % STEP;
    if ((int)V_SUM1 >= (int)EXACT_VECTORS && (G == (int)V_SUM1 || whole - begin < HALVES_FROM))
        exact_steps(sum->t, sum->tt, V_SUM1, from, begin, whole, STEP, options, P);
    else
        for (size_t i = begin, next; i < whole; i = next) {
            next = lesser(i + EXACT_CHUNK, whole);
            exact_steps(sum->t, sum->tt, G, from, i, next, STEP, options, P);
            exact_steps(sum->t + 2 * G, sum->tt + 2 * G, G, from, i + (size_t)G * VN, next, STEP, options, P);
        }
    if ((int)STEP > (int)EXACT_LANES && P.multiple % STEP != 0 && end - whole >= EXACT_LANES) {
        exact_steps(sum->t, sum->tt, EXACT_VECTORS, from, whole, whole + EXACT_LANES, EXACT_LANES, options, P);
        whole += EXACT_LANES;
    }
    if (P.multiple % STEP != 0 && NRG_RARELY(whole < end)) { /* of copies: an address would keep the lanes from their registers */
        exact_lanes copy = *sum;
        const summed_row at = {operands_in_registers(&from->row), from->pilot, NULL};
        add_exact_tail(&copy, &at, whole, end, (options & P.may) | P.must);
        *sum = copy;
    }
}

NRG_INLINE row_totals totals_of_exact(const exact_lanes *sum, norm_policy P)
{
    const vd8 tt = fold_exact(sum->tt);
    if (!is_centred(P))
        return (row_totals){0, vd8_sum(&tt)};
    const vd8 t = fold_exact(sum->t);
    return (row_totals){vd8_sum(&t), vd8_sum(&tt)};
}

/* ---- rows of either grade ---- */

/* A row that is summed chunk by chunk: the lanes of the present segment, and the segments before it. */
typedef struct row_sums {
    union {
        folded_blocks blocks;
        exact_lanes lanes;
    };
    float pilot;
    norm_total t, tt;
} row_sums;

/* Adds elements begin to end, which lie in one segment and begin at a multiple of 256. */
NRG_INLINE void sum_chunk(row_sums *sums, const summed_row *from, size_t begin, size_t end, size_t dim, unsigned options,
                          norm_policy P)
{
    const int is_first = begin % NORM_SEGMENT == 0, is_last = end == dim || end % NORM_SEGMENT == 0;
    row_totals totals;
    if (begin == 0)
        sums->t = sums->tt = (norm_total){0, 0};
    if (is_exact(P)) {
        exact_lanes lanes;
        if (is_first)
            clear_exact_lanes(&lanes);
        else
            lanes = sums->lanes;
        sum_exact_chunk(&lanes, from, begin, end, options, P);
        if (!is_last) {
            sums->lanes = lanes;
            return;
        }
        totals = totals_of_exact(&lanes, P);
    } else {
        folded_blocks blocks;
        if (is_first)
            clear_blocks(&blocks);
        else
            blocks = sums->blocks;
        for (size_t i = begin; i < end; i += FAST_BLOCK) {
            block_lanes sum;
            sum_block(&sum, from, i, lesser(i + FAST_BLOCK, end), options, P);
            add_block(&blocks, &sum, P);
        }
        if (!is_last) {
            sums->blocks = blocks;
            return;
        }
        totals = totals_of_blocks(&blocks, P);
    }
    if (is_centred(P))
        add_compensated(&sums->t, totals.t);
    add_compensated(&sums->tt, totals.tt);
}

/* The sums of a segment of either grade. */
NRG_INLINE row_totals sum_any_segment(const summed_row *from, size_t begin, size_t end, unsigned options, norm_policy P)
{
    if (!is_exact(P))
        return sum_segment(from, begin, end, options, P);
    exact_lanes lanes;
    clear_exact_lanes(&lanes);
    sum_exact_chunk(&lanes, from, begin, end, options, P);
    return totals_of_exact(&lanes, P);
}

/* The sums of a row. */
NRG_INLINE row_totals sum_row(const summed_row *from, size_t dim, unsigned options, norm_policy P)
{
    norm_total t = {0, 0}, tt = {0, 0};
    if (P.most <= OUTPUT_CHUNK)
        return sum_any_segment(from, 0, dim, options, P);
    for (size_t i = 0, next; i < dim; i = next) {
        next = lesser(i + NORM_SEGMENT, dim);
        const row_totals segment = sum_any_segment(from, i, next, options, P);
        if (next == dim && i == 0) /* as norm_total has it: in the exact grade, what is not finite becomes NaN */
            return is_exact(P) ? (row_totals){segment.t + (segment.t - segment.t), segment.tt + (segment.tt - segment.tt)}
                               : segment;
        if (is_centred(P))
            add_compensated(&t, segment.t);
        add_compensated(&tt, segment.tt);
    }
    return (row_totals){value_of(&t), value_of(&tt)};
}

#endif
