/* The public layer of the sinusoidal table and its frequencies.
 *
 * SPDX-License-Identifier: MIT */
#include "../exact/rope_frequencies.h"
#include "../job/rope.h"
#include "../operands/place.h"
#include "../operands/rope.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/sinusoidal_calls.def"

nrg_status nrg_sinusoidal_frequencies(const nrg_sinusoidal_spec *spec, double *frequencies)
{
    nrg_laid l;
    const nrg_sinusoidal_frequencies_args args = {frequencies};
    const nrg_status status = nrg_lay(&l, &nrg_call_sinusoidal_frequencies, (const void *const[]){spec, &args}, 0, 1);
    if (status != NRG_OK)
        return status;
    return nrg_sinusoidal_turns(spec, nrg_sinusoidal_pairs(spec->dim), frequencies) ? NRG_OK : NRG_ERR_CONSTANT;
}

static const nrg_table_order orders[] = {
    [NRG_SINUSOIDAL_INTERLEAVED] = NRG_TABLE_INTERLEAVED,
    [NRG_SINUSOIDAL_CONCATENATED] = NRG_TABLE_SIN_COS,
    [NRG_SINUSOIDAL_COSINES_FIRST] = NRG_TABLE_COS_SIN,
};

NRG_OWN_FRAME nrg_status lay_table(nrg_laid *l, const nrg_sinusoidal_spec *s, const nrg_sinusoidal_args *a, int ith, int nth)
{
    return sinusoidal_table_precheck(s, a, ith, nth, l) == NRG_OK ? NRG_OK : NRG_LAY(l, sinusoidal_table, s, a);
}

NRG_TABLES(position_table)

nrg_status nrg_sinusoidal_table(const nrg_sinusoidal_spec *s, const nrg_sinusoidal_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay_table(&l, s, a, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t pairs = nrg_sinusoidal_pairs(s->dim);
    const nrg_position_table_job job = {
        .high = a->frequencies,
        .low = a->rows ? a->frequencies + pairs : NULL,
        .magnitude = 1,
        .positions = a->positions,
        .first = a->first_position,
        .mode = NRG_ROPE_NORMAL,
        .order = orders[s->layout],
        .pairs = pairs,
        .dim = s->dim,
        .table = a->table,
        .table_stride = l.stride[NRG_SINUSOIDAL_TABLE_TABLE][0],
        .begin = nrg_share(a->rows, ith, nth),
        .end = nrg_share(a->rows, ith + 1, nth),
    };
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(position_table, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_sinusoidal_table_check(const nrg_sinusoidal_spec *spec, const nrg_sinusoidal_args *args)
{
    return NRG_ASK(sinusoidal_table, spec, args);
}
