/* Rows whose outputs become bytes with scales. In the fast grade outputs of 512 elements go through a staging buffer in L1, with
 * the largest magnitude of every 32 of them; then a chunk of the next row is summed, and what that reads next and the lines of
 * the bytes are prefetched. With one scale for a row, the staging buffer keeps its last 2048 outputs until that is known, and
 * those before them are computed twice. All other rows go as gated ones do (gated.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BYTES_H
#define NRG_TEMPLATE_NORM_BYTES_H

#ifndef NRG_NO_QUANTIZE
#include "gated.h"

enum { BYTES_CHUNK = 512, BYTES_KEPT = 2048, BYTES_STEP = 32 };

/* Outputs of a chunk, and the largest magnitude of every 32. */
typedef struct byte_stage {
    float o[BYTES_KEPT], amax[BYTES_KEPT / BYTES_STEP];
} byte_stage;

static int byte_rows_fit(const nrg_norm_job *job, nrg_dtype D)
{
    return !nrg_norm_is_exact(&job->formula, D) && job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY &&
           !job->after && job->dim % BYTES_STEP == 0;
}

/* A chunk of whole steps; next: NULL, or the row that is summed after it. */
NRG_INLINE void stage_bytes_of(byte_stage *to, const row_outputs *outputs, const row_operands *next, const row_chunk *c,
                               nrg_dtype D)
{
    const norm_policy P = {.dtype = D,
                           .may = OPT_CENTRED | OPT_WEIGHT | OPT_BIAS | OPT_W_OFFSET | OPT_ADD_Y | OPT_Y_F32 | OPT_R_F32 |
                                  OPT_W_F32 | OPT_X_F32 | OPT_PREFETCH,
                           .ahead = 2048};
    row_outputs from = *outputs;
    unsigned options = c->options;
    if (options & OPT_READ_R) {
        from.row.x = from.row.r;
        options = (options & ~(unsigned)OPT_ADD_Y) | (options & OPT_R_F32 ? OPT_X_F32 : 0);
    }
    const size_t end = c->end;
    float *o = to->o;
    for (size_t i = c->begin, k = 0; i < end; k += VN) {
        vf most[VN];
        for (size_t b = 0; b < VN; b++) { /* unrolled: 18 KB more with AVX2 */
            most[b] = v_zero();
            if (i < end) {
                const unsigned now = options_in(options, P);
                row_operands row = from.row;
                vf v[NORM_STEP];
                if (next && now & OPT_PREFETCH)
                    prefetch_source(V_BYTES, *next, i, c->options, P);
                source_again(v, V_BYTES, row, i, BYTES_STEP, now, D);
                multiply_fast(v, V_BYTES, &from, i, BYTES_STEP, now, D);
                row.o = staged_at(o, i);
                finish_step(v, V_BYTES, row, i, BYTES_STEP, (now & (OPT_BIAS | OPT_W_F32)) | OPT_O_F32, D);
                NRG_UNROLL
                for (int j = 0; j < V_BYTES; j++)
                    most[b] = v_max_abs(most[b], v[j]);
                i += BYTES_STEP;
                o += BYTES_STEP;
            }
        }
        v_st_f32(to->amax + k, v_fold_max_rows(most));
    }
}
NRG_BY_DTYPE(stage_bytes, (to, outputs, next, c), byte_stage *to, const row_outputs *outputs, const row_operands *next,
             const row_chunk *c)

/* Prefetches the lines that bytes of n elements from `first` on go to: they are written in parts of lines. */
NRG_INLINE void prefetch_bytes(const nrg_quant_row *to, size_t first, size_t n)
{
    const size_t at = nrg_format_bytes(to->format, first);
    for (size_t b = 0, bytes = nrg_format_bytes(to->format, n); b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)to->q + at + b), 1);
}

/* Rows from n on, up to one that needs the fallback, which is returned: its r is stored. */
static __attribute__((noinline)) size_t byte_rows(const nrg_norm_job *job, unsigned options, size_t n, nrg_dtype D)
{
    _Alignas(64) byte_stage stage;
    const size_t dim = job->dim, block = nrg_format_block(job->quant->format), chunk = block ? BYTES_CHUNK : BYTES_KEPT;
    row_chunk sum = {.options = options, .dim = dim}, output = sum;
    byte_sink bytes;
    row_sums sums;
    if (n == job->row_end)
        return n;
    find_row(&sum.row, job, n, options, D);
    for (; sum.begin < dim; sum.begin = sum.end) {
        sum.end = chunk_end(sum.begin, dim, NORM_SEGMENT);
        sum_rows_chunk(&sums, &sum, D);
    }
    for (; n < job->row_end; n++) {
        const int is_last = n + 1 == job->row_end;
        const row_scalars s = general_scalars(job, &sums, options);
        if (NRG_RARELY(!s.in_range))
            return n;
        store_statistics(job, options & OPT_CENTRED ? s.centre : 0, s.rstd, n);
        begin_bytes(&bytes, job->quant, n);
        const row_outputs to = outputs_of_row(sum.row, &s, job);
        if (!is_last)
            find_row(&sum.row, job, n + 1, options, D);
        for (output.begin = 0; output.begin < dim; output.begin = output.end) {
            output.end = chunk_end(output.begin, dim, chunk);
            const size_t count = output.end - output.begin;
            if (options & OPT_PREFETCH)
                prefetch_bytes(&bytes.to, block ? output.end : output.begin, count);
            stage_bytes(&stage, &to, is_last ? NULL : &sum.row, &output, D);
            /* before the bytes, whose scales take two divisions */
            sum.begin = output.begin;
            sum.end = output.end;
            if (!is_last)
                sum_rows_chunk(&sums, &sum, D);
            if (block == BYTES_STEP)
                NRG_PATH_NAME(quantize_known)(&bytes.to, stage.o, output.begin, count, stage.amax);
            else if (block)
                NRG_PATH_NAME(quantize_floats)(&bytes.to, stage.o, output.begin, count, NRG_AMAX_UNKNOWN);
            else
                bytes.amax = NRG_PATH_NAME(amax)(stage.amax, count / BYTES_STEP, bytes.amax);
        }
        for (output.end = block ? 0 : dim; output.end; output.end = output.begin) { /* from the chunk that is in the buffer */
            output.begin = (output.end - 1) / chunk * chunk;
            if (output.end != dim)
                stage_bytes(&stage, &to, NULL, &output, D);
            NRG_PATH_NAME(quantize_floats)(&bytes.to, stage.o, output.begin, output.end - output.begin, bytes.amax);
        }
    }
    return n;
}

/* A row that byte_rows has left. */
static __attribute__((noinline)) void fallback_bytes(const nrg_norm_job *job, unsigned options, size_t n, nrg_dtype D)
{
    float stage[BYTES_CHUNK];
    fallback_factors f;
    byte_sink to;
    row_operands row;
    find_row(&row, job, n, options, D);
    sum_by_fallback(&f, job, &row, options, n, D);
    begin_bytes(&to, job->quant, n);
    for (int passes = to.finds_amax ? 2 : 1; passes; passes--, to.finds_amax = 0)
        for (size_t begin = 0, end; begin < job->dim; begin = end) {
            end = chunk_end(begin, job->dim, BYTES_CHUNK);
            row.o = staged_at(stage, begin);
            output_fallback(job, &row, &f, begin, end, options | OPT_O_F32, D);
            sink_bytes(&to, stage, begin, end);
        }
}

static __attribute__((noinline)) void norm_bytes(const nrg_norm_job *job, nrg_dtype D)
{
    const unsigned options = options_of_part(job, D);
    if (!byte_rows_fit(job, D)) {
        byte_sink bytes;
        gated_rows(job, job->row_begin, job->row_end, &bytes, D);
        return;
    }
    for (size_t n = job->row_begin; (n = byte_rows(job, options, n, D)) < job->row_end; n++)
        fallback_bytes(job, options, n, D);
    if (options & OPT_STREAM_R)
        v_nt_fence();
}
#endif

#endif
