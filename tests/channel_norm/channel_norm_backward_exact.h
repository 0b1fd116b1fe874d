/* The gradients of one set with 113 bits, by the formulas of nrg/channel_norm_backward.h; and Σ|terms|, the sum of the magnitudes
 * they are sums of, which errors are measured against. channel_norm_backward_truth_test.c checks the formulas against automatic
 * differentiation of the forward pass's definition.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_EXACT_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_EXACT_H

#include "channel_norm_exact.h"
#include "../harness/quad_activation.h"

/* One element of a set: what goes in, and what follows from its set's statistics. */
typedef struct exact_element {
    quad x, y, w, b, d_o; /* y, b: 0 where absent; w: 1 */
    quad h, o1, do1, dh;
    quad slope, slope_size; /* g' and the largest of its terms */
} exact_element;

static inline void exact_element_set(nrg_activation g, const exact_statistics *exact, exact_element *e)
{
    e->h = (e->x - exact->mean) * exact->inverse;
    e->o1 = e->h * e->w + e->b;
    e->slope = e->slope_size = 1;
    if (g != NRG_ACT_IDENTITY) {
        const quad_g out = quad_activation(g, e->o1 + e->y);
        e->slope = out.slope;
        e->slope_size = out.size;
    }
    e->do1 = e->d_o * e->slope;
    e->dh = e->do1 * e->w;
}

/* Sums over a set; sizes: of the magnitudes. */
typedef struct exact_sums {
    quad dh, dh_h, dh_size, dh_h_size;
} exact_sums;

static inline void exact_sums_add(exact_sums *sums, const exact_element *e)
{
    const quad cross = e->dh * e->h;
    sums->dh += e->dh;
    sums->dh_h += cross;
    sums->dh_size += quad_abs(e->dh);
    sums->dh_h_size += quad_abs(cross);
}

static inline quad exact_larger(quad a, quad b) { return quad_abs(a) > quad_abs(b) ? quad_abs(a) : quad_abs(b); }

/* dx of one element of a set of d. terms: Σ|terms|, a centred h counted with what rounding the mean to a float leaves of x - m,
 * which is taken out again. */
static inline quad exact_dx(const nrg_channel_norm_spec *spec, const exact_statistics *exact, const exact_sums *sums, size_t d,
                            const exact_element *e, quad *terms)
{
    const quad n = (quad)d;
    quad dx = e->dh, all = quad_abs(e->dh);
    if (spec->source != NRG_STATISTICS_RUNNING) {
        dx -= e->h * (sums->dh_h / n);
        quad h = quad_abs(e->h);
        if (spec->centred)
            h += (quad)0x1p-24 * quad_abs(exact->mean) * exact->inverse;
        all += h * (sums->dh_h_size / n);
        if (spec->centred) {
            dx -= sums->dh / n;
            all += sums->dh_size / n;
        }
    }
    *terms = all * exact->inverse;
    return dx * exact->inverse;
}

#endif
