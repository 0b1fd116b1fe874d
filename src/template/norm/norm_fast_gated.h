/* Short rows and groups of the fast grade with a gate, or an activation on the output: many at a time, so that one call of the
 * activation does the gates of all of them.
 *
 * What is staged, gates, p = r·g(z), or outputs before their activation, lies in one array of floats, a row after the other.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_GATED_H
#define NRG_TEMPLATE_NORM_NORM_FAST_GATED_H

#include "norm_fast_flat.h"
#include "norm_gated.h"

enum { GATED_ELEMENTS = 1024 /* at a time */ };

NRG_INLINE size_t gated_most(size_t dim)
{
    const size_t fit = GATED_ELEMENTS / dim;
    return fit > FAST_ROWS ? FAST_ROWS : fit;
}

NRG_INLINE int gated_short_serves(const nrg_norm_job *job, const norm_options *opt)
{
    /* a row that needs the fallback is begun again: its r must not lie over what that is made of */
    return !V_SMALL && opt->fast && opt->dim <= NORM_BLOCK && job->row_end - job->row_begin > 1 &&
           !(job->r && (job->r == job->x || job->r == job->y));
}

typedef struct gated_some {
    const nrg_norm_job *job;
    nrg_dtype D;
    norm_options opt, of_p; /* of_p: p, as it is staged */
    nrg_norm_job dense;     /* p as rows of floats, or x where its rows lie at one distance: for the loops of norm_fast_short.h */
    int is_dense;
    norm_row row[FAST_ROWS], p[FAST_ROWS];
    fast_some some;
    float *stage;
} gated_some;

/* g(z) of all rows into the stage. */
static void stage_gates(gated_some *g)
{
    const nrg_dtype D = g->D;
    const size_t dim = g->opt.dim, count = (size_t)g->some.count, row = bytes_of(dim, D, 0);
    const char *z = g->row[0].z;
    size_t k = 1;
    while (k < count && g->row[k].z == z + k * row)
        k++;
    if (D != NRG_F32 || k < count) {
        z = (const char *)g->stage;
        for (k = 0; k < count; k++)
            if (D == NRG_F32)
                widen_gate(g->stage + k * dim, g->row[k].z, 0, dim, NRG_F32);
            else if (D == NRG_F16)
                widen_gate(g->stage + k * dim, g->row[k].z, 0, dim, NRG_F16);
            else
                widen_gate(g->stage + k * dim, g->row[k].z, 0, dim, NRG_BF16);
    }
    NRG_PATH_NAME(activate)(g->job->activation, (const float *)z, g->stage, count * dim);
}

/* r, and p = r · g(z) over the gates. Rows that follow each other without a gap are one. */
static void stage_products(gated_some *g)
{
    const size_t dim = g->opt.dim, row = bytes_of(dim, g->D, 0);
    size_t alike = 1;
    while (alike < (size_t)g->some.count && !(g->opt.how & (NORM_ADD_Y | NORM_STORE_R)) &&
           g->row[alike].x == g->row[0].x + alike * row)
        alike++;
    for (size_t k = 0; k < (size_t)g->some.count; k++) {
        g->row[k].gate = g->row[k].stage;
        g->p[k] = (norm_row){.x = (const char *)g->row[k].stage};
        if (k == 0 || k >= alike)
            stage_p(&g->opt, &g->row[k], 0, k == 0 ? alike * dim : dim, g->D);
    }
}

/* Sums and scalars. */
static void sum_some(gated_some *g, nrg_dtype D)
{
    fast_some *const s = &g->some;
    const int pre = g->job->gate == NRG_GATE_PRE;
    if (g->is_dense) {
        const size_t n = s->n, count = (size_t)s->count;
        g->dense.row_end = pre ? count : n + count;
        short_sums(s, &g->dense, pre ? 0 : n, count, pre ? NRG_F32 : D);
        s->n = n;
        return;
    }
    const norm_part part = {.opt = pre ? &g->of_p : &g->opt, .row = pre ? g->p : g->row, .count = s->count, .end = g->opt.dim};
    fast_blocks blocks;
    vd8 t[FAST_ROWS], tt[FAST_ROWS];
    float pilot[FAST_ROWS] = {0};
    double total_t[FAST_ROWS], total_tt[FAST_ROWS];
    sum_fast(&blocks, pilot, t, tt, &part, pre ? NRG_F32 : D);
    for (int k = s->count; k < FAST_ROWS; k++)
        t[k] = tt[k] = tt[0];
    for (int k = 0; k < FAST_ROWS; k += 8) {
        vd8_sum_rows(tt + k, total_tt + k);
        if (g->job->formula.centred)
            vd8_sum_rows(t + k, total_t + k);
    }
    fast_batch_scalars(&s->s, g->job, pilot, total_t, total_tt, s->count);
}

/* Rows from n on, up to the job's end or the first of these many at a time among which some need the fallback: those are the bits
 * of *fallback. Returns the first row of these, or the end. */
static __attribute__((noinline)) size_t gated_short_rows(const nrg_norm_job *job, const norm_options *options, nrg_dtype D,
                                                         size_t n, unsigned *fallback)
{
    float stage[GATED_ELEMENTS];
    gated_some g = {.job = job, .D = D, .opt = *options, .stage = stage};
    const size_t dim = options->dim, most = gated_most(dim);
    const int pre = job->gate == NRG_GATE_PRE;
    const gated whole = {.job = job, .D = D, .opt = *options, .scratch = stage};
    norm_options apply;
    g.some.half = options->half;
    g.of_p = *options;
    g.of_p.how &= NORM_CENTRED;
    if (pre)
        g.opt.how |= NORM_GATE_FIRST;
    else
        g.opt.how |= job->gate == NRG_GATE_POST ? NORM_TIMES_GATE : NORM_TO_STAGE;
    apply = g.opt;
    if (pre)
        apply.how |= NORM_READ_R | NORM_R_F32;
    /* centred rows of 16 bits would be made floats, and there is no room for these on the stack */
    g.is_dense =
        fast_short_knows(options) && (pre || D == NRG_F32 || !(options->how & NORM_CENTRED)) &&
        (pre || (!(options->how & NORM_FIRST) && (job->groups == 1 || job->x_stride == job->groups * bytes_of(dim, D, 0))));
    g.dense = *job;
    g.dense.x_stride = pre ? dim * sizeof *stage : job->groups == 1 ? job->x_stride : bytes_of(dim, D, 0);
    if (pre)
        g.dense.x = (const char *)stage;
    for (; n < job->row_end; n += (size_t)g.some.count) {
        g.some.n = n;
        g.some.count = job->row_end - n < most ? (int)(job->row_end - n) : (int)most;
        rows_at(g.row, job, n, g.some.count, D);
        for (int k = 0; k < g.some.count; k++)
            g.row[k].stage = stage + (size_t)k * dim;
        if (job->gate != NRG_GATE_NONE)
            stage_gates(&g);
        if (pre)
            stage_products(&g);
        sum_some(&g, D);
        for (int k = 0; pre && k < g.some.count; k++)
            g.row[k].r = (char *)g.row[k].stage;
        const norm_part part = {.opt = &apply, .row = g.row, .count = g.some.count, .end = dim};
        fast_apply(&part, &g.some.s, D);
        *fallback = 0;
        for (int k = 0; NRG_RARELY(g.some.s.any) && k < g.some.count; k++)
            *fallback |= g.some.s.needs_fallback[k] != 0 ? 1u << k : 0;
        if (apply.how & NORM_TO_STAGE)
            NRG_PATH_NAME(activate)(job->activation, stage, stage, (size_t)g.some.count * dim);
        for (int k = 0; apply.how & NORM_TO_STAGE && k < g.some.count; k++)
            if (!(*fallback >> k & 1))
                finish_staged(&whole, &g.row[k], 0, dim);
        for (int k = 0; NRG_RARELY(job->mean || job->rstd) && k < g.some.count; k++)
            if (!(*fallback >> k & 1))
                fast_row_finish(job, &g.some.s, k, n + (size_t)k, D);
        if (*fallback)
            break;
    }
    return n;
}

/* The rows that need the fallback go one by one, outside of the frame with the arrays. is_flat: as norm_fast_flat.h does them. */
static void gated_short(const nrg_norm_job *job, const norm_options *options, nrg_dtype D, int is_flat)
{
    const size_t most = is_flat ? flat_most(job, options) : gated_most(options->dim);
    unsigned fallback;
    for (size_t n = job->row_begin; n < job->row_end; n += most) {
        n = is_flat ? flat_some_rows(job, options, n, &fallback) : gated_short_rows(job, options, D, n, &fallback);
        for (size_t k = 0; n < job->row_end && k < most; k++)
            if (fallback >> k & 1)
                gated_rows(job, options, D, n + k, n + k + 1, NULL);
    }
}

#endif
