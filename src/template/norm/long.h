/* Schedule: long rows. While a row is summed, the row before it becomes outputs, so that memory never waits for arithmetic, nor
 * the end of a row for its scalars. The two go chunk by chunk, or step by step in one loop (policy.interleaved).
 *
 * Rows are those of one strand. Rows without a residual that no cache holds are those of four parts of the tensor in turn: 8192
 * rows of 4096 1.06 to 1.5 × as fast as in one strand (Granite Rapids; exact grade 1.07 to 1.4), 512 rows, which L3 holds there,
 * 0.9 to 1.0. In two parts 1.07, in eight 1.01 to 1.3; with a residual, which makes sixteen streams, 0.9.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_LONG_H
#define NRG_TEMPLATE_NORM_LONG_H

#include "general.h"

enum { STRANDS_MAX = 4, FAR_BYTES = 1 << 26 };

typedef struct row_strand {
    row_outputs outputs; /* of the row before */
    int has_outputs;
    row_operands row; /* row n */
    row_sums sums;
    size_t n, end;
} row_strand;

/* 16-bit rows are those of one strand, and r may wait beside it: stacks are small. */
typedef union strand_room {
    row_strand strand[STRANDS_MAX];
    struct {
        row_strand single;
        _Alignas(64) uint16_t kept[V_SMALL ? 1 : NORM_SEGMENT];
    };
} strand_room;

/* What all strands have in common. */
typedef struct strand_job {
    const nrg_norm_job *job;
    unsigned options;
    uint16_t *kept;
} strand_job;

NRG_INLINE void begin_row(row_strand *s, const strand_job *j, norm_policy P)
{
    s->row = operands_of_row(j->job, s->n, options_in(j->options, P), P.dtype);
    s->row.kept = j->kept;
    if (P.interleaved)
        s->sums.pilot = pilot_of_row(s->row, j->job->dim, options_in(j->options, P), P);
}

/* The row that is summed becomes the one that is applied. */
NRG_INLINE void end_row(row_strand *s, const strand_job *j, norm_policy P)
{
    const nrg_norm_job *job = j->job;
    row_scalars scalars;
    if (P.interleaved) {
        const row_totals sum = {is_centred(P) ? value_of(&s->sums.t) : 0, value_of(&s->sums.tt)};
        scalars = scalars_of_row(job, s->sums.pilot, sum, P);
    } else
        scalars = general_scalars(job, &s->sums, j->options);
    s->has_outputs = scalars.in_range;
    s->outputs = outputs_of_row(s->row, &scalars, job);
    s->outputs.row.x = output_source(s->row, P.interleaved ? options_in(j->options, P) : j->options);
    if (NRG_RARELY(!scalars.in_range))
        fallback_row(job, s->n, P.dtype);
    else if (NRG_RARELY(job->mean || job->rstd))
        store_statistics(job, j->options & OPT_CENTRED ? scalars.centre : 0, scalars.rstd, s->n);
    s->n++;
}

/* In one loop; a row whose predecessor has no outputs is summed alone. */
NRG_INLINE void interleaved_chunk(row_strand *s, const row_chunk *c, norm_policy P)
{
    const summed_row from = {operands_in_registers(&s->row), v_set1(s->sums.pilot), &s->outputs};
    if (s->has_outputs)
        sum_chunk(&s->sums, &from, c->begin, c->end, c->dim, c->options, P);
    else
        general_sum(&s->sums, c, P);
}

NRG_INLINE void strand_chunk(row_strand *s, const strand_job *j, size_t begin, size_t end, norm_policy P)
{
    const row_chunk sum = {operands_in_registers(&s->row), j->options, begin, end, j->job->dim};
    const row_chunk output = {.options = output_options(j->options), .begin = begin, .end = end, .dim = j->job->dim};
    const int keeps = (j->options & OPT_KEEP_R) != 0; /* where r of the next row will be */
    if (P.interleaved && s->n != s->end)
        interleaved_chunk(s, &sum, P);
    else {
        if (keeps && s->has_outputs)
            general_output(&s->outputs, &output, P);
        if (s->n != s->end)
            general_sum(&s->sums, &sum, P);
        if (!keeps && s->has_outputs)
            general_output(&s->outputs, &output, P);
    }
}

/* Whether rows come from memory that no cache holds (docs/speed/rows.md). */
NRG_INLINE int are_far(const nrg_norm_job *job)
{
    const size_t rows = job->row_end - job->row_begin;
    return rows >= 2 * STRANDS_MAX && rows > FAR_BYTES / (2 * sizeof(float) * job->dim);
}

/* Whether the strands of far rows without a mean are interleaved, too: in vectors of 32 bytes 1.1 to 1.17 × as fast as chunk by
 * chunk, in those of 64 0.83 ×. */
NRG_INLINE int far_is_interleaved(const nrg_norm_job *job) { return VN < 16 && !job->formula.centred; }

NRG_INLINE int fit_stream_rows(const nrg_norm_job *job)
{
    return job->row_end - job->row_begin >= 2 && (job->y || job->r || !are_far(job) || far_is_interleaved(job));
}

NRG_INLINE size_t strands_of(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const int may_be_far = P.dtype == NRG_F32 && (VN < 16 || !P.interleaved) && !V_SMALL && options & OPT_PREFETCH &&
                           !((options | P.must) & (OPT_ADD_Y | OPT_STORE_R)) && job->dim > FAST_BLOCK;
    return may_be_far && are_far(job) ? STRANDS_MAX : 1;
}

/* Elements of a chunk. 1024 instead of 512: up to 10 % faster in cache (512 rows of 768), 14 % slower from memory (Zen 3). */
NRG_INLINE size_t strand_chunk_size(const nrg_norm_job *job, unsigned options, size_t strands, norm_policy P)
{
    if (strands > 1)
        return FAST_BLOCK;
    if (P.interleaved || job->row_end - job->row_begin == 1)
        return NORM_SEGMENT;
    return options & OPT_PREFETCH && job->dim > OUTPUT_CHUNK ? OUTPUT_CHUNK / 2 : OUTPUT_CHUNK;
}

NRG_INLINE void schedule_long_rows(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    strand_room room;
    row_strand *const strand = room.strand;
    const size_t dim = job->dim, rows = job->row_end - job->row_begin, strands = strands_of(job, options, P),
                 size = strand_chunk_size(job, options, strands, P);
    if (P.dtype != NRG_F32 && dim <= sizeof room.kept / sizeof *room.kept && !(options & (OPT_R_F32 | OPT_GROUPS | OPT_HEADS)) &&
        (options & (OPT_ADD_Y | OPT_READ_R)) == OPT_ADD_Y)
        options |= OPT_KEEP_R;
    const strand_job j = {job, options, room.kept};
    size_t n = job->row_begin;
    for (size_t k = 0; k < strands; k++) {
        const size_t count = rows / strands + (k < rows % strands);
        strand[k] = (row_strand){.n = n, .end = n + count};
        n += count;
    }
    for (;;) {
        int is_open = 0;
        for (size_t k = 0; k < strands; k++) {
            row_strand *const s = &strand[k];
            if (s->n != s->end)
                begin_row(s, &j, P);
            is_open |= s->n != s->end || s->has_outputs;
        }
        if (!is_open)
            break;
        const int sums = strand[0].n != strand[0].end; /* otherwise only outputs are left: from the last chunk to the first */
        const size_t now = sums ? size : OUTPUT_CHUNK, chunks = (dim + now - 1) / now;
        for (size_t c = 0; c < chunks; c++) {
            const size_t at = (sums ? c : chunks - 1 - c) * now;
            for (size_t k = 0; k < strands; k++)
                strand_chunk(&strand[k], &j, at, chunk_end(at, dim, now), P);
        }
        for (size_t k = 0; k < strands; k++)
            if (strand[k].n != strand[k].end)
                end_row(&strand[k], &j, P);
            else
                strand[k].has_outputs = 0;
    }
    if (options & (OPT_STREAM_R | OPT_STREAM_O | OPT_LINES_O))
        v_nt_fence();
}

NRG_INLINE void schedule_stream_rows(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    schedule_long_rows(job, options, P);
}

/* The last instance. */
NRG_INLINE void general_rows_of(const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    schedule_long_rows(job, options, policy_of_rows(D, ROW_KINDS));
}
NRG_BY_DTYPE(general_rows, (job, options), const nrg_norm_job *job, unsigned options)

/* The same of f32 rows without a mean, in the fast grade. */
static __attribute__((noinline)) void general_rms_rows(const nrg_norm_job *job, unsigned options)
{
    schedule_long_rows(job, options, policy_of_rows(NRG_F32, 0));
}

#endif
