/* The public layer of the activations: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "checks.h"

enum operand { X = 1, D_O = 2, OUT = 4 };

/* Fills the job; one of no elements where there is nothing to do. */
static nrg_status prepare(nrg_activation_job *job, nrg_activation g, nrg_dtype dtype, size_t n, const void *x, const void *d_o,
                          int backward, void *out, int ith, int nth)
{
    if ((unsigned)g > NRG_ACT_SOFTPLUS || (dtype != NRG_F32 && dtype != NRG_F16 && dtype != NRG_BF16))
        return NRG_ERR_ENUM;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if (n && (!x || !out || (backward && !d_o)))
        return NRG_ERR_NULL;
    /* a tensor is one row of n elements */
    const size_t rows = n ? 1 : 0;
    size_t x_stride = 0, d_o_stride = 0, out_stride = 0;
    extent operands[3];
    extents all = {0, operands};
    nrg_status status;
    if ((status = add_operand(&all, X, ANY_OPERAND, x, dtype, n, rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, D_O, ANY_OPERAND, backward ? d_o : NULL, dtype, n, rows, &d_o_stride)) != NRG_OK ||
        (status = add_operand(&all, OUT, X | D_O, out, dtype, n, rows, &out_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    job->x = x;
    job->d_o = d_o;
    job->o = out;
    job->begin = share(n, ith, nth);
    job->end = share(n, ith + 1, nth);
    job->stream = wants_stream(NRG_STORE_AUTO, &all);
    job->activation = g;
    return NRG_OK;
}

nrg_status nrg_activation_forward(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, void *o, int ith, int nth)
{
    nrg_activation_job job;
    nrg_status status = prepare(&job, g, dtype, n, x, NULL, 0, o, ith, nth);
    if (status != NRG_OK || job.begin == job.end)
        return status;
    NRG_ACTIVE_KERNEL(activation, dtype)(&job);
    return NRG_OK;
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_activation_backward(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, const void *d_o, void *dx, int ith,
                                   int nth)
{
    nrg_activation_job job;
    nrg_status status = prepare(&job, g, dtype, n, x, d_o, 1, dx, ith, nth);
    if (status != NRG_OK || job.begin == job.end)
        return status;
    NRG_ACTIVE_KERNEL(activation_backward, dtype)(&job);
    return NRG_OK;
}
#endif
