/* The gradients of one group with 113 bits, by the formulas of nrg/norm_backward.h; and Σ|terms|, the sum of the magnitudes they
 * are sums of, which errors are measured against. norm_backward_truth_test.c checks the formulas against automatic
 * differentiation of the forward pass's definition.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_BACKWARD_EXACT_H
#define NRG_TESTS_NORM_NORM_BACKWARD_EXACT_H

#include "norm_exact.h"
#include "../harness/quad_activation.h"

/* One element of a group: what goes in, and what comes out. */
typedef struct exact_element {
    quad r, p, z, w, b, d_o; /* w with its offset, 1 where absent; p is what is normalized */
    quad o1, h, do1;
    quad h_terms;        /* |h|; centred, and what a mean that is a float leaves of p - mean, which is taken out again */
    quad dr, dz, dw, db; /* dr without dr_in; dw and db: this row's terms */
    quad dp_terms, o1_terms, dz_terms, dw_terms; /* Σ|terms| */
    quad slope_size;                             /* of a g': its largest term, the unit of nrg/activation.h */
    quad dp, g, slope;                           /* g(z) and g'(z) of a gate */
    quad dh;
} exact_element;

typedef struct exact_group {
    norm_exact stat;
    quad k, a, inverse; /* inverse: 1/s, or 0 */
} exact_group;

/* |a| of a float on the way to a gradient. One below the normal floats is rounded as the least of these is: it counts as that. */
static inline quad exact_float(quad a) { return a != 0 && quad_abs(a) < 0x1p-126 ? (quad)0x1p-126 : quad_abs(a); }

/* p: scratch for d numbers. The elements' inputs are given; p of them too, so that it can be the rounded one. */
static inline exact_group exact_backward(const nrg_norm_spec *spec, size_t d, exact_element *e, quad *p)
{
    exact_group group;
    const nrg_activation g = spec->activation;
    for (size_t i = 0; i < d; i++)
        p[i] = e[i].p;
    group.stat = norm_exact_of(spec, d, p);
    group.k = norm_exact_k(spec, d);
    group.inverse = group.stat.s > 0 ? 1 / group.stat.s : 0;
    group.a = 1;
    if (spec->eps_mode == NRG_EPS_SIGMA)
        group.a = group.stat.sigma > 0 ? group.stat.s / group.stat.sigma : 0;
    if (spec->eps_mode == NRG_EPS_MAX)
        group.a = quad_sqrt(group.stat.squares) > spec->eps ? 1 : 0;
    const quad n = (quad)d, over = group.k * group.inverse;
    quad cross = 0, cross_terms = 0, mean = 0, mean_terms = 0; /* of dh⊙q and of dh */
    for (size_t i = 0; i < d; i++) {
        exact_element *x = &e[i];
        const quad q = x->p - group.stat.mean;
        x->h = q * group.inverse;
        x->h_terms = quad_abs(x->h) + (spec->centred ? (quad)0x1p-22 * (quad_abs(group.stat.mean) * group.inverse + 1) : 0);
        x->o1 = group.k * x->h * x->w + x->b;
        x->o1_terms = quad_abs(group.k * x->h_terms * x->w) + quad_abs(x->b);
        x->g = x->slope = x->slope_size = 1;
        x->do1 = x->d_o;
        if (spec->gate != NRG_GATE_NONE) {
            quad_g gate = quad_activation(g, x->z);
            x->g = gate.value;
            x->slope = gate.slope;
            x->slope_size = gate.size;
        }
        if (spec->gate == NRG_GATE_POST)
            x->do1 = x->d_o * x->g;
        else if (spec->gate == NRG_GATE_NONE && g != NRG_ACT_IDENTITY) {
            quad_g out = quad_activation(g, x->o1);
            x->do1 = x->d_o * out.slope;
            x->slope_size = out.size;
        }
        const quad weighted = x->do1 * x->w;
        x->dh = group.k * weighted;
        cross += weighted * q / n;
        cross_terms += exact_float(exact_float(weighted) * x->h_terms * group.stat.s) / n;
        mean += weighted / n;
        mean_terms += exact_float(weighted) / n;
    }
    for (size_t i = 0; i < d; i++) {
        exact_element *x = &e[i];
        x->dp = (x->dh - group.k * x->h * group.a * cross * group.inverse) * group.inverse;
        x->dp_terms = (exact_float(x->do1 * x->w) + x->h_terms * group.a * cross_terms * group.inverse) * quad_abs(over);
        if (spec->centred) {
            x->dp -= mean * over;
            x->dp_terms += mean_terms * quad_abs(over);
        }
        x->dp_terms = exact_float(x->dp_terms);
        x->dw = x->do1 * group.k * x->h;
        x->dw_terms = exact_float(x->do1 * x->h_terms) * quad_abs(group.k);
        x->db = x->do1;
        x->dr = x->dp;
        x->dz = x->dz_terms = 0;
        if (spec->gate == NRG_GATE_PRE) {
            x->dr = x->dp * x->g;
            x->dz = x->dp * x->r * x->slope;
            x->dz_terms = quad_abs(x->dp_terms * x->r * x->slope_size);
        }
        if (spec->gate == NRG_GATE_POST) {
            x->dz = x->d_o * x->o1 * x->slope;
            x->dz_terms = quad_abs(x->d_o * x->o1_terms * x->slope_size);
        }
    }
    return group;
}

#endif
