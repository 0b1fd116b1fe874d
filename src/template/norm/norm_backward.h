/* Row normalization, backward, over the vectors of a path's vec.h. The order of all arithmetic is that of
 * src/scalar/norm_backward.c.
 *
 * Two walks over a row, or three: its mean where it was not saved (norm_sum.h), the sums of its gradient
 * (norm_backward_sum.h), from which its few factors follow, then its elements (norm_backward_element.h). Rows go in batches of
 * four, which share one addition to the column sums. As in the forward pass, one loop walks the elements of a batch while it sums
 * the next, so that the memory is never idle. Rows that need no staging go several at a time (norm_backward_rows.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_H

#include "norm_backward_chunk.h"
#include "norm_backward_find.h"
#include "norm_backward_rows.h"
#include "norm_backward_walk.h"

/* Bytes from which on rows that do not begin at lines go past the cache: of four that are written in turn, four lines are open
 * at once. 20000x100 f32 LayerNorm takes 3.9 ms with ordinary stores and 4.5 with others (Emerald Rapids, AVX-512), 8192x200 bf16
 * RMSNorm 0.9 and 1.2, and 8192x1000 f32 10.2 and 7.0. */
enum { BACKWARD_PART = 768 };

/* tensor: of the planes. */
NRG_INLINE int backward_can_stream(const nrg_norm_backward_job *job, const char *out, size_t stride, int tensor,
                                   size_t group_bytes)
{
    if (!job->stream || !out || out == job->d_o || out == job->dr_in || out == job->x || out == job->y || out == job->z)
        return 0;
    size_t steps = job->groups > 1 ? group_bytes : 0;
    for (int k = 1; job->planes && k < NRG_PLANE_LEVELS; k++)
        steps |= job->planes->stride[tensor][k];
    const size_t bytes = job->groups * group_bytes;
    return steps % 16 == 0 && rows_stream(out, stride, bytes, 0) &&
           (bytes >= BACKWARD_PART || ((uintptr_t)out | stride) % 64 == 0);
}

/* Rows of any kind, in batches of four. */
static __attribute__((noinline)) void all_rows(const backward *b)
{
    const size_t dim = b->job->dim;
    const size_t sum_chunks = (dim + b->sum_chunk - 1) / b->sum_chunk;
    const size_t chunks = (dim + b->element_chunk - 1) / b->element_chunk;
    backward_batch batches[2], *now = &batches[0], *next = &batches[1];
    backward_walk walk;
    next_batch(b, now, NULL);
    start_batch(b, &walk, now);
    while (walk.row < now->rows)
        walk_on(b, &walk);
    while (now->rows) {
        next_batch(b, next, now);
        start_batch(b, &walk, next);
        const size_t steps = (size_t)(next->rows * walks_of(b)) * sum_chunks;
        const int plain = is_plain(b, now), lean = is_lean(b, now);
        size_t done = 0;
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            const size_t begin = chunk * b->element_chunk, end = dim - begin < b->element_chunk ? dim : begin + b->element_chunk;
            if (plain)
                batch_chunk(b, now, begin, end - begin);
            else if (lean)
                lean_chunk(b, now, begin, end - begin);
            else
                row_chunks(b, now, begin, end);
            for (; done * chunks < (chunk + 1) * steps; done++)
                walk_on(b, &walk);
        }
        backward_batch *last = now;
        now = next;
        next = last;
    }
}

static void norm_backward(const nrg_norm_backward_job *job, nrg_dtype D)
{
    float scratch[BACKWARD_SCRATCH];
    const size_t dim = job->dim;
    backward b = {.job = job, .D = D, .scratch = scratch};
    b.on_output = job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY;
    b.gated = b.on_output || job->gate != NRG_GATE_NONE;
    b.raw = D != NRG_F32 && !b.gated && !job->y && !job->x_f32 && !job->dy && job->dx;
    b.direct = b.raw || (D == NRG_F32 && !b.gated && !job->dy && job->dx);
    b.stream_dx = backward_can_stream(job, job->dx, job->dx_stride, NRG_PLANES_DX, bytes_of(dim, D, 0));
    b.stream_dy = backward_can_stream(job, job->dy, job->dy_stride, NRG_PLANES_DY, bytes_of(dim, D, job->y_f32));
    b.stream_dz = backward_can_stream(job, job->dz, job->dz_stride, NRG_PLANES_DZ, bytes_of(dim, D, 0));

    b.lean = !V_SMALL && D == NRG_F32 && job->gate != NRG_GATE_NONE && !job->y && job->formula.w_offset == 0 && job->dx &&
             !job->dr_in && !job->dy;
    b.keeps = b.lean && !job->stream && job->dz && job->dz != job->z && job->dx != job->d_o && job->dx != job->x;

    const int as_it_is = D == NRG_F32 && !b.gated && !job->y && job->formula.w_offset == 0, long_lean = b.lean && !job->stream;
    b.sum_chunk = b.raw       ? BACKWARD_RAW_CHUNK
                  : long_lean ? BACKWARD_LEAN_SUM_CHUNK
                  : as_it_is  ? BACKWARD_WHOLE_SUM_CHUNK
                              : BACKWARD_SUM_CHUNK;
    b.element_chunk = b.raw                  ? BACKWARD_RAW_CHUNK
                      : long_lean            ? BACKWARD_LEAN_ELEMENT_CHUNK
                      : as_it_is && b.direct ? BACKWARD_WHOLE_ELEMENT_CHUNK
                                             : BACKWARD_ELEMENT_CHUNK;
    if (some_rows_serve(&b))
        some_rows(&b);
    else
        all_rows(&b);
    if (b.stream_dx || b.stream_dy || b.stream_dz)
        v_nt_fence();
}

NRG_PATH_KERNELS(norm_backward, norm_backward, norm_backward)

#endif
