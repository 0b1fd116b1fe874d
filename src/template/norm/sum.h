/* Σt and Σt² of t = p - pilot in the fast grade, in the order that every path keeps (docs/numerics.md): 64 lanes; a block of 256
 * elements folds to 16 lanes, which a compensated sum adds to the blocks before; a segment of 4096 goes on in double.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_SUM_H
#define NRG_TEMPLATE_NORM_SUM_H

#include "apply.h"

/* The lanes of a block. */
typedef struct block_lanes {
    vf t[FAST_VECTORS], tt[FAST_VECTORS];
} block_lanes;

/* The blocks of a segment so far: folded lanes, and the rounding errors of their additions. */
typedef struct folded_blocks {
    vf t[FAST_FOLDED], t_lost[FAST_FOLDED], tt[FAST_FOLDED], tt_lost[FAST_FOLDED];
} folded_blocks;

typedef struct row_totals {
    double t, tt;
} row_totals;

/* A row that is summed. outputs: NULL, or another row that is applied in the same loop. */
typedef struct summed_row {
    row_operands row;
    vf pilot;
    const row_outputs *outputs;
} summed_row;

NRG_INLINE void accumulate(vf *t, vf *tt, vf p, vf pilot, int has_mean)
{
    const vf v = has_mean ? v_sub(p, pilot) : p;
    if (has_mean)
        *t = v_add(*t, v);
    *tt = v_fma(v, v, *tt);
}

/* Vectors of lanes at once: as many as there are registers for. */
NRG_INLINE int lane_vectors(norm_policy P)
{
    return may_have(P, OPT_ADD_Y | OPT_STORE_R) && P.dtype != NRG_F32 && VN < 16 ? V_FAST_ANY : is_centred(P) ? V_FAST2 : V_FAST1;
}

/* The first n lanes of v; the others of `other`. */
NRG_INLINE vf first_lanes(vf v, size_t n, vf other)
{
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return v_select(v_lt(v_ld_f32(lane), v_set1((float)n)), v, other);
}

/* The tail of a block, fewer elements than lanes, filled up with the pilot, which adds 0. */
static __attribute__((noinline)) void fill_tail(float tail[FAST_LANES], const row_operands *at, size_t begin, size_t end,
                                                float pilot, unsigned options, nrg_dtype D)
{
    const row_operands row = *at;
    for (size_t i = begin, l = 0; l < FAST_LANES; i += VN, l += VN) {
        vf v = v_set1(pilot);
        if (i < end) {
            const size_t n = lanes_at(i, end);
            source_step(&v, 1, row, i, n, options, D);
            if (n < VN)
                v = first_lanes(v, n, v_set1(pilot));
        }
        v_st_f32(tail + l, v);
    }
}

NRG_INLINE void sum_filled_tail(vf *t, vf *tt, int first, int G, const float *tail, vf pilot, norm_policy P)
{
    vf v[NORM_STEP];
    load_step(v, G, (const char *)tail, (size_t)first * VN, (size_t)G * VN, NRG_F32);
    if (is_paired(G, P.dtype))
        order_to_pairs(v, G);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        accumulate(&t[j], &tt[j], v[j], pilot, is_centred(P));
}

/* The tail of a block of x, in registers: whole vectors, and one whose other lanes are the pilot. */
typedef struct tail_vectors {
    size_t count;
    int has_last;
    vf last;
} tail_vectors;

NRG_INLINE tail_vectors tail_of_row(const char *x, size_t begin, size_t end, vf pilot, norm_policy P)
{
    const size_t n = P.multiple % VN == 0 ? 0 : (end - begin) % VN;
    tail_vectors tail = {(end - begin) / VN, n != 0, v_zero()};
    if (n) {
        tail.last = first_lanes(load_part(x, end - n, n, P.dtype), n, pilot);
        tail.count++;
    }
    return tail;
}

NRG_INLINE vf tail_vector(const tail_vectors *tail, const char *x, size_t begin, size_t at, nrg_dtype D)
{
    return tail->has_last && at + 1 == tail->count ? tail->last : load_whole(x, begin + at * VN, D);
}

/* Vectors first to first + G of it. */
NRG_INLINE void sum_tail(vf *t, vf *tt, int first, int G, const tail_vectors *tail, const summed_row *s, size_t begin,
                         norm_policy P)
{
    const int together = is_paired(G, P.dtype) ? 2 : 1;
    NRG_UNROLL
    for (int j = 0; j < G; j += together) {
        const size_t at = (size_t)(first + j);
        if (at < tail->count) {
            vf v[2] = {tail_vector(tail, s->row.x, begin, at, P.dtype), s->pilot}; /* the pilot adds 0 */
            if (together == 2) {
                if (at + 1 < tail->count)
                    v[1] = tail_vector(tail, s->row.x, begin, at + 1, P.dtype);
                order_to_pairs(v, 2);
            }
            NRG_UNROLL
            for (int l = 0; l < together; l++)
                accumulate(&t[j + l], &tt[j + l], v[l], s->pilot, is_centred(P));
        }
    }
}

/* Elements begin to end, which lie in one block, to folded lanes. */
NRG_INLINE void sum_block(block_lanes *sum, const summed_row *from, size_t begin, size_t end, unsigned options, norm_policy P)
{
    const int G = lane_vectors(P), has_tail = P.multiple % FAST_LANES != 0, is_constant = P.least == P.most,
              is_plain = !may_have(P, OPT_ADD_Y | OPT_STORE_R | OPT_X_F32) && !P.rare_tail;
    const summed_row s = *from;
    const size_t whole = has_tail ? end - (end - begin) % FAST_LANES : end;
    float tail[FAST_LANES], pilot[VN];
    row_outputs outputs;
    tail_vectors in_registers;
    if (s.outputs)
        outputs = outputs_in_registers(s.outputs);
    if (has_tail && is_plain)
        in_registers = tail_of_row(s.row.x, whole, end, s.pilot, P);
    if (has_tail && !is_plain && NRG_RARELY(whole < end)) {
        const row_operands at = s.row;
        v_st_f32(pilot, s.pilot);
        fill_tail(tail, &at, whole, end, pilot[0], (options & P.may) | P.must, P.dtype);
    }
    NRG_UNROLL
    for (int first = 0; first < (int)FAST_VECTORS; first += G) {
        vf t[FAST_VECTORS], tt[FAST_VECTORS];
        size_t i = begin + (size_t)first * VN;
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            t[j] = tt[j] = v_zero();
        if (is_constant) { /* a product: adding it to 0 changes nothing */
            source_step(t, G, s.row, i, (size_t)G * VN, P.must, P.dtype);
            NRG_UNROLL
            for (int j = 0; j < G; j++) {
                t[j] = is_centred(P) ? v_sub(t[j], s.pilot) : t[j];
                tt[j] = v_mul(t[j], t[j]);
            }
            i += FAST_LANES;
        }
        for (; i < whole; i += FAST_LANES) {
            const unsigned now = options_in(options, P);
            vf v[NORM_STEP];
            if (now & OPT_PREFETCH)
                prefetch_source(G, s.row, i, now, P);
            source_step(v, G, s.row, i, (size_t)G * VN, now, P.dtype);
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                accumulate(&t[j], &tt[j], v[j], s.pilot, is_centred(P));
            if (s.outputs)
                output_step(G, &outputs, i, (size_t)G * VN, output_options(now), P.dtype);
        }
        if (has_tail && is_plain)
            sum_tail(t, tt, first, G, &in_registers, &s, whole, P);
        if (has_tail && !is_plain && NRG_RARELY(whole < end))
            sum_filled_tail(t, tt, first, G, tail, s.pilot, P);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            sum->t[first + j] = t[j];
            sum->tt[first + j] = tt[j];
        }
    }
    if (is_centred(P))
        fast_fold(sum->t, is_paired(FAST_VECTORS, P.dtype));
    fast_fold(sum->tt, is_paired(FAST_VECTORS, P.dtype));
}

NRG_INLINE void clear_blocks(folded_blocks *b)
{
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        b->t[j] = b->t_lost[j] = b->tt[j] = b->tt_lost[j] = v_zero();
}

NRG_INLINE void add_block(folded_blocks *b, const block_lanes *sum, norm_policy P)
{
    if (is_centred(P))
        fast_join(b->t, b->t_lost, sum->t);
    fast_join(b->tt, b->tt_lost, sum->tt);
}

NRG_INLINE double total_of_lanes(const vf *sum, const vf *lost)
{
    const vd8 eight = fast_widen(sum, lost);
    return vd8_sum(&eight);
}

NRG_INLINE row_totals totals_of_blocks(const folded_blocks *b, norm_policy P)
{
    return (row_totals){is_centred(P) ? total_of_lanes(b->t, b->t_lost) : 0, total_of_lanes(b->tt, b->tt_lost)};
}

/* The sums of a segment, begin to end. */
NRG_INLINE row_totals sum_segment(const summed_row *from, size_t begin, size_t end, unsigned options, norm_policy P)
{
    const int is_one = end - begin <= FAST_BLOCK, has_two_loops = P.most <= OUTPUT_CHUNK;
    block_lanes sum;
    folded_blocks all;
    if (has_two_loops && is_one) { /* without it and the token instances 1x64 takes 730 instructions, with them below 612 */
        sum_block(&sum, from, begin, end, options, P);
        return (row_totals){is_centred(P) ? total_of_lanes(sum.t, NULL) : 0, total_of_lanes(sum.tt, NULL)};
    }
    clear_blocks(&all);
    for (size_t i = begin, next;; i = next) {
        next = lesser(i + FAST_BLOCK, end);
        sum_block(&sum, from, i, next, options, P);
        if (!has_two_loops && is_one)
            return (row_totals){is_centred(P) ? total_of_lanes(sum.t, NULL) : 0, total_of_lanes(sum.tt, NULL)};
        add_block(&all, &sum, P);
        if (next == end)
            return totals_of_blocks(&all, P);
    }
}

/* The first elements of a row, folded to a vector: the pilot mean is their mean. */
NRG_INLINE vf pilot_lanes(row_operands row, size_t dim, unsigned options, norm_policy P)
{
    const unsigned reads = options & (OPT_ADD_Y | OPT_X_F32 | OPT_Y_F32 | OPT_R_F32);
    vf v[NORM_STEP];
    if (P.least < FAST_LANES && NRG_RARELY(dim < FAST_LANES)) {
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_VECTORS; j++)
            v[j] = v_zero();
        for (size_t i = 0, j = 0; i < dim; i += VN, j++)
            source_step(v + j, 1, row, i, lanes_at(i, dim), reads, P.dtype);
        if (is_paired(FAST_VECTORS, P.dtype))
            order_to_pairs(v, FAST_VECTORS);
    } else
        source_step(v, FAST_VECTORS, row, 0, FAST_LANES, reads, P.dtype);
    fast_fold(v, is_paired(FAST_VECTORS, P.dtype));
    NRG_UNROLL
    for (int half = (int)FAST_FOLDED / 2; half; half /= 2) {
        NRG_UNROLL
        for (int j = 0; j < half; j++)
            v[j] = v_add(v[j], v[j + half]);
    }
    return v[0];
}

NRG_INLINE float pilot_scale(size_t dim) { return 1 / (float)lesser(dim, FAST_LANES); }

NRG_INLINE float pilot_of_row(row_operands row, size_t dim, unsigned options, norm_policy P)
{
    return is_centred(P) && !is_exact(P)
               ? v_fold(pilot_lanes(row, dim, options, P)) * pilot_scale(P.least < FAST_LANES ? dim : FAST_LANES)
               : 0;
}

#endif
