/* A norm of rows and then their rotation where they stand, a few rows at a time, so that they are still in L1: for rows that have
 * no code of their own. Rows begin to end: the job is not copied for one of them, since its copy would lie below the norm.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_NORM_ROPE_IN_TURN_H
#define NRG_TEMPLATE_ROPE_NORM_ROPE_IN_TURN_H

#include "../../internal.h"
#include "../../job/norm.h"
#include "../../job/rope.h"

/* Short rows of a norm go eight together; more than a few thousand bytes do not stay in L1 beside w and the table. */
enum { NORM_ROPE_BYTES = 8192 };

/* Always inline, so that the kernels are called by name. */
static inline __attribute__((always_inline)) void norm_rope_in_turn(const nrg_norm_rope_job *job, size_t begin, size_t end,
                                                                    size_t element, void (*norm)(const nrg_norm_job *),
                                                                    void (*gated)(const nrg_norm_job *),
                                                                    void (*rope)(const nrg_rope_job *))
{
    nrg_norm_job n = job->norm;
    nrg_rope_job r = job->rope;
    const size_t heads = r.heads, groups = n.groups, bytes = r.dim * element;
    /* rows that lie at equal distances go on over the end of a token */
    const int even = heads == 1 || (r.x_token_stride == heads * r.x_head_stride && r.o_token_stride == heads * r.o_head_stride);
    const size_t most = bytes < NORM_ROPE_BYTES / 8 ? NORM_ROPE_BYTES / bytes : 8;
    n.x_stride = heads == 1 ? r.x_token_stride : r.x_head_stride;
    n.o_stride = heads == 1 ? r.o_token_stride : r.o_head_stride;
    n.row_begin = 0;
    r.x = r.o;
    r.x_token_stride = r.o_token_stride;
    r.x_head_stride = r.o_head_stride;
    r.stream = r.far = 0;
    for (size_t row = begin, count; row < end; row += count) {
        const size_t token = row / heads, head = row % heads;
        count = !even && heads - head < most ? heads - head : most;
        if (count > end - row)
            count = end - row;
        n.x = job->rope.x + token * job->rope.x_token_stride + head * job->rope.x_head_stride;
        n.o = r.o + token * r.o_token_stride + head * r.o_head_stride;
        n.row_end = count * groups;
        n.mean = job->norm.mean ? job->norm.mean + row * groups : NULL;
        n.rstd = job->norm.rstd ? job->norm.rstd + row * groups : NULL;
        if (nrg_norm_is_gated(&n))
            gated(&n);
        else
            norm(&n);
        r.begin = row;
        r.end = row + count;
        rope(&r);
    }
}

#endif
