/* The public layer of row normalization: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_spec.h"

/* The size of the first version's struct. */
enum { ARGS_SIZE_MIN = offsetof(nrg_norm_args, r_stride) + sizeof(size_t) };

enum operand { X = 1, Y = 2, Z = 4, W = 8, B = 16, O = 32, R = 64, MEAN = 128, RSTD = 256 };

static nrg_status forward(const nrg_norm_spec *s, const nrg_norm_args *a, int ith, int nth)
{
    if (!spec_is_sound(s))
        return name_spec_error(s);
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (a->rows && (!a->x || !a->o || (after && !a->y) || (s->gate && !a->z)))
        return NRG_ERR_NULL;
    if ((after && a->r) || (!s->gate && a->z))
        return NRG_ERR_COMBINATION;

    const nrg_dtype y_dtype = s->y_dtype ? s->y_dtype : s->dtype, r_dtype = s->r_dtype ? s->r_dtype : s->dtype;
    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    const size_t groups = s->groups ? s->groups : 1, once = a->rows ? 1 : 0;
    nrg_status status;
    size_t x_stride = a->x_stride, y_stride = a->y_stride, o_stride = a->o_stride, r_stride = a->r_stride, z_stride = a->z_stride;
    size_t none = 0;
    extent operands[9];
    extents all = {0, operands};
    if ((status = add_operand(&all, X, ANY_OPERAND, a->x, s->dtype, s->dim, a->rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, Y, ANY_OPERAND, a->y, y_dtype, s->dim, a->rows, &y_stride)) != NRG_OK ||
        (status = add_operand(&all, Z, ANY_OPERAND, a->z, s->dtype, s->dim, a->rows, &z_stride)) != NRG_OK ||
        (status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, s->dim, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, a->b, w_dtype, s->dim, once, &none)) != NRG_OK ||
        (status = add_operand(&all, O, X | Y | Z, a->o, s->dtype, s->dim, a->rows, &o_stride)) != NRG_OK ||
        (status = add_operand(&all, R, X | Y, a->r, r_dtype, s->dim, a->rows, &r_stride)) != NRG_OK ||
        /* as one row each; rows · groups fits, since rows · dim elements of x do */
        (none = 0, status = add_operand(&all, MEAN, 0, a->mean, NRG_F32, a->rows * groups, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, RSTD, 0, a->rstd, NRG_F32, a->rows * groups, once, &none)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;

    const size_t rows = a->rows * groups;
    nrg_norm_job job = {
        .x = a->x,
        .y = a->y,
        .z = a->z,
        .w = a->w,
        .b = a->b,
        .o = a->o,
        .r = a->r,
        .mean = a->mean,
        .rstd = a->rstd,
        .x_stride = x_stride,
        .y_stride = y_stride,
        .z_stride = z_stride,
        .o_stride = o_stride,
        .r_stride = r_stride,
        .dim = groups == 1 ? s->dim : s->dim / groups,
        .groups = groups,
        .row_begin = nth == 1 ? 0 : share(rows, ith, nth),
        .row_end = nth == 1 ? rows : share(rows, ith + 1, nth),
        .y_f32 = y_dtype == NRG_F32,
        .r_f32 = r_dtype == NRG_F32,
        .w_f32 = w_dtype == NRG_F32,
        .after = after,
        .stream = wants_stream(s->store, &all),
        .gate = s->gate,
        .activation = s->activation,
    };
    if (job.row_begin == job.row_end)
        return NRG_OK;
    set_formula(&job.formula, s, job.dim);
    NRG_ACTIVE_KERNEL(norm_forward, s->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_norm_spec spec_copy;
    nrg_norm_args args_copy;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ARGS_SIZE_MIN);
    return spec && args ? forward(spec, args, ith, nth) : NRG_ERR_STRUCT_SIZE;
}

/* What the shortcuts share: dense f32, all rows. */
static nrg_status forward_f32(nrg_norm_spec spec, size_t rows, const float *x, const float *y, const float *w, const float *b,
                              float *r, float *o)
{
    nrg_norm_args args = nrg_norm_args_init(rows, x, o);
    args.y = y;
    args.w = w;
    args.b = b;
    args.r = r;
    return forward(&spec, &args, 0, 1);
}

nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o, double eps)
{
    return forward_f32(nrg_rms_norm_spec(dim, eps), rows, x, NULL, w, NULL, NULL, o);
}

nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, float *r, float *o,
                                double eps)
{
    if (rows && !y)
        return NRG_ERR_NULL;
    return forward_f32(nrg_rms_norm_spec(dim, eps), rows, x, y, w, NULL, r, o);
}

nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b, float *o, double eps)
{
    return forward_f32(nrg_layer_norm_spec(dim, eps), rows, x, NULL, w, b, NULL, o);
}

nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, const float *b,
                                  float *r, float *o, double eps)
{
    if (rows && !y)
        return NRG_ERR_NULL;
    return forward_f32(nrg_layer_norm_spec(dim, eps), rows, x, y, w, b, r, o);
}

nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps)
{
    return forward_f32(nrg_l2_norm_spec(dim, eps), rows, x, NULL, NULL, NULL, NULL, o);
}
