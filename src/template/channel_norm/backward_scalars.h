/* What the backward passes of channel normalization make of a set's sums; docs/ops/channel_norm.md, "Backward".
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_SCALARS_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_SCALARS_H

#include "../../exact/channel_sums.h"
#include "../../job/channel_norm.h"

/* Of a set. */
typedef struct channel_backward {
    float centre; /* μ, the mean as f32 */
    double delta; /* what it lacks */
    double rstd;
    double beta, gamma, exact_gamma;
    int frozen; /* the statistics are constants */
} channel_backward;

static inline channel_backward backward_around(const nrg_channel_statistics *stat, int frozen)
{
    channel_backward g = {.centre = (float)(stat->mean + stat->mean_low), .rstd = stat->rstd, .frozen = frozen};
    g.delta = (stat->mean - (double)g.centre) + stat->mean_low;
    return g;
}

/* Σdo1 ⊙ (x - m) from that around μ. */
static inline double backward_around_mean(const channel_backward *g, double a, double b) { return fma(-g->delta, a, b); }

/* a, b: Σ dh and Σ dh ⊙ (x - μ) of the set. */
static inline void backward_of_set(channel_backward *g, const nrg_channel_norm_backward_job *job, double a, double b,
                                   double count)
{
    const int centred = job->centred;
    const double inverse = 1 / count;
    if (NRG_RARELY(nrg_channel_has_no_gradient(job, count)))
        g->rstd = 0;
    g->beta = (g->rstd * ((backward_around_mean(g, a, b) * g->rstd) * inverse)) * g->rstd;
    g->exact_gamma = centred ? -(g->rstd * (a * inverse)) : -0.0;
    g->gamma = fma(g->delta, g->beta, g->exact_gamma);
}

static inline int backward_between(double value, double least, double most)
{
    return value == 0 || (fabs(value) >= least && fabs(value) <= most);
}

/* Whether a channel's elements can be done in f32. alpha: 1/s · w. */
static inline int backward_is_plain(const channel_backward *g, double alpha)
{
    if (!backward_between(alpha, 0x1p-100, 0x1p100))
        return 0;
    return g->frozen || (backward_between(g->rstd, 0x1p-40, 0x1p40) && backward_between(g->beta, 0x1p-100, 0x1p100) &&
                         fabs(g->gamma) <= (double)FLT_MAX);
}

#endif
