/* The checks of a rotation, and its jobs: for nrg_rope, and for the calls that fuse it with a norm.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_ROPE_CHECK_H
#define NRG_CALLS_ROPE_CHECK_H

#include <math.h>

#include "../token_heads.h"
#include "rope_spec.h"

enum { ROPE_ARGS_SIZE_MIN = sizeof(nrg_rope_args), ROPE_OPERANDS = 6 };

enum rope_operand { ROPE_Q = 1, ROPE_K = 2, ROPE_TABLE = 4, ROPE_POSITIONS = 8, ROPE_Q_O = 16, ROPE_K_O = 32, ROPE_NEXT = 64 };

/* Strides of tokens and heads, where they are taken at all. */
static inline int rope_same_steps(const size_t a[2], const size_t b[2], size_t tokens, size_t heads)
{
    return (tokens == 1 || a[0] == b[0]) && (heads == 1 || a[1] == b[1]);
}

static inline int rope_positions_fit(const int32_t *positions, size_t tokens, size_t rows)
{
    for (size_t t = 0; t < tokens; t++)
        if (positions[t] < 0 || (size_t)positions[t] >= rows)
            return 0;
    return 1;
}

/* Field by field: an initializer clears the job first, which takes as long as a head. */
static inline void rope_fill_job(nrg_rope_job *job, const nrg_rope_spec *s, const nrg_rope_args *a, const void *x, void *o,
                                 size_t heads, size_t table_stride, const size_t x_strides[2], const size_t o_strides[2],
                                 int stream)
{
    job->x = x;
    job->o = o;
    job->x_token_stride = x_strides[0];
    job->x_head_stride = x_strides[1];
    job->o_token_stride = o_strides[0];
    job->o_head_stride = o_strides[1];
    job->table = (const char *)a->table;
    job->table_stride = table_stride;
    job->positions = a->positions;
    job->heads = heads;
    job->dim = a->dim;
    job->offset = a->offset;
    job->pairs = rope_pairs(s);
    job->interleaved = s->mode == NRG_ROPE_NORMAL;
    job->backward = a->backward != 0;
    job->stream = stream;
}

/* Jobs of q and k without their shares, and the operands of both, for whoever adds more. heads of a job is 0 where there is
 * nothing to do. */
static inline nrg_status rope_make_jobs(nrg_rope_job job[2], extents *all, const nrg_rope_spec *s, const nrg_rope_args *a,
                                        int ith, int nth)
{
    nrg_status status = rope_check_shape(s);
    if (status != NRG_OK)
        return status;
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || (unsigned)a->store > NRG_STORE_STREAM)
        return NRG_ERR_ENUM;
    const size_t pairs = rope_pairs(s), tokens = a->tokens;
    if (2 * pairs > a->dim || a->offset > a->dim - 2 * pairs)
        return NRG_ERR_DIM;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const size_t q_heads = tokens ? a->q_heads : 0, k_heads = tokens ? a->k_heads : 0;
    const int used = (q_heads | k_heads) != 0;
    if ((q_heads && (!a->q || !a->q_o)) || (k_heads && (!a->k || !a->k_o)) || (used && !a->table))
        return NRG_ERR_NULL;

    const size_t table_rows = !used ? 0 : a->table_rows ? a->table_rows : tokens;
    size_t table_stride = a->table_stride, none = 0, q_rows, k_rows;
    size_t stride[8] = {a->q_token_stride,   a->q_head_stride,   a->k_token_stride,   a->k_head_stride,
                        a->q_o_token_stride, a->q_o_head_stride, a->k_o_token_stride, a->k_o_head_stride};
    if ((q_heads && (status = add_token_heads(all, ROPE_Q, ANY_OPERAND, a->q, a->dtype, tokens, q_heads, a->dim, &stride[0],
                                              &stride[1])) != NRG_OK) ||
        (k_heads && (status = add_token_heads(all, ROPE_K, ANY_OPERAND, a->k, a->dtype, tokens, k_heads, a->dim, &stride[2],
                                              &stride[3])) != NRG_OK) ||
        (status = add_operand(all, ROPE_TABLE, ANY_OPERAND, used ? a->table : NULL, NRG_F32, 2 * pairs, table_rows,
                              &table_stride)) != NRG_OK ||
        (status = add_operand(all, ROPE_POSITIONS, ANY_OPERAND, used ? a->positions : NULL, NRG_F32, tokens, 1, &none)) !=
            NRG_OK ||
        (q_heads && (status = add_token_heads(all, ROPE_Q_O, ROPE_Q, a->q_o, a->dtype, tokens, q_heads, a->dim, &stride[4],
                                              &stride[5])) != NRG_OK) ||
        (k_heads && (status = add_token_heads(all, ROPE_K_O, ROPE_K, a->k_o, a->dtype, tokens, k_heads, a->dim, &stride[6],
                                              &stride[7])) != NRG_OK) ||
        (status = check_overlap(all)) != NRG_OK)
        return status;
    if (!product(tokens, q_heads, &q_rows) || !product(tokens, k_heads, &k_rows) || q_rows > SIZE_MAX - k_rows)
        return NRG_ERR_OVERFLOW;
    /* in place: by the inner strides as well, which the extents do not hold */
    if ((q_heads && a->q == a->q_o && !rope_same_steps(&stride[0], &stride[4], tokens, q_heads)) ||
        (k_heads && a->k == a->k_o && !rope_same_steps(&stride[2], &stride[6], tokens, k_heads)))
        return NRG_ERR_OVERLAP;
    if (used && (a->positions ? !rope_positions_fit(a->positions, tokens, table_rows) : table_rows < tokens))
        return NRG_ERR_POSITION;

    const int stream = wants_stream(a->store, all);
    job[0].heads = job[1].heads = 0;
    if (q_heads)
        rope_fill_job(&job[0], s, a, a->q, a->q_o, q_heads, table_stride, &stride[0], &stride[4], stream);
    if (k_heads)
        rope_fill_job(&job[1], s, a, a->k, a->k_o, k_heads, table_stride, &stride[2], &stride[6], stream);
    return NRG_OK;
}

/* A share of a call's rows, q's before k's, as a share of one tensor's. */
static inline void rope_share(nrg_rope_job *job, size_t rows_before, size_t rows, size_t begin, size_t end)
{
    begin = begin > rows_before ? begin - rows_before : 0;
    end = end > rows_before ? end - rows_before : 0;
    job->begin = begin < rows ? begin : rows;
    job->end = end < rows ? end : rows;
}

#endif
