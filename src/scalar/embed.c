/* The embedding layer and its gradients: the reference. What these functions do is, to the last bit, what every path does.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/embed.h"
#include "element.h"

/* ---- o[t] = term 0 + term 1 + … ---- */

static const char *row_at(const nrg_embed_term *term, size_t token)
{
    const size_t t = token % term->period;
    return term->from + (term->ids ? (size_t)term->ids[t] : t) * term->stride;
}

static float term_at(const nrg_embed_term *term, size_t token, size_t i, nrg_dtype dtype)
{
    return load(row_at(term, token), i, term->f32 ? NRG_F32 : dtype) * term->scale;
}

/* One term without a scale is copied: 1 · x is x only where subnormals are not flushed. */
static float element_of(const nrg_embed_job *job, size_t token, size_t i, nrg_dtype dtype)
{
    if (job->is_copy)
        return load(row_at(&job->term[0], token), i, dtype);
    float sum = term_at(&job->term[0], token, i, dtype);
    for (int k = 1; k < job->terms; k++)
        sum += term_at(&job->term[k], token, i, dtype);
    return sum;
}

static void forward(const nrg_embed_job *job, nrg_dtype dtype)
{
    for (size_t token = job->row_begin; token < job->row_end; token++)
        for (size_t i = 0; i < job->dim; i++)
            store(job->o + token * job->o_stride, i, dtype, element_of(job, token, i, dtype));
}

SCALAR_KERNELS(embed, embed, forward)

#ifndef NRG_NO_BACKWARD
/* ---- dT[k] = scale · Σ d_o[t] ---- */

/* How many tokens row k has, and number n of them, which is the n-th in the sequence. Without ids they are a period apart. */
static size_t token_count(const nrg_embed_backward_job *job, size_t k)
{
    if (job->start)
        return job->start[k + 1] - job->start[k];
    if (k < job->first || k - job->first >= job->period || k - job->first >= job->tokens)
        return 0;
    return 1 + (job->tokens - 1 - (k - job->first)) / job->period;
}

static size_t token_of(const nrg_embed_backward_job *job, size_t k, size_t n)
{
    return job->start ? job->order[job->start[k] + n] : k - job->first + n * job->period;
}

static void backward(const nrg_embed_backward_job *job, nrg_dtype dtype)
{
    const nrg_dtype table_dtype = job->table_f32 ? NRG_F32 : dtype;
    const int is_copy = !job->accumulate && job->scale == 1 && table_dtype == dtype; /* of one token, as in element_of */
    for (size_t k = job->row_begin; k <= job->row_end; k++) {
        const size_t begin = k == job->row_begin ? job->column_begin : 0, end = k == job->row_end ? job->column_end : job->dim;
        for (size_t i = begin; i < end; i++) {
            const size_t count = token_count(job, k);
            char *row = job->d_table + k * job->d_table_stride;
            if (!count) {
                if (!job->accumulate)
                    store(row, i, table_dtype, 0);
                continue;
            }
            if (is_copy && count == 1) {
                store(row, i, table_dtype, load(job->d_o + token_of(job, k, 0) * job->d_o_stride, i, dtype));
                continue;
            }
            /* from the first token on, and not from 0: a sum of -0 alone stays what it is */
            double sum = (double)load(job->d_o + token_of(job, k, 0) * job->d_o_stride, i, dtype);
            for (size_t n = 1; n < count; n++)
                sum += (double)load(job->d_o + token_of(job, k, n) * job->d_o_stride, i, dtype);
            double result = job->accumulate ? fma(job->scale, sum, (double)load(row, i, table_dtype)) : job->scale * sum;
            store(row, i, table_dtype, (float)result);
        }
    }
}

SCALAR_KERNELS(embed_backward, embed_backward, backward)
#endif
