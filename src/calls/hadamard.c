/* The public layer of nrg/hadamard.h: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/hadamard.h"
#include "../operands/place.h"
#include "../operands/quantize.h"
#include "call.h"

#define NRG_MAKE_TABLES
#define NRG_CALL NRG_HADAMARD, hadamard
#include "../operands/description.h"

NRG_OWN_FRAME nrg_status lay(nrg_laid *l, const nrg_hadamard_args *a, int ith, int nth)
{
    return hadamard_precheck(a, ith, nth, l) == NRG_OK ? NRG_OK : NRG_LAY(l, hadamard, a);
}

NRG_TABLES(hadamard)

_Static_assert(NRG_HADAMARD_MOST == 512, "the buffer of a kernel has room for each length that nrg_hadamard_has");

static float scale_of(size_t dim)
{
    return dim == 64 ? 0x1p-3f : dim == 128 ? 0x1.6a09e6p-4f : dim == 256 ? 0x1p-4f : 0x1.6a09e6p-5f;
}

nrg_status nrg_hadamard_forward(const nrg_hadamard_args *args, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay(&l, args, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_hadamard_job job = {
        .x = args->x,
        .o = args->o,
        .x_stride = l.stride[NRG_HADAMARD_X][0],
        .o_stride = l.stride[NRG_HADAMARD_O][0],
        .dim = args->dim,
        .begin = nrg_share(args->rows, ith, nth),
        .end = nrg_share(args->rows, ith + 1, nth),
        .scale = scale_of(args->dim),
    };
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(hadamard, args->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_hadamard_forward_check(const nrg_hadamard_args *args) { return NRG_ASK(hadamard, args); }

#ifndef NRG_NO_BACKWARD
nrg_status nrg_hadamard_backward(const nrg_hadamard_args *args, int ith, int nth) { return nrg_hadamard_forward(args, ith, nth); }

nrg_status nrg_hadamard_backward_check(const nrg_hadamard_args *args) { return NRG_ASK(hadamard, args); }
#endif
