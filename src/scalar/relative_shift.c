/* The relative shift and the bias pair: the reference.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/relative.h"
#include "element.h"

static size_t row_at(nrg_head_strides s, size_t batch, size_t head, size_t row)
{
    return batch * s.batch + head * s.head + row * s.row;
}

static void shift(const nrg_relative_shift_job *job, nrg_dtype dtype)
{
    const size_t size = element_size(dtype);
    for (size_t n = job->begin; n < job->end; n++) {
        const size_t batch = n / job->rows / job->heads, head = n / job->rows % job->heads, row = n % job->rows;
        const char *in = job->in ? job->in + row_at(job->in_strides, batch, head, row) : NULL;
        char *out = job->out + row_at(job->out_strides, batch, head, row);
        for (size_t t = 0; t < job->out_dim; t++) {
            const int64_t column = job->first + job->slope * (int64_t)row + (int64_t)t;
            const int exists = column >= 0 && (uint64_t)column < job->in_dim;
            if (job->accumulate) {
                if (exists)
                    store(out, t, dtype, load(out, t, dtype) + load(in, (size_t)column, dtype));
            } else if (exists) {
                memcpy(out + t * size, in + (size_t)column * size, size);
            } else {
                memset(out + t * size, 0, size);
            }
        }
    }
}

static void bias_pair(const nrg_head_bias_job *job, nrg_dtype dtype)
{
    const nrg_dtype bias_dtype = job->bias_f32 ? NRG_F32 : dtype;
    for (size_t n = job->begin; n < job->end; n++) {
        const size_t batch = n / job->heads / job->rows, row = n / job->heads % job->rows, head = n % job->heads;
        const char *q = job->q + row_at(job->q_strides, batch, head, row);
        char *o_u = job->o_u ? job->o_u + row_at(job->o_u_strides, batch, head, row) : NULL;
        char *o_v = job->o_v ? job->o_v + row_at(job->o_v_strides, batch, head, row) : NULL;
        for (size_t c = 0; c < job->dim; c++) {
            const float value = load(q, c, dtype); /* q may be one of the outputs */
            if (o_u)
                store(o_u, c, dtype, value + load(job->u, head * job->dim + c, bias_dtype));
            if (o_v)
                store(o_v, c, dtype, value + load(job->v, head * job->dim + c, bias_dtype));
        }
    }
}

SCALAR_KERNELS(relative_shift, relative_shift, shift)
SCALAR_KERNELS(head_bias_pair, head_bias, bias_pair)

#ifndef NRG_NO_BACKWARD
static void add_up(float *out, double sum, int accumulate)
{
    if (out)
        *out = (float)(accumulate ? (double)*out + sum : sum);
}

static void bias_pair_backward(const nrg_head_bias_backward_job *job, nrg_dtype dtype)
{
    for (size_t column = job->begin; column < job->end; column++) {
        const size_t head = column / job->dim, c = column % job->dim;
        double du = 0, dv = 0;
        for (size_t batch = 0; batch < job->batch; batch++)
            for (size_t row = 0; row < job->rows; row++) {
                const char *u = job->d_o_u ? job->d_o_u + row_at(job->d_o_u_strides, batch, head, row) : NULL;
                const char *v = job->d_o_v ? job->d_o_v + row_at(job->d_o_v_strides, batch, head, row) : NULL;
                char *dq = job->dq ? job->dq + row_at(job->dq_strides, batch, head, row) : NULL;
                const float from_u = u ? load(u, c, dtype) : 0, from_v = v ? load(v, c, dtype) : 0;
                du += (double)from_u;
                dv += (double)from_v;
                if (dq)
                    store(dq, c, dtype, from_u + from_v);
            }
        add_up(job->du ? job->du + column : NULL, du, job->accumulate);
        add_up(job->dv ? job->dv + column : NULL, dv, job->accumulate);
    }
}

SCALAR_KERNELS(head_bias_pair_backward, head_bias_backward, bias_pair_backward)
#endif
