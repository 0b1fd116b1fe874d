/* The public layer of the embedding layer, forward: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "embed_inputs.h"

enum operand { O = EMBED_AFTER };

static nrg_status forward(const nrg_embed_args *a, int ith, int nth)
{
    nrg_embed_job job;
    size_t o_stride = a->o_stride;
    extent operands[EMBED_INPUTS + 1];
    extents all = {0, operands};
    nrg_status status = embed_options(a);
    if (status != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if (a->rows && !a->o)
        return NRG_ERR_NULL;
    if ((status = embed_pointers(a)) != NRG_OK || (status = embed_inputs(&job, &all, a)) != NRG_OK ||
        (status = add_operand(&all, O, EMBED_X, a->o, a->dtype, a->dim, a->rows, &o_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK || (status = embed_positions(&job, a)) != NRG_OK)
        return status;

    embed_touched(&all, a->rows);
    job.o = a->o;
    job.o_stride = o_stride;
    job.dim = a->dim;
    job.row_begin = share(a->rows, ith, nth);
    job.row_end = job.ahead_end = share(a->rows, ith + 1, nth);
    /* lines that are in cache because the call is in place gain nothing by streaming */
    job.stream = a->o != a->x && wants_stream(a->store, &all);
    if (job.row_begin == job.row_end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(embed, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_embed_forward(const nrg_embed_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_embed_args copy;
    args = read_struct(args, &copy, sizeof copy, EMBED_SIZE_MIN);
    return args ? forward(args, ith, nth) : NRG_ERR_STRUCT_SIZE;
}
