/* The public layer of gated linear units: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/quantize.h"
#include "../operands/activation.h"
#include "../operands/place.h"
#include "call.h"
#include "planes.h"

#define NRG_MAKE_TABLES
#include "../operands/glu_calls.def"

enum { A, B, D_O, O, DA, DB }; /* tensors of the planes, whose lowest level are the elements of a row */

static inline void fill_job(nrg_glu_job *job, const nrg_glu_args *args, size_t bytes, int ith, int nth)
{
    const size_t count = args->dim * args->rows * args->rows2 * args->rows3;
    job->a = args->x ? args->x : args->a;
    job->b = args->b;
    job->d_o = args->d_o;
    job->o = args->o;
    job->da = args->x ? args->dx : args->da;
    job->db = args->db;
    job->begin = nrg_share(count, ith, nth);
    job->end = nrg_share(count, ith + 1, nth);
    job->stream = nrg_wants_stream(NRG_STORE_AUTO, bytes);
    job->activation = nrg_activation_with(args->activation, args->alpha);
    job->alpha = args->alpha;
    job->limit = args->limit < FLT_MAX ? args->limit : (float)INFINITY;
    job->b_offset = args->b_offset != 0 ? args->b_offset : -0.0f;
}

_Static_assert((int)NRG_GLU_A == (int)NRG_GLU_BACKWARD_A && (int)NRG_GLU_B == (int)NRG_GLU_BACKWARD_B &&
                   (int)NRG_GLU_X == (int)NRG_GLU_BACKWARD_X,
               "inputs have one number in both passes");

/* The job of a call that is sound. */
NRG_OWN_FRAME void make_job(nrg_glu_job *job, nrg_planes *p, const nrg_laid *l, const nrg_glu_args *a, int ith, int nth)
{
    const size_t element = a->dtype == NRG_F32 ? 4 : 2, of_a = a->x ? 2 * element : element;
    fill_job(job, a, l->bytes, ith, nth);
    planes_begin(p, a->dim, a->rows, a->rows2, a->rows3);
    planes_add(p, A, job->a, of_a, l->stride[a->x ? NRG_GLU_X : NRG_GLU_A]);
    planes_add(p, B, job->b, element, l->stride[NRG_GLU_B]);
    planes_add(p, O, job->o, element, l->stride[NRG_GLU_O]);
    planes_add(p, D_O, job->d_o, element, l->stride[NRG_GLU_BACKWARD_D_O]);
    planes_add(p, DA, job->da, of_a, l->stride[a->x ? NRG_GLU_BACKWARD_DX : NRG_GLU_BACKWARD_DA]);
    planes_add(p, DB, job->db, element, l->stride[NRG_GLU_BACKWARD_DB]);
    planes_sort(p, 1, job->o ? O : D_O);
    planes_fold(p, 1);
    if (!planes_are_one(p) && p->count[0] * element < NRG_STREAM_RUN)
        job->stream = 0;
}

/* A call of the kernel for each run of elements that lie together in all tensors. */
static void run_planes(nrg_glu_kernel *kernel, const nrg_glu_job *all, const nrg_planes *p)
{
    const size_t each = p->count[0];
    nrg_glu_job job = *all;
    for (size_t n = all->begin / each; n * each < all->end; n++) {
        const size_t first = n * each;
        job.a = planes_at(all->a, p, A, n);
        job.b = planes_at(all->b, p, B, n);
        job.d_o = planes_at(all->d_o, p, D_O, n);
        job.o = planes_at(all->o, p, O, n);
        job.da = planes_at(all->da, p, DA, n);
        job.db = planes_at(all->db, p, DB, n);
        job.begin = all->begin > first ? all->begin - first : 0;
        job.end = all->end - first < each ? all->end - first : each;
        kernel(&job);
    }
}

/* A call of one plane whose operands have no gaps: the kernel takes all of it as one row. With the checker a call of swiglu_oai
 * takes 250 ns more: a fifth of what 4096 elements take. */
static inline int is_plane(const nrg_glu_args *a) { return a && a->rows2 == 1 && a->rows3 == 1 && !a->format; }

static inline int is_plain(nrg_laid *l, const nrg_glu_args *a, int ith, int nth)
{
    if (!is_plane(a) || a->x || glu_forward_precheck(a, ith, nth, l) != NRG_OK)
        return 0;
    const size_t row = a->dim * (a->dtype == NRG_F32 ? 4 : 2);
    return !((l->stride[NRG_GLU_A][0] ^ row) | (l->stride[NRG_GLU_B][0] ^ row) | (l->stride[NRG_GLU_O][0] ^ row));
}

/* All other calls. Apart, since what x and bytes need would be a twentieth of the instructions of the calls above. */
NRG_OWN_FRAME nrg_status lay(nrg_laid *l, const nrg_glu_args *a, int ith, int nth)
{
    const int is_sound = a && a->rows2 == 1 && a->rows3 == 1 && glu_forward_precheck(a, ith, nth, l) == NRG_OK;
    return is_sound ? NRG_OK : NRG_LAY(l, glu_forward, a);
}

/* Whether all pairs of a call follow each other, and its results do. */
static inline int are_plain_pairs(const nrg_laid *l, const nrg_glu_args *a)
{
    const size_t row = a->dim * (a->dtype == NRG_F32 ? 4 : 2);
    return a->x && is_plane(a) && !((l->stride[NRG_GLU_X][0] ^ 2 * row) | (l->stride[NRG_GLU_O][0] ^ row));
}

#ifndef NRG_NO_QUANTIZE
static size_t row_offset(const size_t stride[NRG_LEVELS], const size_t index[NRG_LEVELS])
{
    return index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2];
}

NRG_TABLES(glu_quantized)

/* A call with bytes instead of o: rows in planes, none of which are made one. A call of the kernel for each row. */
NRG_OWN_FRAME nrg_status forward_quantized(const nrg_laid *l, const nrg_glu_args *a, int ith, int nth)
{
    const size_t together = nrg_format_rows(a->format), groups = a->rows / together * a->rows2 * a->rows3;
    const char *const first_a = a->x ? a->x : a->a, *const first_b = a->b;
    nrg_glu_kernel *const kernel = NRG_ACTIVE_KERNEL(glu_quantized, a->dtype);
    nrg_quant_row to = {.format = a->format, .rounding = a->rounding};
    nrg_glu_job job;
    fill_job(&job, a, l->bytes, 0, 1);
    job.o = NULL;
    job.quant = &to;
    job.end = a->dim;
    for (size_t n = nrg_share(groups, ith, nth) * together, end = nrg_share(groups, ith + 1, nth) * together; n < end; n++) {
        const size_t plane = n / a->rows;
        size_t index[NRG_LEVELS] = {n % a->rows, plane % a->rows2, plane / a->rows2};
        job.a = first_a + row_offset(l->stride[a->x ? NRG_GLU_X : NRG_GLU_A], index);
        job.b = first_b ? first_b + row_offset(l->stride[NRG_GLU_B], index) : NULL;
        to.scales = a->scales ? (float *)((char *)a->scales + row_offset(l->stride[NRG_GLU_SCALES], index)) : NULL;
        to.row = index[0] % together;
        index[0] /= together;
        to.q = (char *)a->packed + row_offset(l->stride[NRG_GLU_PACKED], index);
        kernel(&job);
    }
    return NRG_OK;
}
#endif

NRG_TABLES(glu)

static inline nrg_status run_row(nrg_glu_job *job, const nrg_glu_args *a, size_t bytes, int ith, int nth)
{
    fill_job(job, a, bytes, ith, nth);
    if (job->begin < job->end)
        NRG_ACTIVE_KERNEL(glu, a->dtype)(job);
    return NRG_OK;
}

nrg_status nrg_glu_forward(const nrg_glu_args *args, int ith, int nth)
{
    nrg_glu_job job;
    nrg_planes planes;
    nrg_laid plain, l; /* plain is never in memory, since no function is given its address */
    if (is_plain(&plain, args, ith, nth))
        return run_row(&job, args, plain.bytes, ith, nth);
    const nrg_status status = lay(&l, args, ith, nth);
    if (status != NRG_OK)
        return status;
#ifndef NRG_NO_QUANTIZE
    if (args->format != NRG_QUANT_NONE)
        return forward_quantized(&l, args, ith, nth);
#endif
    if (are_plain_pairs(&l, args))
        return run_row(&job, args, l.bytes, ith, nth);
    make_job(&job, &planes, &l, args, ith, nth);
    if (job.begin < job.end)
        run_planes(NRG_ACTIVE_KERNEL(glu, args->dtype), &job, &planes);
    return NRG_OK;
}

nrg_status nrg_glu_forward_check(const nrg_glu_args *args) { return NRG_ASK(glu_forward, args); }

#ifndef NRG_NO_BACKWARD
static inline int is_plain_backward(nrg_laid *l, const nrg_glu_args *a, int ith, int nth)
{
    if (!is_plane(a) || a->x || glu_backward_precheck(a, ith, nth, l) != NRG_OK)
        return 0;
    const size_t row = a->dim * (a->dtype == NRG_F32 ? 4 : 2);
    return !((l->stride[NRG_GLU_BACKWARD_A][0] ^ row) | (l->stride[NRG_GLU_BACKWARD_B][0] ^ row) |
             (l->stride[NRG_GLU_BACKWARD_D_O][0] ^ row) | (l->stride[NRG_GLU_BACKWARD_DA][0] ^ row) |
             (l->stride[NRG_GLU_BACKWARD_DB][0] ^ row));
}

NRG_TABLES(glu_backward)

nrg_status nrg_glu_backward(const nrg_glu_args *args, int ith, int nth)
{
    nrg_glu_job job;
    nrg_planes planes;
    nrg_laid laid;
    if (is_plain_backward(&laid, args, ith, nth)) {
        fill_job(&job, args, laid.bytes, ith, nth);
        if (job.begin < job.end)
            NRG_ACTIVE_KERNEL(glu_backward, args->dtype)(&job);
        return NRG_OK;
    }
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, glu_backward, args);
    if (status != NRG_OK)
        return status;
    make_job(&job, &planes, &l, args, ith, nth);
    if (job.begin < job.end)
        run_planes(NRG_ACTIVE_KERNEL(glu_backward, args->dtype), &job, &planes);
    return NRG_OK;
}

nrg_status nrg_glu_backward_check(const nrg_glu_args *args) { return NRG_ASK(glu_backward, args); }
#endif
