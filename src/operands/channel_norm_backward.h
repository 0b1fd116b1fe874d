/* What the calls of nrg/channel_norm_backward.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CHANNEL_NORM_BACKWARD_H
#define NRG_OPERANDS_CHANNEL_NORM_BACKWARD_H

#include "../../include/nrg/channel_norm_backward.h"
#include "channel_norm.h"

/* Samples of a block, whose sums of dw and db are kept apart until the end: of their number alone, so that dw and db do not
 * depend on threads. */
enum { NRG_CHANNEL_BLOCKS_MOST = 64 };
static inline size_t nrg_channel_block_samples(size_t n)
{
    const size_t each = n / NRG_CHANNEL_BLOCKS_MOST + (n % NRG_CHANNEL_BLOCKS_MOST != 0);
    return each ? each : 1;
}
static inline size_t nrg_channel_block_count(size_t n)
{
    const size_t each = nrg_channel_block_samples(n);
    return n / each + (n % each != 0);
}

/* Doubles of the workspace: a sum for each channel, block and gradient of it. SIZE_MAX: its bytes do not fit. */
static inline size_t nrg_channel_space(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *a)
{
    const size_t gradients = nrg_channel_is_batch(spec) ? 0 : (size_t)(a->dw != NULL) + (a->db != NULL),
                 sums = gradients * nrg_channel_block_count(a->samples);
    size_t bytes;
    return nrg_product(spec->channels, sums * sizeof(double), &bytes) ? spec->channels * sums : SIZE_MAX;
}

/* Statistics, or the floats in their place: both, or without a mean where it is 0. */
static inline enum nrg_there nrg_channel_statistics_there(const nrg_channel_norm_spec *spec,
                                                          const nrg_channel_norm_backward_args *a, int are_needed)
{
    return nrg_channel_is_running(spec) ? NRG_NOT : are_needed && !a->mean && !a->rstd ? NRG_NEED : NRG_MAY;
}
static inline enum nrg_there nrg_channel_rstd_there(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *a)
{
    return nrg_may_if(!nrg_channel_is_running(spec) && !a->statistics && (!spec->centred || a->mean));
}
static inline enum nrg_there nrg_channel_mean_there(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *a)
{
    return nrg_may_if(!nrg_channel_is_running(spec) && !a->statistics && a->rstd && spec->centred);
}

#define NRG_MAKE "names.h"
#include "channel_norm_backward_calls.def"

#endif
