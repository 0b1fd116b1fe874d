/* The public layer of the backward pass: checks the arguments once, then calls through the table; and the second phase, which
 * needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_backward.h"
#include "../operands/place.h"
#include "call.h"
#include "norm_formula.h"
#include "planes.h"
#include "reduce.h"

/* Rows of the kernel: groups that share one w and b are rows. */
static size_t rows_of(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return args->rows * args->rows2 * args->rows3 * nrg_norm_alike(spec);
}

/* Rows in planes, or groups as rows: where they lie, and the strides inside of a plane. */
NRG_OWN_FRAME void set_planes(nrg_planes *p, nrg_norm_backward_job *job, const nrg_norm_spec *s, const nrg_norm_backward_args *a,
                              const nrg_laid *l)
{
    const size_t dim = nrg_norm_w_dim(s), row = dim * (s->dtype == NRG_F32 ? 4 : 2), x_row = dim * (job->x_f32 ? 4 : 2),
                 y_row = dim * (job->y_f32 ? 4 : 2), r_row = dim * (job->r_f32 ? 4 : 2);
    const struct {
        const void *tensor;
        size_t row, *stride;
        unsigned operand;
    } of[] = {
        [NRG_PLANES_D_O] = {job->d_o, row, &job->d_o_stride, NRG_NORM_BACKWARD_D_O},
        [NRG_PLANES_DR_IN] = {job->dr_in, r_row, &job->dr_in_stride, NRG_NORM_BACKWARD_DR_IN},
        [NRG_PLANES_X] = {job->x, x_row, &job->x_stride, a->r ? NRG_NORM_BACKWARD_R : NRG_NORM_BACKWARD_X},
        [NRG_PLANES_Y] = {job->y, y_row, &job->y_stride, NRG_NORM_BACKWARD_Y},
        [NRG_PLANES_Z] = {job->z, row, &job->z_stride, NRG_NORM_BACKWARD_Z},
        [NRG_PLANES_DX] = {job->dx, row, &job->dx_stride, NRG_NORM_BACKWARD_DX},
        [NRG_PLANES_DY] = {job->dy, y_row, &job->dy_stride, NRG_NORM_BACKWARD_DY},
        [NRG_PLANES_DZ] = {job->dz, row, &job->dz_stride, NRG_NORM_BACKWARD_DZ},
    };
    planes_begin(p, nrg_norm_alike(s), a->rows, a->rows2, a->rows3);
    for (unsigned i = 0; i < NRG_COUNT(of); i++)
        planes_add(p, i, of[i].tensor, of[i].row, l->stride[of[i].operand]);
    planes_fold(p, 0);
    for (unsigned i = 0; i < NRG_COUNT(of); i++)
        *of[i].stride = p->stride[i][0];
    job->planes = planes_are_one(p) ? NULL : p;
}

void nrg_norm_backward_share(size_t each, size_t rows, int ith, int nth, size_t *begin, size_t *end)
{
    const size_t units = rows / each + (rows % each != 0), last = nrg_share(units, ith + 1, nth) * each;
    *begin = nrg_share(units, ith, nth) * each;
    *end = last < rows ? last : rows;
}

/* Field by field, as in norm.c. */
void nrg_norm_backward_fill(nrg_norm_backward_job *job, nrg_planes *planes, const nrg_norm_spec *s,
                            const nrg_norm_backward_args *a, const nrg_laid *l, int ith, int nth)
{
    const int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    const nrg_dtype r_dtype = nrg_own_dtype(s->r_dtype, s->dtype);
    const size_t dim = nrg_norm_w_dim(s), groups = nrg_norm_groups(s), rows = rows_of(s, a), blocks = nrg_norm_block_count(rows);
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
    job->d_o_stride = l->stride[NRG_NORM_BACKWARD_D_O][0];
    job->dr_in_stride = l->stride[NRG_NORM_BACKWARD_DR_IN][0];
    job->x_stride = l->stride[a->r ? NRG_NORM_BACKWARD_R : NRG_NORM_BACKWARD_X][0];
    job->y_stride = l->stride[NRG_NORM_BACKWARD_Y][0];
    job->z_stride = l->stride[NRG_NORM_BACKWARD_Z][0];
    job->dx_stride = l->stride[NRG_NORM_BACKWARD_DX][0];
    job->dy_stride = l->stride[NRG_NORM_BACKWARD_DY][0];
    job->dz_stride = l->stride[NRG_NORM_BACKWARD_DZ][0];
    job->planes = NULL;
    job->dim = groups > 1 ? dim / groups : dim;
    job->groups = groups;
    job->block_rows = nrg_norm_block_rows(rows);
    job->row_begin = 0;
    job->row_end = rows;
    if (nth != 1)
        nrg_norm_backward_share(a->dw || a->db ? job->block_rows : 1, rows, ith, nth, &job->row_begin, &job->row_end);
    job->x_f32 = (a->r ? r_dtype : s->dtype) == NRG_F32;
    job->y_f32 = nrg_own_dtype(s->y_dtype, s->dtype) == NRG_F32;
    job->r_f32 = r_dtype == NRG_F32;
    job->w_f32 = nrg_own_dtype(s->w_dtype, s->dtype) == NRG_F32;
    job->after = after;
    /* many stores in a row past the cache wait for each other, and short rows have little to do meanwhile: 8192x64, 6 MB, AVX-512
     * on a Xeon with 2 MB of L2, rms 0.43 ms against 0.29 of ordinary ones, layer 0.83 against 0.70 */
    job->stream = nrg_wants_stream(a->store, job->dim * (s->dtype == NRG_F32 ? 4 : 2) <= 256 ? l->bytes / 4 : l->bytes);
    job->far = l->bytes > 16 * nrg_l2_bytes();
    job->accumulate = a->accumulate != 0;
    job->gate = s->gate;
    job->activation = s->activation;
    set_formula(&job->formula, s, job->dim);
    if (!nrg_norm_is_matrix(s, a->rows2, a->rows3))
        set_planes(planes, job, s, a, l);
}

#define NRG_MAKE_TABLES
#include "../operands/norm_backward_calls.def"

/* Everything that both phases check. */
NRG_OWN_FRAME nrg_status lay(nrg_laid *l, const nrg_norm_spec *s, const nrg_norm_backward_args *a, int ith, int nth)
{
    const int is_plain =
        s && a && nrg_norm_is_matrix(s, a->rows2, a->rows3) && norm_backward_precheck(s, a, ith, nth, l) == NRG_OK;
    return is_plain ? NRG_OK : NRG_LAY(l, norm_backward, s, a);
}

NRG_OWN_FRAME nrg_status make_job(nrg_norm_backward_job *job, nrg_planes *planes, const nrg_norm_spec *s,
                                  const nrg_norm_backward_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay(&l, s, a, ith, nth);
    if (status == NRG_OK)
        nrg_norm_backward_fill(job, planes, s, a, &l, ith, nth);
    return status;
}

NRG_TABLES(norm_backward)

NRG_OWN_FRAME void run(const nrg_norm_backward_job *job, nrg_dtype dtype)
{
    if (job->row_begin < job->row_end && (job->dx || job->dy || job->dz || job->dw || job->db))
        NRG_ACTIVE_KERNEL(norm_backward, dtype)(job);
}

nrg_status nrg_norm_backward_workspace(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t *bytes)
{
    return nrg_ask_bytes(bytes, &nrg_call_norm_backward_workspace, (const void *const[]){spec, args},
                         NRG_NORM_BACKWARD_WORKSPACE_N_SPACE, sizeof(double));
}

/* Columns begin to end of the sums. Without rows there are no blocks and no workspace, and the sums are 0. */
NRG_OWN_FRAME void reduce_columns(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t blocks, size_t begin,
                                  size_t end)
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

/* Whether there are sums of blocks: those of a single one are where they belong. */
static inline int has_blocks(const nrg_norm_backward_args *args, size_t rows)
{
    return rows - 1 >= NRG_NORM_BLOCK_ROWS_LEAST && (args->dw || args->db);
}

void nrg_norm_backward_finish(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    const size_t rows = rows_of(spec, args);
    if (!has_blocks(args, rows))
        return;
    reduce_columns(spec, args, nrg_norm_block_count(rows), 0, nrg_norm_w_dim(spec));
    if (rows)
        reduce_mark_done(args->workspace);
}

nrg_status nrg_norm_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_norm_backward_job job;
    nrg_planes planes;
    const nrg_status status = make_job(&job, &planes, spec, args, ith, nth);
    if (status != NRG_OK)
        return status;
    run(&job, spec->dtype);
    if (nth == 1 && has_blocks(args, job.row_end))
        nrg_norm_backward_finish(spec, args);
    return NRG_OK;
}

void nrg_norm_backward_piece(nrg_norm_backward_job *job, nrg_dtype dtype, size_t begin, size_t end)
{
    job->row_begin = begin;
    job->row_end = end;
    run(job, dtype);
}

nrg_status nrg_norm_backward_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return NRG_ASK(norm_backward, spec, args);
}

void nrg_norm_backward_sum(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    const size_t rows = rows_of(spec, args), dim = nrg_norm_w_dim(spec);
    if (has_blocks(args, rows) && !(rows && reduce_is_done(args->workspace))) /* otherwise phase 1 has done it */
        reduce_columns(spec, args, nrg_norm_block_count(rows), nrg_share(dim, ith, nth), nrg_share(dim, ith + 1, nth));
}

nrg_status nrg_norm_backward_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay(&l, spec, args, ith, nth);
    if (status == NRG_OK)
        nrg_norm_backward_sum(spec, args, ith, nth);
    return status;
}

nrg_status nrg_norm_backward_reduce_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    return nrg_norm_backward_check(spec, args); /* the same operands */
}

_Static_assert((int)NRG_NORM_ROW_BATCH == (int)NRG_ROW_BATCH, "a block is whole batches");
