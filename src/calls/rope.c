/* The public layer of rotary position embedding: frequencies, the table and the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "../exact/rope_frequencies.h"
#include "../operands/place.h"
#include "rope_job.h"

#define NRG_MAKE_TABLES
#include "../operands/rope_calls.def"

size_t nrg_rope_pairs(const nrg_rope_spec *spec)
{
    nrg_checked c;
    const nrg_status status = nrg_check_options(&c, &nrg_call_rope_pairs, (const void *const[]){spec});
    return status == NRG_OK ? c.sizes.n[NRG_ROPE_PAIRS_N_PAIRS] : 0;
}

nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude)
{
    nrg_laid l;
    const nrg_rope_frequencies_args args = {frequencies, magnitude};
    const nrg_status status = nrg_lay(&l, &nrg_call_rope_frequencies, (const void *const[]){spec, &args}, 0, 1);
    if (status != NRG_OK)
        return status;
    return nrg_rope_turns(spec, nrg_rope_pairs_of(spec), frequencies, magnitude) ? NRG_OK : NRG_ERR_CONSTANT;
}

NRG_OWN_FRAME nrg_status lay_table(nrg_laid *l, const nrg_rope_spec *s, const nrg_rope_table_args *a, int ith, int nth)
{
    return rope_table_precheck(s, a, ith, nth, l) == NRG_OK ? NRG_OK : NRG_LAY(l, rope_table, s, a);
}

nrg_status nrg_rope_table(const nrg_rope_spec *s, const nrg_rope_table_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay_table(&l, s, a, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_position_table_job job;
    rope_fill_table_job(&job, s, a, l.stride[NRG_ROPE_TABLE_POSITIONS][0], l.stride[NRG_ROPE_TABLE_TABLE][0], ith, nth);
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    return NRG_OK;
}

nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args)
{
    return NRG_ASK(rope_table, spec, args);
}

/* Calls that are not plain. */
NRG_OWN_FRAME nrg_status make_jobs(nrg_rope_job job[2], rope_batches batches[2], const nrg_rope_spec *spec,
                                   const nrg_rope_args *args, int ith, int nth, int backward)
{
    nrg_laid l;
    nrg_status status = NRG_LAY(&l, rope, spec, args);
    if (status != NRG_OK || (status = rope_check_ids(args, &l)) != NRG_OK)
        return status;
    rope_make_jobs((nrg_rope_job *const[]){&job[0], &job[1]}, batches, &l, spec, args, NRG_ROPE_Q_O, backward,
                   nrg_wants_stream_past_l3(args->store, l.bytes));
    return NRG_OK;
}

NRG_TABLES(rope)

static nrg_status rotate(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth, int backward)
{
    nrg_rope_job job[2];
    rope_batches batches[2];
    quick_operand o[2];
    if (!(spec && args && (ith >= 0) & (ith < nth) &&
          rope_is_plain((nrg_rope_job *const[]){&job[0], &job[1]}, o, spec, args, backward, 1) && rope_plain_ids_fit(args))) {
        const nrg_status status = make_jobs(job, batches, spec, args, ith, nth, backward);
        if (status != NRG_OK)
            return status;
    }
    const size_t batch = args->batch, q_rows = batch * args->tokens * args->q_heads,
                 k_rows = batch * args->tokens * args->k_heads;
    const size_t rows = q_rows + k_rows, begin = nth == 1 ? 0 : nrg_share(rows, ith, nth),
                 end = nth == 1 ? rows : nrg_share(rows, ith + 1, nth);
    nrg_rope_kernel *const rope = NRG_ACTIVE_KERNEL(rope, args->dtype);
    for (int k = 0; k < 2; k++) {
        if (!(k ? k_rows : q_rows))
            continue;
        rope_share(&job[k], k ? q_rows : 0, k ? k_rows : q_rows, begin, end);
        if (job[k].begin == job[k].end)
            continue;
        if (batch == 1)
            rope(&job[k]);
        else
            rope_turn_batches(rope, &job[k], &batches[k]);
    }
    return NRG_OK;
}

nrg_status nrg_rope_forward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    return rotate(spec, args, ith, nth, 0);
}

nrg_status nrg_rope_forward_check(const nrg_rope_spec *spec, const nrg_rope_args *args)
{
    return rope_ask(&nrg_call_rope, (const void *const[]){spec, args}, args);
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_rope_backward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    return rotate(spec, args, ith, nth, 1);
}

nrg_status nrg_rope_backward_check(const nrg_rope_spec *spec, const nrg_rope_args *args)
{
    return nrg_rope_forward_check(spec, args); /* the same operands */
}
#endif
