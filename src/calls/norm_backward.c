/* The public layer of the backward pass: checks the arguments once, then calls through the table; and the second phase, which
 * needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>

#include "../job/norm.h"
#include "../operands/check.h"
#include "../operands/norm.h"
#include "../operands/place.h"
#include "norm_backward.h"
#include "norm_formula.h"
#include "planes.h"
#include "reduce.h"
#include "share.h"
#include "stream.h"

/* Sound arguments: real strides inside of a plane, dtypes, bytes in all. */
typedef struct backward_call {
    const nrg_norm_spec *spec;
    const nrg_norm_backward_args *args;
    size_t d_o_stride, dr_in_stride, x_stride, y_stride, z_stride, dx_stride, dy_stride,
        dz_stride;      /* x: r, where that is given */
    size_t bytes, rows; /* rows: of the kernel */
    nrg_dtype x_dtype, y_dtype, r_dtype, w_dtype;
} backward_call;

/* Rows of the kernel: groups that share one w and b are rows. */
static size_t rows_of(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return args->rows * args->rows2 * args->rows3 * nrg_norm_alike(spec);
}

/* Rows in planes, or groups as rows: where they lie, and the strides inside of a plane. */
static __attribute__((noinline)) void set_planes(nrg_planes *p, nrg_norm_backward_job *job, const nrg_norm_spec *s,
                                                 const nrg_norm_backward_args *a, const nrg_checked *c)
{
    const size_t dim = nrg_norm_w_dim(s), row = dim * (s->dtype == NRG_F32 ? 4 : 2),
                 x_row = dim * (c->sizes.type[a->r ? NRG_NORM_TYPE_R : NRG_NORM_TYPE_X] == NRG_F32 ? 4 : 2),
                 y_row = dim * (c->sizes.type[NRG_NORM_TYPE_Y] == NRG_F32 ? 4 : 2),
                 r_row = dim * (c->sizes.type[NRG_NORM_TYPE_R] == NRG_F32 ? 4 : 2);
    planes_begin(p, nrg_norm_alike(s), a->rows, a->rows2, a->rows3);
    planes_add(p, NRG_PLANES_D_O, job->d_o, row, c->laid.stride[NRG_NORM_BACKWARD_D_O]);
    planes_add(p, NRG_PLANES_DR_IN, job->dr_in, r_row, c->laid.stride[NRG_NORM_BACKWARD_DR_IN]);
    planes_add(p, NRG_PLANES_X, job->x, x_row, c->laid.stride[a->r ? NRG_NORM_BACKWARD_R : NRG_NORM_BACKWARD_X]);
    planes_add(p, NRG_PLANES_Y, job->y, y_row, c->laid.stride[NRG_NORM_BACKWARD_Y]);
    planes_add(p, NRG_PLANES_Z, job->z, row, c->laid.stride[NRG_NORM_BACKWARD_Z]);
    planes_add(p, NRG_PLANES_DX, job->dx, row, c->laid.stride[NRG_NORM_BACKWARD_DX]);
    planes_add(p, NRG_PLANES_DY, job->dy, y_row, c->laid.stride[NRG_NORM_BACKWARD_DY]);
    planes_add(p, NRG_PLANES_DZ, job->dz, row, c->laid.stride[NRG_NORM_BACKWARD_DZ]);
    planes_fold(p, 0);
    job->d_o_stride = p->stride[NRG_PLANES_D_O][0];
    job->dr_in_stride = p->stride[NRG_PLANES_DR_IN][0];
    job->x_stride = p->stride[NRG_PLANES_X][0];
    job->y_stride = p->stride[NRG_PLANES_Y][0];
    job->z_stride = p->stride[NRG_PLANES_Z][0];
    job->dx_stride = p->stride[NRG_PLANES_DX][0];
    job->dy_stride = p->stride[NRG_PLANES_DY][0];
    job->dz_stride = p->stride[NRG_PLANES_DZ][0];
    job->planes = planes_are_one(p) ? NULL : p;
}

/* The job has no share yet. Field by field, as in norm.c. */
static inline void fill_job(nrg_norm_backward_job *job, const backward_call *c)
{
    const nrg_norm_spec *s = c->spec;
    const nrg_norm_backward_args *a = c->args;
    const int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    const size_t dim = nrg_norm_w_dim(s), groups = nrg_norm_groups(s), rows = c->rows, blocks = nrg_norm_block_count(rows);
    double *partial = a->workspace;
    job->d_o = a->d_o;
    job->dr_in = a->dr_in;
    job->x = a->r ? a->r : a->x;
    job->y = a->r || after ? NULL : a->y;
    job->z = a->z;
    job->w = a->w;
    job->b = a->b;
    job->mean = a->mean;
    job->dx = a->dx;
    job->dy = a->dy == a->dx && !after ? NULL : a->dy; /* one tensor, stored once */
    job->dz = a->dz;
    job->dw = a->dw ? partial : NULL;
    job->db = a->db && partial ? partial + (a->dw ? blocks * dim : 0) : NULL;
    job->dw_out = blocks == 1 ? a->dw : NULL;
    job->db_out = blocks == 1 ? a->db : NULL;
    job->d_o_stride = c->d_o_stride;
    job->dr_in_stride = c->dr_in_stride;
    job->x_stride = c->x_stride;
    job->y_stride = c->y_stride;
    job->z_stride = c->z_stride;
    job->dx_stride = c->dx_stride;
    job->dy_stride = c->dy_stride;
    job->dz_stride = c->dz_stride;
    job->planes = NULL;
    job->dim = groups == 1 ? dim : dim / groups;
    job->groups = groups;
    job->row_begin = job->row_end = 0;
    job->block_rows = nrg_norm_block_rows(rows);
    job->x_f32 = c->x_dtype == NRG_F32;
    job->y_f32 = c->y_dtype == NRG_F32;
    job->r_f32 = c->r_dtype == NRG_F32;
    job->w_f32 = c->w_dtype == NRG_F32;
    job->after = after;
    /* many stores in a row past the cache wait for each other, and short rows have little to do meanwhile: 8192x64, 6 MB, AVX-512
     * on a Xeon with 2 MB of L2, rms 0.43 ms against 0.29 of ordinary ones, layer 0.83 against 0.70 */
    job->stream = nrg_wants_stream(a->store, job->dim * (s->dtype == NRG_F32 ? 4 : 2) <= 256 ? c->bytes / 4 : c->bytes);
    job->far = c->bytes > 16 * nrg_l2_bytes();
    job->accumulate = a->accumulate != 0;
    job->gate = s->gate;
    job->activation = s->activation;
    set_formula(&job->formula, s, job->dim);
}

static inline backward_call call_of(const nrg_norm_spec *s, const nrg_norm_backward_args *a, const nrg_laid *l)
{
    const nrg_dtype r_dtype = nrg_own_dtype(s->r_dtype, s->dtype);
    return (backward_call){
        .spec = s,
        .args = a,
        .d_o_stride = l->stride[NRG_NORM_BACKWARD_D_O][0],
        .dr_in_stride = l->stride[NRG_NORM_BACKWARD_DR_IN][0],
        .x_stride = l->stride[a->r ? NRG_NORM_BACKWARD_R : NRG_NORM_BACKWARD_X][0],
        .y_stride = l->stride[NRG_NORM_BACKWARD_Y][0],
        .z_stride = l->stride[NRG_NORM_BACKWARD_Z][0],
        .dx_stride = l->stride[NRG_NORM_BACKWARD_DX][0],
        .dy_stride = l->stride[NRG_NORM_BACKWARD_DY][0],
        .dz_stride = l->stride[NRG_NORM_BACKWARD_DZ][0],
        .bytes = l->bytes,
        .rows = rows_of(s, a),
        .x_dtype = a->r ? r_dtype : s->dtype,
        .y_dtype = nrg_own_dtype(s->y_dtype, s->dtype),
        .r_dtype = r_dtype,
        .w_dtype = nrg_own_dtype(s->w_dtype, s->dtype),
    };
}

/* Everything that the two phases check; *spec and *args are then this version's, in *c. The job has no share yet. */
static nrg_status make_job(nrg_norm_backward_job *job, nrg_planes *planes, nrg_checked *c, const nrg_norm_spec **spec,
                           const nrg_norm_backward_args **args, int ith, int nth)
{
    const nrg_status status = nrg_check(c, &nrg_call_norm_backward, (const void *const[]){*spec, *args}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_norm_spec *s = *spec = c->part[NRG_NORM_SPEC];
    const nrg_norm_backward_args *a = *args = c->part[NRG_NORM_ARGS];
    const backward_call call = call_of(s, a, &c->laid);
    fill_job(job, &call);
    if (!c->is_matrix || nrg_norm_alike(s) > 1)
        set_planes(planes, job, s, a, c);
    return NRG_OK;
}

size_t nrg_norm_backward_pieces(const nrg_norm_backward_args *args, size_t rows)
{
    const size_t all = args->rows * args->rows2 * args->rows3,
                 pieces = args->dw || args->db ? nrg_norm_block_count(all) : all / rows + (all % rows != 0);
    return pieces < INT_MAX ? pieces : INT_MAX;
}

/* Of so many rows. */
static void share_rows(const nrg_norm_backward_args *args, size_t rows, int ith, int nth, size_t *begin, size_t *end)
{
    if (nth == 1) {
        *begin = 0;
        *end = rows;
        return;
    }
    if (args->dw || args->db) {
        const size_t each = nrg_norm_block_rows(rows), blocks = nrg_norm_block_count(rows),
                     last = nrg_share(blocks, ith + 1, nth) * each;
        *begin = nrg_share(blocks, ith, nth) * each;
        *end = last < rows ? last : rows;
        return;
    }
    *begin = nrg_share(rows, ith, nth);
    *end = nrg_share(rows, ith + 1, nth);
}

void nrg_norm_backward_rows(const nrg_norm_backward_args *args, int ith, int nth, size_t *begin, size_t *end)
{
    share_rows(args, args->rows * args->rows2 * args->rows3, ith, nth, begin, end);
}

nrg_status nrg_norm_backward_workspace(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_norm_backward_workspace, (const void *const[]){spec, args},
                         NRG_NORM_BACKWARD_WORKSPACE_N_SPACE, sizeof(double));
}

/* Phase 1 without what checking takes, which shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_rows(nrg_norm_backward_job *job, nrg_planes *planes, const nrg_norm_spec *spec,
                                                      const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = make_job(job, planes, &c, &spec, &args, ith, nth);
    if (status != NRG_OK)
        return status;
    share_rows(args, rows_of(spec, args), ith, nth, &job->row_begin, &job->row_end);
    return NRG_OK;
}

static __attribute__((noinline)) nrg_status run(const nrg_norm_backward_job *job, nrg_dtype dtype)
{
    if (job->row_begin < job->row_end && (job->dx || job->dy || job->dz || job->dw || job->db))
        NRG_ACTIVE_KERNEL(norm_backward, dtype)(job);
    return NRG_OK;
}

static __attribute__((noinline)) nrg_status backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                     int nth)
{
    nrg_norm_backward_job job;
    nrg_planes planes;
    const nrg_status status = make_rows(&job, &planes, spec, args, ith, nth);
    return status == NRG_OK ? run(&job, spec->dtype) : status;
}

#define NRG_OF NRG_NORM_BACKWARD
#define NRG_NAME norm_backward
#include "../operands/precheck.h"

/* Whether rows in a matrix are plainly sound; *c is then complete. */
static __attribute__((noinline)) int is_plain(backward_call *c, const nrg_norm_spec *s, const nrg_norm_backward_args *a, int ith,
                                              int nth)
{
    nrg_laid laid;
    if (!s || !a || a->rows2 != 1 || a->rows3 != 1 || nrg_norm_alike(s) != 1 || !norm_backward_precheck(s, a, ith, nth, &laid))
        return 0;
    *c = call_of(s, a, &laid);
    return 1;
}

/* Whether the call was plain, and is done: in a frame of its own, which does not lie below the other way. */
static __attribute__((noinline)) int plain_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                    int nth)
{
    backward_call call;
    if (!is_plain(&call, spec, args, ith, nth))
        return 0;
    nrg_norm_backward_job job;
    fill_job(&job, &call);
    share_rows(args, call.rows, ith, nth, &job.row_begin, &job.row_end);
    run(&job, spec->dtype);
    return 1;
}

/* Columns begin to end of the sums. Without rows there are no blocks and no workspace, and the sums are 0. */
static __attribute__((noinline)) void reduce_columns(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t blocks,
                                                     size_t begin, size_t end)
{
    const size_t dim = nrg_norm_w_dim(spec);
    const double *const partial = args->workspace;
    nrg_norm_formula formula;
    set_formula(&formula, spec, dim / nrg_norm_groups(spec));
    if (args->dw)
        reduce(partial, dim, blocks, begin, end, args->dw, formula.k, args->accumulate);
    if (args->db)
        reduce(args->dw && partial ? partial + blocks * dim : partial, dim, blocks, begin, end, args->db, 1, args->accumulate);
}

void nrg_norm_backward_finish(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    const size_t rows = rows_of(spec, args);
    if (rows - 1 < NRG_NORM_BLOCK_ROWS_LEAST || !(args->dw || args->db))
        return;
    reduce_columns(spec, args, nrg_norm_block_count(rows), 0, nrg_norm_w_dim(spec));
    if (rows)
        reduce_mark_done(args->workspace);
}

nrg_status nrg_norm_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    const nrg_status status = plain_backward(spec, args, ith, nth) ? NRG_OK : backward(spec, args, ith, nth);
    if (status == NRG_OK && nth == 1)
        nrg_norm_backward_finish(spec, args);
    return status;
}

/* As plain_backward. */
static __attribute__((noinline)) int plain_piece(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t begin,
                                                 size_t end)
{
    backward_call call;
    if (!is_plain(&call, spec, args, 0, 1))
        return 0;
    nrg_norm_backward_job job;
    fill_job(&job, &call);
    job.row_begin = begin;
    job.row_end = end;
    run(&job, spec->dtype);
    return 1;
}

nrg_status nrg_norm_backward_piece(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t begin, size_t end)
{
    if (plain_piece(spec, args, begin, end))
        return NRG_OK;
    nrg_norm_backward_job job;
    nrg_planes planes;
    const nrg_status status = make_rows(&job, &planes, spec, args, 0, 1);
    job.row_begin = begin;
    job.row_end = end;
    return status == NRG_OK ? run(&job, spec->dtype) : status;
}

nrg_status nrg_norm_backward_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return NRG_ASK(norm_backward, spec, args);
}

static __attribute__((noinline)) nrg_status reduce_blocks(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                          int nth)
{
    nrg_checked c;
    nrg_norm_backward_job job;
    nrg_planes planes;
    const nrg_status status = make_job(&job, &planes, &c, &spec, &args, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t blocks = nrg_norm_block_count(rows_of(spec, args)), dim = nrg_norm_w_dim(spec);
    if (blocks == 1 || !(args->dw || args->db) || (blocks && reduce_is_done(args->workspace))) /* phase 1 has done it */
        return NRG_OK;
    reduce_columns(spec, args, blocks, nrg_share(dim, ith, nth), nrg_share(dim, ith + 1, nth));
    return NRG_OK;
}

nrg_status nrg_norm_backward_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    backward_call call;
    if (is_plain(&call, spec, args, ith, nth) && nrg_norm_block_count(call.rows) == 1)
        return NRG_OK;
    return reduce_blocks(spec, args, ith, nth);
}

nrg_status nrg_norm_backward_reduce_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return nrg_norm_backward_check(spec, args); /* the same operands */
}

_Static_assert((int)NRG_NORM_ROW_BATCH == (int)NRG_ROW_BATCH, "a block is whole batches");
