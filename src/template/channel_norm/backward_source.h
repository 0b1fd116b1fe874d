/* The source of a backward pass: its job, what is known of its sets, and do1 = d_o · g′(o1 + y).
 *
 * do1 is d_o as it is in memory, or a chunk at a time staged in f32: converted, and if there is an activation multiplied by its
 * slope at o1 + y, which the loops of the forward pass compute.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_SOURCE_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_SOURCE_H

#include "../../exact/channel_sums.h"
#include "../../job/activation.h"
#include "source.h"
#include "sum.h"
#include "total.h"

enum {
    BACKWARD_COLUMNS = 64,                 /* at once: half of the forward pass's, since stacks are small */
    BACKWARD_ROOM = BACKWARD_COLUMNS + VN, /* for their sums: a vector may begin with the last of them */
    DO1_STAGE = 256,                       /* floats: full steps of the activations; few, since two buffers are on the stack */
    DO1_KEPT = 2048 /* elements of do1 that go to where it is kept: with what it is computed from, half of an L1 */
};

typedef struct backward_pass {
    const nrg_channel_norm_backward_job *job;
    nrg_dtype D;
    size_t size; /* of an element */
    int plain_weights;
    nrg_segments cut;
    int planes;   /* the source; otherwise columns */
    int staged;   /* do1 is not d_o as it is in memory */
    int has_loop; /* do1 of plain channels has a loop below */
    int stream_dx, stream_dy;
    /* where do1 is kept in f32 between sums and elements, so that activations are computed once: an f32 output whose place is not
     * read any more; or NULL */
    char *kept;
    size_t kept_stride;
} backward_pass;

/* What is known of a set: at first its statistics. */
typedef struct backward_known {
    nrg_channel_statistics stat;
    double beta, exact_gamma; /* then these, from which the rest follows */
} backward_known;

/* Rows of channels: of positions, or of samples. */
typedef struct backward_rows {
    channel_block block;
    const backward_known *known; /* of its groups */
    channel_column_factors f;    /* of the forward pass */
    const float *centre;         /* of each channel (planes) or column */
    size_t begin, end;
} backward_rows;

/* A part of them: planes are of one channel, or adjacent. */
typedef struct backward_piece {
    const backward_rows *of;
    size_t channel;             /* of the planes, in the block */
    size_t row, rows, k, width; /* k: element of the row */
} backward_piece;

/* Room for a chunk of do1. A vector may start with the last element. */
typedef struct do1_stage {
    _Alignas(64) float slope[2 * DO1_STAGE + VN]; /* do1; with an activation the second half is a staging buffer for it */
} do1_stage;

/* ---- scalars; docs/ops/channel_norm.md, "Backward" ---- */

/* Of a set. */
typedef struct channel_backward {
    float centre; /* μ, the mean as f32 */
    double delta; /* what it lacks */
    double rstd;
    double beta, gamma, exact_gamma;
    int frozen; /* the statistics are constants */
} channel_backward;

static inline channel_backward backward_around(const nrg_channel_statistics *stat, int frozen)
{
    channel_backward g = {.centre = (float)(stat->mean + stat->mean_low), .rstd = stat->rstd, .frozen = frozen};
    g.delta = (stat->mean - (double)g.centre) + stat->mean_low;
    return g;
}

/* Σdo1 ⊙ (x - m) from that around μ. */
static inline double backward_around_mean(const channel_backward *g, double a, double b) { return fma(-g->delta, a, b); }

/* a, b: Σ dh and Σ dh ⊙ (x - μ) of the set. */
static inline void backward_of_set(channel_backward *g, const nrg_channel_norm_backward_job *job, double a, double b,
                                   double count)
{
    const int centred = job->centred;
    const double inverse = 1 / count;
    if (NRG_RARELY(nrg_channel_has_no_gradient(job, count)))
        g->rstd = 0;
    g->beta = (g->rstd * ((backward_around_mean(g, a, b) * g->rstd) * inverse)) * g->rstd;
    g->exact_gamma = centred ? -(g->rstd * (a * inverse)) : -0.0;
    g->gamma = fma(g->delta, g->beta, g->exact_gamma);
}

static inline int backward_between(double value, double least, double most)
{
    return value == 0 || (fabs(value) >= least && fabs(value) <= most);
}

/* Whether a channel's elements can be done in f32. alpha: 1/s · w. */
static inline int backward_is_plain(const channel_backward *g, double alpha)
{
    if (!backward_between(alpha, 0x1p-100, 0x1p100))
        return 0;
    return g->frozen || (backward_between(g->rstd, 0x1p-40, 0x1p40) && backward_between(g->beta, 0x1p-100, 0x1p100) &&
                         fabs(g->gamma) <= (double)FLT_MAX);
}

/* ---- statistics ---- */

/* Two floats that describe a set. */
static nrg_channel_statistics statistics_of_floats(const nrg_channel_norm_backward_job *job, size_t set)
{
    const size_t count = (job->groups ? job->group_channels : job->n) * job->s;
    nrg_channel_statistics stat = {0, 0, 0, (double)job->given_rstd[set], (double)count};
    if (job->given_mean)
        stat.mean = (double)job->given_mean[set];
    if (job->given_sums)
        stat.count = (double)job->given_sums[set * NRG_CHANNEL_NORM_SUMS_WORDS];
    return stat;
}

/* Of sets set to set + count, of one sample: they are adjacent. */
static void find_statistics(const backward_pass *w, size_t set, size_t count, nrg_channel_statistics *stat)
{
    const nrg_channel_norm_backward_job *job = w->job;
    for (size_t i = 0; i < count && job->fixed_mean; i++) {
        const size_t c = (set + i) % job->c;
        stat[i] = nrg_statistics_fixed(job->fixed_mean[c], job->fixed_var[c], job->eps);
    }
    if (job->fixed_mean)
        return;
    if (job->given) {
        memcpy(stat, job->given + set, count * sizeof *stat);
        return;
    }
    if (job->given_rstd) {
        for (size_t i = 0; i < count; i++)
            stat[i] = statistics_of_floats(job, set + i);
        return;
    }
    const nrg_channel_norm_job forward = {
        .x = job->x,
        .statistics = (nrg_channel_statistics *)((uintptr_t)stat - set * sizeof *stat), /* where that of set 0 would be */
        .n = job->n,
        .c = job->c,
        .s = job->s,
        .groups = job->groups,
        .group_channels = job->group_channels,
        .x_stride = job->x_stride,
        .segment = job->segment,
        .begin = set,
        .end = set + count,
        .by_channel = job->by_channel,
        .nhwc = job->nhwc,
        .centred = job->centred,
        .stream = job->stream,
        .fast = job->fast,
        .eps = job->eps,
    };
    find_channel_statistics(&forward, w->D);
}

/* Of sets side by side. */
static __attribute__((noinline)) void know_sets(const backward_pass *w, size_t set, size_t count, backward_known *known)
{
    enum { AT_ONCE = 16 };
    nrg_channel_statistics stat[AT_ONCE];
    for (size_t i = 0, some; i < count; i += some) {
        some = lesser(count - i, AT_ONCE);
        find_statistics(w, set + i, some, stat);
        for (size_t j = 0; j < some; j++)
            known[i + j] = (backward_known){.stat = stat[j]};
    }
}

/* Channels c to c + channels, the first of a group, and their rows. */
static inline backward_rows rows_of(const backward_pass *w, const backward_known *known, size_t c, size_t channels, size_t per)
{
    const nrg_channel_norm_backward_job *job = w->job;
    return (backward_rows){.block = {.stat = &known->stat,
                                     .stat_stride = sizeof *known,
                                     .group = job->groups ? job->group_channels : 1,
                                     .c = c,
                                     .channels = channels,
                                     .per = per,
                                     .w = job->w,
                                     .b = job->b,
                                     .w_f32 = job->w_f32,
                                     .fast = job->fast,
                                     .plain_weights = w->plain_weights},
                           .known = known};
}

/* `channels` channels from number `first` on. */
static inline backward_rows some_backward_rows(const backward_rows *all, size_t first, size_t channels)
{
    backward_rows at = *all;
    at.known += block_group(&all->block, first);
    at.block = some_channels(&all->block, first, channels);
    return at;
}

/* ---- do1 ---- */

/* slope: g′, which becomes do1. Without an activation it is room for do1, and with ReLU, whose slope is too short for a call. o1:
 * o1 + y. Room is written in full vectors: a load would wait for a masked store. g, a constant: another one is SiLU. */
NRG_INLINE void do1_from(float *slope, const float *o1, const char *d, size_t n, nrg_activation g, nrg_dtype D)
{
    const vf one = v_set1(1), zero = v_zero();
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf v = lanes == VN ? load_whole(d, i, D) : load_part(d, i, lanes, D);
        if (g == NRG_ACT_RELU) {
            const vf z = load_lanes(o1 + i, lanes), same = v_max(one, v_min(one, z)); /* as act_one: NaN where z is */
            v = v_mul(v, v_select(v_lt(zero, z), same, v_sub(same, one)));
        } else if (g != NRG_ACT_IDENTITY)
            v = v_mul(v, load_lanes(slope + i, lanes));
        store_lanes(slope + i, v, g == NRG_ACT_SILU ? lanes : VN);
    }
}

NRG_INLINE void make_slope_of(float *slope, const float *o1, const char *d, size_t n, nrg_activation g, nrg_dtype D)
{
    if (g == NRG_ACT_IDENTITY)
        do1_from(slope, o1, d, n, NRG_ACT_IDENTITY, D);
    else if (g == NRG_ACT_RELU)
        do1_from(slope, o1, d, n, NRG_ACT_RELU, D);
    else
        do1_from(slope, o1, d, n, NRG_ACT_SILU, D);
}

NRG_BY_DTYPE(make_slope, (slope, o1, d, n, g), float *slope, const float *o1, const char *d, size_t n, nrg_activation g)

/* Elements whose do1 is computed together. again: after the sums, when it may have been kept. */
static inline size_t do1_at_once(const backward_pass *w, int plain, int again)
{
    if (!w->staged || (w->kept && again))
        return SIZE_MAX;
    if (!w->job->activation)
        return 2 * DO1_STAGE;
    return w->kept && w->has_loop && plain ? DO1_KEPT : DO1_STAGE;
}

/* Where do1 is, if it is not computed: in d_o, or after the sums where it has been kept. Otherwise NULL. */
static inline const float *do1_in_memory(const backward_pass *w, const backward_piece *at, int again, size_t *stride)
{
    const size_t first = at->k * w->size;
    *stride = w->staged ? w->kept_stride : w->job->d_o_stride;
    if (!w->staged)
        return (const float *)(w->job->d_o + at->row * *stride + first);
    return w->kept && again ? (const float *)(w->kept + at->row * *stride + first) : NULL;
}

/* A piece for the loops of the forward pass. Field by field: a copy of a struct waits for the stores that have just filled it, a
 * tenth of the time of planes of 196 elements (f16, ReLU, Zen 5). */
static inline void fill_piece_run(channel_run *run, const backward_pass *w, const backward_piece *at, float *o, size_t o_stride)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const channel_column_factors *f = &at->of->f;
    const size_t first = at->k * w->size;
    run->x = job->x + at->row * job->x_stride + first;
    run->y = job->y ? job->y + at->row * job->y_stride + first : NULL;
    run->o = (char *)o;
    run->x_stride = job->x_stride;
    run->y_stride = job->y_stride;
    run->o_stride = o_stride;
    run->rows = at->rows;
    run->width = at->width;
    run->f.hi = f->hi + at->channel;
    run->f.lo = f->lo + at->channel;
    run->f.shift = f->shift + at->channel;
    run->f.shift_lo = f->shift_lo + at->channel;
    run->planes = w->planes;
    run->folded = 0;
    run->fast = job->fast;
    run->stream = 0;
    run->finish = CHANNEL_TO_STAGE;
    run->turns = 1;
}

static __attribute__((noinline)) void do1_by_loop(const backward_pass *w, const backward_piece *at, float *to, size_t stride)
{
    const nrg_channel_norm_backward_job *job = w->job;
    channel_run run;
    fill_piece_run(&run, w, at, to, stride);
    run.stream = job->stream && !w->planes;
    do1_run(&run, job->d_o + at->row * job->d_o_stride + at->k * w->size, job->d_o_stride, job->activation);
}

/* o1 + y of a piece, and unless it is ReLU's the slopes there. */
static __attribute__((noinline)) void stage_slopes(const backward_pass *w, do1_stage *room, const backward_piece *at)
{
    float *stage = room->slope + DO1_STAGE;
    channel_run run;
    fill_piece_run(&run, w, at, stage, at->width * sizeof(float));
    run.rows = w->planes ? 1 : at->rows; /* planes are not adjacent */
    for (size_t row = 0; row < at->rows; row += run.rows) {
        if (at->of->f.plain)
            apply_run(&run, w->D);
        else {
            const channel_block block = w->planes ? some_channels(&at->of->block, at->channel, 1) : at->of->block;
            apply_run_fallback(&run, &block, w->D);
        }
        run.x += run.x_stride;
        run.y = run.y ? run.y + run.y_stride : NULL;
        run.o += run.o_stride;
    }
    if (w->job->activation != NRG_ACT_RELU)
        NRG_PATH_NAME(activate_both)(w->job->activation, stage, stage, room->slope, at->rows * at->width);
}

/* do1 of a piece of at most so many elements; stride: bytes between its rows. */
static __attribute__((noinline)) const float *compute_do1(const backward_pass *w, do1_stage *room, const backward_piece *at,
                                                          size_t *stride)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t first = at->k * w->size, packed = at->width * sizeof(float);
    const char *d = job->d_o + at->row * job->d_o_stride + first;
    char *kept = w->kept ? w->kept + at->row * w->kept_stride + first : NULL;
    if (!V_SMALL && w->has_loop && at->of->f.plain) {
        float *to = kept ? (float *)(void *)kept : room->slope;
        *stride = kept ? w->kept_stride : packed;
        do1_by_loop(w, at, to, *stride);
        return to;
    }
    *stride = packed;
    if (job->activation)
        stage_slopes(w, room, at);
    for (size_t i = 0; i < at->rows; i++) {
        float *slope = room->slope + i * at->width;
        make_slope(slope, slope + DO1_STAGE, d + i * job->d_o_stride, at->width, job->activation, w->D);
        if (kept)
            memcpy(kept + i * w->kept_stride, slope, packed);
    }
    return room->slope;
}

static inline const float *make_do1(const backward_pass *w, do1_stage *room, const backward_piece *at, int again, size_t *stride)
{
    const float *d = do1_in_memory(w, at, again, stride);
    return d ? d : compute_do1(w, room, at, stride);
}

#endif
