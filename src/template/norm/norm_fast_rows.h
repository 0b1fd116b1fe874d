/* The first pass of the fast grade over parts of some rows: the sums of norm_fast_sum.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_ROWS_H
#define NRG_TEMPLATE_NORM_NORM_FAST_ROWS_H

#include "norm_sum_rows.h"

/* The first elements of a row, folded to a vector. */
NRG_INLINE vf fast_pilot_lanes(const norm_row *row, unsigned how, unsigned may, size_t dim, nrg_dtype D)
{
    const unsigned read = may & NORM_FIRST ? how & (NORM_ANY & ~(NORM_READ_R | NORM_GATE_AGAIN)) : 0;
    vf v[NORM_STEP];
    if (NRG_RARELY(dim < FAST_LANES)) {
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_VECTORS; j++)
            v[j] = v_zero();
        for (size_t i = 0, j = 0; i < dim; i += VN, j++)
            load_again(v + j, 1, read, *row, i, lanes_at(i, dim), D);
        if (norm_pairs(FAST_VECTORS, D))
            order_to_pairs(v, FAST_VECTORS);
    } else
        load_again(v, FAST_VECTORS, read | norm_pairs(FAST_VECTORS, D), *row, 0, FAST_LANES, D);
    fast_fold(v, norm_pairs(FAST_VECTORS, D) != 0);
    NRG_UNROLL
    for (int half = (int)FAST_FOLDED / 2; half; half /= 2) {
        NRG_UNROLL
        for (int j = 0; j < half; j++)
            v[j] = v_add(v[j], v[j + half]);
    }
    return v[0];
}

NRG_INLINE float fast_pilot_scale(size_t dim) { return 1 / (float)(dim < FAST_LANES ? dim : FAST_LANES); }

/* An estimate of a row's mean from its first elements, so that what is squared is about as large as σ. */
NRG_INLINE float fast_pilot(const norm_row *row, unsigned how, unsigned may, size_t dim, nrg_dtype D)
{
    return v_fold(fast_pilot_lanes(row, how, may, dim, D)) * fast_pilot_scale(dim);
}

/* What does not fill the lanes, filled up with the pilot; r is stored on the way where it is asked for. Once a path, since it is
 * rare. */
static __attribute__((noinline)) void fast_rest(float rest[FAST_LANES], const norm_part *part, int k, size_t begin, float pilot,
                                                nrg_dtype D)
{
    for (size_t i = begin, at = 0; at < FAST_LANES; i += VN, at += VN) {
        vf v = v_set1(pilot);
        if (i < part->end) {
            const size_t n = lanes_at(i, part->end);
            load_first(&v, 1, part->opt->how, part->row[k], i, n, D);
            if (n < VN) {
                float lanes[VN];
                v_st_f32(lanes, v);
                for (size_t l = n; l < VN; l++)
                    lanes[l] = pilot;
                v = v_ld_f32(lanes);
            }
        }
        v_st_f32(rest + at, v);
    }
}

/* One part of row k: the blocks in it. Rows of one block leave their 16 lanes in t and tt; others are joined to `blocks`. */
NRG_INLINE void fast_row(vf *t, vf *tt, fast_blocks *blocks, fast_lanes *kept, const norm_part *part, int k, float pilot,
                         unsigned may, nrg_dtype D, int centred, int staged)
{
    const size_t dim = part->opt->dim;
    fast_source s = {.row = part->row[k], .how = part->opt->how, .pilot = v_set1(pilot), .along = part->along};
    size_t begin = part->begin, end;
    do {
        float rest[FAST_LANES];
        const size_t in_block = FAST_BLOCK - begin % FAST_BLOCK;
        end = part->end - begin > in_block ? begin + in_block : part->end;
        s.begin = begin;
        s.whole = end - (end - begin) % FAST_LANES;
        s.vectors = 0;
        s.has_last = 0;
        s.rest = NULL;
        if (NRG_RARELY(s.whole < end)) {
            if (!(may & NORM_FIRST) && (!V_SMALL || (end - begin) % VN == 0))
                fast_end(&s, end, V_SMALL, D);
            else {
                fast_rest(rest, part, k, s.whole, pilot, D);
                s.rest = rest;
            }
        }
        if (staged && begin % FAST_BLOCK == 0)
            memset(kept, 0, sizeof *kept);
        fast_block(t, tt, &s, kept, may, D, centred, staged);
        if (staged && end % FAST_BLOCK != 0 && end != dim) {
            memcpy(kept->t, t, sizeof kept->t);
            memcpy(kept->tt, tt, sizeof kept->tt);
            continue;
        }
        if (centred)
            fast_fold(t, norm_pairs(FAST_VECTORS, D) != 0);
        fast_fold(tt, norm_pairs(FAST_VECTORS, D) != 0);
        if (dim <= FAST_BLOCK)
            return;
        if ((end - 1) % NORM_SEGMENT < FAST_BLOCK)
            fast_clear(blocks);
        if (centred)
            fast_join(blocks->t, blocks->t_lost, t);
        fast_join(blocks->tt, blocks->tt_lost, tt);
    } while ((begin = end) < part->end);
}

/* A part of some rows. Where a segment ends, each row's lanes are left folded to eight in t[k] and tt[k]; rows of more than a
 * segment come one at a time, since blocks are those of one. pilot: made where rows begin. */
NRG_INLINE void fast_rows(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part, unsigned may, nrg_dtype D,
                          int centred)
{
    for (int k = 0; k < part->count; k++) {
        vf lanes_t[FAST_VECTORS], lanes_tt[FAST_VECTORS];
        if (centred && part->begin == 0)
            pilot[k] = fast_pilot(part->row + k, part->opt->how, may, part->opt->dim, D);
        fast_row(lanes_t, lanes_tt, blocks, NULL, part, k, centred ? pilot[k] : 0, may, D, centred, 0);
        if (part->opt->dim <= FAST_BLOCK) {
            if (centred)
                t[k] = fast_widen(lanes_t, NULL);
            tt[k] = fast_widen(lanes_tt, NULL);
        } else if (ends_segment(part)) {
            if (centred)
                t[k] = fast_widen(blocks->t, blocks->t_lost);
            tt[k] = fast_widen(blocks->tt, blocks->tt_lost);
        }
    }
}

#endif
