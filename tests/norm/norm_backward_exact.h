/* The gradients of one group with 113 bits, by the formulas of nrg/norm_backward.h; and the size of the terms they are sums of.
 * norm_backward_truth_test.c checks the formulas against automatic differentiation of the forward pass's definition.
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
    quad dr, dz, dw, db; /* dr without dr_in; dw and db: this row's terms */
    /* the largest term of dp, of o1, and of the derivative in dz; and of a g' in do1 */
    quad dp_size, o1_size, dz_size, slope_size;
    quad h_size;       /* of h: a difference in centred norms, whose error is one of s */
    quad dp, g, slope; /* g(z) and g'(z) of a gate */
    quad dh;
} exact_element;

typedef struct exact_group {
    norm_exact stat;
    quad k, a, inverse; /* inverse: 1/s, or 0 */
    quad cross;         /* Σ |dh·h| / d */
} exact_group;

static inline quad exact_larger(quad a, quad b) { return quad_abs(a) > quad_abs(b) ? quad_abs(a) : quad_abs(b); }

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
    quad cross = 0, mean = 0, mean_size = 0;
    group.cross = 0;
    for (size_t i = 0; i < d; i++) {
        exact_element *x = &e[i];
        x->h = (x->p - group.stat.mean) * group.inverse;
        x->h_size = spec->centred && quad_abs(x->h) < 1 && group.inverse > 0 ? 1 : quad_abs(x->h);
        x->o1 = group.k * x->h * x->w + x->b;
        x->o1_size = exact_larger(exact_larger(group.k * x->h_size * x->w, x->b), x->o1);
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
        x->dh = group.k * x->do1 * x->w;
        cross += x->dh * x->h / (quad)d;
        group.cross += quad_abs(x->dh * x->h) / (quad)d;
    }
    for (size_t i = 0; i < d; i++) {
        exact_element *x = &e[i];
        x->dp = (x->dh - x->h * group.a * cross) * group.inverse;
        x->dp_size = exact_larger(x->dh, x->h * group.a * group.cross) * group.inverse;
        mean += x->dp / (quad)d;
        mean_size += x->dp_size / (quad)d;
    }
    for (size_t i = 0; i < d; i++) {
        exact_element *x = &e[i];
        if (spec->centred) {
            x->dp -= mean;
            x->dp_size = exact_larger(x->dp_size, mean_size);
        }
        x->dw = x->do1 * group.k * x->h;
        x->db = x->do1;
        x->dr = x->dp;
        x->dz = x->dz_size = 0;
        if (spec->gate == NRG_GATE_PRE) {
            x->dr = x->dp * x->g;
            x->dz = x->dp * x->r * x->slope;
            x->dz_size = quad_abs(x->dp_size * x->r * x->slope_size);
        }
        if (spec->gate == NRG_GATE_POST) {
            x->dz = x->d_o * x->o1 * x->slope;
            x->dz_size = quad_abs(x->d_o * x->o1_size * x->slope_size);
        }
    }
    return group;
}

#endif
