/* Biases of attention scores: the reference. docs/ops/score_bias.md says it in words.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/score_bias.h"
#include "element.h"

/* Where row i of head h of sample b begins, in bytes. */
static size_t row_at(nrg_head_strides stride, size_t b, size_t h, size_t i)
{
    return b * stride.batch + h * stride.head + i * stride.row;
}

static void forward(const nrg_score_bias_job *job, nrg_dtype dtype)
{
    for (size_t row = job->begin; row < job->end; row++) {
        const size_t i = row % job->queries, h = row / job->queries % job->heads, b = row / job->queries / job->heads;
        const char *scores = job->scores + row_at(job->scores_stride, b, h, i);
        char *o = job->o + row_at(job->o_stride, b, h, i);
        const float *bias = (const float *)(job->diagonals + h * job->diagonals_stride) + (job->queries - 1 - i);
        for (size_t j = 0; j < job->keys; j++)
            store(o, j, dtype, fmaf(load(scores, j, dtype), job->scale, bias[j]));
    }
}

SCALAR_KERNELS(score_bias, score_bias, forward)

#ifndef NRG_NO_BACKWARD
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Entries begin to end of head h. Key j of query i is on entry queries - 1 - i + j. */
static void head_backward(const nrg_score_bias_backward_job *job, size_t h, size_t begin, size_t end, nrg_dtype dtype)
{
    double *sum = (double *)(job->d_diagonals + h * job->d_diagonals_stride);
    for (size_t e = begin; e < end; e++)
        sum[e] = job->accumulate ? sum[e] + 0.0 : 0.0; /* from here on a sum is never -0 */
    for (size_t b = 0; b < job->batch; b++)
        for (size_t i = 0; i < job->queries; i++) {
            const char *d_o = job->d_o + row_at(job->d_o_stride, b, h, i);
            const size_t first = job->queries - 1 - i;
            for (size_t e = larger(first, begin); e < smaller(first + job->keys, end); e++)
                sum[e] += (double)load(d_o, e - first, dtype);
        }
}

static void backward(const nrg_score_bias_backward_job *job, nrg_dtype dtype)
{
    const size_t diagonals = job->queries + job->keys - 1;
    for (size_t n = job->begin; n < job->end; n = (n / diagonals + 1) * diagonals) {
        const size_t h = n / diagonals, end = smaller(job->end - h * diagonals, diagonals);
        head_backward(job, h, n % diagonals, end, dtype);
    }
}

SCALAR_KERNELS(score_bias_backward, score_bias_backward, backward)
#endif
