/* The public layer of the activations: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/activation.h"
#include "../operands/place.h"
#include "call.h"
#include "planes.h"

#define NRG_MAKE_TABLES
#include "../operands/activation_calls.def"

/* One of no elements where there is nothing to do. */
static inline void fill_job(nrg_activation_job *job, const nrg_activation_flat *args, size_t bytes, int ith, int nth)
{
    job->x = args->x;
    job->d_o = args->d_o;
    job->o = args->out;
    job->begin = nrg_share(args->count, ith, nth);
    job->end = nrg_share(args->count, ith + 1, nth);
    job->stream = nrg_wants_stream(NRG_STORE_AUTO, bytes);
    job->activation = args->g;
    job->alpha = args->alpha;
}

/* For prechecks and jobs in registers: of memory, what is stored one by one and loaded two at a time waits for the cache. */
static inline nrg_activation_flat flat_of(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, const void *d_o,
                                          void *out)
{
    return (nrg_activation_flat){
        .dtype = dtype, .g = g, .alpha = nrg_default_alpha(g), .count = count, .x = x, .d_o = d_o, .out = out};
}

static inline nrg_status run_flat(nrg_activation_kernel *const *kernels, const nrg_activation_flat *args, size_t bytes, int ith,
                                  int nth)
{
    nrg_activation_job job;
    fill_job(&job, args, bytes, ith, nth);
    if (job.begin < job.end)
        kernels[nrg_active_path()](&job);
    return NRG_OK;
}

/* Checks a call that the precheck does not accept, and finds its bytes. */
NRG_OWN_FRAME nrg_status check_flat(size_t *bytes, const nrg_call *call, nrg_activation_flat args, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = nrg_lay(&l, call, (const void *const[]){&args}, ith, nth);
    *bytes = l.bytes;
    return status;
}

NRG_TABLES(activation)

nrg_status nrg_activation_forward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, void *o, int ith, int nth)
{
    const nrg_activation_flat args = flat_of(g, dtype, count, x, NULL, o);
    nrg_laid l;
    nrg_status status = activation_forward_precheck(&args, ith, nth, &l);
    if (status != NRG_OK)
        status = check_flat(&l.bytes, &nrg_call_activation_forward, args, ith, nth);
    return status == NRG_OK ? run_flat(NRG_KERNELS_OF(activation, dtype), &args, l.bytes, ith, nth) : status;
}

nrg_status nrg_activation_forward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, void *o)
{
    const nrg_activation_flat args = flat_of(g, dtype, count, x, NULL, o);
    return NRG_ASK(activation_forward, &args);
}

#ifndef NRG_NO_BACKWARD
NRG_TABLES(activation_backward)

nrg_status nrg_activation_backward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, const void *d_o, void *dx,
                                   int ith, int nth)
{
    const nrg_activation_flat args = flat_of(g, dtype, count, x, d_o, dx);
    nrg_laid l;
    nrg_status status = activation_backward_precheck(&args, ith, nth, &l);
    if (status != NRG_OK)
        status = check_flat(&l.bytes, &nrg_call_activation_backward, args, ith, nth);
    return status == NRG_OK ? run_flat(NRG_KERNELS_OF(activation_backward, dtype), &args, l.bytes, ith, nth) : status;
}

nrg_status nrg_activation_backward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, const void *d_o,
                                         void *dx)
{
    const nrg_activation_flat args = flat_of(g, dtype, count, x, d_o, dx);
    return NRG_ASK(activation_backward, &args);
}
#endif

/* ---- rows ---- */

enum { X, D_O, OUT }; /* tensors of the planes, whose lowest level are the elements of a row */

NRG_OWN_FRAME nrg_status make_rows(nrg_activation_job *job, nrg_planes *p, const nrg_call *call, const nrg_activation_args *a,
                                   int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = nrg_lay(&l, call, (const void *const[]){a}, ith, nth);
    if (status != NRG_OK)
        return status;
    const int is_backward = call == &nrg_call_activation_rows_backward;
    const nrg_activation_flat flat = {.g = nrg_activation_with(a->activation, a->alpha),
                                      .alpha = a->alpha,
                                      .count = a->dim * a->rows * a->rows2 * a->rows3,
                                      .x = a->x,
                                      .d_o = a->d_o,
                                      .out = is_backward ? a->dx : a->o};
    const size_t element = a->dtype == NRG_F32 ? 4 : 2;
    fill_job(job, &flat, l.bytes, ith, nth);
    planes_begin(p, a->dim, a->rows, a->rows2, a->rows3);
    planes_add(p, X, a->x, element, l.stride[NRG_ACTIVATION_X]);
    planes_add(p, D_O, a->d_o, element, l.stride[NRG_ACTIVATION_BACKWARD_D_O]);
    planes_add(p, OUT, flat.out, element, l.stride[is_backward ? NRG_ACTIVATION_BACKWARD_DX : NRG_ACTIVATION_O]);
    planes_sort(p, 1, OUT);
    planes_fold(p, 1);
    if (!planes_are_one(p) && p->count[0] * element < NRG_STREAM_RUN)
        job->stream = 0;
    return NRG_OK;
}

/* A call for each run of elements that lie together in all tensors. */
static void run_rows(nrg_activation_kernel *kernel, const nrg_activation_job *all, const nrg_planes *p)
{
    const size_t each = p->count[0];
    nrg_activation_job job = *all;
    for (size_t row = all->begin / each; row * each < all->end; row++) {
        const size_t first = row * each;
        job.x = planes_at(all->x, p, X, row);
        job.d_o = planes_at(all->d_o, p, D_O, row);
        job.o = planes_at(all->o, p, OUT, row);
        job.begin = all->begin > first ? all->begin - first : 0;
        job.end = all->end - first < each ? all->end - first : each;
        kernel(&job);
    }
}

nrg_status nrg_activation_rows_forward(const nrg_activation_args *args, int ith, int nth)
{
    nrg_activation_job job;
    nrg_planes planes;
    const nrg_status status = make_rows(&job, &planes, &nrg_call_activation_rows_forward, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run_rows(NRG_ACTIVE_KERNEL(activation, args->dtype), &job, &planes);
    return status;
}

nrg_status nrg_activation_rows_forward_check(const nrg_activation_args *args) { return NRG_ASK(activation_rows_forward, args); }

#ifndef NRG_NO_BACKWARD
nrg_status nrg_activation_rows_backward(const nrg_activation_args *args, int ith, int nth)
{
    nrg_activation_job job;
    nrg_planes planes;
    const nrg_status status = make_rows(&job, &planes, &nrg_call_activation_rows_backward, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run_rows(NRG_ACTIVE_KERNEL(activation_backward, args->dtype), &job, &planes);
    return status;
}

nrg_status nrg_activation_rows_backward_check(const nrg_activation_args *args) { return NRG_ASK(activation_rows_backward, args); }
#endif
