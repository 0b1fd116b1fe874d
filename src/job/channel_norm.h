/* The jobs of channel normalization.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_CHANNEL_H
#define NRG_JOB_CHANNEL_H

#include "../../include/nrg/channel_norm_backward.h"

/* A share of sets for channel_norm_forward. Everything in it has been checked; strides are the real ones, in bytes. */
typedef struct nrg_channel_norm_job {
    const char *x, *y, *w, *b;           /* NULL where absent */
    char *o;                             /* NULL: the statistics are all that is wanted */
    float *mean, *rstd;                  /* [sets], NULL where not asked for */
    nrg_channel_statistics *statistics;  /* [sets] to fill, NULL where not asked for */
    const nrg_channel_statistics *given; /* [sets], NULL: not given */
    const float *fixed_mean, *fixed_var; /* [c] NRG_STATISTICS_RUNNING, NULL: not running */
    float *running_mean, *running_var;   /* [c] to be updated, or NULL */
    int64_t *sums; /* [sets][NRG_CHANNEL_NORM_SUMS_WORDS]: the sums are all that is wanted; otherwise NULL */
    size_t n, c, s, groups, group_channels; /* groups: 0 with NRG_CHANNEL_OVER_BATCH; group_channels: of a set's group */
    size_t x_stride, y_stride, o_stride;    /* NCHW: of samples; NHWC: of positions */
    size_t segment;
    /* The share. Where the statistics are there already (given, fixed or folded): planes n·c + channel with NCHW, positions n·s +
     * position with NHWC. Otherwise channels where by_channel, or else sets n·groups + group. */
    size_t begin, end;
    size_t out_begin, out_end; /* fixed: the sets whose mean, rstd and statistics this share writes */
    int by_channel;            /* NRG_CHANNEL_OVER_BATCH, and instance norm with running statistics to update */
    int nhwc, folded, centred, w_f32, stream;
    int fast; /* sums and elements of the fast grade, which 16-bit types always have */
    nrg_activation activation;
    double eps, momentum;
} nrg_channel_norm_job;

/* A share for channel_norm_backward. */
typedef struct nrg_channel_norm_backward_job {
    const char *d_o, *x, *y, *w, *b;
    char *dx, *dy;               /* NULL where not asked for */
    float *dw, *db;              /* [c] NRG_CHANNEL_OVER_BATCH; NULL where not asked for */
    double *block_dw, *block_db; /* [blocks][c] NRG_CHANNEL_OVER_GROUP: sums over a block of samples; NULL where not asked for */
    const nrg_channel_statistics *given;  /* [sets], NULL: to be computed, or in floats: */
    const float *given_mean, *given_rstd; /* [sets] NULL: not given; mean alone: 0 */
    const float *fixed_mean, *fixed_var;  /* [c] NRG_STATISTICS_RUNNING, NULL: not running */
    const int64_t *given_sums;            /* [c][NRG_CHANNEL_NORM_SUMS_WORDS], NULL: to be computed */
    int64_t *sums; /* [c][NRG_CHANNEL_NORM_SUMS_WORDS]: these, and dw and db, are all that is wanted; otherwise NULL */
    size_t n, c, s, groups, group_channels;
    size_t d_o_stride, x_stride, y_stride, dx_stride, dy_stride;
    size_t segment;
    size_t begin, end; /* channels with NRG_CHANNEL_OVER_BATCH; otherwise block·groups + group, of block_samples each */
    size_t block_samples;
    int by_channel; /* NRG_CHANNEL_OVER_BATCH */
    int nhwc, centred, w_f32, stream, accumulate;
    int fast; /* statistics that are computed, and o1, of the fast grade */
    nrg_activation activation;
    double eps;
} nrg_channel_norm_backward_job;

/* Whether nothing that is done to a set of so many elements changes what comes out, so that the gradient is 0: there are no more
 * of them than the norm takes away, the mean and, without an eps, the length. */
static inline int nrg_channel_has_no_gradient(const nrg_channel_norm_backward_job *job, double count)
{
    return !job->fixed_mean && count <= (double)(job->centred + (job->eps == 0));
}

#endif
