/* Products in double of matrices of floats: dot products of rows, and sums of rows with weights. Whole vectors only; rows that
 * are no such thing are copied first.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_PRODUCT_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_PRODUCT_H

#include "relative_elements.h"

/* ---- dot products, in eight lanes: element c in lane c mod 8 ---- */

enum {
    DOT_SLOTS = 4,              /* slots between two folds: 16 dot products */
    DOT_STEP = VN > 8 ? VN : 8, /* elements that fill the lanes once, or twice */
    DOT_REGISTERS = 16 / VN     /* of one dot product */
};

/* Lanes of REL_ROWS · REL_CLASSES dot products over n elements, a multiple of DOT_STEP. */
NRG_INLINE void dot_tile(vd8 *lanes, const double *q, const float *const *r, size_t n)
{
    enum { SUMS = REL_ROWS * REL_CLASSES, PARTS = 2 * DOT_STEP / VN };
    vd sums[SUMS * DOT_REGISTERS];
    NRG_UNROLL
    for (int i = 0; i < SUMS * DOT_REGISTERS; i++)
        sums[i] = vd_zero();
    for (size_t c = 0; c < n; c += DOT_STEP) {
        NRG_UNROLL
        for (int part = 0; part < PARTS; part++) {
            vd x[REL_CLASSES];
            const size_t at = c + (size_t)part * (VN / 2);
            NRG_UNROLL
            for (int k = 0; k < REL_CLASSES; k++)
                x[k] = vd_ld_f32(r[k] + at);
            NRG_UNROLL
            for (int m = 0; m < REL_ROWS; m++) {
                const vd query = vd_ld(q + m * REL_SEGMENT + at);
                NRG_UNROLL
                for (int k = 0; k < REL_CLASSES; k++) {
                    vd *sum = sums + (m * REL_CLASSES + k) * DOT_REGISTERS + part % DOT_REGISTERS;
                    *sum = vd_fma(query, x[k], *sum);
                }
            }
        }
    }
    NRG_UNROLL
    for (int m = 0; m < REL_ROWS; m++) {
        NRG_UNROLL
        for (int k = 0; k < REL_CLASSES; k++) {
            NRG_UNROLL
            for (int j = 0; j < DOT_REGISTERS; j++)
                lanes[m * DOT_SLOTS + k].v[j] = sums[(m * REL_CLASSES + k) * DOT_REGISTERS + j];
        }
    }
}

/* u[m·REL_SLOTS + s] += q_m · R of slot s, over the n elements of a segment. q: rows of REL_SEGMENT, with zeros up to a
 * multiple of REL_WIDE; r: of slot 0, `step` bytes down to the next. */
REL_NOINLINE void rel_dots(double *u, const double *q, const char *r, size_t step, size_t slots, size_t n, nrg_dtype D)
{
    float copies[DOT_SLOTS * REL_SEGMENT];
    const int as_it_is = D == NRG_F32 && n % DOT_STEP == 0;
    const size_t padded = (n + DOT_STEP - 1) / DOT_STEP * DOT_STEP;
    for (size_t slot = 0; slot < slots; slot += DOT_SLOTS) {
        vd8 lanes[REL_ROWS * DOT_SLOTS];
        double sums[REL_ROWS * DOT_SLOTS];
        const float *rows[DOT_SLOTS];
        const size_t count = slots - slot < DOT_SLOTS ? slots - slot : DOT_SLOTS;
        for (size_t k = 0; k < DOT_SLOTS; k++) {
            if (k < count && as_it_is) {
                rows[k] = (const float *)(const void *)(r - (slot + k) * step);
            } else if (k < count) {
                rel_widen(copies + k * REL_SEGMENT, r - (slot + k) * step, n, D);
                rows[k] = copies + k * REL_SEGMENT;
            } else {
                rows[k] = rows[k - 1]; /* not there: the last one again */
            }
        }
        for (size_t k = 0; k < DOT_SLOTS; k += REL_CLASSES)
            dot_tile(lanes + k, q, rows + k, padded);
        vd8_sum_rows(lanes, sums);
        vd8_sum_rows(lanes + 8, sums + 8);
        for (size_t m = 0; m < REL_ROWS; m++)
            for (size_t k = 0; k < count; k++)
                u[m * REL_SLOTS + slot + k] += sums[m * DOT_SLOTS + k];
    }
}

/* ---- sums[m][c] = fma(weight(m, k), x[k][c], sums[m][c]) for k = 0 … count - 1 ---- */

enum { PRODUCT_COPIES = 16 };

typedef struct rel_product {
    double *sums;          /* rows of REL_COLUMNS, as many as are taken together; written up to a multiple of REL_WIDE */
    const double *weights; /* weight(m, k) is weights[m·row_step + k·step] */
    size_t row_step, step, count;
    const char *x;
    ptrdiff_t x_step; /* bytes from k to k + 1, either way */
    size_t columns;
} rel_product;

/* M rows and REL_VECTORS vectors of floats. */
NRG_INLINE void product_tile(const rel_product *p, int M, size_t c)
{
    enum { V = 2 * REL_VECTORS };
    vd sums[REL_ROWS * V], x[V];
    const size_t row_step = p->row_step, step = p->step;
    const ptrdiff_t x_step = p->x_step;
    const double *w = p->weights, *const end = w + p->count * step;
    const char *at = p->x + c * sizeof(float);
    double *to = p->sums + c;
    NRG_UNROLL
    for (int m = 0; m < M; m++) {
        NRG_UNROLL
        for (int g = 0; g < V; g++)
            sums[m * V + g] = vd_ld(to + m * REL_COLUMNS + g * (VN / 2));
    }
    for (; w != end; w += step, at += x_step) {
        NRG_UNROLL
        for (int g = 0; g < V; g++)
            x[g] = vd_ld_f32((const float *)(const void *)at + g * (VN / 2));
        NRG_UNROLL
        for (int m = 0; m < M; m++) {
            const vd weight = vd_set1(w[(size_t)m * row_step]);
            NRG_UNROLL
            for (int g = 0; g < V; g++)
                sums[m * V + g] = vd_fma(weight, x[g], sums[m * V + g]);
        }
    }
    NRG_UNROLL
    for (int m = 0; m < M; m++) {
        NRG_UNROLL
        for (int g = 0; g < V; g++)
            vd_st(to + m * REL_COLUMNS + g * (VN / 2), sums[m * V + g]);
    }
}

REL_NOINLINE void product_of_floats(const rel_product *p, int many)
{
    if (many)
        for (size_t c = 0; c < p->columns; c += (size_t)REL_VECTORS * VN)
            product_tile(p, REL_ROWS, c);
    else
        for (size_t c = 0; c < p->columns; c += (size_t)REL_VECTORS * VN)
            product_tile(p, 1, c);
}

/* many: REL_ROWS rows; otherwise one. */
REL_NOINLINE void rel_multiply(const rel_product *p, int many, nrg_dtype D)
{
    if (D == NRG_F32 && p->columns % ((size_t)REL_VECTORS * VN) == 0) {
        product_of_floats(p, many);
        return;
    }
    float copies[PRODUCT_COPIES * REL_COLUMNS];
    rel_product part = *p;
    part.x = (const char *)copies;
    part.x_step = REL_COLUMNS * sizeof(float);
    const char *x = p->x;
    for (size_t left = p->count; left; left -= part.count) {
        part.count = left < PRODUCT_COPIES ? left : PRODUCT_COPIES;
        for (size_t k = 0; k < part.count; k++, x += p->x_step)
            rel_widen(copies + k * REL_COLUMNS, x, p->columns, D);
        product_of_floats(&part, many);
        part.weights += part.count * part.step;
    }
}

#endif
