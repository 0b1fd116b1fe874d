/* The public layer of rows to blocks of bytes and back: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/quantize.h"
#include "../operands/check.h"
#include "../operands/quantize.h"
#include "../kernels.h"
#include "planes.h"
#include "share.h"
#include "stream.h"

enum { X, Q, SCALES }; /* tensors of the planes, whose lowest level are groups of rows */

/* What both calls have: strides as they were checked. */
typedef struct operands {
    const void *x, *q, *scales;
    const size_t *x_stride, *q_stride, *scales_stride;
    size_t rows, rows2, rows3;
} operands;

static void fill(nrg_quantize_job *job, nrg_planes *p, const operands *o, int ith, int nth)
{
    const size_t together = nrg_format_rows(job->format), groups = o->rows / together;
    const size_t n = groups * o->rows2 * o->rows3;
    job->x_stride = o->x_stride[0];
    job->q_stride = o->q_stride[0];
    job->scales_stride = o->scales_stride[0];
    job->begin = nrg_share(n, ith, nth);
    job->end = nrg_share(n, ith + 1, nth);
    planes_begin(p, groups, o->rows2, o->rows3, 1);
    planes_add(p, X, o->x, together * o->x_stride[0], o->x_stride + 1);
    planes_add(p, Q, o->q, o->q_stride[0], o->q_stride + 1);
    planes_add(p, SCALES, o->scales, together * o->scales_stride[0], o->scales_stride + 1);
    planes_fold(p, 1);
}

/* In frames of their own: what checking takes shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_quantize(nrg_quantize_job *job, nrg_planes *p, nrg_dtype *dtype,
                                                          const nrg_quantize_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_quantize, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_quantize_args *a = c.part[0];
    const operands o = {
        a->x,    a->packed, a->scales, c.stride[NRG_QUANTIZE_X], c.stride[NRG_QUANTIZE_PACKED], c.stride[NRG_QUANTIZE_SCALES],
        a->rows, a->rows2,  a->rows3};
    *dtype = a->dtype;
    *job = (nrg_quantize_job){
        .x = a->x, .q = a->packed, .scales = (char *)a->scales, .dim = a->dim, .format = a->format, .rounding = a->rounding};
    job->far = nrg_is_far(c.bytes);
    fill(job, p, &o, ith, nth);
    return NRG_OK;
}

static __attribute__((noinline)) nrg_status make_dequantize(nrg_quantize_job *job, nrg_planes *p, nrg_dtype *dtype,
                                                            const nrg_dequantize_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_dequantize, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_dequantize_args *a = c.part[0];
    const operands o = {a->o,
                        a->packed,
                        a->scales,
                        c.stride[NRG_DEQUANTIZE_O],
                        c.stride[NRG_DEQUANTIZE_PACKED],
                        c.stride[NRG_DEQUANTIZE_SCALES],
                        a->rows,
                        a->rows2,
                        a->rows3};
    *dtype = a->dtype;
    *job = (nrg_quantize_job){
        .q_in = a->packed, .scales_in = (const char *)a->scales, .o = a->o, .dim = a->dim, .format = a->format};
    fill(job, p, &o, ith, nth);
    return NRG_OK;
}

/* A call of the kernel for each plane. */
static void run(nrg_quantize_kernel *kernel, const nrg_quantize_job *all, const nrg_planes *p)
{
    const size_t each = p->count[0];
    nrg_quantize_job job = *all;
    for (size_t n = all->begin / each; n * each < all->end; n++) {
        const size_t first = n * each;
        const size_t x = planes_offset(p, X, n), q = planes_offset(p, Q, n), scales = planes_offset(p, SCALES, n);
        if (all->o) {
            job.o = all->o + x;
            job.q_in = all->q_in + q;
            job.scales_in = all->scales_in ? all->scales_in + scales : NULL;
        } else {
            job.x = all->x + x;
            job.q = all->q + q;
            job.scales = all->scales ? all->scales + scales : NULL;
        }
        job.begin = all->begin > first ? all->begin - first : 0;
        job.end = all->end - first < each ? all->end - first : each;
        kernel(&job);
    }
}

nrg_status nrg_quantize(const nrg_quantize_args *args, int ith, int nth)
{
    nrg_quantize_job job;
    nrg_planes planes;
    nrg_dtype dtype;
    const nrg_status status = make_quantize(&job, &planes, &dtype, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run(NRG_ACTIVE_KERNEL(quantize, dtype), &job, &planes);
    return status;
}

nrg_status nrg_quantize_check(const nrg_quantize_args *args)
{
    nrg_checked c;
    return nrg_asked(nrg_check(&c, &nrg_call_quantize, (const void *const[]){args}, 0, 1));
}

nrg_status nrg_dequantize(const nrg_dequantize_args *args, int ith, int nth)
{
    nrg_quantize_job job;
    nrg_planes planes;
    nrg_dtype dtype;
    const nrg_status status = make_dequantize(&job, &planes, &dtype, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run(NRG_ACTIVE_KERNEL(dequantize, dtype), &job, &planes);
    return status;
}

nrg_status nrg_dequantize_check(const nrg_dequantize_args *args)
{
    nrg_checked c;
    return nrg_asked(nrg_check(&c, &nrg_call_dequantize, (const void *const[]){args}, 0, 1));
}
