/* The backward walk over planes: the positions of a channel lie together.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_PLANES_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_PLANES_H

#include "channel_backward_walk.h"

/* Adds elements begin to end of a channel of a sample to lanes. */
static __attribute__((noinline)) void sum_plane(const backward_walk *w, const channel_factors *f, float centre,
                                                backward_lanes *lanes, size_t n, size_t c, size_t begin, size_t end)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t most = do1_at_once(w, f->plain, 0);
    backward_stage room;
    for (size_t i = begin, next; i < end; i = next) {
        next = end - i > most ? i + most : end;
        add_gradients(lanes, plane_backward(w, &room, f, n, c, i, next, 0),
                      job->x + n * job->x_stride + (c * job->s + i) * w->size, centre, next - i, w->D);
    }
}

static __attribute__((noinline)) void apply_plane(const backward_walk *w, const channel_factors *f,
                                                  const backward_factors *factors, size_t n, size_t c)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t most = do1_at_once(w, f->plain, 1);
    backward_stage room;
    if (!job->dx && !job->dy)
        return;
    for (size_t i = 0, next; i < job->s; i = next) {
        const size_t at = (c * job->s + i) * w->size;
        next = job->s - i > most ? i + most : job->s;
        backward_run run = {.d = plane_backward(w, &room, f, n, c, i, next, 1),
                            .x = job->x + n * job->x_stride + at,
                            .dx = job->dx ? job->dx + n * job->dx_stride + at : NULL,
                            .dy = job->dy ? job->dy + n * job->dy_stride + at : NULL,
                            .n = next - i,
                            .f = *factors};
        run.stream_dx = w->stream_dx && ((uintptr_t)run.dx & 15) == 0;
        run.stream_dy = w->stream_dy && ((uintptr_t)run.dy & 15) == 0;
        apply_backward(&run, w->D);
    }
}

/* record: as add_segment has it. */
static __attribute__((noinline)) void sum_channel_planes(const backward_walk *w, size_t c, const channel_factors *f, float centre,
                                                         channel_total *total, int64_t *record)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t most = w->cut.length < job->s ? 0 : w->cut.length / job->s; /* samples of a segment; 0: a part of one */
    backward_lanes lanes;
    double a, b;
    memset(total, 0, sizeof *total);
    for (size_t n = 0, samples; n < job->n; n += samples) {
        const size_t left = job->n - n, length = most ? job->s : w->cut.length;
        samples = most == 0 ? 1 : left < most ? left : most;
        for (size_t begin = 0; begin < job->s; begin += length) {
            const size_t end = job->s - begin < length ? job->s : begin + length;
            clear_gradients(&lanes);
            for (size_t i = 0; i < samples; i++)
                sum_plane(w, f, centre, &lanes, n + i, c, begin, end);
            fold_gradients(&lanes, &a, &b);
            add_segment(total, record, (double)(samples * (end - begin)), a, b);
        }
    }
}

/* The sums of a channel: given, or taken here. */
static __attribute__((noinline)) nrg_set_sums plane_sums(const backward_walk *w, size_t c, const channel_factors *f, float centre)
{
    const nrg_channel_norm_backward_job *job = w->job;
    int64_t own[NRG_CHANNEL_NORM_SUMS_WORDS], *record = job->sums ? job->sums + c * NRG_CHANNEL_NORM_SUMS_WORDS : own;
    channel_total total;
    if (job->given_sums)
        return nrg_sums_value(job->given_sums + c * NRG_CHANNEL_NORM_SUMS_WORDS);
    sum_channel_planes(w, c, f, centre, &total, NULL);
    if (needs_integers(total.state, job->sums != NULL)) {
        nrg_sums_clear(record);
        sum_channel_planes(w, c, f, centre, &total, record);
        nrg_sums_carry(record);
        return nrg_sums_value(record);
    }
    const nrg_set_sums sums = total_sums(&total);
    if (job->sums)
        nrg_sums_put(record, &sums);
    return sums;
}

static __attribute__((noinline)) void batch_planes(const backward_walk *w)
{
    const nrg_channel_norm_backward_job *job = w->job;
    for (size_t c = job->begin; c < job->end; c++) {
        backward_known known;
        find_statistics(w, c, 1, &known.stat);
        const channel_block block = backward_block(w, &known.stat, 0, c, 1, 1);
        const channel_factors f = block_factors(&block, 0, w->D);
        const float w_c = channel_parameter(job->w, c, job->w_f32, w->D, 1);
        const nrg_set_sums sums = plane_sums(w, c, &f, backward_around(&known.stat, 0).centre);
        finish_channel(w, c, &sums, &known, w_c);
        if (job->sums)
            continue;
        const channel_backward g = backward_of(w, &known);
        const backward_factors factors = backward_factors_of(&g, &known.stat, w_c);
        for (size_t n = 0; n < job->n; n++)
            apply_plane(w, &f, &factors, n, c);
    }
}

static __attribute__((noinline)) void group_planes(const backward_walk *w, size_t n, size_t group, size_t block_number, int first)
{
    const nrg_channel_norm_backward_job *job = w->job;
    const size_t channels = job->group_channels, c_begin = group * channels;
    double lanes_a[CHANNEL_COLUMN_LANES] = {0}, lanes_b[CHANNEL_COLUMN_LANES] = {0};
    backward_known known;
    find_statistics(w, n * job->groups + group, 1, &known.stat);
    channel_backward g = backward_around(&known.stat, job->fixed_mean != NULL);
    const channel_block block = backward_block(w, &known.stat, 0, c_begin, channels, 1);
    for (size_t k = 0; k < channels; k++) {
        const channel_factors f = block_factors(&block, k, w->D);
        const float w_c = channel_parameter(job->w, c_begin + k, job->w_f32, w->D, 1);
        backward_lanes lanes;
        double a, b, *lane_a = &lanes_a[k % CHANNEL_COLUMN_LANES], *lane_b = &lanes_b[k % CHANNEL_COLUMN_LANES];
        clear_gradients(&lanes);
        sum_plane(w, &f, g.centre, &lanes, n, c_begin + k, 0, job->s);
        fold_gradients(&lanes, &a, &b);
        *lane_a = fma((double)w_c, a, *lane_a);
        *lane_b = fma((double)w_c, b, *lane_b);
        add_parameters(w, block_number, c_begin + k, first, backward_around_mean(&g, a, b) * g.rstd, a);
    }
    backward_of_set(&g, job, fold_of(lanes_a), fold_of(lanes_b), known.stat.count);
    for (size_t k = 0; k < channels; k++) {
        const channel_factors f = block_factors(&block, k, w->D);
        const float w_c = channel_parameter(job->w, c_begin + k, job->w_f32, w->D, 1);
        const backward_factors factors = backward_factors_of(&g, &known.stat, w_c);
        apply_plane(w, &f, &factors, n, c_begin + k);
    }
}

#endif
