/* Rotation of pairs, the reference.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../job/rope.h"
#include "element.h"

static void rope_head(const nrg_rope_job *job, const char *x, char *o, const float *table, nrg_dtype dtype)
{
    const size_t pairs = job->pairs, offset = job->offset, past = offset + 2 * pairs, size = element_size(dtype);
    for (size_t p = 0; p < pairs; p++) {
        const size_t first = offset + (job->interleaved ? 2 * p : p), second = job->interleaved ? first + 1 : first + pairs;
        const float cosine = table[p], sine = job->backward ? -table[pairs + p] : table[pairs + p];
        const float x0 = load(x, first, dtype), x1 = load(x, second, dtype);
        store(o, first, dtype, fmaf(x0, cosine, -(x1 * sine)));
        store(o, second, dtype, fmaf(x1, cosine, x0 * sine));
    }
    if (o != x) {
        memcpy(o, x, offset * size);
        memcpy(o + past * size, x + past * size, (job->dim - past) * size);
    }
}

static void rope(const nrg_rope_job *job, nrg_dtype dtype)
{
    for (size_t n = job->begin; n < job->end; n++) {
        const size_t token = n / job->heads, head = n % job->heads;
        const size_t row = job->positions ? (size_t)job->positions[token] : token;
        rope_head(job, job->x + token * job->x_token_stride + head * job->x_head_stride,
                  job->o + token * job->o_token_stride + head * job->o_head_stride,
                  (const float *)(job->table + row * job->table_stride), dtype);
    }
}

SCALAR_KERNELS(rope, rope, rope)
