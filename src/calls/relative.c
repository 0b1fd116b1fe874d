/* The public layer of nrg/relative.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "heads.h"

enum operand { Q = 1, A = 2, TABLE = 4, ENDS_IN = 8, SCORES = 16, O = 32, D_TABLE = 64, ENDS_OUT = 128 };

enum { ARGS_SIZE_MIN = offsetof(nrg_relative_args, reserved) + sizeof(uint32_t) };

/* Positions and distances are added up in 64 bits. */
#define POSITION_LIMIT ((int64_t)1 << 60)

static int is_position(int64_t p) { return p >= -POSITION_LIMIT && p <= POSITION_LIMIT; }

static nrg_status check_options(const nrg_relative_args *a, size_t *classes, int ith, int nth)
{
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || (a->table_dtype != NRG_DTYPE_SAME && !is_dtype(a->table_dtype)))
        return NRG_ERR_ENUM;
    if (!is_beside(a->table_dtype, a->dtype))
        return NRG_ERR_DTYPE;
    if (!a->dim)
        return NRG_ERR_DIM;
    if (!is_position(a->p_min) || !is_position(a->p_max) || !is_position(a->query_offset) || a->p_min > a->p_max)
        return NRG_ERR_POSITION;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const uint64_t count = (uint64_t)(a->p_max - a->p_min) + 1;
    if (count > SIZE_MAX || (uint64_t)a->queries > (uint64_t)POSITION_LIMIT || (uint64_t)a->keys > (uint64_t)POSITION_LIMIT)
        return NRG_ERR_OVERFLOW;
    *classes = (size_t)count;
    return NRG_OK;
}

/* Whether the operands in use are there. */
static int has_operands(const nrg_relative_args *a, unsigned use)
{
    return (a->q || !(use & Q)) && (a->a || !(use & A)) && (a->table || !(use & TABLE)) && (a->scores || !(use & SCORES)) &&
           (a->o || !(use & O)) && (a->d_table || !(use & D_TABLE));
}

/* Checks the operands in use, and fills the job but for its share. */
static nrg_status make_job(nrg_relative_job *job, const nrg_relative_args *a, size_t classes, unsigned use)
{
    const nrg_dtype table_dtype = a->table_dtype ? a->table_dtype : a->dtype;
    const head_shape vectors = {a->batch, a->heads, a->queries, a->dim}, pairs = {a->batch, a->heads, a->queries, a->keys};
    const head_shape table = {1, a->table_head_stride ? a->heads : 1, classes, a->dim};
    const head_shape d_table = {1, a->d_table_head_stride ? a->heads : 1, classes, a->dim};
    nrg_head_strides q = a->q_strides, weights = a->a_strides, scores = a->scores_strides, o = a->o_strides;
    nrg_head_strides r = {0, a->table_head_stride, a->table_stride}, d_r = {0, a->d_table_head_stride, a->d_table_stride};
    extent operands[8];
    extents all = {0, operands};
    nrg_status status;
    if (!has_operands(a, use))
        return NRG_ERR_NULL;
    if ((status = nrg_add_heads(&all, Q, ANY_OPERAND, use & Q ? a->q : NULL, a->dtype, &vectors, ROWS_TOGETHER, &q)) != NRG_OK ||
        (status = nrg_add_heads(&all, A, ANY_OPERAND, use & A ? a->a : NULL, a->dtype, &pairs, ROWS_TOGETHER, &weights)) !=
            NRG_OK ||
        (status = nrg_add_heads(&all, TABLE, ANY_OPERAND, use & TABLE ? a->table : NULL, table_dtype, &table, ROWS_TOGETHER,
                                &r)) != NRG_OK ||
        (status = nrg_add_heads(&all, SCORES, 0, use & SCORES ? a->scores : NULL, a->dtype, &pairs, ROWS_TOGETHER, &scores)) !=
            NRG_OK ||
        (status = nrg_add_heads(&all, O, 0, use & O ? a->o : NULL, a->dtype, &vectors, ROWS_TOGETHER, &o)) != NRG_OK)
        return status;
    /* where there are ends there is a tensor with a row for each, so that the number of rows fits */
    const size_t ends = use & (ENDS_IN | ENDS_OUT) && a->ends ? a->batch * a->heads * a->queries : 0;
    if (ends > SIZE_MAX / 2)
        return NRG_ERR_OVERFLOW;
    if ((status = add_words(&all, ENDS_IN, ANY_OPERAND, use & ENDS_IN ? a->ends : NULL, 2 * ends, sizeof(double))) != NRG_OK ||
        (status = nrg_add_heads(&all, D_TABLE, 0, use & D_TABLE ? a->d_table : NULL, NRG_F32, &d_table, ROWS_TOGETHER, &d_r)) !=
            NRG_OK ||
        (status = add_words(&all, ENDS_OUT, 0, use & ENDS_OUT ? a->ends : NULL, 2 * ends, sizeof(double))) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;

    const size_t last = classes - 1;
    *job = (nrg_relative_job){
        .q = use & Q ? a->q : NULL,
        .a = use & A ? a->a : NULL,
        .table = use & TABLE ? (const char *)a->table + last * r.row : NULL,
        .out = use & SCORES ? a->scores
               : use & O    ? a->o
                            : NULL,
        .d_table = use & D_TABLE ? (float *)(void *)((char *)a->d_table + last * d_r.row) : NULL,
        .ends = use & ENDS_IN ? a->ends : NULL,
        .ends_out = use & ENDS_OUT ? a->ends : NULL,
        .q_strides = q,
        .a_strides = weights,
        .out_strides = use & SCORES ? scores : o,
        .table_stride = r.row,
        .table_head_stride = table.heads > 1 ? r.head : 0,
        .d_table_stride = d_r.row,
        .d_table_head_stride = d_table.heads > 1 ? d_r.head : 0,
        .batch = a->batch,
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .dim = a->dim,
        .slots = classes,
        .zero = a->query_offset - a->p_max,
        .step = 1,
        .tables = d_table.heads,
        .table_f32 = table_dtype == NRG_F32,
        .accumulate = a->accumulate != 0,
    };
    return NRG_OK;
}

/* Checks of all three; use: the operands of a call that has keys, and of one that has none. */
static nrg_status prepare(nrg_relative_job *job, const nrg_relative_args *args, unsigned use, unsigned without_keys, int ith,
                          int nth)
{
    nrg_relative_args copy;
    size_t classes;
    if (!args)
        return NRG_ERR_NULL;
    args = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    if (!args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_options(args, &classes, ith, nth);
    if (status != NRG_OK)
        return status;
    const int rows = args->batch && args->heads && args->queries;
    return make_job(job, args, classes, rows && args->keys ? use : rows ? without_keys : without_keys & D_TABLE);
}

/* Share ith of nth of the rows of the output. */
static int share_rows(nrg_relative_job *job, int ith, int nth)
{
    const size_t rows = job->out ? job->batch * job->heads * job->queries : 0;
    job->begin = share(rows, ith, nth);
    job->end = share(rows, ith + 1, nth);
    return job->begin < job->end;
}

nrg_status nrg_relative_scores(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_status status = prepare(&job, args, Q | TABLE | SCORES, 0, ith, nth);
    if (status != NRG_OK || !share_rows(&job, ith, nth))
        return status;
    NRG_ACTIVE_KERNEL(relative_scores, args->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_relative_values(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_status status = prepare(&job, args, A | TABLE | O | ENDS_OUT, O | ENDS_OUT, ith, nth);
    if (status != NRG_OK || !share_rows(&job, ith, nth))
        return status;
    NRG_ACTIVE_KERNEL(relative_values, args->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_relative_backward(const nrg_relative_args *args, int ith, int nth)
{
    nrg_relative_job job;
    nrg_status status = prepare(&job, args, A | Q | ENDS_IN | D_TABLE, D_TABLE, ith, nth);
    if (status != NRG_OK || !job.d_table || (!job.a && job.accumulate))
        return status;
    if (!job.a)
        job.batch = 0;
    const size_t chunks = job.dim / NRG_RELATIVE_COLUMNS + (job.dim % NRG_RELATIVE_COLUMNS != 0);
    const size_t blocks = job.slots / NRG_RELATIVE_SLOTS + (job.slots % NRG_RELATIVE_SLOTS != 0);
    job.begin = (size_t)ith;
    job.end = chunks * job.tables * blocks;
    job.step = (size_t)nth;
    if (job.begin >= job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(relative_backward, args->dtype)(&job);
    return NRG_OK;
}
