/* Row normalization, backward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/norm_backward.c.
 *
 * Algorithm: backward_source.h, backward_sum.h, backward_scalars.h, backward_apply.h, and backward_gated.h for gates. Schedules:
 * backward_tile.h and backward_batch.h. Means that were not saved come from the forward kernel.
 *
 * A job is done in runs, rows of one group: short runs where means are recomputed, which then find the rows in cache, or where
 * groups lie beside each other.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_H

#include "backward_tile.h"

enum {
    RUN_ROWS = SUMMED_AHEAD_MAX > 0 ? 32 : 48, /* of a short run: at most (stacks are small), */
    RUN_LEAST = 8,                             /* and at least, */
    RUN_BYTES = 1 << 17,
    /* Bytes from which on rows that do not begin at lines are streamed: of four that are written in turn, four lines are open
     * at once. 20000x100 f32 LayerNorm takes 3.9 ms with ordinary stores and 4.5 with others (Emerald Rapids, AVX-512),
     * 8192x200 bf16 RMSNorm 0.9 and 1.2, and 8192x1000 f32 10.2 and 7.0. */
    STREAMED_PART = 768
};

/* tensor: of the planes. */
static __attribute__((noinline)) int places_can_be_streamed(const nrg_norm_backward_job *job, const char *out, size_t stride,
                                                            int tensor, size_t group_bytes)
{
    size_t steps = job->groups > 1 ? group_bytes : 0;
    for (int k = 1; job->planes && k < NRG_PLANE_LEVELS; k++)
        steps |= job->planes->stride[tensor][k];
    const size_t bytes = job->groups * group_bytes;
    return steps % 16 == 0 && rows_stream(out, stride, bytes, 0) &&
           (bytes >= STREAMED_PART || ((uintptr_t)out | stride) % 64 == 0);
}

NRG_INLINE int gradient_can_be_streamed(const nrg_norm_backward_job *job, const char *out, size_t stride, int tensor,
                                        size_t group_bytes)
{
    return job->stream && out && out != job->d_o && out != job->dr_in && out != job->x && out != job->y && out != job->z &&
           places_can_be_streamed(job, out, stride, tensor, group_bytes);
}

/* Field by field, and where it stays: a struct that is cleared and copied waits for its stores. LayerNorm 1x64 takes 251 ns
 * instead of 284 (Zen 4, AVX2), with find_row_of_run alike. */
static __attribute__((noinline)) void plan_of_backward(backward *b, const nrg_norm_backward_job *job, nrg_dtype D)
{
    const size_t dim = job->dim;
    b->job = job;
    b->D = D;
    b->on_output = job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY;
    b->is_gated = b->on_output || job->gate != NRG_GATE_NONE;
    const int is_plain = !b->is_gated && !job->dy && job->dx, has_offset = job->formula.w_offset != 0;
    b->is_half = D != NRG_F32 && is_plain && !job->y && !job->x_f32;
    b->is_direct = b->is_half || (D == NRG_F32 && is_plain);
    b->gates_only = !NORM_IS_SMALL && D == NRG_F32 && job->gate != NRG_GATE_NONE && !job->y && !has_offset && job->dx &&
                    !job->dr_in && !job->dy;
    b->keeps_gates = b->gates_only && !job->stream && job->dz && job->dz != job->z && job->dx != job->d_o && job->dx != job->x;
    b->stream_dx = gradient_can_be_streamed(job, job->dx, job->dx_stride, NRG_PLANES_DX, bytes_of(dim, D, 0));
    b->stream_dy = gradient_can_be_streamed(job, job->dy, job->dy_stride, NRG_PLANES_DY, bytes_of(dim, D, job->y_f32));
    b->stream_dz = gradient_can_be_streamed(job, job->dz, job->dz_stride, NRG_PLANES_DZ, bytes_of(dim, D, 0));
    const int is_unstaged = D == NRG_F32 && !b->is_gated && !job->y && !has_offset;
    b->sum_chunk = b->column_chunk = b->is_half ? HALF_CHUNK : NORM_SEGMENT;
    if (b->gates_only && !job->stream) {
        b->sum_chunk = GATE_CHUNK;
        b->column_chunk = GATE_COLUMN_CHUNK;
    } else if (!b->is_half) {
        b->sum_chunk = is_unstaged ? NORM_SEGMENT : GRADIENT_CHUNK;
        b->column_chunk = is_unstaged && b->is_direct ? NORM_SEGMENT : COLUMN_CHUNK;
    }
}

/* The means of the run, as the forward pass stores them. */
static __attribute__((noinline)) void recompute_means(const backward *b, float *mean)
{
    const nrg_norm_backward_job *job = b->job;
    const int is_pre = job->gate == NRG_GATE_PRE, from_r = b->D != NRG_F32 && job->x_f32;
    nrg_norm_job forward; /* field by field, as in plan_of_backward */
    forward.w = forward.b = NULL;
    forward.o = NULL;
    forward.quant = NULL;
    forward.rstd = NULL;
    forward.statistics = NULL;
    forward.x_stride = forward.r_stride = job->x_stride;
    forward.y_stride = job->y_stride;
    forward.z_stride = job->z_stride;
    forward.o_stride = 0;
    forward.dim = job->dim;
    forward.groups = 1;
    forward.row_begin = 0;
    forward.y_f32 = job->y_f32;
    forward.r_f32 = from_r || job->r_f32;
    forward.w_f32 = forward.after = forward.o_f32 = forward.alike = 0;
    forward.stream = job->stream ? 2 : 0;
    forward.gate = is_pre ? NRG_GATE_PRE : NRG_GATE_NONE;
    forward.activation = is_pre ? job->activation : NRG_ACT_IDENTITY;
    forward.part = NRG_NORM_SUMS;
    forward.from_r = from_r;
    forward.formula = job->formula;
    for (size_t n = b->begin, end; n < b->end; n = end) { /* a plane, or what the run has of it */
        backward_row row;
        find_row_of_run(&row, b, n);
        end = job->planes ? lesser(n - n % job->planes->count[0] + job->planes->count[0], b->end) : b->end;
        forward.x = row.x;
        forward.y = row.y;
        forward.z = is_pre ? row.z : NULL;
        forward.r = from_r ? (char *)(uintptr_t)row.x : NULL;
        forward.mean = mean + (n - b->begin);
        forward.row_end = end - n;
        if (b->D == NRG_F32)
            NRG_PATH_NAME(norm_gated_f32)(&forward);
        else if (b->D == NRG_F16)
            NRG_PATH_NAME(norm_gated_f16)(&forward);
        else
            NRG_PATH_NAME(norm_gated_bf16)(&forward);
    }
}

/* In a frame of its own, which does not lie below the forward kernel. */
static __attribute__((noinline)) void backward_run(backward *b)
{
    _Alignas(64) float stage[BACKWARD_STAGE];
    b->stage = stage;
    if (gradient_tiles_fit(b))
        schedule_gradient_tiles(b);
    else
        schedule_batches(b);
}

NRG_INLINE size_t rows_of_run(const nrg_norm_backward_job *job, nrg_dtype D)
{
    const size_t fit = RUN_BYTES / (bytes_of(job->dim, D, 0) * job->groups) / NRG_ROW_BATCH * NRG_ROW_BATCH;
    return fit < RUN_LEAST ? RUN_LEAST : lesser(fit, RUN_ROWS);
}

static void norm_backward(const nrg_norm_backward_job *job, nrg_dtype D)
{
    float mean[RUN_ROWS];
    const int recomputes = job->formula.centred && !job->mean;
    const size_t groups = job->groups, rows = recomputes || groups > 1 ? rows_of_run(job, D) : SIZE_MAX;
    backward b;
    plan_of_backward(&b, job, D);
    /* To the next run, whose means read x first: f32 LayerNorm 40000x520 in 0.84 of the time (Zen 4, AVX-512). Sums of 16-bit
     * rows take so long that memory keeps up: 1.03 times as long. */
    b.x_ahead = recomputes && D == NRG_F32 ? rows : 0;
    for (b.begin = job->row_begin; b.begin < job->row_end; b.begin = b.end) {
        b.end = b.begin + lesser(rows, job->row_end - b.begin);
        for (b.group = 0; b.group < groups; b.group++) {
            b.w = operand_at(job->w, bytes_of(b.group * job->dim, D, job->w_f32));
            b.bias = operand_at(job->b, bytes_of(b.group * job->dim, D, job->w_f32));
            b.mean = job->formula.centred && job->mean ? job->mean + b.begin * groups + b.group : NULL;
            b.mean_step = groups;
            find_row_of_run(&b.first, &b, b.begin);
            if (recomputes) {
                recompute_means(&b, mean);
                b.mean = mean;
                b.mean_step = 1;
            }
            backward_run(&b);
        }
    }
    if (b.stream_dx || b.stream_dy || b.stream_dz)
        v_nt_fence();
}

NRG_PATH_KERNELS(norm_backward, norm_backward, norm_backward)

#endif
