/* The public layer of the activations: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/activation.h"
#include "../operands/activation.h"
#include "../operands/check.h"
#include "quick.h"
#include "share.h"
#include "stream.h"

/* One of no elements where there is nothing to do. */
static inline void fill_job(nrg_activation_job *job, const nrg_activation_args *args, size_t bytes, int ith, int nth)
{
    job->x = args->x;
    job->d_o = args->d_o;
    job->o = args->out;
    job->begin = nrg_share(args->n, ith, nth);
    job->end = nrg_share(args->n, ith + 1, nth);
    job->stream = nrg_wants_stream(NRG_STORE_AUTO, bytes);
    job->activation = args->activation;
}

/* Whether a call is plainly sound; *bytes is then what it moves. */
static inline int is_plain(size_t *bytes, const nrg_activation_args *a, int is_backward, int ith, int nth)
{
    const size_t element = a->dtype == NRG_F32 ? 4 : 2, row = a->n * element;
    quick_operand x, d_o, out;
    const int options = ((unsigned)a->dtype - NRG_F32 <= NRG_BF16 - NRG_F32) & ((unsigned)a->activation <= NRG_ACT_SOFTPLUS) &
                        (a->n - 1 < QUICK_MOST) & (ith >= 0) & (ith < nth);
    const int operands = (a->x != NULL) & (a->out != NULL) & ((a->d_o != NULL) == is_backward);
    const int lie_well = quick_rows(&x, a->x, 0, 1, row, element - 1) & quick_rows(&d_o, a->d_o, 0, 1, row, element - 1) &
                         quick_rows(&out, a->out, 0, 1, row, element - 1);
    *bytes = row * (size_t)(2 + is_backward);
    return options & operands & lie_well & quick_apart(&out, &x, 1) & quick_apart(&out, &d_o, 1);
}

/* All other calls. In a frame of its own: what checking takes shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_job(nrg_activation_job *job, const nrg_call *call,
                                                     const nrg_activation_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, call, (const void *const[]){args}, ith, nth);
    if (status == NRG_OK)
        fill_job(job, args, c.bytes, ith, nth);
    return status;
}

static inline nrg_status prepare(nrg_activation_job *job, const nrg_activation_args *args, int is_backward, int ith, int nth)
{
    size_t bytes;
    if (!is_plain(&bytes, args, is_backward, ith, nth))
        return make_job(job, is_backward ? &nrg_call_activation_backward : &nrg_call_activation_forward, args, ith, nth);
    fill_job(job, args, bytes, ith, nth);
    return NRG_OK;
}

nrg_status nrg_activation_forward(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, void *o, int ith, int nth)
{
    nrg_activation_job job;
    const nrg_activation_args args = {.dtype = dtype, .activation = g, .n = n, .x = x, .out = o};
    const nrg_status status = prepare(&job, &args, 0, ith, nth);
    if (status != NRG_OK || job.begin == job.end)
        return status;
    NRG_ACTIVE_KERNEL(activation, dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_activation_forward_check(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, void *o)
{
    nrg_activation_job job;
    const nrg_activation_args args = {.dtype = dtype, .activation = g, .n = n, .x = x, .out = o};
    return prepare(&job, &args, 0, 0, 1);
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_activation_backward(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, const void *d_o, void *dx, int ith,
                                   int nth)
{
    nrg_activation_job job;
    const nrg_activation_args args = {.dtype = dtype, .activation = g, .n = n, .x = x, .d_o = d_o, .out = dx};
    const nrg_status status = prepare(&job, &args, 1, ith, nth);
    if (status != NRG_OK || job.begin == job.end)
        return status;
    NRG_ACTIVE_KERNEL(activation_backward, dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_activation_backward_check(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, const void *d_o, void *dx)
{
    nrg_activation_job job;
    const nrg_activation_args args = {.dtype = dtype, .activation = g, .n = n, .x = x, .d_o = d_o, .out = dx};
    return prepare(&job, &args, 1, 0, 1);
}
#endif
