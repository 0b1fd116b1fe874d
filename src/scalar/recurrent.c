/* Chains of vectors p_k = tanh(W p_(k-1) + b), forward and backward: the reference. docs/ops/recurrent.md says in words what
 * these loops do to the last bit.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/recurrent.h"
#include "activation.h"
#include "element.h"
#include "lanes.h"

enum { LANES = 32 };

/* ---- forward ---- */

/* Element j in lane j mod 32; the lanes fold by halves. */
static double dot(const char *w, nrg_dtype w_dtype, const char *p, nrg_dtype p_dtype, size_t dim)
{
    double lane[LANES] = {0};
    for (size_t j = 0; j < dim; j++)
        lane[j % LANES] += (double)load(w, j, w_dtype) * (double)load(p, j, p_dtype); /* the product is exact */
    return fold_doubles(lane, LANES, 1);
}

static void forward(const nrg_recurrent_job *job, nrg_dtype dtype)
{
    const nrg_dtype w_dtype = job->w_f32 ? NRG_F32 : dtype;
    for (size_t chain = job->begin; chain < job->end; chain++) {
        const char *before = job->p0 + chain * job->p0_stride;
        nrg_dtype before_dtype = job->p0_f32 ? NRG_F32 : dtype;
        for (size_t k = 0; k < job->n; k++) {
            char *p = job->p + chain * job->p_chain_stride + k * job->p_stride;
            for (size_t i = 0; i < job->dim; i++) {
                double sum = dot(job->w + i * job->w_stride, w_dtype, before, before_dtype, job->dim);
                if (job->b)
                    sum += (double)load(job->b, i, w_dtype);
                store(p, i, dtype, activate(NRG_ACT_TANH, (float)sum));
            }
            before = p;
            before_dtype = dtype;
        }
    }
}

SCALAR_KERNELS(recurrent, recurrent, forward)

#ifndef NRG_NO_BACKWARD
/* ---- backward: g_k from the last position to the first ---- */

/* Element j of Wᵀ g, rows of W in order; g NULL: 0. */
static double transposed(const nrg_recurrent_backward_job *job, nrg_dtype w_dtype, const float *g, size_t j)
{
    double sum = 0;
    for (size_t i = 0; g && i < job->dim; i++)
        sum += (double)load(job->w + i * job->w_stride, j, w_dtype) * (double)g[i];
    return sum;
}

static void backward(const nrg_recurrent_backward_job *job, nrg_dtype dtype)
{
    const nrg_dtype w_dtype = job->w_f32 ? NRG_F32 : dtype;
    for (size_t chain = job->begin; chain < job->end; chain++) {
        const float *after = NULL;
        for (size_t k = job->n; k--;) {
            const char *p = job->p + chain * job->p_chain_stride + k * job->p_stride;
            const char *dp = job->dp + chain * job->dp_chain_stride + k * job->dp_stride;
            float *g = job->g + (chain * job->n + k) * job->dim;
            for (size_t j = 0; j < job->dim; j++) {
                double value = (double)load(p, j, dtype), slope = 1 - value * value;
                g[j] = (float)(((double)load(dp, j, dtype) + transposed(job, w_dtype, after, j)) * slope);
            }
            after = g;
        }
        if (job->dp0) {
            float *dp0 = (float *)(void *)((char *)job->dp0 + chain * job->dp0_stride);
            for (size_t j = 0; j < job->dim; j++)
                dp0[j] = (float)transposed(job, w_dtype, after, j);
        }
    }
}

SCALAR_KERNELS(recurrent_backward, recurrent_backward, backward)

/* ---- dW and db: sums over chains and positions, in order ---- */

/* Element j of p_(k-1), where k counts from 0 for p_1. */
static double before_at(const nrg_recurrent_backward_job *job, nrg_dtype dtype, size_t chain, size_t k, size_t j)
{
    if (k == 0)
        return (double)load(job->p0 + chain * job->p0_stride, j, job->p0_f32 ? NRG_F32 : dtype);
    return (double)load(job->p + chain * job->p_chain_stride + (k - 1) * job->p_stride, j, dtype);
}

static void add_total(float *to, double sum, int accumulate) { *to = (float)(accumulate ? (double)*to + sum : sum); }

static void reduce(const nrg_recurrent_backward_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++) {
        const float *g = job->g ? job->g + i : NULL; /* absent where there are no steps */
        for (size_t j = 0; job->dw && j < job->dim; j++) {
            double sum = 0;
            for (size_t chain = 0; chain < job->chains; chain++)
                for (size_t k = 0; k < job->n; k++)
                    sum += (double)g[(chain * job->n + k) * job->dim] * before_at(job, dtype, chain, k, j);
            float *dw = (float *)(void *)((char *)job->dw + i * job->dw_stride);
            add_total(&dw[j], sum, job->accumulate);
        }
        if (job->db) {
            double sum = 0;
            for (size_t k = 0; k < job->chains * job->n; k++)
                sum += (double)g[k * job->dim];
            add_total(&job->db[i], sum, job->accumulate);
        }
    }
}

SCALAR_KERNELS(recurrent_reduce, recurrent_backward, reduce)
#endif
