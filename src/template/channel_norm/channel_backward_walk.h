/* What the backward walks over planes and over columns share: statistics, do1, and what follows from the sums of a set.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_WALK_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_WALK_H

#include "../../job/activation.h"
#include "../../job/channel_norm.h"
#include "channel_elements.h"
#include "channel_backward_apply.h"
#include "channel_backward_do1.h"
#include "channel_total.h"

enum {
    BACKWARD_STAGE = 192, /* floats: whole steps of the activations; small, since two of them are on the stack */
    BACKWARD_KEPT = 2048  /* of do1 that goes to where it is kept at once: with what it is made of, half of an L1 */
};

typedef struct backward_walk {
    const nrg_channel_norm_backward_job *job;
    nrg_dtype D;
    size_t size; /* of an element */
    int plain_weights;
    nrg_segments cut;
    int staged; /* do1 is not d_o as it is in memory */
    int loop;   /* and channel_backward_do1.h has a loop for it, where channels are plain */
    int stream_dx, stream_dy;
    /* where do1 is kept in f32 between the two walks, so that activations are computed once: an output that is f32 and whose
     * place nothing is read from any more; or NULL */
    char *kept;
    size_t kept_stride;
} backward_walk;

/* Room for a chunk of do1. */
typedef struct backward_stage {
    float stage[BACKWARD_STAGE], slope[BACKWARD_STAGE];
} backward_stage;

/* What is known of a set: at first its statistics. */
typedef struct backward_known {
    nrg_channel_statistics stat;
    double beta, exact_gamma; /* then these, from which the rest follows */
} backward_known;

static inline channel_backward backward_of(const backward_walk *w, const backward_known *known)
{
    channel_backward g = backward_around(&known->stat, w->job->fixed_mean != NULL);
    if (NRG_RARELY(nrg_channel_has_no_gradient(w->job, known->stat.count)))
        g.rstd = 0;
    g.beta = known->beta;
    g.exact_gamma = known->exact_gamma;
    g.gamma = fma(g.delta, g.beta, g.exact_gamma);
    return g;
}

/* a, b: of the set. */
static inline void set_backward(const backward_walk *w, backward_known *known, double a, double b)
{
    channel_backward g = backward_around(&known->stat, w->job->fixed_mean != NULL);
    backward_of_set(&g, w->job, a, b, known->stat.count);
    known->beta = g.beta;
    known->exact_gamma = g.exact_gamma;
}

/* ---- statistics ---- */

/* What two floats say of a set. */
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

/* Of sets set to set + count, of one sample: they lie one after the other. */
static void find_statistics(const backward_walk *w, size_t set, size_t count, nrg_channel_statistics *stat)
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

static inline channel_block backward_block(const backward_walk *w, const nrg_channel_statistics *stat, size_t stat_stride,
                                           size_t c, size_t channels, size_t per)
{
    const nrg_channel_norm_backward_job *job = w->job;
    return (channel_block){.stat = stat,
                           .stat_stride = stat_stride,
                           .group = job->groups ? job->group_channels : 1,
                           .c = c,
                           .channels = channels,
                           .per = per,
                           .w = job->w,
                           .b = job->b,
                           .w_f32 = job->w_f32,
                           .fast = job->fast,
                           .plain_weights = w->plain_weights};
}

/* ---- do1 ---- */

/* Elements whose do1 is made at once. again: in the second walk, which finds it where it has been kept. */
static inline size_t do1_at_once(const backward_walk *w, int plain, int again)
{
    if (!w->staged || (w->kept && again))
        return SIZE_MAX;
    return w->kept && w->loop && plain ? BACKWARD_KEPT : BACKWARD_STAGE;
}

/* n elements of d_o to floats. */
NRG_INLINE void widen_of(float *to, const char *from, size_t n, nrg_dtype D)
{
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        store_lanes(to + i, lanes == VN ? load_whole(from, i, D) : load_part(from, i, lanes, D), lanes);
    }
}

NRG_INLINE void multiply_of(float *slope, const char *d, size_t n, nrg_dtype D)
{
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf dv = lanes == VN ? load_whole(d, i, D) : load_part(d, i, lanes, D);
        store_lanes(slope + i, v_mul(dv, load_lanes(slope + i, lanes)), lanes);
    }
}

/* slope: g′, which becomes do1; or, without an activation, room for it. */
static __attribute__((noinline)) void make_slope(float *slope, const char *d, size_t n, int activated, nrg_dtype D)
{
    if (activated && D == NRG_F32)
        multiply_of(slope, d, n, NRG_F32);
    else if (activated && D == NRG_F16)
        multiply_of(slope, d, n, NRG_F16);
    else if (activated)
        multiply_of(slope, d, n, NRG_BF16);
    else if (D == NRG_F16)
        widen_of(slope, d, n, NRG_F16);
    else
        widen_of(slope, d, n, NRG_BF16);
}

/* o1 + y in the stage becomes the slope there. ReLU's is too short for a call. */
static __attribute__((noinline)) void slopes(const backward_walk *w, backward_stage *room, size_t n)
{
    if (w->job->activation != NRG_ACT_RELU) {
        NRG_PATH_NAME(activate_both)(w->job->activation, room->stage, room->stage, room->slope, n);
        return;
    }
    const vf one = v_set1(1), zero = v_zero();
    for (size_t i = 0; i < n; i += VN) {                                          /* the stage has room for whole vectors */
        const vf v = v_ld_f32(room->stage + i), same = v_max(one, v_min(one, v)); /* as act_one: NaN where v is */
        v_st_f32(room->slope + i, v_select(v_lt(zero, v), same, v_sub(same, one)));
    }
}

/* do1 of elements begin to end of channel c of sample n, at most a stage. again: in the second walk. */
static const float *plane_backward(const backward_walk *w, backward_stage *room, const channel_factors *f, size_t n, size_t c,
                                   size_t begin, size_t end, int again)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t at = (c * job->s + begin) * w->size, count = end - begin;
    const char *d = job->d_o + n * job->d_o_stride + at;
    if (!w->staged)
        return (const float *)d;
    if (w->kept && again)
        return (const float *)(w->kept + n * w->kept_stride + at);
    if (!V_SMALL && w->loop && f->plain) {
        channel_factors one = *f;
        const do1_run run = {.x = job->x + n * job->x_stride + at,
                             .y = job->y ? job->y + n * job->y_stride + at : NULL,
                             .d = d,
                             .to = w->kept ? w->kept + n * w->kept_stride + at : (char *)room->slope,
                             .rows = 1,
                             .width = count,
                             .lo = &one.lo,
                             .hi = &one.hi,
                             .shift = &one.shift};
        make_do1_plane(job->activation, &run);
        return (const float *)run.to;
    }
    if (job->activation) {
        channel_factors one = *f;
        const channel_run run = {.x = job->x + n * job->x_stride + at,
                                 .y = job->y ? job->y + n * job->y_stride + at : NULL,
                                 .o = (char *)room->stage,
                                 .n = count,
                                 .planes = 1,
                                 .fast = job->fast,
                                 .finish = CHANNEL_TO_STAGE,
                                 .f = {&one.hi, &one.lo, &one.shift, &one.shift_lo, 1}};
        if (f->plain)
            apply_run(&run, w->D);
        else
            apply_run_fallback(&run, f, w->D);
        slopes(w, room, count);
    }
    make_slope(room->slope, d, count, job->activation != NRG_ACT_IDENTITY, w->D);
    if (w->kept)
        memcpy(w->kept + n * w->kept_stride + at, room->slope, count * sizeof(float));
    return room->slope;
}

/* The same of rows of a block of columns. fallback: of a strip; NULL: to be made. stride: of what it returns, in bytes. */
static const float *rows_backward(const backward_walk *w, backward_stage *room, const channel_block *block,
                                  const channel_column_factors *f, const fallback_factors *fallback, size_t k, size_t row,
                                  size_t rows, int again, size_t *stride)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t width = block->channels * block->per;
    const char *d = job->d_o + row * job->d_o_stride + k * w->size;
    *stride = job->d_o_stride;
    if (!w->staged)
        return (const float *)d;
    if (w->kept && again) {
        *stride = w->kept_stride;
        return (const float *)(w->kept + row * w->kept_stride + k * w->size);
    }
    *stride = width * sizeof(float);
    if (!V_SMALL && w->loop && f->plain) {
        *stride = w->kept ? w->kept_stride : *stride;
        const do1_run run = {.x = job->x + row * job->x_stride + k * w->size,
                             .y = job->y ? job->y + row * job->y_stride + k * w->size : NULL,
                             .d = d,
                             .to = w->kept ? w->kept + row * w->kept_stride + k * w->size : (char *)room->slope,
                             .x_stride = job->x_stride,
                             .y_stride = job->y_stride,
                             .d_stride = job->d_o_stride,
                             .to_stride = *stride,
                             .rows = rows,
                             .width = width,
                             .prefetch = job->stream,
                             .lo = f->lo,
                             .hi = f->hi,
                             .shift = f->shift};
        make_do1_columns(job->activation, &run);
        return (const float *)run.to;
    }
    if (job->activation) {
        const channel_column_run run = {.x = job->x + row * job->x_stride + k * w->size,
                                        .y = job->y ? job->y + row * job->y_stride + k * w->size : NULL,
                                        .o = (char *)room->stage,
                                        .x_stride = job->x_stride,
                                        .y_stride = job->y_stride,
                                        .o_stride = *stride,
                                        .rows = rows,
                                        .width = width,
                                        .fast = job->fast,
                                        .finish = CHANNEL_TO_STAGE};
        if (f->plain)
            apply_columns(&run, f, w->D);
        else if (fallback)
            apply_strip_fallback(&run, f, fallback, w->D);
        else
            apply_columns_fallback(&run, block, f, w->D);
        slopes(w, room, rows * width);
    }
    for (size_t i = 0; i < rows; i++) {
        make_slope(room->slope + i * width, d + i * job->d_o_stride, width, job->activation != NRG_ACT_IDENTITY, w->D);
        if (w->kept)
            memcpy(w->kept + (row + i) * w->kept_stride + k * w->size, room->slope + i * width, width * sizeof(float));
    }
    return room->slope;
}

/* A strip's factors, made once for all of its rows. Returns NULL where there is no need, or the block is no strip. */
static inline const fallback_factors *strip_factors(const backward_walk *w, fallback_factors *room, const channel_block *block,
                                                    const channel_column_factors *f)
{
    if (f->plain || block->channels * block->per > FALLBACK_COLUMNS)
        return NULL;
    fill_fallback(room, block, w->D);
    return room;
}

/* The same in rows of a block. */
static inline size_t rows_at_once(const backward_walk *w, size_t width, size_t rows, int plain, int again)
{
    const size_t most = do1_at_once(w, plain, again) / width;
    return most < rows ? most : rows;
}

/* ---- what follows from sums ---- */

/* Everything that follows from a channel's sums. w_c: its weight. */
static __attribute__((noinline)) void finish_channel(const backward_walk *w, size_t c, const nrg_set_sums *sums,
                                                     backward_known *known, float w_c)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const channel_backward g = backward_around(&known->stat, job->fixed_mean != NULL);
    const double dw = backward_around_mean(&g, sums->t, sums->q) * g.rstd;
    if (job->dw)
        job->dw[c] = (float)(job->accumulate ? (double)job->dw[c] + dw : dw);
    if (job->db)
        job->db[c] = (float)(job->accumulate ? (double)job->db[c] + sums->t : sums->t);
    set_backward(w, known, (double)w_c * sums->t, (double)w_c * sums->q);
}

/* Sums over the samples of a block, of one channel. */
static inline void add_parameters(const backward_walk *w, size_t block, size_t c, int first, double dw, double db)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t at = block * job->c + c;
    if (job->block_dw)
        job->block_dw[at] = first ? dw : job->block_dw[at] + dw;
    if (job->block_db)
        job->block_db[at] = first ? db : job->block_db[at] + db;
}

#endif
