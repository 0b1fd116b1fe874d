/* What the calls of nrg/channel_norm_backward.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CHANNEL_NORM_BACKWARD_H
#define NRG_OPERANDS_CHANNEL_NORM_BACKWARD_H

#include "../../include/nrg/channel_norm_backward.h"
#include "channel_norm.h"

/* nrg_channel_norm_backward and nrg_channel_norm_backward_reduce, which needs less; the first five in all calls here */
enum {
    NRG_CHANNEL_BACKWARD_X,
    NRG_CHANNEL_BACKWARD_Y,
    NRG_CHANNEL_BACKWARD_W,
    NRG_CHANNEL_BACKWARD_B,
    NRG_CHANNEL_BACKWARD_D_O,
    NRG_CHANNEL_BACKWARD_RUNNING_MEAN,
    NRG_CHANNEL_BACKWARD_RUNNING_VAR,
    NRG_CHANNEL_BACKWARD_STATISTICS,
    NRG_CHANNEL_BACKWARD_MEAN,
    NRG_CHANNEL_BACKWARD_RSTD,
    NRG_CHANNEL_BACKWARD_SUMS,
    NRG_CHANNEL_BACKWARD_DX,
    NRG_CHANNEL_BACKWARD_DY,
    NRG_CHANNEL_BACKWARD_DW,
    NRG_CHANNEL_BACKWARD_DB,
    NRG_CHANNEL_BACKWARD_WORKSPACE,
    NRG_CHANNEL_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_channel_norm_backward, nrg_call_channel_norm_backward_reduce;

/* nrg_channel_norm_backward_sums; what it takes beside spec and args is nrg_channel_sums */
enum {
    NRG_CHANNEL_BACKWARD_SUMS_STATISTICS = NRG_CHANNEL_BACKWARD_D_O + 1,
    NRG_CHANNEL_BACKWARD_SUMS_MEAN,
    NRG_CHANNEL_BACKWARD_SUMS_RSTD,
    NRG_CHANNEL_BACKWARD_SUMS_SUMS,
    NRG_CHANNEL_BACKWARD_SUMS_DW,
    NRG_CHANNEL_BACKWARD_SUMS_DB,
    NRG_CHANNEL_BACKWARD_SUMS_OPERANDS
};
extern const nrg_call nrg_call_channel_norm_backward_sums;

/* nrg_channel_norm_backward_workspace: options only. NRG_CHANNEL_SPACE is the answer. */
extern const nrg_call nrg_call_channel_norm_backward_workspace;

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

#endif
