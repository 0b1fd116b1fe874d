/* Channel norms, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "truth.h"

#ifdef TRUTH_IS_HERE

enum { IMAGES = 2, CHANNELS = 64 };

static size_t positions_of(const bench_case *c) { return truth_rows(c) * TRUTH_DIM / (IMAGES * CHANNELS); }

static size_t element_of(const bench_case *c, size_t image, size_t channel, size_t position)
{
    return c->op->layout == NRG_LAYOUT_NHWC ? (image * positions_of(c) + position) * CHANNELS + channel
                                            : (image * CHANNELS + channel) * positions_of(c) + position;
}

/* Which elements a mean is of: over the batch a channel of all images, otherwise a group of channels of one. */
typedef struct set {
    size_t image, images, channel, channels;
    quad mean, inverse;
} set;

#define EACH_OF(c, s, n, ch, p)                                                                                                  \
    for (size_t n = (s)->image; n < (s)->image + (s)->images; n++)                                                               \
        for (size_t ch = (s)->channel; ch < (s)->channel + (s)->channels; ch++)                                                  \
            for (size_t p = 0; p < positions_of(c); p++)

static size_t sets_of(const bench_case *c, const rival_job *j)
{
    return c->op->over == NRG_CHANNEL_OVER_BATCH ? CHANNELS : IMAGES * j->groups;
}

static set set_of(const bench_case *c, const rival_job *j, size_t n)
{
    const size_t channels = CHANNELS / j->groups;
    set s = {n / j->groups, 1, n % j->groups * channels, channels, 0, 1};
    if (c->op->over == NRG_CHANNEL_OVER_BATCH)
        s = (set){0, IMAGES, n, 1, 0, 1};
    if (c->op->source == NRG_STATISTICS_FOLDED)
        return s;
    quad variance = 0;
    if (c->op->source == NRG_STATISTICS_RUNNING) {
        s.mean = j->running_mean[n];
        variance = j->running_var[n];
    } else {
        const quad count = (quad)(s.images * s.channels * positions_of(c));
        EACH_OF(c, &s, image, ch, p)
        s.mean += truth_at(c, j->x, element_of(c, image, ch, p)) / count;
        EACH_OF(c, &s, image, ch, p)
        {
            const quad q = truth_at(c, j->x, element_of(c, image, ch, p)) - s.mean;
            variance += q * q / count;
        }
    }
    s.inverse = 1 / quad_sqrt(variance + (quad)j->eps);
    return s;
}

static void forward(truth *t, const bench_case *c, const rival_job *j)
{
    bench_case of_weights = *c;
    if (c->op->source == NRG_STATISTICS_FOLDED)
        of_weights.dtype = NRG_F32; /* as nrg_channel_norm_fold makes them */
    for (size_t n = 0; n < sets_of(c, j); n++) {
        const set s = set_of(c, j, n);
        EACH_OF(c, &s, image, ch, p)
        {
            const size_t at = element_of(c, image, ch, p);
            const quad x = truth_at(c, j->x, at), y = j->y ? truth_at(c, j->y, at) : 0;
            const quad w = truth_at(&of_weights, j->w, ch), b = truth_at(&of_weights, j->b, ch);
            const quad all = (x - s.mean) * s.inverse * w + b + y;
            const quad term = truth_larger(truth_larger(x, s.mean) * s.inverse * w, truth_larger(b, y));
            truth_put(t, TRUTH_O, at, quad_activation(c->op->activation, all).value, term);
        }
    }
}

static void backward(truth *t, const bench_case *c, const rival_job *j)
{
    static quad h[TRUTH_ELEMENTS], dh[TRUTH_ELEMENTS], size[TRUTH_ELEMENTS];
    quad dw[CHANNELS][2] = {{0}}, db[CHANNELS][2] = {{0}};
    for (size_t n = 0; n < sets_of(c, j); n++) {
        const set s = set_of(c, j, n);
        const quad count = (quad)(s.images * s.channels * positions_of(c));
        quad sum = 0, sum_terms = 0, cross = 0, cross_terms = 0;
        EACH_OF(c, &s, image, ch, p)
        {
            const size_t at = element_of(c, image, ch, p);
            const quad d_o = truth_at(c, j->d_o, at), w = truth_at(c, j->w, ch), b = j->b ? truth_at(c, j->b, ch) : 0;
            h[at] = (truth_at(c, j->x, at) - s.mean) * s.inverse;
            const quad_g g = quad_activation(c->op->activation, h[at] * w + b);
            const quad slope = quad_abs(truth_slope_scale(g));
            dh[at] = d_o * g.slope * w;
            size[at] = quad_abs(d_o * w) * slope;
            sum += dh[at] / count;
            sum_terms += size[at] / count;
            cross += dh[at] * h[at] / count;
            cross_terms += size[at] * quad_abs(h[at]) / count;
            dw[ch][0] += d_o * g.slope * h[at];
            dw[ch][1] += quad_abs(d_o * h[at]) * slope;
            db[ch][0] += d_o * g.slope;
            db[ch][1] += quad_abs(d_o) * slope;
        }
        EACH_OF(c, &s, image, ch, p)
        {
            const size_t at = element_of(c, image, ch, p);
            truth_put(t, TRUTH_DX, at, s.inverse * (dh[at] - sum - h[at] * cross),
                      s.inverse * (size[at] + sum_terms + quad_abs(h[at]) * cross_terms));
        }
    }
    for (size_t ch = 0; ch < CHANNELS; ch++) {
        truth_put(t, TRUTH_DW, ch, dw[ch][0], dw[ch][1]);
        truth_put(t, TRUTH_DB, ch, db[ch][0], db[ch][1]);
    }
}

truth_maker *truth_of_channels(bench_case *c)
{
    const char *kernel = bench_kernel_of(c->family);
    truth_maker *maker = strcmp(kernel, "channel_norm_forward") == 0    ? forward
                         : strcmp(kernel, "channel_norm_backward") == 0 ? backward
                                                                        : NULL;
    if (maker)
        c->shape = (bench_shape)BENCH_IMAGES(IMAGES, CHANNELS, 16, positions_of(c) / 16);
    return maker;
}
#endif
