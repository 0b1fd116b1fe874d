/* Apply of the backward pass for rows with a gate, in one loop over what is staged: g(z) and g′(z), and the floats of the row.
 *
 * For rows that floats serve, and where dz needs no bias and no factor of the weights: o1 = h·w is then the product of floats,
 * which doubles would round to the same. With a loop for each of h, o1, dz, the product with the gate and the elements, the
 * whole backward pass took 1.3 to 1.5 times as long.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_GATED_H
#define NRG_TEMPLATE_NORM_BACKWARD_GATED_H

#include "backward_apply.h"

typedef struct gated_columns {
    const float *d_o, *r;
    float *gate, *slope;
    run_weights w;
    float *dr, *dz; /* dz: NULL where not asked for */
    float *dw, *db; /* what the rows before it in its batch have added up to; NULL where not asked for */
    int is_first;   /* in its batch */
    int stream_dr, stream_dz;
} gated_columns;

/* to: NULL, or partial sums that v is added to, as a product with `by` if there is one. */
NRG_INLINE void add_partial_step(float *to, int G, const vf *v, const vf *by, size_t i, size_t n, int is_first)
{
    vf sum[COLUMN_VECTORS];
    if (!to)
        return;
    if (!is_first)
        load_step(sum, G, (const char *)to, i, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        sum[j] = by ? (is_first ? v_mul(v[j], by[j]) : v_fma(v[j], by[j], sum[j])) : is_first ? v[j] : v_add(sum[j], v[j]);
    store_f32_step(sum, G, to + i, n, 0);
}

/* Columns i to i + n: G vectors, or the first n lanes of one. */
NRG_INLINE void gated_columns_step(const gated_columns *c, const column_factors *f, int G, size_t i, size_t n, int is_pre)
{
    vf d_o[COLUMN_VECTORS], r[COLUMN_VECTORS], gate[COLUMN_VECTORS], w[COLUMN_VECTORS], d[COLUMN_VECTORS], h[COLUMN_VECTORS],
        dr[COLUMN_VECTORS];
    load_step(d_o, G, (const char *)c->d_o, i, n, NRG_F32);
    load_step(r, G, (const char *)c->r, i, n, NRG_F32);
    load_step(gate, G, (const char *)c->gate, i, n, NRG_F32);
    load_step(w, G, (const char *)(c->w.at + (i & c->w.mask)), 0, n, NRG_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const vf q = v_sub(is_pre ? v_mul(r[j], gate[j]) : r[j], f->mean);
        h[j] = v_fma(q, f->rstd, f->minus_left);
        d[j] = is_pre ? d_o[j] : v_mul(d_o[j], gate[j]);
        dr[j] = v_fma(v_mul(d[j], w[j]), f->a, v_fma(q, f->minus_b, f->c));
    }
    if (c->dz) { /* before what is below: dz may be z, and dr may be d_o */
        vf slope[COLUMN_VECTORS];
        load_step(slope, G, (const char *)c->slope, i, n, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            slope[j] = is_pre ? product_of_three(dr[j], r[j], slope[j]) : product_of_three(d_o[j], v_mul(h[j], w[j]), slope[j]);
        store_f32_step(slope, G, c->dz + i, n, c->stream_dz);
    }
    add_partial_step(c->dw, G, d, h, i, n, c->is_first);
    add_partial_step(c->db, G, d, NULL, i, n, c->is_first);
    if (is_pre) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            dr[j] = v_mul(dr[j], gate[j]);
    }
    store_f32_step(dr, G, c->dr + i, n, c->stream_dr);
}

NRG_INLINE void gated_columns_by(const gated_columns *columns, const gradient_factors *factors, size_t n, int is_pre)
{
    const gated_columns c = *columns;
    const column_factors f = column_factors_of(factors);
    const size_t step = (size_t)COLUMN_VECTORS * VN;
    size_t i = 0;
    for (; i + step <= n; i += step)
        gated_columns_step(&c, &f, COLUMN_VECTORS, i, step, is_pre);
    for (; i < n; i += VN)
        gated_columns_step(&c, &f, 1, i, lanes_at(i, n), is_pre);
}

static __attribute__((noinline)) void output_gated_before(const gated_columns *c, const gradient_factors *f, size_t n)
{
    gated_columns_by(c, f, n, 1);
}

static __attribute__((noinline)) void output_gated_after(const gated_columns *c, const gradient_factors *f, size_t n)
{
    gated_columns_by(c, f, n, 0);
}

#endif
