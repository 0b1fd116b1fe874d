/* The public layer of rows to blocks of bytes and back: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/quantize.h"
#include "../operands/place.h"
#include "../operands/quantize.h"
#include "call.h"
#include "planes.h"

#define NRG_MAKE_TABLES
#include "../operands/quantize_calls.def"

enum { X, Q, SCALES }; /* tensors of the planes, whose lowest level are groups of rows */

/* What both calls have, and where their operands lie. Groups of rows in planes; of one plane nothing has to be said but that.
 * Jobs are filled field by field: a literal clears all of them first, by a string instruction. */
NRG_INLINE void fill(nrg_quantize_job *job, nrg_planes *p, size_t rows, size_t rows2, size_t rows3, const size_t *x,
                     const size_t *q, const size_t *scales, int ith, int nth)
{
    const size_t together = nrg_format_rows(job->format), groups = rows / together, n = groups * rows2 * rows3;
    job->x_stride = x[0];
    job->q_stride = q[0];
    job->scales_stride = scales[0];
    job->begin = nrg_share(n, ith, nth);
    job->end = nrg_share(n, ith + 1, nth);
    p->count[1] = 1;
    if ((rows2 | rows3) <= 1)
        return;
    planes_begin(p, groups, rows2, rows3, 1);
    planes_add(p, X, job, together * x[0], x + 1);
    planes_add(p, Q, job, q[0], q + 1);
    planes_add(p, SCALES, job->scales || job->scales_in ? job : NULL, together * scales[0], scales + 1);
    planes_fold(p, 1);
}

NRG_OWN_FRAME nrg_status make_quantize(nrg_quantize_job *job, nrg_planes *p, const nrg_quantize_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = quantize_precheck(a, ith, nth, &l) == NRG_OK ? NRG_OK : NRG_LAY(&l, quantize, a);
    if (status != NRG_OK)
        return status;
    job->x = a->x;
    job->q = a->packed;
    job->scales = (char *)a->scales;
    job->q_in = job->scales_in = NULL;
    job->o = NULL;
    job->dim = a->dim;
    job->format = a->format;
    job->rounding = a->rounding;
    job->far = nrg_is_far(l.bytes);
    fill(job, p, a->rows, a->rows2, a->rows3, l.stride[NRG_QUANTIZE_X], l.stride[NRG_QUANTIZE_PACKED],
         l.stride[NRG_QUANTIZE_SCALES], ith, nth);
    return NRG_OK;
}

NRG_OWN_FRAME nrg_status make_dequantize(nrg_quantize_job *job, nrg_planes *p, const nrg_dequantize_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = dequantize_precheck(a, ith, nth, &l) == NRG_OK ? NRG_OK : NRG_LAY(&l, dequantize, a);
    if (status != NRG_OK)
        return status;
    job->x = NULL;
    job->q = job->scales = NULL;
    job->q_in = a->packed;
    job->scales_in = (const char *)a->scales;
    job->o = a->o;
    job->dim = a->dim;
    job->format = a->format;
    job->rounding = NRG_QUANT_ROUND_TO_EVEN;
    job->far = 0;
    fill(job, p, a->rows, a->rows2, a->rows3, l.stride[NRG_DEQUANTIZE_O], l.stride[NRG_DEQUANTIZE_PACKED],
         l.stride[NRG_DEQUANTIZE_SCALES], ith, nth);
    return NRG_OK;
}

/* A call of the kernel for each plane. */
static void run_planes(nrg_quantize_kernel *kernel, const nrg_quantize_job *all, const nrg_planes *p)
{
    const size_t each = p->count[0];
    nrg_quantize_job job = *all;
    for (size_t n = all->begin / each; n * each < all->end; n++) {
        const size_t first = n * each;
        job.x = planes_at(all->x, p, X, n);
        job.q = planes_at(all->q, p, Q, n);
        job.scales = planes_at(all->scales, p, SCALES, n);
        job.o = planes_at(all->o, p, X, n);
        job.q_in = planes_at(all->q_in, p, Q, n);
        job.scales_in = planes_at(all->scales_in, p, SCALES, n);
        job.begin = all->begin > first ? all->begin - first : 0;
        job.end = all->end - first < each ? all->end - first : each;
        kernel(&job);
    }
}

static inline void run(nrg_quantize_kernel *kernel, const nrg_quantize_job *all, const nrg_planes *p)
{
    if (planes_are_one(p))
        kernel(all);
    else
        run_planes(kernel, all, p);
}

NRG_TABLES(quantize)

nrg_status nrg_quantize(const nrg_quantize_args *args, int ith, int nth)
{
    nrg_quantize_job job;
    nrg_planes planes;
    const nrg_status status = make_quantize(&job, &planes, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run(NRG_ACTIVE_KERNEL(quantize, args->dtype), &job, &planes);
    return status;
}

nrg_status nrg_quantize_check(const nrg_quantize_args *args) { return NRG_ASK(quantize, args); }

NRG_TABLES(dequantize)

nrg_status nrg_dequantize(const nrg_dequantize_args *args, int ith, int nth)
{
    nrg_quantize_job job;
    nrg_planes planes;
    const nrg_status status = make_dequantize(&job, &planes, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        run(NRG_ACTIVE_KERNEL(dequantize, args->dtype), &job, &planes);
    return status;
}

nrg_status nrg_dequantize_check(const nrg_dequantize_args *args) { return NRG_ASK(dequantize, args); }
