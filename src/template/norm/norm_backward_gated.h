/* The elements of a chunk of one row with a gate, in one loop over what is staged: g(z) and g′(z), and the floats of the row.
 *
 * For rows that floats serve, without a bias and a factor of the weights: then o1 = h·w is a float's product, which doubles would
 * round to the same. With a loop for each of h, o1, dz, the product with the gate and the elements, as other rows have
 * them, the whole backward pass took 1.3 to 1.5 times as long.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_GATED_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_GATED_H

#include "norm_backward_element.h"

typedef struct gated_chunk {
    const float *d_o, *r;
    float *gate, *slope;
    const float *w;               /* NULL: ones */
    float *dr, *dz;               /* dz: NULL where not asked for */
    float *partial_w, *partial_b; /* what the rows before it in its batch have added up to; NULL where not asked for */
    int first;                    /* it is the first of its batch */
    int stream_dr, stream_dz;
} gated_chunk;

/* a · b · c, in double and rounded once. */
NRG_INLINE vf product_of_three(vf a, vf b, vf c)
{
    vd a_low, a_high, b_low, b_high, c_low, c_high;
    vd_both(a, &a_low, &a_high);
    vd_both(b, &b_low, &b_high);
    vd_both(c, &c_low, &c_high);
    return v_from_vd(vd_mul(vd_mul(a_low, b_low), c_low), vd_mul(vd_mul(a_high, b_high), c_high));
}

/* Columns i to i + n: G whole vectors, or the first n lanes of one. */
NRG_INLINE void gated_step(const gated_chunk *c, const backward_vf *f, int G, size_t i, size_t n, int pre, int weighted)
{
    vf d_o[BACKWARD_MOST], r[BACKWARD_MOST], gate[BACKWARD_MOST], slope[BACKWARD_MOST], w[BACKWARD_MOST], dr[BACKWARD_MOST],
        part[BACKWARD_MOST], dz[BACKWARD_MOST] = {v_zero()};
    load_step(d_o, G, (const char *)c->d_o, i, n, NRG_F32);
    load_step(r, G, (const char *)c->r, i, n, NRG_F32);
    load_step(gate, G, (const char *)c->gate, i, n, NRG_F32);
    if (c->dz)
        load_step(slope, G, (const char *)c->slope, i, n, NRG_F32);
    if (weighted)
        load_step(w, G, (const char *)c->w, i, n, NRG_F32);
    vf d[BACKWARD_MOST], h[BACKWARD_MOST];
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        vf q = v_sub(pre ? v_mul(r[j], gate[j]) : r[j], f->mean);
        h[j] = v_fma(q, f->rstd, f->minus_left);
        d[j] = pre ? d_o[j] : v_mul(d_o[j], gate[j]);
        dr[j] = v_fma(weighted ? v_mul(d[j], w[j]) : d[j], f->a, v_fma(q, f->minus_b, f->c));
        if (c->dz)
            dz[j] = pre ? product_of_three(dr[j], r[j], slope[j])
                        : product_of_three(d_o[j], weighted ? v_mul(h[j], w[j]) : h[j], slope[j]);
        if (pre)
            dr[j] = v_mul(dr[j], gate[j]);
    }
    if (c->partial_w) {
        if (!c->first)
            load_step(part, G, (const char *)c->partial_w, i, n, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            part[j] = c->first ? v_mul(d[j], h[j]) : v_fma(d[j], h[j], part[j]);
        store_f32_step(part, G, c->partial_w + i, n, 0);
    }
    if (c->partial_b) {
        if (!c->first)
            load_step(part, G, (const char *)c->partial_b, i, n, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            part[j] = c->first ? d[j] : v_add(part[j], d[j]);
        store_f32_step(part, G, c->partial_b + i, n, 0);
    }
    if (c->dz)
        store_f32_step(dz, G, c->dz + i, n, c->stream_dz);
    store_f32_step(dr, G, c->dr + i, n, c->stream_dr);
}

NRG_INLINE void gated_steps(const gated_chunk *chunk, const backward_vf *factors, size_t n, int pre, int weighted)
{
    const gated_chunk c = *chunk;
    const backward_vf f = *factors;
    const size_t step = (size_t)BACKWARD_MOST * VN;
    size_t i = 0;
    for (; i + step <= n; i += step)
        gated_step(&c, &f, BACKWARD_MOST, i, step, pre, weighted);
    for (; i < n; i += VN)
        gated_step(&c, &f, 1, i, lanes_at(i, n), pre, weighted);
}

static __attribute__((noinline)) void gated_elements_pre(const gated_chunk *c, const backward_plain *plain, size_t n)
{
    const backward_vf f = vectors_of(plain);
    if (c->w)
        gated_steps(c, &f, n, 1, 1);
    else
        gated_steps(c, &f, n, 1, 0);
}

static __attribute__((noinline)) void gated_elements_post(const gated_chunk *c, const backward_plain *plain, size_t n)
{
    const backward_vf f = vectors_of(plain);
    if (c->w)
        gated_steps(c, &f, n, 0, 1);
    else
        gated_steps(c, &f, n, 0, 0);
}

#endif
