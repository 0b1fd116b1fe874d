/* Short rows of floats with a gate, or an activation on the output: some rows at a time, with the activation over all of their
 * elements at once.
 *
 *     NRG_GATE_PRE    x·g(z) = p -> stage; sums of p;  p -> o
 *     NRG_GATE_POST   sums of x;                       x -> o1 in the stage; o1·g(z) = o
 *     no gate         sums of x;                       x -> o1 in the stage; g(o1) = o
 *
 * The activation is by far the most of it. So what goes with it, a factor, the loads and the store, is done in its own loop,
 * where it costs next to nothing, and the loops of the norm are left with plain rows. The next rows are summed before these are
 * done: their scalars are there when they are wanted.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_FLAT_H
#define NRG_TEMPLATE_NORM_NORM_FAST_FLAT_H

#include "norm_rows.h"

enum {
    FLAT_ELEMENTS = 2048, /* at a time; half as many where these and the next are staged */
    FLAT_FEW = 8          /* rows at a time that the loops of norm_fast_short.h do not know: stacks are small */
};

/* Rows of floats at one distance from each other, in bytes. */
typedef struct flat_rows {
    char *p;
    size_t distance;
} flat_rows;

/* Some rows, and what is normalized of them. */
typedef struct flat_some {
    fast_some some;
    flat_rows from;
    float *stage;
} flat_some;

typedef struct flat {
    const nrg_norm_job *job;
    norm_options opt;  /* of the loops of the norm */
    nrg_norm_job sums; /* the same rows, as the loops of norm_fast_short.h want them */
    size_t most, row;  /* rows at a time, bytes of one */
    int knows, stream; /* whether those loops serve; whether o goes past the cache */
    int in_o;          /* whether what is staged waits in o, which is not in place */
    int stages_r;      /* whether r waits in the stage */
    unsigned prefetch; /* what silu_times is to ask for */
} flat;

NRG_INLINE size_t flat_distance(const nrg_norm_job *job, size_t stride)
{
    return job->groups == 1 ? stride : job->dim * sizeof(float);
}

/* Rows from n on. Groups of a row lie at one distance with those of the next where nothing is between the rows. */
NRG_INLINE flat_rows flat_rows_at(const nrg_norm_job *job, const char *p, size_t stride, size_t n)
{
    const size_t distance = flat_distance(job, stride);
    return (flat_rows){(char *)((uintptr_t)p + n * distance), distance}; /* p: NULL where the call has none */
}

/* Parts of a step take as long as whole ones: where rows are not whole steps, they have to follow each other without a gap. */
static __attribute__((noinline)) int flat_knows_rows(const nrg_norm_job *job)
{
    const size_t strides[] = {job->x_stride, job->o_stride, job->y ? job->y_stride : job->x_stride,
                              job->z ? job->z_stride : job->x_stride, job->r ? job->r_stride : job->x_stride};
    const int whole = job->groups == 1 && job->dim % (V_ACT * VN) == 0;
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (!whole && strides[i] != job->groups * job->dim * sizeof(float))
            return 0;
    return 1;
}

NRG_INLINE int flat_serves(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    return !V_SMALL && D == NRG_F32 && opt->fast && gate_has_loop(job) && opt->dim <= FLAT_ELEMENTS / 2 &&
           job->row_end - job->row_begin > 1 && !job->after &&
           /* a row that needs the fallback is begun again: its r must not lie over what that is made of */
           !(job->r && (!job->y || job->r == job->x || job->r == job->y)) && flat_knows_rows(job);
}

/* Whether p can wait in o, which is written again while it is still in L1. */
static __attribute__((noinline)) int flat_in_o(const nrg_norm_job *job, const norm_options *opt)
{
    return job->gate == NRG_GATE_PRE && !(opt->how & NORM_STREAM_O) && job->o != job->x && job->o != job->y && job->o != job->z;
}

/* Whether r waits in the stage: it is not stored, or past the cache. */
NRG_INLINE int flat_stages_r(const nrg_norm_job *job, const norm_options *opt) { return job->y && !(opt->how & NORM_READ_R); }

/* Rows at a time: half as many where the stage holds r or p of these and of the next. */
static __attribute__((noinline)) size_t flat_most(const nrg_norm_job *job, const norm_options *opt)
{
    const int two = flat_stages_r(job, opt) || (job->gate == NRG_GATE_PRE && !flat_in_o(job, opt));
    const size_t fit = FLAT_ELEMENTS / (two ? 2 : 1) / opt->dim, most = fast_short_knows(opt) ? FAST_ROWS : FLAT_FEW;
    return fit > most ? most : fit;
}

/* g(in), times the factor where there is one, for rows n to n + count. */
static void flat_activate(const flat *f, flat_rows in, flat_rows factor, flat_rows out, size_t count, int stream)
{
    const unsigned how = (stream ? NRG_TIMES_STREAM : 0) | f->prefetch;
    const nrg_activation g = f->job->activation;
    const size_t row = f->row;
    size_t n = f->opt.dim, calls = count;
    if (in.distance == row && out.distance == row && (!factor.p || factor.distance == row)) {
        n *= count;
        calls = 1;
    }
    for (size_t k = 0; k < calls; k++) {
        float *const to = (float *)(out.p + k * out.distance);
        const float *const z = (const float *)(in.p + k * in.distance);
        if (factor.p)
            NRG_PATH_NAME(silu_times)(z, (const float *)(factor.p + k * factor.distance), to, n, how);
        else if (stream)
            NRG_PATH_NAME(activate_streamed)(g, z, to, n);
        else
            NRG_PATH_NAME(activate)(g, z, to, n);
    }
}

NRG_INLINE void flat_add_step(int G, const float *x, const float *y, float *to, float *streamed, size_t n)
{
    vf v[V_APPLY], other[V_APPLY];
    load_step(v, G, (const char *)x, 0, n, NRG_F32);
    load_step(other, G, (const char *)y, 0, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], other[j]);
    store_f32_step(v, G, to, n, 0);
    if (streamed)
        store_f32_step(v, G, streamed, n, 1);
}

/* r = x + y; past the cache it goes to the stage as well. */
static __attribute__((noinline)) void flat_add(const flat *f, flat_some *b, size_t n)
{
    const nrg_norm_job *job = f->job;
    const flat_rows x = b->from, y = flat_rows_at(job, job->y, job->y_stride, n), r = flat_rows_at(job, job->r, job->r_stride, n);
    const flat_rows stage = {(char *)b->stage, f->row}, to = f->stages_r ? stage : r;
    const int streams = f->stages_r && job->r;
    size_t dim = f->opt.dim, calls = (size_t)b->some.count;
    b->from = to;
    if (x.distance == f->row && y.distance == f->row && to.distance == f->row && (!streams || r.distance == f->row)) {
        dim *= calls;
        calls = 1;
    }
    for (size_t k = 0; k < calls; k++) {
        const float *const from = (const float *)(x.p + k * x.distance), *const other = (const float *)(y.p + k * y.distance);
        float *const first = (float *)(to.p + k * to.distance), *const second = streams ? (float *)(r.p + k * r.distance) : NULL;
        const size_t step = (size_t)V_APPLY * VN;
        size_t i = 0;
        for (; i + step <= dim; i += step)
            flat_add_step(V_APPLY, from + i, other + i, first + i, streams ? second + i : NULL, step);
        for (; i < dim; i += VN)
            flat_add_step(1, from + i, other + i, first + i, streams ? second + i : NULL, lanes_at(i, dim));
    }
}

/* Sums and scalars of rows that the loops of norm_fast_short.h do not know: few, or seldom. */
static __attribute__((noinline)) void flat_sum_any(const flat *f, flat_some *b)
{
    norm_row row[FLAT_FEW];
    const norm_part part = {.opt = &f->opt, .row = row, .count = b->some.count, .end = f->opt.dim};
    fast_scalars *const s = &b->some.s;
    fast_blocks blocks;
    vd8 t[FLAT_FEW], tt[FLAT_FEW];
    float pilot[FAST_ROWS] = {0};
    for (int k = 0; k < part.count; k++)
        row[k].x = b->from.p + (size_t)k * b->from.distance;
    sum_fast(&blocks, pilot, t, tt, &part, NRG_F32);
    s->any = 0;
    for (int k = 0; k < part.count; k++) {
        fast_scalars_alone(s, f->job, pilot[k], f->job->formula.centred ? vd8_sum(t + k) : 0, vd8_sum(tt + k), k);
        s->any |= s->needs_fallback[k] != 0;
    }
}

/* Where what is staged of rows n on waits. */
static flat_rows flat_stage(const flat *f, flat_some *b, size_t n)
{
    if (f->in_o)
        return flat_rows_at(f->job, f->job->o, f->job->o_stride, n);
    return (flat_rows){(char *)b->stage, f->row};
}

/* Rows from n on, up to their scalars. */
static void flat_begin(flat *f, flat_some *b, size_t n)
{
    const nrg_norm_job *job = f->job;
    fast_some *const some = &b->some;
    const size_t left = job->row_end - n, count = left < f->most ? left : f->most;
    some->count = (int)count;
    b->from = flat_rows_at(job, job->x, job->x_stride, n);
    if (job->y)
        flat_add(f, b, n);
    if (job->gate == NRG_GATE_PRE) {
        const flat_rows stage = flat_stage(f, b, n);
        flat_activate(f, flat_rows_at(job, job->z, job->z_stride, n), b->from, stage, count, 0);
        b->from = stage;
    }
    if (f->knows) {
        f->sums.x = b->from.p;
        f->sums.x_stride = b->from.distance;
        f->sums.row_end = count;
        short_sums(some, &f->sums, 0, count, NRG_F32);
    } else
        flat_sum_any(f, b);
    some->n = n;
}

/* The norm of groups of 16, which have little but what is done once for each. Not centred, and with a weight alone. */
static __attribute__((noinline)) void flat_least(const flat *f, const flat_some *b, flat_rows to)
{
    const nrg_norm_job *job = f->job;
    const float *const factor = b->some.s.factor, *from = (const float *)b->from.p;
    const size_t all = job->groups * FAST_LEAST;
    const int stream = (f->opt.how & NORM_STREAM_O) != 0;
    size_t at = b->some.n % job->groups * FAST_LEAST;
    for (int k = 0; k < b->some.count; k++) {
        const vf times = v_set1(factor[k]);
        const float *const w = (const float *)job->w + at;
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++) {
            const vf v = v_mul(v_mul(v_ld_f32(from + j * VN), times), v_ld_f32(w + j * VN));
            store_f32_step(&v, 1, (float *)to.p + j * VN, VN, stream);
        }
        from = (const float *)((const char *)from + b->from.distance);
        to.p += to.distance;
        at += FAST_LEAST;
        at = at == all ? 0 : at;
    }
}

/* The norm of the rows, but for those whose scalars need the fallback: these are returned as bits. */
static __attribute__((noinline)) unsigned flat_elements(const flat *f, const flat_some *b, flat_rows to)
{
    const nrg_norm_job *job = f->job;
    const norm_options *opt = &f->opt;
    const fast_scalars *s = &b->some.s;
    const size_t dim = opt->dim, step = V_APPLY * VN, groups = job->groups;
    const unsigned how = opt->how, may = NORM_CENTRED | NORM_W_OFFSET | NORM_STREAM_O;
    const int any = s->any, count = b->some.count;
    size_t group = groups > 1 ? b->some.n % groups : 0;
    unsigned fallback = 0;
    if (dim == FAST_LEAST && !(how & (NORM_CENTRED | NORM_W_OFFSET)) && !any && job->w && !job->b) {
        flat_least(f, b, to);
        return 0;
    }
    norm_row row = {.x = b->from.p, .w = job->w, .b = job->b, .o = to.p};
    if (row.w)
        row.w += group * f->row;
    if (row.b)
        row.b += group * f->row;
    for (int k = 0; k < count; k++) {
        if (NRG_RARELY(any && s->needs_fallback[k] != 0))
            fallback |= 1u << k;
        else {
            const fast_factors x = fast_factors_of(s, k);
            size_t i = 0;
            for (; i + step <= dim; i += step)
                fast_apply_step(V_APPLY, options_in_register(how, may) | NORM_W_F32, &opt->w_offset, row, &x, i, step, NRG_F32);
            for (; i + VN <= dim; i += VN)
                fast_apply_step(1, options_in_register(how, may) | NORM_W_F32, &opt->w_offset, row, &x, i, VN, NRG_F32);
            if (NRG_RARELY(i < dim)) {
                const fast_factors copy = x;
                const norm_row at = row;
                fast_apply_rest(opt, &at, &copy, i, dim, NRG_F32);
            }
        }
        row.x += b->from.distance;
        row.o += to.distance;
        if (groups > 1) {
            const size_t back = ++group == groups ? groups * f->row : 0;
            group = back ? 0 : group;
            if (row.w)
                row.w = row.w + f->row - back;
            if (row.b)
                row.b = row.b + f->row - back;
        }
    }
    return fallback;
}

/* The rest of some rows, but for those whose bits are returned. */
static unsigned flat_end(const flat *f, flat_some *b)
{
    const nrg_norm_job *job = f->job;
    const size_t n = b->some.n, count = (size_t)b->some.count;
    const flat_rows o = flat_rows_at(job, job->o, job->o_stride, n), stage = flat_stage(f, b, n);
    const int pre = job->gate == NRG_GATE_PRE;
    const unsigned fallback = flat_elements(f, b, pre ? o : stage);
    if (!pre) {
        const int post = job->gate == NRG_GATE_POST;
        flat_rows in = post ? flat_rows_at(job, job->z, job->z_stride, n) : stage, factor = post ? stage : (flat_rows){NULL, 0},
                  out = o;
        if (!fallback)
            flat_activate(f, in, factor, out, count, f->stream);
        for (size_t k = 0; NRG_RARELY(fallback != 0) && k < count; k++) {
            if (!(fallback >> k & 1))
                flat_activate(f, in, factor, out, 1, f->stream);
            in.p += in.distance;
            factor.p = post ? factor.p + factor.distance : NULL;
            out.p += out.distance;
        }
    }
    for (size_t k = 0; NRG_RARELY(job->mean || job->rstd) && k < count; k++)
        if (!(fallback >> k & 1))
            fast_row_finish(job, &b->some.s, (int)k, n + k, NRG_F32);
    return fallback;
}

/* Rows from n on, up to the job's end or the first of these many at a time among which some need the fallback: those are the bits
 * of *fallback. Returns the first row of these, or the end. */
static __attribute__((noinline)) size_t flat_some_rows(const nrg_norm_job *job, const norm_options *options, size_t n,
                                                       unsigned *fallback)
{
    const int pre = job->gate == NRG_GATE_PRE;
    _Alignas(64) float stage[FLAT_ELEMENTS]; /* a vector in two lines takes twice as long */
    flat_some both[2], *now = &both[0], *next = &both[1];
    flat f = {.job = job,
              .opt = *options,
              .sums = *job,
              .most = flat_most(job, options),
              .row = options->dim * sizeof(float),
              .knows = fast_short_knows(options),
              .stream = (options->how & NORM_STREAM_O) != 0,
              .in_o = flat_in_o(job, options),
              .stages_r = flat_stages_r(job, options),
              .prefetch = !(options->how & NORM_PREFETCH) ? 0
                          : pre && !job->y                ? NRG_TIMES_PREFETCH_IN | NRG_TIMES_PREFETCH_FACTOR
                                                          : NRG_TIMES_PREFETCH_IN};
    f.opt.how &= NORM_CENTRED | NORM_W_OFFSET | NORM_W_F32 | (pre ? NORM_STREAM_O : 0);
    now->stage = stage;
    next->stage = stage + (f.stages_r || (pre && !f.in_o) ? FLAT_ELEMENTS / 2 : 0);
    flat_begin(&f, now, n);
    for (;;) {
        const size_t end = now->some.n + (size_t)now->some.count;
        if (end != job->row_end)
            flat_begin(&f, next, end);
        *fallback = flat_end(&f, now);
        if (*fallback)
            return now->some.n;
        if (end == job->row_end)
            return end;
        flat_some *const done = now;
        now = next;
        next = done;
    }
}

#endif
