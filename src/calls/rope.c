/* The public layer of rotary position embedding: the table and the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "rope_check.h"
#include "rope_spec.h"

enum { TABLE_SIZE_MIN = sizeof(nrg_rope_table_args) };

enum table_operand { FREQUENCIES = 1, POSITIONS = 2, TABLE = 4 };

size_t nrg_rope_pairs(const nrg_rope_spec *spec)
{
    nrg_rope_spec copy;
    const nrg_rope_spec *s = spec ? read_struct(spec, &copy, sizeof copy, ROPE_SPEC_SIZE_MIN) : NULL;
    return s && rope_check_shape(s) == NRG_OK ? rope_pairs(s) : 0;
}

static nrg_status table_job(nrg_position_table_job *job, const nrg_rope_spec *s, const nrg_rope_table_args *a, int ith, int nth)
{
    nrg_status status = rope_check_shape(s);
    if (status == NRG_OK)
        status = rope_check_sections(s);
    if (status != NRG_OK)
        return status;
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!(fabs(a->magnitude) <= DBL_MAX))
        return NRG_ERR_CONSTANT;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if (a->tokens && (!a->frequencies || !a->table))
        return NRG_ERR_NULL;
    if (!a->positions && a->tokens && a->tokens - 1 > (size_t)((int64_t)INT32_MAX - a->first))
        return NRG_ERR_POSITION;

    const size_t pairs = rope_pairs(s), once = a->tokens ? 1 : 0;
    size_t axes = 1, positions_stride = a->positions_stride, table_stride = a->table_stride;
    for (size_t i = 1; nrg_rope_has_sections(s->mode) && i < 4; i++)
        if (s->sections[i])
            axes = i + 1;
    extent operands[3];
    extents all = {0, operands};
    if ((status = add_words(&all, FREQUENCIES, ANY_OPERAND, a->frequencies, once ? 2 * pairs : 0, sizeof(double))) != NRG_OK ||
        (status = add_operand(&all, POSITIONS, ANY_OPERAND, a->positions, NRG_F32, a->tokens, once ? axes : 0,
                              &positions_stride)) != NRG_OK ||
        (status = add_operand(&all, TABLE, 0, a->table, NRG_F32, 2 * pairs, a->tokens, &table_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    *job = (nrg_position_table_job){
        .high = a->frequencies,
        .low = a->tokens ? a->frequencies + pairs : NULL,
        .magnitude = a->magnitude,
        .positions = a->positions,
        .positions_stride = positions_stride,
        .first = a->first,
        .mode = s->mode,
        .order = NRG_TABLE_COS_SIN,
        .pairs = pairs,
        .dim = 2 * pairs,
        .table = (char *)a->table,
        .table_stride = table_stride,
        .begin = share(a->tokens, ith, nth),
        .end = share(a->tokens, ith + 1, nth),
    };
    memcpy(job->sections, s->sections, sizeof job->sections);
    return NRG_OK;
}

nrg_status nrg_rope_table(const nrg_rope_spec *spec, const nrg_rope_table_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_rope_spec spec_copy;
    nrg_rope_table_args args_copy;
    nrg_position_table_job job;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, ROPE_SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, TABLE_SIZE_MIN);
    if (!spec || !args)
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = table_job(&job, spec, args, ith, nth);
    if (status == NRG_OK && job.begin < job.end)
        NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    return status;
}

nrg_status nrg_rope(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_rope_spec spec_copy;
    nrg_rope_args args_copy;
    nrg_rope_job job[2];
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, ROPE_SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ROPE_ARGS_SIZE_MIN);
    if (!spec || !args)
        return NRG_ERR_STRUCT_SIZE;
    extent operands[ROPE_OPERANDS];
    extents all = {0, operands};
    nrg_status status = rope_make_jobs(job, &all, spec, args, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t q_rows = args->tokens * args->q_heads, k_rows = args->tokens * args->k_heads;
    const size_t rows = q_rows + k_rows, begin = nth == 1 ? 0 : share(rows, ith, nth),
                 end = nth == 1 ? rows : share(rows, ith + 1, nth);
    rope_share(&job[0], 0, q_rows, begin, end);
    rope_share(&job[1], q_rows, k_rows, begin, end);
    nrg_rope_kernel *const rope = NRG_ACTIVE_KERNEL(rope, args->dtype);
    for (int i = 0; i < 2; i++)
        if (job[i].heads && job[i].begin < job[i].end)
            rope(&job[i]);
    return NRG_OK;
}
