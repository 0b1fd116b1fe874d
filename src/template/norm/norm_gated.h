/* Rows with a gate, or an activation on the output, for one dtype: included by norm_rows.h.
 *
 * A row goes in chunks of a block. The activation of a chunk is a call of its own on floats (one copy of that code a path, and no
 * sums to spill), so gates, p = r·g(z) and outputs before their activation are staged in f32: the sums and the element pass are
 * those of ungated rows, which read or write the stage.
 *
 *     NRG_GATE_PRE    first pass: g(z) -> p -> sums;  second: p -> o
 *     NRG_GATE_POST   first pass: r -> sums;          second: g(z); r -> o1·g(z) = o
 *     no gate         first pass: r -> sums;          second: r -> o1; g(o1) -> o
 *
 * p is kept between the passes, since g costs more than the norm: 2048 elements on the stack; the rest of an f32 row in a row of
 * o that is not written yet; the rest of a 16-bit row nowhere, it is computed twice.
 *
 * SPDX-License-Identifier: MIT */

#ifndef NRG_TEMPLATE_NORM_NORM_GATED_H
#define NRG_TEMPLATE_NORM_NORM_GATED_H
enum { NORM_STAGE = 4 * NORM_BLOCK };

/* A row's sums, of one kind or the other: stacks are small. */
typedef union gated_sums {
    norm_sums plain;
    careful_sums careful;
} gated_sums;

/* Element 0 of an array whose element `begin` is at p. As a number: the array does not exist down to there. */
NRG_INLINE float *staged_at(float *p, size_t begin) { return (float *)((uintptr_t)p - begin * sizeof *p); }
#endif

/* What gated_rows keeps between its steps. */
typedef struct NORM_(gated) {
    const nrg_norm_job *job;
    norm_options opt;
    norm_options from_p;   /* the element pass over staged p */
    float *stage;          /* p of elements below NORM_STAGE */
    float *scratch;        /* a chunk: a gate, or an output before its activation, or p that is computed again */
    int keeps_p, in_place; /* of elements from NORM_STAGE on: in o */
    char *spare;           /* the row of o they are kept in, where o is not in place */
} NORM_(gated);

/* g(z) of a chunk into the scratch. */
static __attribute__((noinline)) void NORM_(stage_gate)(const NORM_(gated) * g, const norm_row *row, size_t begin, size_t end)
{
    const size_t n = end - begin;
    if (g->opt.prefetch)
        for (size_t b = 0; b < bytes_of(n, NORM_D, 0); b += 64)
            __builtin_prefetch((const void *)((uintptr_t)row->z + bytes_of(end, NORM_D, 0) + b));
    if (NORM_D == NRG_F32) {
        NRG_PATH_NAME(activate)(g->job->activation, (const float *)row->z + begin, g->scratch, n);
        return;
    }
    for (size_t i = begin; i < end; i += VN) {
        vf v[1];
        load_step(v, 1, row->z, i, lanes_at(i, end), NORM_D);
        store_f32_step(v, 1, g->scratch + (i - begin), lanes_at(i, end), 0);
    }
    NRG_PATH_NAME(activate)(g->job->activation, g->scratch, g->scratch, n);
}

/* p = r·g(z) of a chunk, given g(z) in the scratch; p may be the scratch. first: r is stored where it is asked for. */
static __attribute__((noinline)) void NORM_(stage_p)(const NORM_(gated) * g, const norm_row *at, float *p, size_t begin,
                                                     size_t end, int first)
{
    const size_t step = (size_t)V_APPLY * VN;
    const norm_options opt = g->opt;
    const norm_row row = *at;
    const float *gate = g->scratch;
    size_t i = begin;
    for (; i + step <= end; i += step) {
        vf v[V_APPLY], z[V_APPLY];
        if (first && opt.prefetch)
            prefetch_step(V_APPLY, &opt, row, i, NORM_D);
        if (first)
            load_and_store_r(v, V_APPLY, &opt, row, i, step, NORM_D);
        else
            load_r(v, V_APPLY, &opt, row, opt.apply_from, i, step, NORM_D);
        load_step(z, V_APPLY, (const char *)gate, i - begin, step, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < V_APPLY; j++)
            v[j] = v_mul(v[j], z[j]);
        store_f32_step(v, V_APPLY, p + (i - begin), step, 0);
    }
    for (; i < end; i += VN) {
        vf v[1], z[1];
        const size_t n = lanes_at(i, end);
        if (first)
            load_and_store_r(v, 1, &opt, row, i, n, NORM_D);
        else
            load_r(v, 1, &opt, row, opt.apply_from, i, n, NORM_D);
        load_step(z, 1, (const char *)gate, i - begin, n, NRG_F32);
        v[0] = v_mul(v[0], z[0]);
        store_f32_step(v, 1, p + (i - begin), n, 0);
    }
}

/* Where p of a chunk is kept; NULL: nowhere. */
static float *NORM_(kept)(const NORM_(gated) * g, const norm_row *row, size_t begin)
{
    if (begin < NORM_STAGE)
        return g->stage + begin;
    return g->keeps_p ? (float *)(g->in_place ? row->o : g->spare) + begin : NULL;
}

static void NORM_(first_pass)(NORM_(gated) * g, norm_sums *sums, const norm_row *row, size_t begin, size_t end)
{
    if (g->job->gate != NRG_GATE_PRE) {
        NORM_(sum)(sums, &g->opt, row, begin, end);
        return;
    }
    float *p = NORM_(kept)(g, row, begin);
    p = p ? p : g->scratch;
    NORM_(stage_gate)(g, row, begin, end);
    NORM_(stage_p)(g, row, p, begin, end, 1);
    const norm_options opt = {.dim = g->opt.dim, .sum_from = NORM_FROM_X};
    const norm_row staged = {.x = (const char *)staged_at(p, begin)};
    if (g->opt.centred)
        sum_centred_f32(sums, &opt, &staged, begin, end);
    else
        sum_rms_f32(sums, &opt, &staged, begin, end);
}

/* A chunk's row for reading p, which is computed again where it was not kept. */
static norm_row NORM_(p_row)(NORM_(gated) * g, const norm_row *row, size_t begin, size_t end)
{
    norm_row from = *row;
    float *p = NORM_(kept)(g, row, begin);
    if (!p) {
        p = g->scratch;
        NORM_(stage_gate)(g, row, begin, end);
        NORM_(stage_p)(g, row, p, begin, end, 0);
    }
    from.r = (char *)staged_at(p, begin);
    return from;
}

/* The activation of a chunk of staged outputs, + y where it comes after the norm, and the store. */
static __attribute__((noinline)) void NORM_(finish)(const NORM_(gated) * g, const norm_row *at, size_t begin, size_t end)
{
    const size_t step = (size_t)V_APPLY * VN;
    const norm_options opt = g->opt;
    const norm_row row = *at;
    NRG_PATH_NAME(activate)(g->job->activation, g->scratch, g->scratch, end - begin);
    size_t i = begin;
    for (; i < end;) {
        vf v[V_APPLY], y[V_APPLY];
        if (i + step <= end) {
            load_step(v, V_APPLY, (const char *)g->scratch, i - begin, step, NRG_F32);
            if (opt.after) {
                load_step_or_f32(y, V_APPLY, row.y, i, step, NORM_D, opt.y_f32);
                NRG_UNROLL
                for (int j = 0; j < V_APPLY; j++)
                    v[j] = v_add(v[j], y[j]);
            }
            store_step(v, V_APPLY, row.o, i, step, NORM_D, opt.stream_o);
            i += step;
        } else {
            const size_t n = lanes_at(i, end);
            load_step(v, 1, (const char *)g->scratch, i - begin, n, NRG_F32);
            if (opt.after) {
                load_step_or_f32(y, 1, row.y, i, n, NORM_D, opt.y_f32);
                v[0] = v_add(v[0], y[0]);
            }
            store_step(v, 1, row.o, i, n, NORM_D, opt.stream_o);
            i += VN;
        }
    }
}

/* careful: NULL, or the multipliers of a row that needs care; in_double: its elements in double. */
static void NORM_(second_pass)(NORM_(gated) * g, const norm_row *row, const norm_scalars *s, const norm_factors *careful,
                               int in_double, size_t begin, size_t end)
{
    const norm_options *opt = &g->opt;
    norm_row at = *row;
    if (g->job->gate == NRG_GATE_PRE) {
        opt = &g->from_p;
        at = NORM_(p_row)(g, row, begin, end);
    } else {
        at.stage = staged_at(g->scratch, begin);
        if (g->job->gate == NRG_GATE_POST)
            NORM_(stage_gate)(g, row, begin, end);
    }
    if (careful)
        careful_apply(opt, &at, careful, begin, end, NORM_D, in_double);
    else
        NORM_(apply_staged)(opt, &at, s, begin, end);
    if (opt->to_stage)
        NORM_(finish)(g, row, begin, end);
}

/* The multipliers of row n when its plain sums do not serve; the sums are lost. */
static __attribute__((noinline)) int NORM_(gated_careful)(NORM_(gated) * g, norm_factors *f, const norm_row *row,
                                                          gated_sums *sums, size_t n)
{
    const nrg_norm_job *job = g->job;
    norm_statistics stat = first_statistics(&job->formula, sums->plain.total_t, sums->plain.total_tt);
    const double tt = sums->plain.total_tt;
    if (needs_second(&job->formula, &stat)) {
        for (size_t begin = 0, end; begin < job->dim; begin = end) {
            end = job->dim - begin > NORM_BLOCK ? begin + NORM_BLOCK : job->dim;
            norm_row at = job->gate == NRG_GATE_PRE ? NORM_(p_row)(g, row, begin, end) : *row;
            sum_around(&sums->careful, job->gate == NRG_GATE_PRE ? &g->from_p : &g->opt, &at, stat.pilot, begin, end, NORM_D);
        }
        second_statistics(&stat, &job->formula, &sums->careful);
    }
    return careful_factors(f, job, &stat, tt, n);
}

/* As in long_rows one loop does the second pass of a row and the first of the next, chunk by chunk; the second goes first, so
 * that one stage serves both rows. */
static __attribute__((noinline)) void NORM_(gated_rows)(const nrg_norm_job *job, const norm_options *options)
{
    float stage[NORM_STAGE], scratch[NORM_BLOCK];
    NORM_(gated) g = {.job = job, .opt = *options, .stage = stage, .scratch = scratch};
    const size_t dim = job->dim;
    g.opt.gated = job->gate == NRG_GATE_POST;
    g.opt.to_stage = job->gate == NRG_GATE_NONE;
    g.from_p = g.opt;
    g.from_p.apply_from = NORM_FROM_R;
    g.from_p.r_f32 = 1;
    g.in_place = job->o == job->x || job->o == job->y || job->o == job->z;
    g.keeps_p = NORM_D == NRG_F32 && !(job->after && job->o == job->y);
    g.spare = row_at(job, job->row_end - 1, NORM_D).o;

    gated_sums sums;
    norm_scalars s;
    norm_row row = row_at(job, job->row_begin, NORM_D);
    for (size_t begin = 0, end; begin < dim; begin = end) {
        end = dim - begin > NORM_BLOCK ? begin + NORM_BLOCK : dim;
        NORM_(first_pass)(&g, &sums.plain, &row, begin, end);
    }
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        const int last = n + 1 == job->row_end;
        const norm_row next = row_at(job, last ? n : n + 1, NORM_D);
        norm_factors f;
        int careful = 0, in_double = 0;
        row_scalars(&s, job, sums.plain.total_t, sums.plain.total_tt);
        if (s.doubt[0] != 0) {
            careful = 1;
            in_double = NORM_(gated_careful)(&g, &f, &row, &sums, n);
        } else
            store_statistics(job, &s, 0, n);
        for (size_t begin = 0, end; begin < dim; begin = end) {
            end = dim - begin > NORM_BLOCK ? begin + NORM_BLOCK : dim;
            NORM_(second_pass)(&g, &row, &s, careful ? &f : NULL, in_double, begin, end);
            if (!last)
                NORM_(first_pass)(&g, &sums.plain, &next, begin, end);
        }
        row = next;
    }
}
