/* Σt and Σt² of a row in the fast grade, t = p - pilot, in the one order that every path keeps (docs/numerics.md): 64 lanes of
 * floats, element i in lane i mod 64; after a block of 256 elements the lanes fold to 16, which are joined to the blocks before
 * by compensated addition; after a segment those go on in double.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_SUM_H
#define NRG_TEMPLATE_NORM_NORM_FAST_SUM_H

#include "../lane_sum.h"
#include "norm_fast_apply.h"
#include "norm_sum.h"

/* The blocks of a segment so far: sums, and what their additions have lost. */
typedef struct fast_blocks {
    vf t[FAST_FOLDED], t_lost[FAST_FOLDED], tt[FAST_FOLDED], tt_lost[FAST_FOLDED];
} fast_blocks;

/* The lanes of a block that is not at its end: where a row comes in smaller chunks. */
typedef struct fast_lanes {
    vf t[FAST_VECTORS], tt[FAST_VECTORS];
} fast_lanes;

/* A row that becomes outputs while another is summed: the same elements of both in turn, so that the memory has loads and stores
 * to do at any time. */
typedef struct fast_along {
    norm_row row;
    fast_factors factors;
} fast_along;

/* What a block's elements are read from. */
typedef struct fast_source {
    norm_row row;
    unsigned how;
    size_t begin, whole; /* elements that fill all lanes: begin to whole */
    size_t vectors;      /* vectors after them, the last one of which */
    vf last;             /* is this, where not all of its elements exist; */
    int has_last;
    const float *rest; /* or all that is after them, filled up to the lanes with the pilot; NULL: nothing is */
    vf pilot;
    const fast_along *along;
} fast_source;

NRG_INLINE void fast_add(vf *t, vf *tt, vf p, vf pilot, int centred)
{
    const vf v = centred ? v_sub(p, pilot) : p;
    if (centred)
        *t = v_add(*t, v);
    *tt = v_fma(v, v, *tt);
}

/* What is between s->whole and end: whole vectors, and one that is filled up with the pilot. whole, a constant: there is none. */
NRG_INLINE void fast_end(fast_source *s, size_t end, int whole, nrg_dtype D)
{
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const size_t n = whole ? 0 : (end - s->whole) % VN;
    s->vectors = (end - s->whole) / VN;
    s->has_last = n != 0;
    if (n) {
        s->last = v_select(v_lt(v_ld_f32(lane), v_set1((float)n)), load_part(s->row.x, end - n, n, D), s->pilot);
        s->vectors++;
    }
}

NRG_INLINE vf fast_vector(const fast_source *s, size_t at, nrg_dtype D)
{
    return s->has_last && at + 1 == s->vectors ? s->last : load_whole(s->row.x, s->whole + at * VN, D);
}

/* The block's lanes from vector `first` on, G of them. */
NRG_INLINE void fast_turn(vf *t, vf *tt, int first, int G, const fast_source *source, fast_lanes *kept, unsigned may, nrg_dtype D,
                          int centred, int staged)
{
    const fast_source s = *source;
    vf sum_t[FAST_VECTORS], sum_tt[FAST_VECTORS];
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        sum_t[j] = staged ? kept->t[first + j] : v_zero();
        sum_tt[j] = staged ? kept->tt[first + j] : v_zero();
    }
    for (size_t i = s.begin + (size_t)first * VN; i < s.whole; i += FAST_LANES) {
        vf v[NORM_STEP];
        const unsigned how = (may ? options_in_register(s.how, may) : 0) | norm_pairs(G, D) | NORM_CALM;
        if (may && how & NORM_PREFETCH)
            prefetch_step(G, how, s.row, i, D);
        load_first(v, G, how, s.row, i, (size_t)G * VN, D);
        if (how & NORM_KEEP_WIDE)
            store_f32_step(v, G, s.row.stage + i, (size_t)G * VN, 0);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            fast_add(&sum_t[j], &sum_tt[j], v[j], s.pilot, centred);
        if (may & NORM_ALONG)
            fast_apply_step(G, how | (centred ? NORM_CENTRED : 0), NULL, s.along->row, &s.along->factors, i, (size_t)G * VN, D);
    }
    if (!(may & NORM_FIRST)) {
        const int together = norm_pairs(G, D) ? 2 : 1;
        NRG_UNROLL
        for (int j = 0; j < G; j += together)
            if ((size_t)(first + j) < s.vectors) {
                vf v[2] = {fast_vector(&s, (size_t)(first + j), D), s.pilot}; /* the pilot adds nothing */
                if (together == 2) {
                    if ((size_t)(first + j + 1) < s.vectors)
                        v[1] = fast_vector(&s, (size_t)(first + j + 1), D);
                    order_to_pairs(v, 2);
                }
                for (int k = 0; k < together; k++)
                    fast_add(&sum_t[j + k], &sum_tt[j + k], v[k], s.pilot, centred);
            }
    }
    if (NRG_RARELY(s.rest != NULL)) {
        vf v[NORM_STEP];
        load_operand(v, G, norm_pairs(G, D), (const char *)s.rest, (size_t)first * VN, (size_t)G * VN, NRG_F32, 1);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            fast_add(&sum_t[j], &sum_tt[j], v[j], s.pilot, centred);
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        if (centred)
            t[first + j] = sum_t[j];
        tt[first + j] = sum_tt[j];
    }
}

NRG_INLINE void fast_block(vf *t, vf *tt, const fast_source *s, fast_lanes *kept, unsigned may, nrg_dtype D, int centred,
                           int staged)
{
    /* a residual of 16 bits: its conversions want registers, of which AVX-512 has enough */
    const int G = may & NORM_FIRST && D != NRG_F32 && VN < 16 ? V_FAST_ANY : centred ? V_FAST2 : V_FAST1;
    for (int first = 0; first < (int)FAST_VECTORS; first += G)
        fast_turn(t, tt, first, G, s, kept, may, D, centred, staged);
}

NRG_INLINE void fast_clear(fast_blocks *b)
{
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        b->t[j] = b->t_lost[j] = b->tt[j] = b->tt_lost[j] = v_zero();
}

/* The sums of a row that fills the folded lanes once: all others are 0. */
NRG_INLINE vd8 fast_least_sum(vd8 *t, const char *x, vf pilot, nrg_dtype D, int centred)
{
    vf sum_t[FAST_FOLDED], sum_tt[FAST_FOLDED];
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++) {
        sum_t[j] = sum_tt[j] = v_zero();
        fast_add(&sum_t[j], &sum_tt[j], load_whole(x, (size_t)j * VN, D), pilot, centred);
    }
    if (centred)
        *t = fast_widen(sum_t, NULL);
    return fast_widen(sum_tt, NULL);
}

/* The sums of a row of one block, or of up to two, folded to eight lanes; *t where the norm is centred. most and
 * whole, constants: dim is at most that, and fills vectors. */
NRG_INLINE vd8 fast_short_sum(vd8 *t, const char *x, size_t dim, size_t most, int whole, vf pilot, nrg_dtype D, int centred)
{
    if (NRG_RARELY(dim == FAST_LEAST))
        return fast_least_sum(t, x, pilot, D, centred);
    const size_t end = most > FAST_BLOCK && dim > FAST_BLOCK ? FAST_BLOCK : dim;
    fast_source s = {.row = {.x = x}, .whole = end - end % FAST_LANES, .pilot = pilot};
    vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
    fast_end(&s, end, whole, D);
    fast_block(lanes_t, lanes_tt, &s, NULL, 0, D, centred, 0);
    if (centred)
        fast_fold(lanes_t, norm_pairs(FAST_VECTORS, D) != 0);
    fast_fold(lanes_tt, norm_pairs(FAST_VECTORS, D) != 0);
    if (most <= FAST_BLOCK || dim <= FAST_BLOCK) {
        if (centred)
            *t = fast_widen(lanes_t, NULL);
        return fast_widen(lanes_tt, NULL);
    }
    vf more_t[FAST_VECTORS], more_tt[FAST_VECTORS], lost_t[FAST_FOLDED], lost_tt[FAST_FOLDED];
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        lost_t[j] = lost_tt[j] = v_zero();
    s.begin = FAST_BLOCK;
    s.whole = dim - dim % FAST_LANES;
    fast_end(&s, dim, whole, D);
    fast_block(more_t, more_tt, &s, NULL, 0, D, centred, 0);
    if (centred) {
        fast_fold(more_t, norm_pairs(FAST_VECTORS, D) != 0);
        fast_join(lanes_t, lost_t, more_t);
        *t = fast_widen(lanes_t, lost_t);
    }
    fast_fold(more_tt, norm_pairs(FAST_VECTORS, D) != 0);
    fast_join(lanes_tt, lost_tt, more_tt);
    return fast_widen(lanes_tt, lost_tt);
}

#endif
