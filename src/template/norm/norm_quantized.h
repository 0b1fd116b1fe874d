/* Rows of the fast grade as bytes with scales. Pieces of 512 elements go through a stage, in L1, where the largest magnitude of
 * every 32 of them is found on the way; with each piece one of the next row is summed, what that reads next and the lines that
 * bytes go to being asked for before.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_QUANTIZED_H
#define NRG_TEMPLATE_NORM_NORM_QUANTIZED_H

#ifndef NRG_NO_QUANTIZE
#include "norm_gated.h"

enum { QUANT_PIECE = 512, QUANT_STEP = 32 };

/* Outputs of a piece, and the largest magnitude of every 32. */
typedef struct quantized_piece {
    float stage[QUANT_PIECE], amax[QUANT_PIECE / QUANT_STEP];
} quantized_piece;

static int quantized_serves(const nrg_norm_job *job, const norm_options *opt)
{
    return opt->fast && job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY && !job->after && !job->from_r &&
           opt->dim % QUANT_STEP == 0 && nrg_format_block(job->quant->format) != 0;
}

/* Elements begin to end of a row, and their largest magnitudes; end - begin is a multiple of 32. */
NRG_INLINE void quantized_stage_of(quantized_piece *p, const norm_options *opt, const norm_row *at, const fast_factors *factors,
                                   const norm_row *next, size_t begin, size_t end, nrg_dtype D)
{
    enum { MAY = NORM_CENTRED | NORM_W_OFFSET | NORM_ADD_Y | NORM_Y_F32 | NORM_R_F32 | NORM_W_F32 | NORM_READ_R | NORM_PREFETCH };
    const fast_factors f = *factors;
    norm_row row = *at;
    unsigned options = opt->how;
    if (r_serves_as_x(options, D)) {
        row.x = row.r;
        options &= ~(unsigned)(NORM_READ_R | NORM_ADD_Y);
    }
    float *to = p->stage;
    for (size_t i = begin, k = 0; i < end; k += VN) {
        vf most[VN];
        NRG_UNROLL
        for (size_t b = 0; b < VN; b++) {
            most[b] = v_zero();
            if (i < end) {
                const unsigned how = options_in_register(options, MAY);
                vf v[NORM_STEP];
                if (next && how & NORM_PREFETCH)
                    prefetch_step(V_BYTES, opt->how, *next, i, D);
                fast_step(v, V_BYTES, how, &opt->w_offset, row, &f, i, QUANT_STEP, D);
                add_b(v, V_BYTES, how, row, i, QUANT_STEP, D);
                store_f32_step(v, V_BYTES, to, QUANT_STEP, 0);
                NRG_UNROLL
                for (int j = 0; j < V_BYTES; j++)
                    most[b] = v_max_abs(most[b], v[j]);
                i += QUANT_STEP;
                to += QUANT_STEP;
            }
        }
        v_st_f32(p->amax + k, v_fold_max_rows(most));
    }
}

NRG_BY_DTYPE(quantized_stage, (p, opt, at, factors, next, begin, end), quantized_piece *p, const norm_options *opt,
             const norm_row *at, const fast_factors *factors, const norm_row *next, size_t begin, size_t end)

/* Asks for where the bytes of n elements from `first` on will be: they are written in parts of lines. */
NRG_INLINE void prefetch_bytes(const nrg_quant_row *to, size_t first, size_t n)
{
    const size_t at = nrg_format_bytes(to->format, first);
    for (size_t b = 0, bytes = nrg_format_bytes(to->format, n); b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)to->q + at + b), 1);
}

/* Rows from n on, up to one that needs the fallback, which is returned: its sums are done, and its r is stored. */
static __attribute__((noinline)) size_t quantized_rows(const nrg_norm_job *job, const norm_options *opt, size_t n, nrg_dtype D)
{
    _Alignas(64) quantized_piece piece;
    gated_quant quant;
    norm_sums sums;
    some_scalars s;
    norm_row rows[2], *row = &rows[0], *next = &rows[1];
    norm_part then = {.opt = opt, .row = row, .count = 1};
    const size_t dim = opt->dim;
    const int is_32 = nrg_format_block(job->quant->format) == QUANT_STEP;
    if (n == job->row_end)
        return n;
    sums.pilot = 0;
    *row = row_at(job, n, D);
    for (; then.begin < dim; then.begin = then.end) {
        then.end = chunk_end(then.begin, dim, NORM_SEGMENT);
        sum_one(&sums, &then, D);
    }
    for (; n < job->row_end; n++) {
        const int last = n + 1 == job->row_end;
        row_scalars(&s, job, opt, sums.pilot, value_of(&sums.t), value_of(&sums.tt));
        if (needs_fallback(&s, opt, 0))
            return n;
        finish_any(job, &s, opt, 0, 0, 0, n, D);
        begin_quantized(&quant, job->quant, n);
        const fast_factors f = fast_factors_of(&s.fast, 0);
        if (!last)
            *next = row_at(job, n + 1, D);
        then.row = next;
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = chunk_end(begin, dim, QUANT_PIECE);
            if (opt->how & NORM_PREFETCH)
                prefetch_bytes(&quant.to, end, end - begin);
            quantized_stage(&piece, opt, row, &f, last ? NULL : next, begin, end, D);
            /* before the bytes: their scales take two divisions */
            then.begin = begin;
            then.end = end;
            if (!last)
                sum_one(&sums, &then, D);
            if (is_32)
                NRG_PATH_NAME(quantize_known)(&quant.to, piece.stage, begin, end - begin, piece.amax);
            else
                NRG_PATH_NAME(quantize_floats)(&quant.to, piece.stage, begin, end - begin, NRG_AMAX_UNKNOWN);
        }
        norm_row *const done = row;
        row = next;
        next = done;
    }
    return n;
}
#endif

#endif
