/* The public layer of the recurrent encodings: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "checks.h"

enum operand { W = 1, B = 2, P0 = 4, P = 8, DP = 16, DW = 32, DB = 64, DP0 = 128, WORKSPACE = 256 };

/* Adds [chains][n][dim], if it is there, or [n][chains][dim], which the strides tell: first what lies closer together, by itself,
 * then all of it. */
static nrg_status add_chains(extents *all, unsigned name, unsigned in_place, const void *pointer, nrg_dtype dtype, size_t dim,
                             size_t n, size_t chains, size_t *stride, size_t *chain_stride)
{
    if (!pointer || !n || !chains)
        return NRG_OK;
    size_t vector, dense, before_last;
    if (!product(dim, dtype == NRG_F32 ? 4 : 2, &vector))
        return NRG_ERR_OVERFLOW;
    *stride = *stride ? *stride : vector;
    if (chains == 1 || !*chain_stride) {
        if (chains > 1 && !product(n, *stride, &dense))
            return NRG_ERR_OVERFLOW;
        *chain_stride = chains > 1 ? dense : *stride;
    }
    const int turned = *chain_stride < *stride;
    size_t inner = turned ? *chain_stride : *stride, outer = turned ? *stride : *chain_stride;
    const size_t inner_count = turned ? chains : n, outer_count = turned ? n : chains;
    nrg_status status = add_operand(all, name, in_place, pointer, dtype, dim, inner_count, &inner);
    if (status != NRG_OK || outer_count == 1)
        return status;
    extent *e = &all->e[all->count - 1];
    const size_t bytes = e->end - e->first;
    if (outer < bytes)
        return NRG_ERR_STRIDE;
    if (outer & (e->element - 1))
        return NRG_ERR_ALIGNMENT;
    if (!product(outer_count - 1, outer, &before_last) || before_last > UINTPTR_MAX - e->end)
        return NRG_ERR_OVERFLOW;
    e->end += before_last;
    if (product(inner_count, inner, &dense) && outer == dense) {
        e->rows = n * chains;
    } else {
        e->rows = outer_count; /* what is between the vectors counts as their own */
        e->bytes = bytes;
        e->stride = outer;
    }
    return NRG_OK;
}

static int is_known(nrg_dtype dtype) { return dtype == NRG_DTYPE_SAME || is_dtype(dtype); }

/* What both directions have. */
static nrg_status check_shape(size_t dim, nrg_dtype dtype, nrg_dtype w_dtype, nrg_dtype p0_dtype, int ith, int nth)
{
    if (!dim)
        return NRG_ERR_DIM;
    if (!is_dtype(dtype) || !is_known(w_dtype) || !is_known(p0_dtype))
        return NRG_ERR_ENUM;
    if (!is_beside(w_dtype, dtype) || !is_beside(p0_dtype, dtype))
        return NRG_ERR_DTYPE;
    return ith < 0 || ith >= nth ? NRG_ERR_THREAD : NRG_OK;
}

/* ---- forward ---- */

nrg_status nrg_recurrent_forward(const nrg_recurrent_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_recurrent_args copy;
    const nrg_recurrent_args *a = read_struct(args, &copy, sizeof copy, sizeof copy);
    if (!a || a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_shape(a->dim, a->dtype, a->w_dtype, a->p0_dtype, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t some = a->n && a->chains ? 1 : 0, dim = a->dim;
    if (some && (!a->w || !a->p0 || !a->p))
        return NRG_ERR_NULL;
    const nrg_dtype w_dtype = a->w_dtype ? a->w_dtype : a->dtype, p0_dtype = a->p0_dtype ? a->p0_dtype : a->dtype;
    size_t w_stride = a->w_stride, p0_stride = a->p0_stride, p_stride = a->p_stride, p_chain_stride = a->p_chain_stride, none = 0;
    extent operands[4];
    extents all = {0, operands};
    if ((status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, dim, some ? dim : 0, &w_stride)) != NRG_OK ||
        (status = add_operand(&all, B, ANY_OPERAND, a->b, w_dtype, dim, some, &none)) != NRG_OK ||
        (status = add_operand(&all, P0, ANY_OPERAND, a->p0, p0_dtype, dim, some ? a->chains : 0, &p0_stride)) != NRG_OK ||
        (status = add_chains(&all, P, 0, a->p, a->dtype, dim, a->n, a->chains, &p_stride, &p_chain_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const nrg_recurrent_job job = {
        .w = a->w,
        .b = a->b,
        .p0 = a->p0,
        .p = a->p,
        .dim = dim,
        .n = a->n,
        .w_stride = w_stride,
        .p0_stride = p0_stride,
        .p_stride = p_stride,
        .p_chain_stride = p_chain_stride,
        .begin = share(a->chains, ith, nth),
        .end = share(a->chains, ith + 1, nth),
        .w_f32 = w_dtype == NRG_F32,
        .p0_f32 = p0_dtype == NRG_F32,
    };
    if (!some || job.begin == job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(recurrent, a->dtype)(&job);
    return NRG_OK;
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static nrg_status workspace_bytes(const nrg_recurrent_backward_args *a, size_t *bytes)
{
    size_t vectors, floats;
    return product(a->chains, a->n, &vectors) && product(vectors, a->dim, &floats) && product(floats, sizeof(float), bytes)
               ? NRG_OK
               : NRG_ERR_OVERFLOW;
}

nrg_status nrg_recurrent_workspace(const nrg_recurrent_backward_args *args, size_t *bytes)
{
    if (!args || !bytes)
        return NRG_ERR_NULL;
    nrg_recurrent_backward_args copy;
    args = read_struct(args, &copy, sizeof copy, sizeof copy);
    if (!args)
        return NRG_ERR_STRUCT_SIZE;
    return args->dim ? workspace_bytes(args, bytes) : NRG_ERR_DIM;
}

/* Everything that the two phases check. The job has no share yet. */
static nrg_status make_job(nrg_recurrent_backward_job *job, const nrg_recurrent_backward_args *a, int ith, int nth)
{
    nrg_status status = check_shape(a->dim, a->dtype, a->w_dtype, a->p0_dtype, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t some = a->n && a->chains ? 1 : 0, dim = a->dim;
    if (some && (!a->w || !a->p || !a->dp || (a->dw && !a->p0)))
        return NRG_ERR_NULL;
    size_t space;
    if ((status = workspace_bytes(a, &space)) != NRG_OK)
        return status;
    if (space && !a->workspace)
        return NRG_ERR_NULL;
    if (space > a->workspace_size)
        return NRG_ERR_WORKSPACE;
    const nrg_dtype w_dtype = a->w_dtype ? a->w_dtype : a->dtype, p0_dtype = a->p0_dtype ? a->p0_dtype : a->dtype;
    const void *p0 = a->dw ? a->p0 : NULL;
    size_t w_stride = a->w_stride, p0_stride = a->p0_stride, p_stride = a->p_stride, p_chain_stride = a->p_chain_stride,
           dp_stride = a->dp_stride, dp_chain_stride = a->dp_chain_stride, dw_stride = a->dw_stride, dp0_stride = a->dp0_stride,
           none = 0;
    extent operands[8];
    extents all = {0, operands};
    if ((status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, dim, some ? dim : 0, &w_stride)) != NRG_OK ||
        (status = add_operand(&all, P0, ANY_OPERAND, p0, p0_dtype, dim, some ? a->chains : 0, &p0_stride)) != NRG_OK ||
        (status = add_chains(&all, P, ANY_OPERAND, a->p, a->dtype, dim, a->n, a->chains, &p_stride, &p_chain_stride)) != NRG_OK ||
        (status = add_chains(&all, DP, ANY_OPERAND, a->dp, a->dtype, dim, a->n, a->chains, &dp_stride, &dp_chain_stride)) !=
            NRG_OK ||
        /* these are written where there is no position, too */
        (status = add_operand(&all, DW, 0, a->dw, NRG_F32, dim, dim, &dw_stride)) != NRG_OK ||
        (status = add_operand(&all, DB, 0, a->db, NRG_F32, dim, 1, &none)) != NRG_OK ||
        (status = add_operand(&all, DP0, 0, a->dp0, NRG_F32, dim, a->chains, &dp0_stride)) != NRG_OK ||
        (none = 0, status = add_operand(&all, WORKSPACE, 0, space ? a->workspace : NULL, NRG_F32, space / sizeof(float), 1,
                                        &none)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    *job = (nrg_recurrent_backward_job){
        .w = a->w,
        .p0 = p0,
        .p = a->p,
        .dp = a->dp,
        .g = a->workspace,
        .dp0 = a->dp0,
        .dw = a->dw,
        .db = a->db,
        .dim = dim,
        .n = a->n,
        .chains = a->chains,
        .w_stride = w_stride,
        .p0_stride = p0_stride,
        .p_stride = p_stride,
        .p_chain_stride = p_chain_stride,
        .dp_stride = dp_stride,
        .dp_chain_stride = dp_chain_stride,
        .dw_stride = dw_stride,
        .dp0_stride = dp0_stride,
        .w_f32 = w_dtype == NRG_F32,
        .p0_f32 = p0_dtype == NRG_F32,
        .accumulate = a->accumulate != 0,
    };
    return NRG_OK;
}

nrg_status nrg_recurrent_backward(const nrg_recurrent_backward_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_recurrent_backward_args copy;
    nrg_recurrent_backward_job job;
    args = read_struct(args, &copy, sizeof copy, sizeof copy);
    if (!args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = make_job(&job, args, ith, nth);
    if (status != NRG_OK)
        return status;
    job.begin = share(args->chains, ith, nth);
    job.end = share(args->chains, ith + 1, nth);
    if (job.begin == job.end || (!job.n && !job.dp0))
        return NRG_OK;
    NRG_ACTIVE_KERNEL(recurrent_backward, args->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_recurrent_backward_reduce(const nrg_recurrent_backward_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_recurrent_backward_args copy;
    nrg_recurrent_backward_job job;
    args = read_struct(args, &copy, sizeof copy, sizeof copy);
    if (!args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = make_job(&job, args, ith, nth);
    if (status != NRG_OK)
        return status;
    job.begin = share(args->dim, ith, nth);
    job.end = share(args->dim, ith + 1, nth);
    if (job.begin == job.end || !(job.dw || job.db))
        return NRG_OK;
    NRG_ACTIVE_KERNEL(recurrent_reduce, args->dtype)(&job);
    return NRG_OK;
}
#endif
