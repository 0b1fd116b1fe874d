/* Rows with a gate, or an activation on the output; and rows of any kind that are read or stored in f32 beside 16 bits, or go in
 * parts (nrg/norm_parts.h), whose first or second pass is left out here.
 *
 * A row goes in chunks of a block. The activation of a chunk is a call of its own on floats (one copy of that code a path, and no
 * sums to spill), so gates, p = r·g(z) and outputs before their activation are staged in f32, which the loops of ungated rows
 * read or write.
 *
 *     NRG_GATE_PRE    first pass: g(z); r·g(z) = p -> sums;  second: p -> o
 *     NRG_GATE_POST   first pass: r -> sums;                 second: g(z); r -> o1·g(z) = o
 *     no gate         first pass: r -> sums;                 second: r -> o1; g(o1) -> o
 *
 * With a quantized output all of them end in the stage, and from there become bytes.
 *
 * p is kept between the passes, since g costs more than the norm: 2048 elements on the stack; the rest of an f32 row in a row of
 * o that is not written yet; the rest of a 16-bit row nowhere, it is computed twice.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_GATED_H
#define NRG_TEMPLATE_NORM_NORM_GATED_H

#include "../../job/quantize.h"
#include "norm_rows.h"

enum { NORM_STAGE = (V_SMALL ? 3 : 4) * NORM_BLOCK }; /* a small path has more in memory elsewhere, and stacks are small */

/* A row's sums, of one kind or the other: stacks are small. */
typedef union gated_sums {
    norm_sums plain;
    fallback_sums fallback;
} gated_sums;

/* Element 0 of an array whose element `begin` is at p. As a number: the array does not exist down to there. */
NRG_INLINE float *staged_at(float *p, size_t begin) { return (float *)((uintptr_t)p - begin * sizeof *p); }

/* A row whose outputs become bytes; with a scale for all of them, its largest magnitude first. */
typedef struct gated_quant {
    nrg_quant_row to;
    float amax;
    int finding;
    int from_r; /* r has been stored, and x may have been where it is */
} gated_quant;

/* What gated_rows keeps between its steps. */
typedef struct gated {
    const nrg_norm_job *job;
    nrg_dtype D;
    norm_options opt;
    norm_options of_p;          /* the fast grade sums p where it was staged, as floats */
    norm_options from_p, again; /* the second pass over p that was kept, and over p that was not */
    float *stage;               /* p of elements below NORM_STAGE */
    float *scratch;             /* a chunk: a gate, or an output before its activation, or p that is not kept */
    int flat;              /* floats: the activation's own loop does what goes with it, and the norm's are those of plain rows */
    int from_r;            /* r is read, and x and y are not */
    size_t staged;         /* elements of p that the stage keeps */
    int keeps_p, in_place; /* of elements after those: in o */
    char *spare;           /* the row of o they are kept in, where o is not in place */
    gated_quant *quant;    /* NULL: outputs are o */
} gated;

NRG_INLINE void widen_gate(float *to, const char *z, size_t begin, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        v_st_f32(to + i, load_whole(z, begin + i, D));
    if (i < n)
        store_lanes(to + i, load_part(z, begin + i, n - i, D), n - i);
}

/* g(z) of a chunk into the scratch. */
static __attribute__((noinline)) void stage_gate(const gated *g, const norm_row *row, size_t begin, size_t end)
{
    const nrg_dtype D = g->D;
    const size_t n = end - begin;
    const float *z = (const float *)row->z + begin;
    if (g->opt.how & NORM_PREFETCH)
        for (size_t b = 0; b < bytes_of(n, D, 0); b += 64)
            __builtin_prefetch((const void *)((uintptr_t)row->z + bytes_of(end, D, 0) + b));
    if (D != NRG_F32) {
        if (D == NRG_F16)
            widen_gate(g->scratch, row->z, begin, n, NRG_F16);
        else
            widen_gate(g->scratch, row->z, begin, n, NRG_BF16);
        z = g->scratch;
    }
    NRG_PATH_NAME(activate)(g->job->activation, z, g->scratch, n);
}

/* Where p of a chunk is kept; NULL: nowhere. */
static float *kept(const gated *g, const norm_row *row, size_t begin)
{
    if (begin < g->staged)
        return g->stage + begin;
    return g->keeps_p ? (float *)(g->in_place ? row->o : g->spare) + begin : NULL;
}

/* r and p of elements, stored and staged. */
static __attribute__((noinline)) void stage_p(const norm_options *opt, const norm_row *row, size_t begin, size_t end, nrg_dtype D)
{
    const norm_row at = *row;
    const unsigned how = opt->how & NORM_ANY;
    size_t i = begin;
    for (; i + (size_t)V_APPLY * VN <= end; i += (size_t)V_APPLY * VN) {
        vf v[V_APPLY];
        load_first(v, V_APPLY, how, at, i, (size_t)V_APPLY * VN, D);
    }
    for (; i < end; i += VN) {
        vf v;
        load_first(&v, 1, how, at, i, lanes_at(i, end), D);
    }
}

static void first_pass(const gated *g, norm_sums *sums, norm_row *row, size_t begin, size_t end)
{
    norm_part part = {.opt = &g->opt, .row = row, .count = 1, .begin = begin, .end = end};
    nrg_dtype D = g->D;
    norm_row staged;
    if (g->from_r) {
        staged = (norm_row){.x = row->r};
        part.opt = &g->of_p;
        part.row = &staged;
        D = g->job->r_f32 ? NRG_F32 : D;
    }
    if (g->job->gate == NRG_GATE_PRE) {
        float *p = kept(g, row, begin);
        if (g->flat && !(g->opt.how & (NORM_ADD_Y | NORM_STORE_R))) {
            NRG_PATH_NAME(silu_times)
            ((const float *)row->z + begin, (const float *)row->x + begin, p, end - begin,
             g->opt.how & NORM_PREFETCH ? NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR : 0);
            staged = (norm_row){.x = (const char *)staged_at(p, begin)};
            part.opt = &g->of_p;
            part.row = &staged;
            sum_one(sums, &part, NRG_F32);
            return;
        }
        stage_gate(g, row, begin, end);
        row->gate = staged_at(g->scratch, begin);
        row->stage = staged_at(p ? p : g->scratch, begin);
        if (g->opt.fast) {
            stage_p(&g->opt, row, begin, end, D);
            staged = (norm_row){.x = (const char *)row->stage};
            part.opt = &g->of_p;
            part.row = &staged;
            D = NRG_F32;
        }
    }
    sum_one(sums, &part, D);
}

/* Makes a chunk of a row ready to be read again, and the gate that this wants; r: where the row has its r. Returns the options.
 */
static const norm_options *read_again(const gated *g, norm_row *row, char *r, size_t begin, size_t end)
{
    float *p = g->job->gate == NRG_GATE_PRE ? kept(g, row, begin) : NULL;
    row->stage = staged_at(g->scratch, begin);
    row->r = r;
    if (p) {
        row->r = (char *)staged_at(p, begin);
        return &g->from_p;
    }
    if (g->job->gate != NRG_GATE_NONE)
        stage_gate(g, row, begin, end);
    return &g->again;
}

/* Whole steps of staged outputs, + y where it comes after the norm, and the store; returns where they end. */
NRG_INLINE size_t finish_steps(const norm_row *at, unsigned how, int o_f32, size_t begin, size_t end, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    const norm_row row = *at;
    size_t i = begin;
    for (; i + step <= end; i += step) {
        const unsigned now = options_in_register(how, NORM_ANY);
        vf v[V_APPLY];
        load_step(v, V_APPLY, (const char *)row.stage, i, step, NRG_F32);
        if (NRG_RARELY(now & NORM_AFTER))
            add_y(v, V_APPLY, now, row, i, step, D);
        if (D != NRG_F32 && o_f32)
            store_step(v, V_APPLY, row.o, i, step, NRG_F32, 0);
        else
            store_step(v, V_APPLY, row.o, i, step, D, now & NORM_STREAM_O);
    }
    return i;
}

/* What comes after the activation of staged outputs. */
static __attribute__((noinline)) void finish_staged(const gated *g, const norm_row *row, size_t begin, size_t end)
{
    const nrg_dtype D = g->D;
    const unsigned how = g->opt.how;
    size_t i;
    if (D == NRG_F32)
        i = finish_steps(row, how, g->job->o_f32, begin, end, NRG_F32);
    else if (D == NRG_F16)
        i = finish_steps(row, how, g->job->o_f32, begin, end, NRG_F16);
    else
        i = finish_steps(row, how, g->job->o_f32, begin, end, NRG_BF16);
    for (; i < end; i += VN) {
        const size_t n = lanes_at(i, end);
        vf v = load_lanes(row->stage + i, n);
        if (how & NORM_AFTER)
            add_y(&v, 1, how, *row, i, n, D);
        if (g->job->o_f32)
            store_step(&v, 1, row->o, i, n, NRG_F32, 0);
        else
            store_step(&v, 1, row->o, i, n, D, how & NORM_STREAM_O);
    }
}

#ifndef NRG_NO_QUANTIZE
static __attribute__((noinline)) void finish_quantized(const gated *g, const norm_row *row, size_t begin, size_t end)
{
    gated_quant *const q = g->quant;
    const size_t n = end - begin;
    if (g->job->gate == NRG_GATE_NONE && g->job->activation != NRG_ACT_IDENTITY)
        NRG_PATH_NAME(activate)(g->job->activation, g->scratch, g->scratch, n);
    for (size_t i = begin; g->opt.how & NORM_AFTER && i < end; i += VN) {
        const size_t lanes = lanes_at(i, end);
        vf v = load_lanes(row->stage + i, lanes);
        add_y(&v, 1, g->opt.how, *row, i, lanes, g->D);
        store_lanes(row->stage + i, v, lanes);
    }
    if (q->finding)
        q->amax = NRG_PATH_NAME(amax)(g->scratch, n, q->amax);
    else
        NRG_PATH_NAME(quantize_floats)(&q->to, g->scratch, begin, n, q->amax);
}

static void begin_quantized(gated_quant *q, const nrg_norm_quant *to, size_t n)
{
    const size_t together = nrg_format_rows(to->format);
    q->to = (nrg_quant_row){.q = to->q + n / together * to->q_stride,
                            .scales = to->scales ? (float *)(to->scales + n * to->scales_stride) : NULL,
                            .row = n % together,
                            .format = to->format,
                            .rounding = to->rounding};
    q->amax = 0;
    q->finding = nrg_format_block(to->format) == 0;
}
#endif

/* The activation of a chunk of staged outputs, and what comes after it. */
static void finish(const gated *g, const norm_row *row, size_t begin, size_t end)
{
#ifndef NRG_NO_QUANTIZE
    if (NRG_RARELY(g->quant)) {
        finish_quantized(g, row, begin, end);
        return;
    }
#endif
    if (g->job->activation != NRG_ACT_IDENTITY)
        NRG_PATH_NAME(activate)(g->job->activation, g->scratch, g->scratch, end - begin);
    finish_staged(g, row, begin, end);
}

/* The second pass over floats. */
static __attribute__((noinline)) void second_flat(const gated *g, const norm_row *row, char *r, const fast_scalars *s,
                                                  size_t begin, size_t end)
{
    const nrg_activation activation = g->job->activation;
    const size_t n = end - begin;
    const int pre = g->job->gate == NRG_GATE_PRE, stream = (g->opt.how & NORM_STREAM_O) != 0;
    norm_row plain = {.x = row->x, .w = row->w, .b = row->b, .o = row->o};
    norm_options opt = g->opt;
    opt.how &= NORM_CENTRED | NORM_W_F32 | NORM_W_OFFSET | (pre ? NORM_STREAM_O : 0);
    const norm_part part = {.opt = &opt, .row = &plain, .count = 1, .begin = begin, .end = end};
    float *const o = (float *)row->o + begin;
    if (pre)
        plain.x = (const char *)staged_at(kept(g, row, begin), begin);
    else {
        if (g->opt.how & NORM_READ_R)
            plain.x = r;
        plain.o = (char *)staged_at(g->scratch, begin);
    }
    fast_apply(&part, s, NRG_F32);
    if (g->job->gate == NRG_GATE_POST) {
        NRG_PATH_NAME(silu_times)
        ((const float *)row->z + begin, g->scratch, o, n,
         (stream ? NRG_TIMES_STREAM : 0) | (g->opt.how & NORM_PREFETCH ? NRG_TIMES_PREFETCH_IN : 0));
    } else if (!pre && stream)
        NRG_PATH_NAME(activate_streamed)(activation, g->scratch, o, n);
    else if (!pre)
        NRG_PATH_NAME(activate)(activation, g->scratch, o, n);
}

/* fallback: NULL, or the multipliers of a row that needs the fallback; in_double: its elements in double. */
static void second_pass(const gated *g, norm_row *row, char *r, const some_scalars *s, const norm_factors *fallback,
                        int in_double, size_t begin, size_t end)
{
    if (g->flat && !fallback) {
        second_flat(g, row, r, &s->fast, begin, end);
        return;
    }
    const norm_options *opt = read_again(g, row, r, begin, end);
    const norm_part part = {.opt = opt, .row = row, .count = 1, .begin = begin, .end = end};
    if (fallback)
        apply_rest(opt, row, fallback, begin, end, g->D, in_double);
    else
        apply_any(&part, s, g->D);
    if (opt->how & NORM_TO_STAGE)
        finish(g, row, begin, end);
}

static void gated_sum_around(const gated *g, norm_row *row, fallback_sums *sums, double pilot)
{
    char *const r = row->r;
    for (size_t begin = 0, end; begin < g->job->dim; begin = end) {
        end = chunk_end(begin, g->job->dim, NORM_BLOCK);
        const norm_options *opt = read_again(g, row, r, begin, end);
        sum_around(sums, opt, row, pilot, begin, end, g->D);
    }
    row->r = r;
}

/* What a row's elements are made of, for nrg_norm_elements. */
static void keep_statistics(const nrg_norm_job *job, size_t n, double mean, double low, double variance, enum nrg_norm_way way)
{
    const nrg_norm_formula *f = &job->formula;
    const double inverse = isnan(variance) ? (double)NAN : inverse_divisor(f->divisor, f->eps, variance);
    job->statistics[n] = (nrg_row_statistics){mean, low, variance, inverse, way};
}

/* The same of a row whose plain sums serve. */
static __attribute__((noinline)) void keep_plain_statistics(const gated *g, const norm_sums *sums, size_t n)
{
    const nrg_norm_formula *f = &g->job->formula;
    const double t = f->centred ? value_of(&sums->t) : 0, square = value_of(&sums->tt) * f->inv_dim;
    const double mean = g->opt.fast ? (f->centred ? (double)sums->pilot : 0) : t / f->d;
    const double low = g->opt.fast ? t * f->inv_dim : 0, lost = g->opt.fast ? low : mean;
    keep_statistics(g->job, n, mean, low, square - lost * lost, g->opt.fast ? NRG_NORM_FAST : NRG_NORM_EXACT);
}

/* How a row with such statistics is done in a job of this grade; factor: (c/√d)/s. Of statistics from elsewhere nothing is known
 * but themselves: the fast grade takes floats where these have room, the exact one double. */
NRG_INLINE enum nrg_norm_way way_of_given(uint64_t elements, int fast, double inverse, double factor)
{
    if (elements == NRG_NORM_EXACT || elements == NRG_NORM_DOUBLE || (elements == NRG_NORM_FAST && fast))
        return (enum nrg_norm_way)elements;
    const double squared = factor * factor;
    const int room = (inverse <= 0x1p40) & (squared >= 0x1p-80) & (squared <= 0x1p80);
    return fast && room ? NRG_NORM_FAST : NRG_NORM_DOUBLE;
}

/* The multipliers of row n from given statistics. Returns how its elements are to be done. */
static __attribute__((noinline)) enum nrg_norm_way given_factors(some_scalars *s, norm_factors *f, const gated *g, size_t n)
{
    const nrg_norm_formula *formula = &g->job->formula;
    const nrg_row_statistics *given = &g->job->statistics[n];
    const double pilot = formula->centred ? given->mean : 0, low = formula->centred ? given->mean_low : 0;
    const double mean = pilot + low, factor = formula->k * given->rstd;
    const float hi = (float)factor, lo = (float)(factor - (double)hi), minus_mean = (float)(-mean * factor);
    const enum nrg_norm_way way = way_of_given(given->opaque, g->opt.fast, given->rstd, factor);
    if (g->opt.fast) {
        const float centre = (float)mean;
        s->fast.factor[0] = hi;
        s->fast.centre[0] = centre;
        s->fast.shift[0] = (float)((((double)centre - pilot) - low) * factor);
        s->fast.needs_fallback[0] = 0;
    } else {
        s->exact.hi[0] = hi;
        s->exact.lo[0] = lo;
        s->exact.minus_mean[0] = minus_mean;
        s->exact.needs_fallback[0] = 0;
    }
    *f = (norm_factors){v_set1(hi), v_set1(lo), v_set1(minus_mean), vd_set1(pilot), vd_set1(low), vd_set1(factor)};
    return way;
}

/* The multipliers of row n when its plain sums do not serve; the sums are overwritten. */
static __attribute__((noinline)) int gated_fallback(const gated *g, norm_factors *f, norm_row *row, gated_sums *sums, size_t n)
{
    const nrg_norm_job *job = g->job;
    double t = value_of(&sums->plain.t), tt = value_of(&sums->plain.tt);
    if (g->opt.fast) {
        gated_sum_around(g, row, &sums->fallback, 0);
        t = value_of(&sums->fallback.t);
        tt = value_of(&sums->fallback.tt);
    }
    norm_statistics stat = first_statistics(&job->formula, t, tt);
    if (needs_second(&job->formula, &stat)) {
        gated_sum_around(g, row, &sums->fallback, stat.pilot);
        second_statistics(&stat, &job->formula, &sums->fallback);
    }
    const int in_double = fallback_factors(f, job, &stat, tt, n);
    if (job->statistics)
        keep_statistics(job, n, stat.pilot, stat.offset, stat.variance, in_double ? NRG_NORM_DOUBLE : NRG_NORM_EXACT);
    return in_double;
}

/* As in long_rows one loop does the second pass of a row and the first of the next, chunk by chunk; the second goes first, so
 * that one stage serves both rows. */
static __attribute__((noinline)) void gated_rows(const nrg_norm_job *job, const norm_options *options, nrg_dtype D,
                                                 size_t row_begin, size_t row_end, gated_quant *quant)
{
    _Alignas(64) float stage[NORM_STAGE], scratch[NORM_BLOCK]; /* a vector in two lines takes twice as long */
    gated g = {.job = job, .D = D, .opt = *options, .stage = stage, .scratch = scratch, .quant = quant};
    const size_t dim = job->dim;
    const int sums_only = job->part == NRG_NORM_SUMS, given = job->part == NRG_NORM_APPLY, whole = !sums_only && !given;
    const int staged = quant || job->gate != NRG_GATE_NONE || job->activation != NRG_ACT_IDENTITY || job->o_f32;
    if (job->gate == NRG_GATE_PRE)
        g.opt.how |= NORM_GATE_FIRST;
    else
        g.opt.how |= job->gate == NRG_GATE_POST ? NORM_TIMES_GATE : staged ? NORM_TO_STAGE : 0;
    g.from_r = job->from_r || (quant && quant->from_r);
    if (g.from_r)
        g.opt.how = (g.opt.how & ~(unsigned)(NORM_STORE_R | NORM_STREAM_R | NORM_ADD_Y)) | NORM_READ_R;
    if (quant)
        g.opt.how |= NORM_TO_STAGE;
    g.again = g.from_p = g.of_p = g.opt;
    g.of_p.how &= NORM_CENTRED;
    g.again.how |= job->gate == NRG_GATE_PRE ? NORM_GATE_AGAIN : 0;
    g.from_p.how |= NORM_READ_R | NORM_R_F32;
    g.in_place = job->o == job->x || job->o == job->y || job->o == job->z;
    g.staged = given ? 0 : NORM_STAGE;
    g.keeps_p = whole && D == NRG_F32 && !quant && !(job->after && job->o == job->y);
    g.spare = row_at(job, row_end - 1, D).o;
    /* a gate after the norm is faster staged where several rows are in cache: 1.04 times; elsewhere it takes 1.24 to 1.39 times
     * as long (Zen 4), of a row alone 1.04 to 1.11 times with AVX-512 and 0.97 to 1.05 with AVX2 (Granite Rapids) */
    g.flat = whole && D == NRG_F32 && g.opt.fast && !job->after && !quant && gate_has_loop(job) &&
             (job->gate == NRG_GATE_PRE || g.opt.how & NORM_READ_R || !(g.opt.how & NORM_ADD_Y)) &&
             (job->gate != NRG_GATE_POST || g.opt.how & NORM_PREFETCH || row_end - row_begin == 1);

    /* of a row alone p goes at once that far: a call of the activation for each block waits for its last divisions. 1x4096: 1.08
     * × with AVX-512, 1.05 with AVX2 (Granite Rapids). Sums end with a segment, which is made of whole pieces. */
    const size_t most = !staged ? NORM_SEGMENT
                        : NORM_SEGMENT % NORM_STAGE == 0 && g.flat && job->gate == NRG_GATE_PRE &&
                                !(g.opt.how & (NORM_ADD_Y | NORM_STORE_R)) && row_end - row_begin == 1
                            ? NORM_STAGE
                            : NORM_BLOCK;
    gated_sums sums;
    some_scalars s;
    sums.plain.pilot = 0;
    norm_row rows[2], *row = &rows[0], *next = &rows[1];
    *row = row_at(job, row_begin, D);
    for (size_t begin = 0, end; begin < dim && !given; begin = end) {
        end = chunk_end(begin, dim, most);
        first_pass(&g, &sums.plain, row, begin, end);
    }
    for (size_t n = row_begin; n < row_end; n++) {
        const int last = n + 1 == row_end;
        if (!last)
            *next = row_at(job, n + 1, D);
        norm_factors f;
        int fallback = 0, in_double = 0;
        if (given) {
            const enum nrg_norm_way way = given_factors(&s, &f, &g, n);
            in_double = way == NRG_NORM_DOUBLE;
            fallback = in_double || (way == NRG_NORM_EXACT && g.opt.fast);
        } else {
            row_scalars(&s, job, &g.opt, sums.plain.pilot, value_of(&sums.plain.t), value_of(&sums.plain.tt));
            if (needs_fallback(&s, &g.opt, 0)) {
                fallback = 1;
                in_double = gated_fallback(&g, &f, row, &sums, n);
            } else {
                finish_any(job, &s, &g.opt, 0, 0, 0, n, D);
                if (job->statistics)
                    keep_plain_statistics(&g, &sums.plain, n);
            }
        }
        char *r = row->r;
#ifndef NRG_NO_QUANTIZE
        if (quant) {
            begin_quantized(quant, job->quant, n);
            for (size_t begin = 0, end; quant->finding && begin < dim; begin = end) {
                end = chunk_end(begin, dim, most);
                second_pass(&g, row, r, &s, fallback ? &f : NULL, in_double, begin, end);
            }
            quant->finding = 0;
        }
#endif
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = chunk_end(begin, dim, most);
            if (!sums_only)
                second_pass(&g, row, r, &s, fallback ? &f : NULL, in_double, begin, end);
            if (!last && !given)
                first_pass(&g, &sums.plain, next, begin, end);
        }
        norm_row *done = row;
        row = next;
        next = done;
    }
}

#endif
