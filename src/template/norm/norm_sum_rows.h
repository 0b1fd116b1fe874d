/* The first pass over rows: the sums of norm_sum.h, of parts of some rows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_SUM_ROWS_H
#define NRG_TEMPLATE_NORM_NORM_SUM_ROWS_H

#include "norm_fast_sum.h"
#include "norm_sum.h"

typedef struct norm_lanes {
    vd t[NORM_LANE_REGISTERS], tt[NORM_LANE_REGISTERS];
} norm_lanes;

/* A row's sums so far: those of the present segment, of one grade or the other, and the segments before it. */
typedef struct norm_sums {
    union {
        norm_lanes lanes;
        fast_blocks blocks;
    };
    float pilot;
    norm_total t, tt;
} norm_sums;

/* Vector by vector: what memcpy copies in smaller parts, a load of a vector has to wait for. */
NRG_INLINE void copy_lanes(vd *t, vd *tt, const vd *from_t, const vd *from_tt, int centred)
{
    NRG_UNROLL
    for (int j = 0; j < NORM_LANE_REGISTERS; j++) {
        if (centred)
            t[j] = from_t[j];
        tt[j] = from_tt[j];
    }
}

/* Elements of a row that steps fill, from `begin`, a multiple of the lanes, to where whole_end says. Where the registers do not
 * hold all lanes, two halves of them take turns, block by block. With AVX2 they do not hold those of both sums: there the
 * compiler keeps some in memory, which is 10 % faster for rows of 64 than turns are, and 19 % slower for rows of 4096; with parts
 * of 128 to 512, which are 16-bit rows of a backward pass above all, 5 to 8 % (LayerNorm, Zen 3). */
enum {
    NORM_SUM_STEP = (int)V_SUM1 * (int)VN > (int)NORM_LANES ? (int)V_SUM1 *(int)VN : (int)NORM_LANES,
    NORM_TURNS = 128 /* elements from which on lanes take turns */
};

NRG_INLINE size_t whole_end(size_t begin, size_t end) { return end - (end - begin) % NORM_SUM_STEP; }

NRG_INLINE void sum_whole(vd *t, vd *tt, unsigned how, unsigned may, norm_row row, size_t begin, size_t end, nrg_dtype D,
                          int centred)
{
    const int G = centred ? V_SUM2 : V_SUM1;
    if ((int)V_SUM1 >= (int)NORM_LANE_VECTORS && (G == (int)V_SUM1 || end - begin < NORM_TURNS)) {
        sum_group(t, tt, V_SUM1, how, may, row, begin, end, NORM_SUM_STEP, D, centred);
        return;
    }
    for (size_t i = begin, next; i < end; i = next) {
        next = end - i > NORM_BLOCK ? i + NORM_BLOCK : end;
        sum_group(t, tt, G, how, may, row, i, next, NORM_SUM_STEP, D, centred);
        sum_group(t + 2 * G, tt + 2 * G, G, how, may, row, i + (size_t)G * VN, next, NORM_SUM_STEP, D, centred);
    }
}

/* The whole steps of a part of some rows: folded to t[k] and tt[k] for row k where the part says so, and otherwise kept in
 * lanes[k]. These are new where a segment begins. */
NRG_INLINE void sum_rows(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part, unsigned may, nrg_dtype D, int centred)
{
    const unsigned how = part->opt->how;
    const size_t begin = part->begin, end = whole_end(begin, part->end);
    const int count = part->count, more = begin % NORM_SEGMENT != 0, keep = !part->fold;
    const norm_row *row = part->row;
    for (int k = 0; k < count; k++) {
        vd lanes_t[NORM_LANE_REGISTERS], lanes_tt[NORM_LANE_REGISTERS];
        clear_lanes(lanes_t, lanes_tt, centred);
        if (NRG_RARELY(more))
            copy_lanes(lanes_t, lanes_tt, lanes[k].t, lanes[k].tt, centred);
        sum_whole(lanes_t, lanes_tt, how, may, row[k], begin, end, D, centred);
        if (NRG_RARELY(keep)) {
            copy_lanes(lanes[k].t, lanes[k].tt, lanes_t, lanes_tt, centred);
            for (size_t i = end, lane = 0; i + VN <= part->end; i += VN, lane = (lane + 2) % NORM_LANE_REGISTERS)
                sum_step(lanes[k].t + lane, lanes[k].tt + lane, 1, 1, options_in_register(how, may), row[k], i, VN, D, centred);
            continue;
        }
        tt[k] = fold_lanes(lanes_tt);
        if (centred)
            t[k] = fold_lanes(lanes_t);
    }
}

/* What does not fill a vector: rare, so the dtype is looked up at run time, and there is one small copy of this code a path. */
static void sum_rest(norm_lanes *lanes, const norm_part *part, int k, nrg_dtype D)
{
    const size_t n = part->end % VN, i = part->end - n, lane = i / VN * 2 % NORM_LANE_REGISTERS;
    const unsigned how = part->opt->how;
    sum_step(lanes[k].t + lane, lanes[k].tt + lane, 1, 1, how, part->row[k], i, n, D, how & NORM_CENTRED);
}

NRG_INLINE int ends_segment(const norm_part *part) { return part->end == part->opt->dim || part->end % NORM_SEGMENT == 0; }

NRG_INLINE int can_fold(const norm_part *part) { return ends_segment(part) && whole_end(part->begin, part->end) == part->end; }

/* Does what sum_rows has left undone: the ends of rows, and the folds. */
static __attribute__((noinline)) void finish_lanes(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    for (int k = 0; k < part->count; k++) {
        if (part->end % VN)
            sum_rest(lanes, part, k, D);
        tt[k] = fold_lanes(lanes[k].tt);
        if (part->opt->how & NORM_CENTRED)
            t[k] = fold_lanes(lanes[k].t);
    }
}

/* Adds a segment of one row to its sums. */
NRG_INLINE void add_row_segment(norm_sums *sums, const vd8 *t, const vd8 *tt, const norm_part *part)
{
    if (part->begin < NORM_SEGMENT)
        sums->t = sums->tt = (norm_total){0, 0};
    add_compensated(&sums->tt, vd8_sum(tt));
    if (part->opt->how & NORM_CENTRED)
        add_compensated(&sums->t, vd8_sum(t));
}

#endif
