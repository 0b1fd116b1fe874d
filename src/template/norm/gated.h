/* Rows with a gate, or with an activation on the output; of parts of a pass (nrg/norm_parts.h) the first or second pass alone.
 *
 * A gate is a source before the norm and a sink after it, and so is an activation:
 *
 *     NRG_GATE_PRE    r·g(z) = p -> sums;  p -> o
 *     NRG_GATE_POST   r -> sums;           r -> o1;  o1·g(z) -> o
 *     no gate         r -> sums;           r -> o1;  g(o1) -> o
 *
 * p and o1 are floats in staging buffers. The activation is a call for a whole chunk, or for a tile (gated_tile.h), and the loops
 * of the norm are those of general.h.
 *
 * The schedule here is for long rows and for what is rare. The second pass of a row and the first pass of the next alternate
 * chunk by chunk; the second pass goes first, so that one staging buffer serves both rows. p is kept between the passes, since g
 * costs more than the norm: up to 2048 elements on the stack, the rest of an f32 row in a row of o that is not written yet. Such
 * a row holds half of a 16-bit row; what is neither there nor on the stack is computed twice.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_GATED_H
#define NRG_TEMPLATE_NORM_GATED_H

#include "../../job/activation.h"
#include "../../job/quantize.h"
#include "general.h"

/* Elements of all staging buffers, and of those that are one chunk, where p is kept beside them: stacks are small. */
enum { GATED_ROOM = 2048, GATED_CHUNK = 512 };

/* A row whose outputs become bytes; with a scale for all of them, its largest magnitude first. */
typedef struct byte_sink {
    nrg_quant_row to;
    float amax;
    int finds_amax;
} byte_sink;

typedef struct gated_row {
    row_operands first, again; /* of the passes */
    const char *z;
} gated_row;

/* What all rows of a job have in common. */
typedef struct gated_plan {
    const nrg_norm_job *job;
    nrg_dtype D;
    unsigned options, again, sink; /* of the first pass, of the second, and of the store of staged outputs */
    int reads_r, is_direct;        /* is_direct: the second pass stores o */
    int has_gates;                 /* and multiplies by g(z), which is in a staging buffer */
    float *gates;                  /* a staging buffer for them, or for r beside f32 gates before the norm */
    byte_sink *bytes;              /* NULL: outputs are o */
} gated_plan;

/* Whether gates, or r beside f32 gates, have a staging buffer of their own; 16-bit gates before the norm are where p will be. */
static int has_gate_stage(const nrg_norm_job *job, nrg_dtype D)
{
    return D != NRG_F32 ? job->gate == NRG_GATE_POST : job->gate == NRG_GATE_PRE && (job->y || job->r);
}

/* Element 0 of a buffer whose element `begin` is at p. As a number: the buffer does not exist down to there. */
NRG_INLINE void *staged_at(float *p, size_t begin) { return (void *)((uintptr_t)p - begin * sizeof *p); }

static __attribute__((noinline)) gated_plan plan_of_gated(const nrg_norm_job *job, float *gates, byte_sink *bytes, int is_tile,
                                                          nrg_dtype D)
{
    const unsigned residual = OPT_STORE_R | OPT_STREAM_R | OPT_READ_R;
    gated_plan g = {.job = job, .D = D, .options = options_of_part(job, D), .gates = gates, .bytes = bytes};
    /* Gates after the norm that the activation multiplies with: with others rows out of cache take 1.24 to 1.39 times as long
     * (Zen 4), a single one 1.04 to 1.11 times with AVX-512 (Granite Rapids); in cache these take 0.96 of the time. */
    const int is_near = !(g.options & OPT_PREFETCH) && job->row_end - job->row_begin > 1;
    const int is_staged = is_near || bytes || job->part != NRG_NORM_WHOLE || g.options & (OPT_EXACT | OPT_AFTER);
    g.has_gates = job->gate == NRG_GATE_POST && (D != NRG_F32 || (!is_tile && is_staged));
    const int has_y_last =
        job->gate == NRG_GATE_PRE || g.has_gates || (job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY);
    g.is_direct = has_y_last && !bytes;
    g.reads_r = (g.options & OPT_READ_R) != 0;
    g.again = g.options & ~residual;
    if (g.reads_r)
        g.again = (g.again & ~(unsigned)OPT_ADD_Y) | (g.options & OPT_R_F32 ? OPT_X_F32 : 0);
    g.again |= g.has_gates ? OPT_GATE : 0;
    g.sink = g.options & (OPT_AFTER | OPT_Y_F32 | OPT_STREAM_O);
    if (!g.is_direct)
        g.again = (g.again & ~(unsigned)(OPT_STREAM_O | OPT_LINES_O | (has_y_last ? 0 : OPT_AFTER))) | OPT_O_F32;
    if (bytes)
        g.sink = (has_y_last ? 0 : g.sink & ~(unsigned)OPT_STREAM_O) | OPT_O_F32;
    return g;
}

static __attribute__((noinline)) void find_gated_row(gated_row *row, const gated_plan *g, size_t n)
{
    const nrg_norm_job *job = g->job;
    find_row(&row->first, job, n, g->options, g->D);
    row->again = operands_in_registers(&row->first);
    if (g->reads_r)
        row->again.x = row->first.r;
    row->z = job->z;
    if (row->z && job->groups == 1)
        row->z += n * job->z_stride;
    else if (row->z)
        row->z += n / job->groups * job->z_stride + bytes_of(n % job->groups * job->dim, g->D, 0);
}

/* ---- steps over elements begin to end; the first of them is the first in a staging buffer ---- */

/* r as floats, and to where it is stored; 16-bit r times gates, if some are staged. to: NULL where r can be read from there. */
NRG_INLINE void source_floats_of(float *to, const row_operands *at, unsigned options, size_t begin, size_t end, nrg_dtype D)
{
    const norm_policy P = {.dtype = D, .may = OPT_RESIDUAL | OPT_Y_F32 | OPT_R_F32 | OPT_X_F32 | OPT_PREFETCH, .ahead = 2048};
    const size_t step = (size_t)V_APPLY * VN;
    const int is_alone = D == NRG_BF16 && !(options & (OPT_ADD_Y | OPT_STORE_R | OPT_X_F32));
    const row_operands row = operands_in_registers(at);
    vf v[NORM_STEP];
    size_t i = begin;
    for (; is_alone && i + step <= end; i += step) { /* not in pairs, which would be put in order again */
        if (NRG_RARELY(options & OPT_PREFETCH))
            prefetch_source(V_APPLY, row, i, options, P);
        load_step(v, V_APPLY, row.x, i, step, D);
        if (row.gate)
            multiply_gates(v, V_APPLY, row.gate, i, step, NRG_F32);
        store_f32_step(v, V_APPLY, to + (i - begin), step, 0);
    }
    for (; i + step <= end; i += step) {
        const unsigned now = options_in(options, P);
        if (now & OPT_PREFETCH)
            prefetch_source(V_APPLY, row, i, now, P);
        source_step(v, V_APPLY, row, i, step, now, D);
        if (D != NRG_F32 && row.gate)
            multiply_gates(v, V_APPLY, row.gate, i, step, D);
        if (D != NRG_F32 || to)
            store_floats(v, V_APPLY, to + (i - begin), step, 0, D);
    }
    for (; i < end; i += VN) {
        const size_t n = lanes_at(i, end);
        source_step(v, 1, row, i, n, options_in(options, P), D);
        if (D != NRG_F32 && row.gate)
            multiply_gates(v, 1, row.gate, i, n, D);
        if (D != NRG_F32 || to)
            store_floats(v, 1, to + (i - begin), n, 0, D);
    }
}
NRG_BY_DTYPE(source_floats, (to, at, options, begin, end), float *to, const row_operands *at, unsigned options, size_t begin,
             size_t end)

/* Staged outputs, + y, to o. */
NRG_INLINE void sink_floats_of(const float *from, const row_operands *at, unsigned options, size_t begin, size_t end, nrg_dtype D)
{
    const norm_policy P = {.dtype = D, .may = OPT_AFTER | OPT_Y_F32 | OPT_O_F32 | OPT_STREAM_O};
    const size_t step = (size_t)V_APPLY * VN;
    const char *const staged = (const char *)from;
    const row_operands row = operands_in_registers(at);
    vf v[NORM_STEP];
    size_t i = begin;
    for (; i + step <= end; i += step) {
        load_elements(v, V_APPLY, staged, i - begin, step, D, 1);
        finish_step(v, V_APPLY, row, i, step, options_in(options, P), D);
    }
    for (; i < end; i += VN) {
        const size_t n = lanes_at(i, end);
        load_elements(v, 1, staged, i - begin, n, D, 1);
        finish_step(v, 1, row, i, n, options_in(options, P), D);
    }
}
NRG_BY_DTYPE(sink_floats, (from, at, options, begin, end), const float *from, const row_operands *at, unsigned options,
             size_t begin, size_t end)

/* g(z) */
static void stage_gates(const gated_plan *g, const char *z, float *to, size_t begin, size_t end)
{
    const float *gates = (const float *)z + begin;
    if (g->D != NRG_F32) {
        const row_operands row = {.x = z};
        source_floats(to, &row, g->options & OPT_PREFETCH, begin, end, g->D);
        gates = to;
    } else if (g->options & OPT_PREFETCH)
        prefetch_ahead((const char *)gates, (end - begin) * sizeof *gates, (end - begin) * sizeof *gates);
    NRG_PATH_NAME(activate)(g->job->activation, gates, to, end - begin);
}

/* out = g(in), times factor if it is not NULL; all may be one. Field by field, as in activation.h. */
static void activate_run(const gated_plan *g, const float *in, const float *factor, float *out, size_t n, unsigned how)
{
    const nrg_activation activation = g->job->activation;
    nrg_activation_run run;
    run.in = in;
    run.factor = factor;
    run.up = NULL;
    run.value = out;
    run.slope = NULL;
    run.alpha = nrg_default_alpha(activation);
    run.how = how;
    NRG_PATH_NAME(activate_floats)(NRG_PATH_NAME(value_loops)[activation], &run, n);
}

/* p = r·g(z) */
static void gated_source(const gated_plan *g, const gated_row *at, float *p, size_t begin, size_t end, int is_again)
{
    const row_operands *const row = is_again ? &at->again : &at->first;
    const unsigned options = is_again ? g->again : g->options, prefetch = options & OPT_PREFETCH;
    const float *r = (const float *)row->x + begin;
    if (g->D != NRG_F32) {
        row_operands gated = operands_in_registers(row);
        gated.gate = staged_at(p, begin);
        stage_gates(g, at->z, p, begin, end);
        source_floats(p, &gated, options, begin, end, g->D);
        return;
    }
    if (options & (OPT_ADD_Y | OPT_STORE_R)) {
        float *const to = p == (const float *)at->z + begin ? g->gates : p; /* p may go over the gates */
        source_floats(to, row, options, begin, end, NRG_F32);
        r = to;
    }
    activate_run(g, (const float *)at->z + begin, r, p, end - begin, prefetch ? NRG_RUN_PREFETCH : 0);
}

#ifndef NRG_NO_QUANTIZE
static void begin_bytes(byte_sink *to, const nrg_norm_quant *quant, size_t n)
{
    const size_t together = nrg_format_rows(quant->format);
    to->to = (nrg_quant_row){.q = quant->q + n / together * quant->q_stride,
                             .scales = quant->scales ? (float *)(quant->scales + n * quant->scales_stride) : NULL,
                             .row = n % together,
                             .format = quant->format,
                             .rounding = quant->rounding};
    to->amax = 0;
    to->finds_amax = nrg_format_block(quant->format) == 0;
}

static void sink_bytes(byte_sink *to, const float *from, size_t begin, size_t end)
{
    if (to->finds_amax)
        to->amax = NRG_PATH_NAME(amax)(from, end - begin, to->amax);
    else
        NRG_PATH_NAME(quantize_floats)(&to->to, from, begin, end - begin, to->amax);
}
#endif

/* From staged outputs o1 to o, or to bytes. */
static void gated_sink(const gated_plan *g, const gated_row *at, float *o1, size_t begin, size_t end)
{
    const nrg_norm_job *job = g->job;
    const size_t n = end - begin;
    const int is_last = g->D == NRG_F32 && !(g->sink & OPT_AFTER) && !g->bytes, stream = is_last && g->sink & OPT_STREAM_O;
    float *const to = is_last ? (float *)at->again.o + begin : o1;
    const unsigned how = stream ? NRG_RUN_STREAM : 0;
    if (job->gate == NRG_GATE_POST && !g->has_gates)
        activate_run(g, (const float *)at->z + begin, o1, to, n, how | (g->options & OPT_PREFETCH ? NRG_RUN_PREFETCH : 0));
    else if (job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY)
        activate_run(g, o1, NULL, to, n, how);
    if (is_last)
        return;
    row_operands row = at->again;
    if (g->bytes)
        row.o = staged_at(o1, begin);
    if (!g->bytes || g->sink & OPT_AFTER)
        sink_floats(o1, &row, g->sink, begin, end, g->D);
#ifndef NRG_NO_QUANTIZE
    if (g->bytes)
        sink_bytes(g->bytes, o1, begin, end);
#endif
}

/* ---- rows in chunks ---- */

typedef struct gated_chunks {
    gated_plan plan;
    float *stage;       /* p of elements below kept */
    float *scratch;     /* a chunk of p that is not kept, or of o1 */
    size_t kept, chunk; /* elements of p in the staging buffer, of a chunk */
    size_t in_o;        /* those after them from this one on are in o, */
    int in_place;       /* in their own row, */
    char *spare;        /* or in the last one */
} gated_chunks;

/* From the statistics of a row to its outputs. */
typedef struct gated_factors {
    fallback_factors f; /* its floats alone, if is_fallback is 0 */
    int is_fallback;
} gated_factors;

typedef union gated_sums { /* stacks are small */
    row_sums plain;
    fallback_sums fallback;
} gated_sums;

/* Where p is kept; NULL: nowhere. */
static float *kept_p(const gated_chunks *c, const gated_row *row, size_t begin)
{
    if (begin < c->kept)
        return c->stage + begin;
    return begin < c->in_o ? NULL : (float *)(c->in_place ? row->again.o : c->spare) + (begin - c->in_o);
}

/* The first element of p that o may keep. 16-bit outputs in place would go over x of other elements. */
static size_t kept_in_o(const gated_chunks *c, const byte_sink *bytes)
{
    const nrg_norm_job *job = c->plan.job;
    const size_t half = (job->dim - job->dim / 2 + GATED_CHUNK - 1) / GATED_CHUNK * GATED_CHUNK;
    if (job->gate != NRG_GATE_PRE || job->part != NRG_NORM_WHOLE || bytes || (job->after && job->o == job->y))
        return SIZE_MAX;
    if (c->plan.D == NRG_F32)
        return 0;
    return c->in_place || (uintptr_t)c->spare % sizeof(float) ? SIZE_MAX : half;
}

static void sum_gated(const gated_chunks *c, row_sums *sums, const gated_row *row, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = {operands_in_registers(&row->first), g->options, begin, end, g->job->dim};
    nrg_dtype D = g->D;
    if (g->job->gate == NRG_GATE_PRE) {
        float *const kept = kept_p(c, row, begin), *const p = kept ? kept : c->scratch;
        gated_source(g, row, p, begin, end, 0);
        chunk.row = (row_operands){.x = staged_at(p, begin)};
        chunk.options &= OPT_CENTRED | OPT_EXACT;
        D = NRG_F32;
    }
    sum_rows_chunk(sums, &chunk, D);
}

/* Whether the outputs of a row go over its own p, of the same elements and of those after them: chunks then go from the last one
 * to the first. */
static int is_over_p(const gated_chunks *c, const gated_row *row)
{
    return c->plan.D != NRG_F32 && c->in_o != SIZE_MAX && row->again.o == c->spare;
}

/* A chunk for the passes after the first. */
static row_chunk gated_again(const gated_chunks *c, const gated_row *row, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = {operands_in_registers(&row->again), g->again, begin, end, g->job->dim};
    if (g->job->gate == NRG_GATE_PRE) {
        float *const kept = kept_p(c, row, begin), *p = kept ? kept : c->scratch;
        if (!kept)
            gated_source(g, row, p, begin, end, 1);
        else if (begin >= c->kept && is_over_p(c, row)) {
            p = c->scratch;
            memcpy(p, kept, (end - begin) * sizeof *p);
        }
        chunk.row.x = staged_at(p, begin);
        chunk.options = (chunk.options & ~(unsigned)(OPT_ADD_Y | OPT_PREFETCH)) | OPT_X_F32;
    }
    if (!g->is_direct)
        chunk.row.o = staged_at(c->scratch, begin);
    return chunk;
}

/* To o, or to the scratch. Not below the activations: stacks are small. */
static __attribute__((noinline)) void output_gated(const gated_plan *g, const row_chunk *chunk, const gated_factors *f)
{
    if (NRG_RARELY(f->is_fallback))
        output_fallback(g->job, &chunk->row, &f->f, chunk->begin, chunk->end, chunk->options, g->D);
    else {
        row_outputs to = {operands_in_registers(&chunk->row), vectors_of(&f->f.floats), &g->job->formula.w_offset};
        to.row.o = chunk->row.o;
        to.row.gate = chunk->row.gate;
        NRG_IN_REGISTER(to.row.o);
        NRG_IN_REGISTER(to.row.gate);
        general_output(&to, chunk, policy_of_rows(g->D, OPT_EXACT));
    }
}

static void apply_gated(const gated_chunks *c, const gated_row *row, const gated_factors *f, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = gated_again(c, row, begin, end);
    if (g->has_gates) {
        stage_gates(g, row->z, g->gates, begin, end);
        chunk.row.gate = staged_at(g->gates, begin);
    }
    output_gated(g, &chunk, f);
    if (!g->is_direct)
        gated_sink(g, row, c->scratch, begin, end);
}

static __attribute__((noinline)) void factors_of_given(gated_factors *f, const gated_plan *g, size_t n)
{
    const row_scalars s = given_scalars(g->job, n, (g->options & OPT_EXACT) != 0);
    const row_operands none = {.x = NULL};
    f->f.floats = outputs_of_row(none, &s, g->job).f;
    f->is_fallback = !s.in_range;
    if (f->is_fallback)
        given_to_fallback(&f->f, g->job, n, g->D);
}

static void sum_gated_fallback(const gated_chunks *c, fallback_sums *sums, const gated_row *row, double pilot)
{
    const size_t dim = c->plan.job->dim;
    for (size_t begin = 0, end; begin < dim; begin = end) {
        end = chunk_end(begin, dim, GATED_CHUNK);
        const row_chunk chunk = gated_again(c, row, begin, end);
        fallback_sum(sums, &chunk.row, chunk.options, pilot, begin, end, dim, c->plan.D);
    }
}

/* The sums are overwritten. */
static __attribute__((noinline)) void factors_of_gated_fallback(gated_factors *f, const gated_chunks *c, const gated_row *row,
                                                                fallback_sums *sums, size_t n)
{
    const nrg_norm_job *job = c->plan.job;
    sum_gated_fallback(c, sums, row, 0);
    const double tt = value_of(&sums->tt);
    fallback_statistics stat = first_statistics(&job->formula, value_of(&sums->t), tt);
    if (needs_second_sum(&job->formula, &stat)) {
        sum_gated_fallback(c, sums, row, stat.pilot);
        second_statistics(&stat, &job->formula, sums);
    }
    factors_of_fallback(&f->f, job, &stat, tt * job->formula.inv_dim, n);
    f->is_fallback = 1;
}

static void factors_of_gated(gated_factors *f, const gated_chunks *c, const gated_row *row, gated_sums *sums, size_t n)
{
    const gated_plan *g = &c->plan;
    const row_scalars s = general_scalars(g->job, &sums->plain, g->options);
    if (NRG_RARELY(!s.in_range)) {
        factors_of_gated_fallback(f, c, row, &sums->fallback, n);
        return;
    }
    f->f.floats = outputs_of_row(row->again, &s, g->job).f;
    f->is_fallback = 0;
    if (NRG_RARELY(g->options & OPT_STATISTICS))
        store_statistics(g->job, g->options & OPT_CENTRED ? s.centre : 0, s.rstd, n);
    if (NRG_RARELY(g->job->statistics))
        keep_statistics(g->job, g->options & OPT_CENTRED ? sums->plain.pilot : 0, general_totals(&sums->plain, g->options),
                        (g->options & OPT_EXACT) != 0, n);
}

/* Shares out the staging buffers. */
static __attribute__((noinline)) void share_room(gated_chunks *c, float *room, int is_alone)
{
    gated_plan *const g = &c->plan;
    const nrg_norm_job *job = g->job;
    const int is_pre = job->gate == NRG_GATE_PRE;
    const size_t gates = (size_t)has_gate_stage(job, g->D),
                 past = is_pre && c->in_o && (job->dim > GATED_ROOM - gates * GATED_CHUNK || job->part == NRG_NORM_APPLY),
                 buffers = gates + (!g->is_direct || past);
    /* of f32 rows from memory as many elements as are prefetched: they arrive while outputs are computed */
    const int is_far = g->D == NRG_F32 && g->options & OPT_PREFETCH;
    /* the gates of a row alone by one call: a call for each chunk waits for its last divisions */
    c->chunk = is_pre ? (!buffers && is_alone ? GATED_ROOM : GATED_CHUNK) : buffers > 1 || is_far ? GATED_CHUNK : 2 * GATED_CHUNK;
    c->kept = is_pre && job->part != NRG_NORM_APPLY ? (GATED_ROOM - buffers * c->chunk) / c->chunk * c->chunk : 0;
    c->stage = room;
    g->gates = room + c->kept;
    c->scratch = has_gate_stage(job, g->D) ? g->gates + c->chunk : g->gates;
}

static __attribute__((noinline)) void gated_rows(const nrg_norm_job *job, size_t row_begin, size_t row_end, byte_sink *bytes,
                                                 nrg_dtype D)
{
    _Alignas(64) float room[GATED_ROOM]; /* a vector in two cache lines takes twice as long */
    gated_chunks c = {.plan = plan_of_gated(job, NULL, bytes, 0, D)};
    const gated_plan *g = &c.plan;
    const size_t dim = job->dim;
    const int is_given = job->part == NRG_NORM_APPLY;
    gated_row rows[2], *row = &rows[0], *next = &rows[1];
    gated_factors f;
    gated_sums sums;
    find_gated_row(row, g, row_end - 1);
    c.spare = row->again.o;
    c.in_place = job->o == job->x || job->o == job->y || job->o == job->z;
    c.in_o = kept_in_o(&c, bytes);
    share_room(&c, room, row_end - row_begin == 1);
    const size_t most = c.chunk;
    if (row_end - row_begin > 1)
        find_gated_row(row, g, row_begin);
    for (size_t begin = 0, end; begin < dim && !is_given; begin = end) {
        end = chunk_end(begin, dim, most);
        sum_gated(&c, &sums.plain, row, begin, end);
    }
    for (size_t n = row_begin; n < row_end; n++) {
        const int is_last = n + 1 == row_end;
        if (!is_last)
            find_gated_row(next, g, n + 1);
        if (is_given)
            factors_of_given(&f, g, n);
        else
            factors_of_gated(&f, &c, row, &sums, n);
#ifndef NRG_NO_QUANTIZE
        if (bytes) {
            begin_bytes(bytes, job->quant, n);
            for (size_t begin = 0, end; bytes->finds_amax && begin < dim; begin = end) {
                end = chunk_end(begin, dim, most);
                apply_gated(&c, row, &f, begin, end);
            }
            bytes->finds_amax = 0;
        }
#endif
        const size_t last = (dim - 1) / most * most;
        for (size_t at = 0; at <= last; at += most) {
            const size_t begin = is_over_p(&c, row) ? last - at : at, end = chunk_end(begin, dim, most);
            if (job->part != NRG_NORM_SUMS)
                apply_gated(&c, row, &f, begin, end);
            if (!is_last && !is_given)
                sum_gated(&c, &sums.plain, next, begin, end);
        }
        gated_row *const done = row;
        row = next;
        next = done;
    }
    if (g->options & (OPT_STREAM_R | OPT_STREAM_O | OPT_LINES_O))
        v_nt_fence();
}

#endif
