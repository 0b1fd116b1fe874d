/* The public layer of the backward pass: checks the arguments once, then calls through the table; and the second phase, which
 * needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>

#include "norm_spec.h"
#include "reduce.h"

/* The size of the first version's struct. */
enum { ARGS_SIZE_MIN = offsetof(nrg_norm_backward_args, reserved) + sizeof(uint32_t) };

enum operand {
    D_O = 1,
    DR_IN = 2,
    X = 4,
    Y = 8,
    R = 16,
    Z = 32,
    W = 64,
    B = 128,
    DX = 256,
    DY = 512,
    DZ = 1024,
    DW = 2048,
    DB = 4096,
    WORKSPACE = 8192,
    MEAN = 16384
};

/* Rows of a block: of the number of rows alone, so that dw and db do not depend on threads. */
static inline size_t block_rows(size_t rows)
{
    size_t each = rows / NRG_BLOCKS_MAX + (rows % NRG_BLOCKS_MAX != 0);
    each = (each + NRG_ROW_BATCH - 1) / NRG_ROW_BATCH * NRG_ROW_BATCH;
    return each > NRG_BLOCK_ROWS_MIN ? each : NRG_BLOCK_ROWS_MIN;
}

static inline size_t block_count(size_t rows)
{
    size_t each = block_rows(rows);
    return rows / each + (rows % each != 0);
}

static nrg_status workspace_bytes(const nrg_norm_spec *s, const nrg_norm_backward_args *a, size_t *bytes)
{
    const size_t sums = (a->dw != NULL) + (a->db != NULL);
    return product(s->dim, sums * block_count(a->rows) * sizeof(double), bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

/* Everything that the two phases check. The job has no share yet. */
static nrg_status make_job(nrg_norm_backward_job *job, const nrg_norm_spec *s, const nrg_norm_backward_args *a, int ith, int nth)
{
    if (!spec_is_sound(s))
        return name_spec_error(s);
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (a->rows && (!a->d_o || (!a->x && !a->r) || (s->gate && !a->z)))
        return NRG_ERR_NULL;
    if ((after && (a->r || a->dr_in)) || (!s->gate && (a->z || a->dz)))
        return NRG_ERR_COMBINATION;

    const nrg_dtype y_dtype = s->y_dtype ? s->y_dtype : s->dtype, r_dtype = s->r_dtype ? s->r_dtype : s->dtype;
    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    const size_t groups = s->groups ? s->groups : 1, rows = a->rows, dim = s->dim, once = rows ? 1 : 0;
    /* what is not read is not looked at */
    const void *x = a->r ? NULL : a->x, *y = a->r || after ? NULL : a->y;
    const float *mean = s->centred ? a->mean : NULL;
    size_t d_o_stride = a->d_o_stride, dr_in_stride = a->dr_in_stride, x_stride = a->x_stride, y_stride = a->y_stride,
           r_stride = a->r_stride, z_stride = a->z_stride, dx_stride = a->dx_stride, dy_stride = a->dy_stride,
           dz_stride = a->dz_stride, none = 0, space;
    nrg_status status = workspace_bytes(s, a, &space);
    if (status != NRG_OK)
        return status;
    if (space && !a->workspace)
        return NRG_ERR_NULL;
    if (space > a->workspace_size)
        return NRG_ERR_WORKSPACE;
    if (space && (uintptr_t)a->workspace % sizeof(double))
        return NRG_ERR_ALIGNMENT;
    const unsigned dy_over = after ? D_O : D_O | DR_IN | Y | R | DX;
    extent operands[14];
    extents all = {0, operands};
    if ((status = add_operand(&all, D_O, ANY_OPERAND, a->d_o, s->dtype, dim, rows, &d_o_stride)) != NRG_OK ||
        (status = add_operand(&all, DR_IN, ANY_OPERAND, a->dr_in, r_dtype, dim, rows, &dr_in_stride)) != NRG_OK ||
        (status = add_operand(&all, X, ANY_OPERAND, x, s->dtype, dim, rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, Y, ANY_OPERAND, y, y_dtype, dim, rows, &y_stride)) != NRG_OK ||
        (status = add_operand(&all, R, ANY_OPERAND, a->r, r_dtype, dim, rows, &r_stride)) != NRG_OK ||
        (status = add_operand(&all, Z, ANY_OPERAND, a->z, s->dtype, dim, rows, &z_stride)) != NRG_OK ||
        (status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, dim, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, a->b, w_dtype, dim, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, MEAN, ANY_OPERAND, mean, NRG_F32, rows * groups, once, &none)) != NRG_OK ||
        (status = add_operand(&all, DX, D_O | DR_IN | X | R, a->dx, s->dtype, dim, rows, &dx_stride)) != NRG_OK ||
        (status = add_operand(&all, DY, dy_over, a->dy, y_dtype, dim, rows, &dy_stride)) != NRG_OK ||
        (status = add_operand(&all, DZ, Z, a->dz, s->dtype, dim, rows, &dz_stride)) != NRG_OK ||
        /* dw and db are written where there are no rows, too */
        (none = 0, status = add_operand(&all, DW, 0, a->dw, NRG_F32, dim, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, DB, 0, a->db, NRG_F32, dim, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, WORKSPACE, 0, space ? a->workspace : NULL, NRG_F32, space / 4, 1, &none)) !=
            NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;

    double *partial = a->workspace;
    *job = (nrg_norm_backward_job){
        .d_o = a->d_o,
        .dr_in = a->dr_in,
        .x = a->r ? a->r : x,
        .y = y,
        .z = a->z,
        .w = a->w,
        .b = a->b,
        .mean = mean,
        .dx = a->dx,
        .dy = a->dy,
        .dz = a->dz,
        .dw = a->dw ? partial : NULL,
        .db = a->db && partial ? partial + (a->dw ? block_count(rows) * dim : 0) : NULL,
        .d_o_stride = d_o_stride,
        .dr_in_stride = dr_in_stride,
        .x_stride = a->r ? r_stride : x_stride,
        .y_stride = y_stride,
        .z_stride = z_stride,
        .dx_stride = dx_stride,
        .dy_stride = dy_stride,
        .dz_stride = dz_stride,
        .dim = groups == 1 ? dim : dim / groups,
        .groups = groups,
        .block_rows = block_rows(rows),
        .x_f32 = (a->r ? r_dtype : s->dtype) == NRG_F32,
        .y_f32 = y_dtype == NRG_F32,
        .r_f32 = r_dtype == NRG_F32,
        .w_f32 = w_dtype == NRG_F32,
        .after = after,
        .stream = wants_stream(s->store, &all),
        .gate = s->gate,
        .activation = s->activation,
    };
    set_formula(&job->formula, s, job->dim);
    return NRG_OK;
}

nrg_status nrg_norm_backward_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_norm_backward_job job;
    return make_job(&job, spec, args, ith, nth);
}

size_t nrg_norm_backward_pieces(const nrg_norm_backward_args *args, size_t rows)
{
    const size_t pieces = args->dw || args->db ? block_count(args->rows) : args->rows / rows + (args->rows % rows != 0);
    return pieces < INT_MAX ? pieces : INT_MAX;
}

void nrg_norm_backward_rows(const nrg_norm_backward_args *args, int ith, int nth, size_t *begin, size_t *end)
{
    const size_t rows = args->rows;
    if (args->dw || args->db) {
        const size_t each = block_rows(rows), blocks = block_count(rows), last = share(blocks, ith + 1, nth) * each;
        *begin = share(blocks, ith, nth) * each;
        *end = last < rows ? last : rows;
        return;
    }
    *begin = share(rows, ith, nth);
    *end = share(rows, ith + 1, nth);
}

nrg_status nrg_norm_backward_workspace(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, size_t *bytes)
{
    if (!spec || !args || !bytes)
        return NRG_ERR_NULL;
    nrg_norm_spec spec_copy;
    nrg_norm_backward_args args_copy;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ARGS_SIZE_MIN);
    if (!spec || !args || args->reserved)
        return NRG_ERR_STRUCT_SIZE;
    return spec_is_sound(spec) ? workspace_bytes(spec, args, bytes) : name_spec_error(spec);
}

nrg_status nrg_norm_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_norm_spec spec_copy;
    nrg_norm_backward_args args_copy;
    nrg_norm_backward_job job;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ARGS_SIZE_MIN);
    if (!spec || !args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = make_job(&job, spec, args, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_norm_backward_rows(args, ith, nth, &job.row_begin, &job.row_end);
    if (job.row_begin >= job.row_end || !(job.dx || job.dy || job.dz || job.dw || job.db))
        return NRG_OK;
    NRG_ACTIVE_KERNEL(norm_backward, spec->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_norm_backward_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_norm_spec spec_copy;
    nrg_norm_backward_args args_copy;
    nrg_norm_backward_job job;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ARGS_SIZE_MIN);
    if (!spec || !args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = make_job(&job, spec, args, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t blocks = block_count(args->rows), begin = share(spec->dim, ith, nth), end = share(spec->dim, ith + 1, nth);
    /* no rows, no blocks, no workspace: the sums are 0 */
    if (args->dw)
        reduce(job.dw, spec->dim, blocks, begin, end, args->dw, job.formula.k, args->accumulate);
    if (args->db)
        reduce(job.db, spec->dim, blocks, begin, end, args->db, 1, args->accumulate);
    return NRG_OK;
}
