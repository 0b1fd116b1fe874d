/* The public layer of a norm, a residual, and a norm of the sum. Backward is two backward passes in turn, a block of rows at a
 * time.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/norm.h"
#include "../operands/place.h"
#include "norm_backward.h"
#include "norm_formula.h"
#include "norm_quant.h"

#define NRG_MAKE_TABLES
#include "../operands/norm_sandwich_calls.def"

enum { TURN_BYTES = 64 << 10 /* of r, which wait for the second norm */ };

enum { X, Y, R, O, OWN_TENSORS, Q = OWN_TENSORS, SCALES }; /* tensors of the planes; bytes are those of a whole call */

/* Rows in planes: where they lie, and the strides inside of a plane. */
static void set_planes(nrg_planes *p, size_t stride[OWN_TENSORS], const nrg_norm_sandwich_args *a, const void *r,
                       const nrg_laid *l)
{
    static const unsigned char at[OWN_TENSORS] = {NRG_SANDWICH_X, NRG_SANDWICH_Y, NRG_SANDWICH_R, NRG_SANDWICH_O};
    const void *const tensor[OWN_TENSORS] = {a->x, a->y, r, a->o};
    planes_begin(p, 1, a->rows, a->rows2, a->rows3);
    for (unsigned i = 0; i < OWN_TENSORS; i++)
        planes_add(p, i, tensor[i], 0, l->stride[i == R && !a->r ? NRG_SANDWICH_O : at[i]]);
    if (a->packed) {
        planes_add(p, Q, a->packed, 0, l->stride[NRG_SANDWICH_PACKED]);
        planes_add(p, SCALES, a->scales, 0, l->stride[NRG_SANDWICH_SCALES]);
        quant_planes(p);
    } else {
        planes_fold(p, 0);
    }
    for (unsigned i = 0; i < OWN_TENSORS; i++)
        stride[i] = p->stride[i][0];
}

NRG_OWN_FRAME nrg_status make_job(nrg_norm_sandwich_job *job, nrg_norm_quant *quant, nrg_planes *planes, const nrg_norm_spec *one,
                                  const nrg_norm_spec *two, const nrg_norm_sandwich_args *a, int ith, int nth)
{
    nrg_laid l;
    /* what is tested here is a constant in the precheck, and has no code there */
    const int is_plain = a && a->rows2 == 1 && a->rows3 == 1 && !a->mean1 && !a->rstd1 && !a->mean2 && !a->rstd2 &&
                         norm_sandwich_forward_precheck(one, two, a, ith, nth, &l) == NRG_OK;
    const nrg_status status = is_plain ? NRG_OK : NRG_LAY(&l, norm_sandwich_forward, one, two, a);
    if (status != NRG_OK)
        return status;
    const size_t rows = a->rows * a->rows2 * a->rows3;
    /* r lies in its own place, or where o will be */
    void *const r = a->r ? a->r : a->o;
    const nrg_dtype r_dtype = nrg_own_dtype(one->r_dtype, one->dtype);
    const int r_is_wide = r_dtype != one->dtype;
    const size_t row_bytes = one->dim * nrg_dtype_size(r_dtype);
    size_t stride[OWN_TENSORS] = {l.stride[NRG_SANDWICH_X][0], l.stride[NRG_SANDWICH_Y][0],
                                  l.stride[a->r ? NRG_SANDWICH_R : NRG_SANDWICH_O][0], l.stride[NRG_SANDWICH_O][0]};
    planes->count[1] = 1;
    if (a->rows2 != 1 || a->rows3 != 1)
        set_planes(planes, stride, a, r, &l);
    nrg_norm_job *const first = &job->first, *const second = &job->second;
    begin_norm(first, one, a->w1, a->b1);
    first->x = a->x;
    first->y = a->y;
    first->o = r;
    first->mean = a->mean1;
    first->rstd = a->rstd1;
    first->x_stride = stride[X];
    first->y_stride = stride[Y];
    first->o_stride = stride[R];
    first->y_f32 = nrg_own_dtype(one->y_dtype, one->dtype) == NRG_F32;
    first->after = 1;
    first->o_f32 = r_is_wide;
    first->stream = nrg_is_far(l.bytes) ? 2 : 0; /* r is read again at once */
    begin_norm(second, two, a->w2, a->b2);
    second->x = r;
    second->x_stride = stride[R];
    if (r_is_wide) {
        second->r = r;
        second->r_stride = stride[R];
        second->r_f32 = 1;
        second->from_r = 1;
    }
    second->o = a->o;
    second->o_stride = stride[O];
    second->mean = a->mean2;
    second->rstd = a->rstd2;
    second->stream = nrg_wants_stream(a->store, l.bytes);
    job->row_begin = nrg_share(rows, ith, nth);
    job->row_end = nrg_share(rows, ith + 1, nth);
    job->turn = TURN_BYTES / row_bytes ? TURN_BYTES / row_bytes : 1;
    if (two->format) {
        const size_t together = nrg_format_rows(two->format);
        second->quant = quant;
        *quant = NRG_NORM_QUANT(two, a, l.stride[NRG_SANDWICH_PACKED][0], l.stride[NRG_SANDWICH_SCALES][0]);
        quant_share(&job->row_begin, &job->row_end, two->format, rows, ith, nth);
        job->turn = (job->turn + together - 1) / together * together;
    }
    return NRG_OK;
}

/* Moves a job's tensors to a plane; first: its first row. */
static void move_to_plane(nrg_norm_job *job, const nrg_norm_job *from, const nrg_planes *p, unsigned x, unsigned o, size_t plane)
{
    const size_t first = plane * p->count[0] * job->groups;
    job->x = planes_at(from->x, p, x, plane);
    job->y = planes_at(from->y, p, Y, plane);
    job->r = planes_at(from->r, p, R, plane);
    job->o = planes_at(from->o, p, o, plane);
    job->mean = from->mean ? from->mean + first : NULL;
    job->rstd = from->rstd ? from->rstd + first : NULL;
}

NRG_OWN_FRAME void run_planes(nrg_norm_sandwich_kernel *sandwich, const nrg_norm_sandwich_job *all, nrg_norm_quant *quant,
                              const nrg_planes *p)
{
    nrg_norm_sandwich_job one = *all;
    const nrg_norm_quant to = all->second.quant ? *quant : (nrg_norm_quant){.q = NULL};
    const size_t each = p->count[0];
    for (size_t plane = all->row_begin / each; plane * each < all->row_end; plane++) {
        const size_t first = plane * each;
        move_to_plane(&one.first, &all->first, p, X, R, plane);
        move_to_plane(&one.second, &all->second, p, R, O, plane);
        if (all->second.quant) {
            quant->q = planes_at(to.q, p, Q, plane);
            quant->scales = planes_at(to.scales, p, SCALES, plane);
        }
        one.row_begin = all->row_begin > first ? all->row_begin - first : 0;
        one.row_end = all->row_end - first < each ? all->row_end - first : each;
        sandwich(&one);
    }
}

NRG_TABLES(norm_sandwich)
#ifndef NRG_NO_QUANTIZE
NRG_TABLES(norm_sandwich_quantized)
#endif

nrg_status nrg_norm_sandwich_forward(const nrg_norm_spec *first, const nrg_norm_spec *second, const nrg_norm_sandwich_args *args,
                                     int ith, int nth)
{
    nrg_norm_sandwich_job job;
    nrg_norm_quant quant;
    nrg_planes planes;
    const nrg_status status = make_job(&job, &quant, &planes, first, second, args, ith, nth);
    if (status != NRG_OK || job.row_begin == job.row_end)
        return status;
#ifdef NRG_NO_QUANTIZE
    nrg_norm_sandwich_kernel *const sandwich = NRG_ACTIVE_KERNEL(norm_sandwich, first->dtype);
#else
    /* kernels of one type */
    nrg_norm_sandwich_kernel *const sandwich = job.second.quant ? NRG_ACTIVE_KERNEL(norm_sandwich_quantized, first->dtype)
                                                                : NRG_ACTIVE_KERNEL(norm_sandwich, first->dtype);
#endif
    if (planes_are_one(&planes))
        sandwich(&job);
    else
        run_planes(sandwich, &job, &quant, &planes);
    return NRG_OK;
}

nrg_status nrg_norm_sandwich_forward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                           const nrg_norm_sandwich_args *args)
{
    return NRG_ASK(norm_sandwich_forward, first, second, args);
}

#ifndef NRG_NO_BACKWARD
/* The two passes of norm_backward: the second norm's gradient is the first's d_o. */
typedef struct halves {
    nrg_norm_backward_args one, two;
    nrg_norm_backward_job first, second;
    nrg_planes planes[2];
} halves;

/* A tensor of a half is one of the call. */
#define TAKE(half, HALF_OPERAND, field, OPERAND, from)                                                                           \
    (h->half.field = a->from, (void)memcpy(half.stride[NRG_NORM_BACKWARD_##HALF_OPERAND],                                        \
                                           c.laid.stride[NRG_SANDWICH_BACKWARD_##OPERAND], sizeof half.stride[0]))

/* Checks everything, and makes both halves. */
NRG_OWN_FRAME nrg_status make_halves(halves *h, const void *const *part, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_norm_sandwich_backward, part, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_norm_sandwich_backward_args *a = c.part[NRG_SANDWICH_ARGS];
    const nrg_dtype *const type = c.sizes.type;
    const int dr_in_dy = a->dy && type[NRG_NORM_TYPE_Y] == type[NRG_NORM_TYPE_X];
    const size_t first_bytes = c.sizes.n[NRG_SANDWICH_BACKWARD_N_SPACE_FIRST] * sizeof(double);
    nrg_norm_spec first = *(const nrg_norm_spec *)c.part[NRG_SANDWICH_FIRST];
    nrg_norm_spec second = *(const nrg_norm_spec *)c.part[NRG_SANDWICH_SECOND];
    const size_t tensor = a->rows * a->rows2 * a->rows3 * first.dim * nrg_dtype_size(first.dtype);
    nrg_laid one = {.bytes = 3 * tensor}, two = {.bytes = c.laid.bytes};
    second.y_dtype = first.y_dtype;
    second.r_dtype = first.r_dtype;
    first.y_dtype = first.r_dtype = NRG_DTYPE_SAME;
    h->one = h->two = nrg_norm_backward_args_init(a->rows, NULL, NULL, NULL, NULL);
    h->one.store = a->store;
    h->two.store = NRG_STORE_KEEP; /* dr is read again at once */
    h->one.rows2 = h->two.rows2 = a->rows2;
    h->one.rows3 = h->two.rows3 = a->rows3;
    h->one.accumulate = h->two.accumulate = a->accumulate;
    TAKE(two, R, r, R, r);
    TAKE(two, D_O, d_o, D_O, d_o);
    TAKE(two, DR_IN, dr_in, DR_IN, dr_in);
    h->two.w = a->w2;
    h->two.mean = a->mean2;
    h->two.dw = a->dw2;
    h->two.db = a->db2;
    TAKE(one, X, x, X, x);
    TAKE(one, DX, dx, DX, dx);
    h->one.w = a->w1;
    h->one.mean = a->mean1;
    h->one.dw = a->dw1;
    h->one.db = a->db1;
    if (dr_in_dy) {
        TAKE(two, DX, dx, DY, dy);
        TAKE(one, D_O, d_o, DY, dy);
    } else {
        TAKE(two, DX, dx, DX, dx);
        TAKE(two, DY, dy, DY, dy);
        TAKE(one, D_O, d_o, DX, dx);
    }
    if (a->workspace) {
        h->one.workspace = a->workspace;
        h->two.workspace = (char *)a->workspace + first_bytes;
    }
    nrg_norm_backward_fill(&h->first, &h->planes[0], &first, &h->one, &one, 0, 1);
    nrg_norm_backward_fill(&h->second, &h->planes[1], &second, &h->two, &two, 0, 1);
    return NRG_OK;
}

nrg_status nrg_norm_sandwich_backward_workspace(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                const nrg_norm_sandwich_backward_args *args, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_norm_sandwich_backward_workspace, (const void *const[]){first, second, args},
                         NRG_SANDWICH_BACKWARD_WORKSPACE_N_SPACE, sizeof(double));
}

nrg_status nrg_norm_sandwich_backward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                      const nrg_norm_sandwich_backward_args *args, int ith, int nth)
{
    halves h;
    const nrg_status status = make_halves(&h, (const void *const[]){first, second, args}, ith, nth);
    if (status != NRG_OK)
        return status;
    /* where either norm has sums both are cut into blocks of rows */
    const int has_sums = h.one.dw || h.one.db || h.two.dw || h.two.db;
    const size_t rows = h.first.row_end, each = nrg_norm_backward_each(has_sums, rows);
    size_t begin, end;
    nrg_norm_backward_share(has_sums ? each : 1, rows, ith, nth, &begin, &end);
    for (size_t row = begin; row < end; row += each) {
        const size_t piece_end = end - row > each ? row + each : end;
        nrg_norm_backward_piece(&h.second, first->dtype, row, piece_end);
        nrg_norm_backward_piece(&h.first, first->dtype, row, piece_end);
    }
    if (nth == 1) {
        nrg_norm_backward_finish(second, &h.two);
        nrg_norm_backward_finish(first, &h.one);
    }
    return NRG_OK;
}

nrg_status nrg_norm_sandwich_backward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                            const nrg_norm_sandwich_backward_args *args)
{
    return NRG_ASK(norm_sandwich_backward, first, second, args);
}

nrg_status nrg_norm_sandwich_backward_reduce(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                             const nrg_norm_sandwich_backward_args *args, int ith, int nth)
{
    halves h;
    const nrg_status status = make_halves(&h, (const void *const[]){first, second, args}, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_norm_backward_sum(first, &h.one, ith, nth);
    nrg_norm_backward_sum(second, &h.two, ith, nth);
    return NRG_OK;
}

nrg_status nrg_norm_sandwich_backward_reduce_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                   const nrg_norm_sandwich_backward_args *args)
{
    return nrg_norm_sandwich_backward_check(first, second, args); /* the same operands */
}
#endif
