/* What the calls of nrg/channel_norm.h and nrg/channel_norm_backward.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CHANNEL_NORM_H
#define NRG_OPERANDS_CHANNEL_NORM_H

#include <float.h>

#include "../../include/nrg/channel_norm.h"
#include "../../include/nrg/channel_norm_backward.h"
#include "activation.h"
#include "describe.h"

/* What functions take beside spec and args: nrg_channel_norm_sums, _sums_add and _statistics, and nrg_channel_norm_fold. */
typedef struct nrg_channel_sums {
    const int64_t *sums;
} nrg_channel_sums;
typedef struct nrg_channel_norm_sums_add_args {
    size_t sets;
    const int64_t *from, *into;
} nrg_channel_norm_sums_add_args;
typedef struct nrg_channel_factors {
    const float *scale, *shift;
} nrg_channel_factors;

enum { NRG_CHANNEL_SEGMENT = 4096 };

static inline int nrg_channel_is_batch(const nrg_channel_norm_spec *spec) { return spec->over == NRG_CHANNEL_OVER_BATCH; }

/* 0 with NRG_CHANNEL_OVER_BATCH. */
static inline size_t nrg_channel_groups(const nrg_channel_norm_spec *spec)
{
    return nrg_channel_is_batch(spec) ? 0 : spec->groups;
}

static inline size_t nrg_channel_sets(const nrg_channel_norm_spec *spec, size_t n)
{
    const size_t groups = nrg_channel_groups(spec);
    return groups ? n * groups : spec->channels;
}

static inline size_t nrg_channel_group_channels(const nrg_channel_norm_spec *spec)
{
    return nrg_channel_is_batch(spec) ? 1 : spec->channels / spec->groups;
}

static inline double nrg_channel_eps(const nrg_channel_norm_spec *spec) { return spec->eps < 0x1p-600 ? 0 : spec->eps; }

/* Whether a spec asks for the fast grade, which 16-bit types always get. */
static inline int nrg_channel_is_fast(const nrg_channel_norm_spec *spec)
{
    return spec->dtype != NRG_F32 || spec->accuracy == NRG_ACCURACY_FAST;
}

/* Also where s is 1 and there is no difference. */
static inline int nrg_channel_is_nhwc(const nrg_channel_norm_spec *spec, size_t s)
{
    return spec->layout == NRG_LAYOUT_NHWC || s == 1;
}

/* Whether running statistics can be a set's: it is of one channel, and centred. */
static inline int nrg_channel_may_run(const nrg_channel_norm_spec *spec)
{
    const size_t groups = nrg_channel_groups(spec);
    return (groups == 0 || groups == spec->channels) && spec->centred;
}

/* Whether there are running statistics, all four of them; and whether a forward pass makes new ones of them. */
static inline int nrg_channel_has_running(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *a)
{
    return nrg_channel_may_run(spec) && a->running_mean_in && a->running_var_in && a->running_mean && a->running_var;
}
static inline int nrg_channel_runs(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *a)
{
    return spec->source == NRG_STATISTICS_COMPUTE && nrg_channel_has_running(spec, a);
}

static inline int nrg_channel_is_running(const nrg_channel_norm_spec *spec) { return spec->source == NRG_STATISTICS_RUNNING; }

static inline enum nrg_there nrg_channel_running_in(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *a)
{
    return nrg_channel_is_running(spec) ? NRG_ALWAYS : nrg_may_if(nrg_channel_runs(spec, a));
}

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

#include "channel_norm_calls.def"
#include "channel_norm_backward_calls.def"

#endif
