/* Rows with a gate, with an activation on the output, or in parts (nrg/norm_parts.h), whose first or second pass is left out.
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
 * costs more than the norm: 1280 elements on the stack, the rest of an f32 row in a row of o that is not written yet. The rest of
 * a 16-bit row is computed twice.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_GATED_H
#define NRG_TEMPLATE_NORM_GATED_H

#include "../../job/activation.h"
#include "../../job/quantize.h"
#include "general.h"

enum { GATED_CHUNK = 256, GATED_KEPT = 5 * GATED_CHUNK }; /* elements; stacks are small */

/* A row whose outputs become bytes; with a scale for all of them, its largest magnitude first. */
typedef struct byte_sink {
    nrg_quant_row to;
    float amax;
    int finds_amax;
    int from_r; /* r has been stored, perhaps over x */
} byte_sink;

typedef struct gated_row {
    row_operands first, again; /* of the passes */
    const char *z;
} gated_row;

/* What all rows of a job have in common. */
typedef struct gated_plan {
    const nrg_norm_job *job;
    nrg_dtype D;
    unsigned options, first, again, sink; /* of the job, of the passes, and of the store of staged outputs */
    int reads_r, is_direct;               /* is_direct: the second pass stores o */
    int has_gates;                        /* and multiplies by g(z), which is in a staging buffer */
    float *gates;                         /* a staging buffer for 16-bit gates, or for r beside f32 ones */
    byte_sink *bytes;                     /* NULL: outputs are o */
} gated_plan;

/* Element 0 of a buffer whose element `begin` is at p. As a number: the buffer does not exist down to there. */
NRG_INLINE void *staged_at(float *p, size_t begin) { return (void *)((uintptr_t)p - begin * sizeof *p); }

static __attribute__((noinline)) gated_plan plan_of_gated(const nrg_norm_job *job, float *gates, byte_sink *bytes, int is_tile,
                                                          nrg_dtype D)
{
    const unsigned residual = OPT_STORE_R | OPT_STREAM_R | OPT_READ_R, o_f32 = D != NRG_F32 && job->o_f32 ? OPT_O_F32 : 0;
    gated_plan g = {.job = job, .D = D, .options = options_of_job(job, D), .gates = gates, .bytes = bytes};
    const int from_r = job->from_r || (bytes && bytes->from_r);
    /* Gates after the norm that the activation multiplies with: with others rows out of cache take 1.24 to 1.39 times as long
     * (Zen 4), a single one 1.04 to 1.11 times with AVX-512 (Granite Rapids); in cache these take 0.96 of the time. */
    const int is_near = !(g.options & OPT_PREFETCH) && job->row_end - job->row_begin > 1;
    const int is_staged = is_near || bytes || job->part != NRG_NORM_WHOLE || g.options & (OPT_EXACT | OPT_AFTER);
    g.has_gates = job->gate == NRG_GATE_POST && (D != NRG_F32 || (!is_tile && is_staged));
    const int has_y_last =
        job->gate == NRG_GATE_PRE || g.has_gates || (job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY);
    g.is_direct = has_y_last && !bytes;
    g.reads_r = from_r || (g.options & OPT_READ_R);
    g.again = g.options & ~residual;
    if (g.reads_r)
        g.again = (g.again & ~(unsigned)OPT_ADD_Y) | (g.options & OPT_R_F32 ? OPT_X_F32 : 0);
    g.first = from_r ? g.again : g.options;
    g.again |= g.has_gates ? OPT_GATE : 0;
    g.sink = (g.options & (OPT_AFTER | OPT_Y_F32 | (o_f32 ? 0 : OPT_STREAM_O))) | o_f32;
    if (g.is_direct)
        g.again = (o_f32 ? g.again & ~(unsigned)OPT_STREAM_O : g.again) | o_f32;
    else
        g.again = (g.again & ~(unsigned)(OPT_STREAM_O | OPT_LINES_O | (has_y_last ? 0 : OPT_AFTER))) | OPT_O_F32;
    if (bytes)
        g.sink = (has_y_last ? 0 : g.sink & ~(unsigned)OPT_STREAM_O) | OPT_O_F32;
    return g;
}

static __attribute__((noinline)) void find_gated_row(gated_row *row, const gated_plan *g, size_t n)
{
    const nrg_norm_job *job = g->job;
    row->again = row->first = operands_of_row(job, n, g->options, g->D);
    if (g->reads_r)
        row->again.x = row->first.r;
    if (!(g->first & OPT_STORE_R))
        row->first = row->again;
    row->z = job->z;
    if (row->z && job->groups == 1)
        row->z += n * job->z_stride;
    else if (row->z)
        row->z += n / job->groups * job->z_stride + bytes_of(n % job->groups * job->dim, g->D, 0);
}

/* ---- steps over elements begin to end; the first of them is the first in a staging buffer ---- */

/* r as floats, and to where it is stored. to: NULL where r can be read from there. */
NRG_INLINE void source_floats_of(float *to, const row_operands *at, unsigned options, size_t begin, size_t end, nrg_dtype D)
{
    const norm_policy P = {.dtype = D, .may = OPT_RESIDUAL | OPT_Y_F32 | OPT_R_F32 | OPT_X_F32 | OPT_PREFETCH, .ahead = 2048};
    const size_t step = (size_t)V_APPLY * VN;
    const int is_alone = D != NRG_F32 && !(options & (OPT_ADD_Y | OPT_STORE_R | OPT_X_F32));
    const row_operands row = *at;
    vf v[NORM_STEP];
    size_t i = begin;
    for (; is_alone && i + step <= end; i += step) { /* not in pairs, which would be put in order again */
        if (NRG_RARELY(options & OPT_PREFETCH))
            prefetch_source(V_APPLY, row, i, options, P);
        load_step(v, V_APPLY, row.x, i, step, D);
        store_f32_step(v, V_APPLY, to + (i - begin), step, 0);
    }
    for (; i + step <= end; i += step) {
        const unsigned now = options_in(options, P);
        if (now & OPT_PREFETCH)
            prefetch_source(V_APPLY, row, i, now, P);
        source_step(v, V_APPLY, row, i, step, now, D);
        if (D != NRG_F32 || to)
            store_floats(v, V_APPLY, to + (i - begin), step, 0, D);
    }
    for (; i < end; i += VN) {
        const size_t n = lanes_at(i, end);
        source_step(v, 1, row, i, n, options_in(options, P), D);
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
    const row_operands row = *at;
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

/* out = factor·g(z); out may be factor. */
static void multiply_gate(const gated_plan *g, const char *z, const float *factor, float *out, size_t begin, size_t end,
                          unsigned how)
{
    const nrg_activation activation = g->job->activation;
    const float *gates = (const float *)z + begin;
    if (g->D != NRG_F32) {
        const row_operands row = {.x = z};
        source_floats(g->gates, &row, g->options & OPT_PREFETCH, begin, end, g->D);
        gates = g->gates;
        how = 0;
    }
    NRG_PATH_NAME(activate_times)(activation, nrg_default_alpha(activation), gates, factor, out, end - begin, how);
}

/* p = r·g(z) */
static void gated_source(const gated_plan *g, const gated_row *at, float *p, size_t begin, size_t end, int is_again)
{
    const row_operands *const row = is_again ? &at->again : &at->first;
    const unsigned options = is_again ? g->again : g->first, prefetch = options & OPT_PREFETCH;
    const float *r = (const float *)row->x + begin;
    const int is_staged = g->D != NRG_F32 || options & (OPT_ADD_Y | OPT_STORE_R);
    if (is_staged) {
        float *const to = g->D == NRG_F32 && p == (const float *)at->z + begin ? g->gates : p; /* p may go over f32 gates */
        source_floats(to, row, options, begin, end, g->D);
        r = to;
    }
    multiply_gate(g, at->z, r, p, begin, end, prefetch ? NRG_TIMES_PREFETCH_IN | (is_staged ? 0 : NRG_TIMES_PREFETCH_FACTOR) : 0);
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
    if (job->gate == NRG_GATE_POST && !g->has_gates)
        multiply_gate(g, at->z, o1, to, begin, end,
                      (stream ? NRG_TIMES_STREAM : 0) | (g->options & OPT_PREFETCH ? NRG_TIMES_PREFETCH_IN : 0));
    else if (job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY)
        (stream ? NRG_PATH_NAME(activate_streamed) : NRG_PATH_NAME(activate))(job->activation, o1, to, n);
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
    float *stage;          /* p of elements below kept */
    float *scratch;        /* a chunk of p that is not kept, or of o1 */
    size_t kept;           /* elements of p in the staging buffer */
    int keeps_p, in_place; /* those after them in o */
    char *spare;           /* the row of o where they are, if o is not in place */
} gated_chunks;

/* From the statistics of a row to its outputs. */
typedef struct gated_factors {
    row_factors plain;
    fallback_factors fallback;
    int is_fallback;
} gated_factors;

/* Where p is kept; NULL: nowhere. */
static float *kept_p(const gated_chunks *c, const gated_row *row, size_t begin)
{
    if (begin < c->kept)
        return c->stage + begin;
    return c->keeps_p ? (float *)(c->in_place ? row->again.o : c->spare) + begin : NULL;
}

static void sum_gated(const gated_chunks *c, row_sums *sums, const gated_row *row, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = {row->first, g->first, begin, end, g->job->dim};
    nrg_dtype D = g->D;
    if (g->job->gate == NRG_GATE_PRE) {
        float *const kept = kept_p(c, row, begin), *const p = kept ? kept : c->scratch;
        gated_source(g, row, p, begin, end, 0);
        chunk.row = (row_operands){.x = staged_at(p, begin)};
        chunk.options &= OPT_CENTRED | OPT_EXACT;
        D = NRG_F32;
    }
    general_sum(sums, &chunk, D);
}

/* A chunk for the passes after the first. */
static row_chunk gated_again(const gated_chunks *c, const gated_row *row, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = {row->again, g->again, begin, end, g->job->dim};
    if (g->job->gate == NRG_GATE_PRE) {
        float *const kept = kept_p(c, row, begin), *const p = kept ? kept : c->scratch;
        if (!kept)
            gated_source(g, row, p, begin, end, 1);
        chunk.row.x = staged_at(p, begin);
        chunk.options = (chunk.options & ~(unsigned)(OPT_ADD_Y | OPT_PREFETCH)) | OPT_X_F32;
    }
    if (!g->is_direct)
        chunk.row.o = staged_at(c->scratch, begin);
    return chunk;
}

static void output_gated(const gated_chunks *c, const gated_row *row, const gated_factors *f, size_t begin, size_t end)
{
    const gated_plan *g = &c->plan;
    row_chunk chunk = gated_again(c, row, begin, end);
    if (g->has_gates) {
        stage_gates(g, row->z, g->gates, begin, end);
        chunk.row.gate = staged_at(g->gates, begin);
    }
    if (NRG_RARELY(f->is_fallback))
        output_fallback(g->job, &chunk.row, &f->fallback, begin, end, chunk.options, g->D);
    else {
        const row_outputs to = {chunk.row, f->plain, &g->job->formula.w_offset};
        general_output(&to, &chunk, g->D);
    }
    if (!g->is_direct)
        gated_sink(g, row, c->scratch, begin, end);
}

/* What nrg_norm_elements has to know of a row. */
static void keep_statistics(const nrg_norm_job *job, size_t n, const fallback_statistics *stat, enum nrg_norm_way way)
{
    const nrg_norm_formula *f = &job->formula;
    const double inverse = isnan(stat->variance) ? (double)NAN : inverse_divisor(f->divisor, f->eps, stat->variance);
    job->statistics[n] = (nrg_row_statistics){stat->pilot, stat->offset, stat->variance, inverse, way};
}

static __attribute__((noinline)) void keep_plain_statistics(const gated_plan *g, const row_sums *sums, size_t n)
{
    const nrg_norm_formula *f = &g->job->formula;
    const int is_exact = (g->options & OPT_EXACT) != 0;
    const double t = f->centred ? value_of(&sums->t) : 0, square = value_of(&sums->tt) * f->inv_dim;
    fallback_statistics stat = {is_exact ? t / f->d : f->centred ? (double)sums->pilot : 0, is_exact ? 0 : t * f->inv_dim, 0};
    const double lost = is_exact ? stat.pilot : stat.offset;
    stat.variance = square - lost * lost;
    keep_statistics(g->job, n, &stat, is_exact ? NRG_NORM_EXACT : NRG_NORM_FAST);
}

/* How a row with given statistics is computed. Of statistics from elsewhere nothing is known: the fast grade takes floats where
 * these have room, the exact grade double. */
static enum nrg_norm_way way_of_given(uint64_t way, int is_fast, double inverse, double factor)
{
    if (way == NRG_NORM_EXACT || way == NRG_NORM_DOUBLE || (way == NRG_NORM_FAST && is_fast))
        return (enum nrg_norm_way)way;
    const double squared = factor * factor;
    const int has_room = (inverse <= 0x1p40) & (squared >= 0x1p-80) & (squared <= 0x1p80);
    return is_fast && has_room ? NRG_NORM_FAST : NRG_NORM_DOUBLE;
}

static __attribute__((noinline)) void factors_of_given(gated_factors *f, const gated_plan *g, size_t n)
{
    const nrg_norm_formula *formula = &g->job->formula;
    const nrg_row_statistics *given = &g->job->statistics[n];
    const int is_fast = !(g->options & OPT_EXACT);
    const double pilot = formula->centred ? given->mean : 0, offset = formula->centred ? given->mean_low : 0;
    const double mean = pilot + offset, factor = formula->k * given->rstd;
    const float high = (float)factor, centre = (float)mean;
    const enum nrg_norm_way way = way_of_given(given->opaque, is_fast, given->rstd, factor);
    const row_factors exact = {v_set1(high), v_set1((float)(factor - (double)high)), v_zero(), v_set1((float)(-mean * factor))};
    f->plain = exact;
    if (is_fast) {
        f->plain.centre = v_set1(centre);
        f->plain.shift = v_set1((float)((((double)centre - pilot) - offset) * factor));
    }
    f->fallback = (fallback_factors){vd_set1(pilot), vd_set1(offset), vd_set1(factor), exact, way == NRG_NORM_DOUBLE};
    f->is_fallback = way == NRG_NORM_DOUBLE || (way == NRG_NORM_EXACT && is_fast);
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

static __attribute__((noinline)) void factors_of_gated_fallback(gated_factors *f, const gated_chunks *c, const gated_row *row,
                                                                size_t n)
{
    const nrg_norm_job *job = c->plan.job;
    fallback_sums sums;
    sum_gated_fallback(c, &sums, row, 0);
    const double tt = value_of(&sums.tt);
    fallback_statistics stat = first_statistics(&job->formula, value_of(&sums.t), tt);
    if (needs_second_sum(&job->formula, &stat)) {
        sum_gated_fallback(c, &sums, row, stat.pilot);
        second_statistics(&stat, &job->formula, &sums);
    }
    factors_of_fallback(&f->fallback, job, &stat, tt * job->formula.inv_dim, n);
    f->is_fallback = 1;
    if (job->statistics)
        keep_statistics(job, n, &stat, f->fallback.in_double ? NRG_NORM_DOUBLE : NRG_NORM_EXACT);
}

static void factors_of_gated(gated_factors *f, const gated_chunks *c, const gated_row *row, const row_sums *sums, size_t n)
{
    const gated_plan *g = &c->plan;
    const row_scalars s = general_scalars(g->job, sums, g->options);
    if (NRG_RARELY(!s.in_range)) {
        factors_of_gated_fallback(f, c, row, n);
        return;
    }
    f->plain = outputs_of_row(row->again, &s, g->job).f;
    f->is_fallback = 0;
    if (NRG_RARELY(g->options & OPT_STATISTICS))
        store_statistics(g->job, g->options & OPT_CENTRED ? s.centre : 0, s.rstd, n);
    if (NRG_RARELY(g->job->statistics))
        keep_plain_statistics(g, sums, n);
}

static size_t gated_chunk(const gated_plan *g)
{
    return g->is_direct && g->job->gate == NRG_GATE_NONE ? NORM_SEGMENT : GATED_CHUNK;
}

static __attribute__((noinline)) void gated_rows(const nrg_norm_job *job, size_t row_begin, size_t row_end, byte_sink *bytes,
                                                 nrg_dtype D)
{
    _Alignas(64) float stage[GATED_KEPT], scratch[2][GATED_CHUNK]; /* a vector in two cache lines takes twice as long */
    gated_chunks c = {.plan = plan_of_gated(job, scratch[1], bytes, 0, D), .stage = stage, .scratch = scratch[0]};
    const gated_plan *g = &c.plan;
    const size_t dim = job->dim;
    const int is_whole = job->part == NRG_NORM_WHOLE, is_given = job->part == NRG_NORM_APPLY;
    gated_row rows[2], *row = &rows[0], *next = &rows[1];
    gated_factors f;
    row_sums sums;
    find_gated_row(row, g, row_end - 1);
    c.spare = row->again.o;
    c.in_place = job->o == job->x || job->o == job->y || job->o == job->z;
    c.kept = is_given ? 0 : GATED_KEPT;
    c.keeps_p = is_whole && D == NRG_F32 && !bytes && !(job->after && job->o == job->y);
    const size_t most = c.keeps_p || job->gate != NRG_GATE_PRE ? gated_chunk(g) : GATED_CHUNK;
    if (row_end - row_begin > 1)
        find_gated_row(row, g, row_begin);
    for (size_t begin = 0, end; begin < dim && !is_given; begin = end) {
        end = chunk_end(begin, dim, most);
        sum_gated(&c, &sums, row, begin, end);
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
                output_gated(&c, row, &f, begin, end);
            }
            bytes->finds_amax = 0;
        }
#endif
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = chunk_end(begin, dim, most);
            if (job->part != NRG_NORM_SUMS)
                output_gated(&c, row, &f, begin, end);
            if (!is_last && !is_given)
                sum_gated(&c, &sums, next, begin, end);
        }
        gated_row *const done = row;
        row = next;
        next = done;
    }
    if (g->options & (OPT_STREAM_R | OPT_STREAM_O | OPT_LINES_O))
        v_nt_fence();
}

#endif
