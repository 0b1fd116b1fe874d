/* The public layer of nrg/relative_shift.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "heads.h"

enum operand { IN = 1, OUT = 2, Q = 4, U = 8, V = 16, D_O_U = 32, D_O_V = 64, DQ = 128, DU = 256, DV = 512 };

enum {
    SHIFT_SIZE_MIN = offsetof(nrg_relative_shift_args, reserved) + sizeof(uint32_t),
    BIAS_SIZE_MIN = offsetof(nrg_head_bias_args, reserved) + sizeof(uint32_t)
};

#define POSITION_LIMIT ((int64_t)1 << 60)

static int is_store(nrg_store store) { return (unsigned)store <= NRG_STORE_STREAM; }

static nrg_status check_shift(const nrg_relative_shift_args *a, int ith, int nth)
{
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || !is_store(a->store))
        return NRG_ERR_ENUM;
    if (a->shift < -POSITION_LIMIT || a->shift > POSITION_LIMIT)
        return NRG_ERR_POSITION;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const uint64_t limit = (uint64_t)POSITION_LIMIT;
    return a->queries > limit || a->keys > limit || a->rel > limit ? NRG_ERR_OVERFLOW : NRG_OK;
}

/* Forward and backward: the other slope. */
static nrg_status shift(const nrg_relative_shift_args *args, int backward, int ith, int nth)
{
    nrg_relative_shift_args copy;
    if (!args)
        return NRG_ERR_NULL;
    const nrg_relative_shift_args *a = read_struct(args, &copy, sizeof copy, SHIFT_SIZE_MIN);
    if (!a)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_shift(a, ith, nth);
    if (status != NRG_OK)
        return status;
    const void *in = backward ? a->d_scores : a->x;
    void *out = backward ? a->dx : a->scores;
    const head_shape scores = {a->batch, a->heads, a->queries, a->keys}, columns = {a->batch, a->heads, a->queries, a->rel};
    const head_shape *in_shape = backward ? &scores : &columns, *out_shape = backward ? &columns : &scores;
    const int rows = a->batch && a->heads && a->queries;
    if ((rows && in_shape->dim && !in) || (rows && out_shape->dim && !out))
        return NRG_ERR_NULL;
    nrg_head_strides in_strides = backward ? a->d_scores_strides : a->x_strides;
    nrg_head_strides out_strides = backward ? a->dx_strides : a->scores_strides;
    extent operands[2];
    extents all = {0, operands};
    if ((status = nrg_add_heads(&all, IN, ANY_OPERAND, in, a->dtype, in_shape, ROWS_TOGETHER, &in_strides)) != NRG_OK ||
        (status = nrg_add_heads(&all, OUT, 0, out, a->dtype, out_shape, ROWS_TOGETHER, &out_strides)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const size_t count = rows && out_shape->dim ? a->batch * a->heads * a->queries : 0;
    const nrg_relative_shift_job job = {
        .in = in,
        .out = out,
        .in_strides = in_strides,
        .out_strides = out_strides,
        .heads = a->heads,
        .rows = a->queries,
        .in_dim = in_shape->dim,
        .out_dim = out_shape->dim,
        .first = backward ? -a->shift : a->shift,
        .slope = backward ? 1 : -1,
        .begin = share(count, ith, nth),
        .end = share(count, ith + 1, nth),
        .accumulate = a->accumulate != 0,
        .stream = !a->accumulate && wants_stream(a->store, &all),
        .prefetch = wants_stream(NRG_STORE_AUTO, &all),
    };
    if (job.begin == job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(relative_shift, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_relative_shift(const nrg_relative_shift_args *args, int ith, int nth) { return shift(args, 0, ith, nth); }

nrg_status nrg_relative_shift_backward(const nrg_relative_shift_args *args, int ith, int nth) { return shift(args, 1, ith, nth); }

static nrg_status check_bias(const nrg_head_bias_args *a, int ith, int nth)
{
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || (a->bias_dtype != NRG_DTYPE_SAME && !is_dtype(a->bias_dtype)) || !is_store(a->store))
        return NRG_ERR_ENUM;
    if (!is_beside(a->bias_dtype, a->dtype))
        return NRG_ERR_DTYPE;
    if (!a->dim)
        return NRG_ERR_DIM;
    return ith < 0 || ith >= nth ? NRG_ERR_THREAD : NRG_OK;
}

/* Whether the heads of a row lie together in a tensor; one that is not there does not matter. */
static int heads_together(const void *tensor, const nrg_head_strides *s, const head_shape *shape, nrg_dtype dtype)
{
    return !tensor || shape->heads == 1 || s->head == shape->dim * (dtype == NRG_F32 ? 4 : 2);
}

nrg_status nrg_head_bias_pair(const nrg_head_bias_args *args, int ith, int nth)
{
    nrg_head_bias_args copy;
    if (!args)
        return NRG_ERR_NULL;
    const nrg_head_bias_args *a = read_struct(args, &copy, sizeof copy, BIAS_SIZE_MIN);
    if (!a)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_bias(a, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_dtype bias_dtype = a->bias_dtype ? a->bias_dtype : a->dtype;
    head_shape shape = {a->batch, a->heads, a->rows, a->dim};
    const head_shape bias = {1, a->heads, 1, a->dim};
    const int any = a->batch && a->heads && a->rows;
    if (any && (!a->q || (a->o_u && !a->u) || (a->o_v && !a->v)))
        return NRG_ERR_NULL;
    nrg_head_strides q = a->q_strides, o_u = a->o_u_strides, o_v = a->o_v_strides, u = {0, 0, 0}, v = {0, 0, 0};
    extent operands[5];
    extents all = {0, operands};
    if ((status = nrg_add_heads(&all, Q, ANY_OPERAND, a->q, a->dtype, &shape, HEADS_TOGETHER, &q)) != NRG_OK ||
        (status = nrg_add_heads(&all, U, ANY_OPERAND, a->o_u ? a->u : NULL, bias_dtype, &bias, HEADS_TOGETHER, &u)) != NRG_OK ||
        (status = nrg_add_heads(&all, V, ANY_OPERAND, a->o_v ? a->v : NULL, bias_dtype, &bias, HEADS_TOGETHER, &v)) != NRG_OK ||
        (status = nrg_add_heads(&all, OUT, 0, a->o_u, a->dtype, &shape, HEADS_TOGETHER, &o_u)) != NRG_OK ||
        (status = nrg_add_heads(&all, OUT, 0, a->o_v, a->dtype, &shape, HEADS_TOGETHER, &o_v)) != NRG_OK)
        return status;
    for (size_t i = 0; i < all.count; i++)
        if (operands[i].name == OUT && nrg_same_strides(operands[i].first == (uintptr_t)a->o_u ? &o_u : &o_v, &q, &shape))
            operands[i].in_place = Q;
    if ((status = check_overlap(&all)) != NRG_OK)
        return status;
    if (!any || !(a->o_u || a->o_v))
        return NRG_OK;
    const int in_place = a->o_u == a->q || a->o_v == a->q;
    if (heads_together(a->q, &q, &shape, a->dtype) && heads_together(a->o_u, &o_u, &shape, a->dtype) &&
        heads_together(a->o_v, &o_v, &shape, a->dtype)) {
        shape.dim *= shape.heads;
        shape.heads = 1;
    }
    const size_t count = shape.batch * shape.rows * shape.heads;
    const nrg_head_bias_job job = {
        .q = a->q,
        .u = a->o_u ? a->u : NULL,
        .v = a->o_v ? a->v : NULL,
        .o_u = a->o_u,
        .o_v = a->o_v,
        .q_strides = q,
        .o_u_strides = o_u,
        .o_v_strides = o_v,
        .heads = shape.heads,
        .rows = shape.rows,
        .dim = shape.dim,
        .begin = share(count, ith, nth),
        .end = share(count, ith + 1, nth),
        .bias_f32 = bias_dtype == NRG_F32,
        .stream = !in_place && wants_stream(a->store, &all),
        .prefetch = wants_stream(NRG_STORE_AUTO, &all),
    };
    if (job.begin == job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(head_bias_pair, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_head_bias_pair_backward(const nrg_head_bias_args *args, int ith, int nth)
{
    nrg_head_bias_args copy;
    if (!args)
        return NRG_ERR_NULL;
    const nrg_head_bias_args *a = read_struct(args, &copy, sizeof copy, BIAS_SIZE_MIN);
    if (!a)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_bias(a, ith, nth);
    if (status != NRG_OK)
        return status;
    head_shape shape = {a->batch, a->heads, a->rows, a->dim};
    const head_shape bias = {1, a->heads, 1, a->dim};
    const int any = a->batch && a->heads && a->rows;
    if (any && (a->dq || a->du || a->dv) && !a->d_o_u && !a->d_o_v)
        return NRG_ERR_NULL;
    nrg_head_strides d_o_u = a->d_o_u_strides, d_o_v = a->d_o_v_strides, dq = a->dq_strides, du = {0, 0, 0}, dv = {0, 0, 0};
    extent operands[5];
    extents all = {0, operands};
    if ((status = nrg_add_heads(&all, D_O_U, ANY_OPERAND, a->d_o_u, a->dtype, &shape, HEADS_TOGETHER, &d_o_u)) != NRG_OK ||
        (status = nrg_add_heads(&all, D_O_V, ANY_OPERAND, a->d_o_v, a->dtype, &shape, HEADS_TOGETHER, &d_o_v)) != NRG_OK ||
        (status = nrg_add_heads(&all, DQ, 0, a->dq, a->dtype, &shape, HEADS_TOGETHER, &dq)) != NRG_OK ||
        (status = nrg_add_heads(&all, DU, 0, a->du, NRG_F32, &bias, HEADS_TOGETHER, &du)) != NRG_OK ||
        (status = nrg_add_heads(&all, DV, 0, a->dv, NRG_F32, &bias, HEADS_TOGETHER, &dv)) != NRG_OK)
        return status;
    for (size_t i = 0; i < all.count; i++)
        if (operands[i].name == DQ)
            operands[i].in_place =
                (nrg_same_strides(&dq, &d_o_u, &shape) ? D_O_U : 0u) | (nrg_same_strides(&dq, &d_o_v, &shape) ? D_O_V : 0u);
    if ((status = check_overlap(&all)) != NRG_OK)
        return status;
    /* without rows the sums are 0 */
    if (!a->heads || !(a->du || a->dv || (a->dq && any)))
        return NRG_OK;
    const size_t columns = a->heads * a->dim, groups = columns / NRG_BIAS_COLUMNS + (columns % NRG_BIAS_COLUMNS != 0);
    const size_t end = share(groups, ith + 1, nth) * NRG_BIAS_COLUMNS;
    if (heads_together(a->d_o_u, &d_o_u, &shape, a->dtype) && heads_together(a->d_o_v, &d_o_v, &shape, a->dtype) &&
        heads_together(a->dq, &dq, &shape, a->dtype)) {
        shape.dim = columns;
        shape.heads = 1;
    }
    const nrg_head_bias_backward_job job = {
        .d_o_u = a->d_o_u,
        .d_o_v = a->d_o_v,
        .dq = a->dq,
        .du = a->du,
        .dv = a->dv,
        .d_o_u_strides = d_o_u,
        .d_o_v_strides = d_o_v,
        .dq_strides = dq,
        .batch = any ? a->batch : 0,
        .heads = shape.heads,
        .rows = shape.rows,
        .dim = shape.dim,
        .begin = share(groups, ith, nth) * NRG_BIAS_COLUMNS,
        .end = end < columns ? end : columns,
        .accumulate = a->accumulate != 0,
        .stream = any && a->dq && a->dq != a->d_o_u && a->dq != a->d_o_v && wants_stream(a->store, &all),
        .prefetch = any && wants_stream(NRG_STORE_AUTO, &all),
    };
    if (job.begin >= job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(head_bias_pair_backward, a->dtype)(&job);
    return NRG_OK;
}
