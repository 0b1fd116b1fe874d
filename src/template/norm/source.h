/* Source: reads the elements that are normalized, x or r = x + y, and stores r.
 *
 * A step is G vectors from element i on. With G = 1 it may be the first n lanes of a vector; the other lanes are then 0.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_SOURCE_H
#define NRG_TEMPLATE_NORM_SOURCE_H

#include "policy.h"

/* The operands of one row. */
typedef struct row_operands {
    const char *x, *y, *w, *b;
    char *r, *o;
    uint16_t *kept;   /* OPT_KEEP_R: the staging buffer of r */
    const char *gate; /* OPT_GATE: of g(z) */
} row_operands;

NRG_INLINE row_operands operands_of_row(const nrg_norm_job *job, size_t n, unsigned options, nrg_dtype D)
{
    size_t group = 0;
    if (NRG_RARELY(options & (OPT_GROUPS | OPT_HEADS))) {
        group = n % job->groups;
        n /= job->groups;
    }
    row_operands at = {.x = job->x + n * job->x_stride, .w = job->w, .b = job->b};
    at.o = (char *)((uintptr_t)job->o + n * job->o_stride); /* as a number: o may be NULL */
    if (options & (OPT_ADD_Y | OPT_AFTER))
        at.y = job->y + n * job->y_stride;
    if (options & OPT_STORE_R)
        at.r = job->r + n * job->r_stride;
    if (NRG_RARELY(group)) {
        const size_t first = group * job->dim;
        at.x += bytes_of(first, D, options & OPT_X_F32);
        at.y = at.y ? at.y + bytes_of(first, D, job->y_f32) : NULL;
        at.w = at.w && options & OPT_GROUPS ? at.w + bytes_of(first, D, job->w_f32) : at.w;
        at.b = at.b && options & OPT_GROUPS ? at.b + bytes_of(first, D, job->w_f32) : at.b;
        at.r = at.r ? at.r + bytes_of(first, D, job->r_f32) : NULL;
        at.o = (char *)((uintptr_t)at.o + bytes_of(first, D, job->o_f32));
    }
    return at;
}

/* Loads the operands of a row that were stored one by one just before. The compiler must not load two of them at once: such a
 * load waits until the stores are in the cache, hence until all rows before are done. */
NRG_INLINE row_operands operands_in_registers(const row_operands *from)
{
    row_operands row = *from;
    NRG_IN_REGISTER(row.x);
    NRG_IN_REGISTER(row.y);
    return row;
}

/* A step of an operand. f32 values beside bf16 lose the payload of a NaN, so that rounding need not look at it. */
NRG_INLINE void load_elements(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D, int is_f32)
{
    if (!is_paired(G, D)) {
        load_step_or_f32(v, G, p, i, n, D, is_f32);
        return;
    }
    if (!is_f32) {
        load_pairs(v, G, p, i);
        return;
    }
    load_step(v, G, p, i, n, NRG_F32);
    order_to_pairs(v, G);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_calm(v[j]);
}

NRG_INLINE void add_operand(vf *v, int G, const char *p, size_t i, size_t n, nrg_dtype D, int is_f32)
{
    vf other[NORM_STEP];
    load_elements(other, G, p, i, n, D, is_f32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], other[j]);
}

/* Floats in the order of elements, whatever the order of the step. */
NRG_INLINE void store_floats(const vf *v, int G, float *p, size_t n, unsigned stream, nrg_dtype D)
{
    vf ordered[NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        ordered[j] = v[j];
    if (is_paired(G, D))
        pairs_to_order(ordered, G);
    store_f32_step(ordered, G, p, n, stream != 0);
}

/* Rounds r to 16 bits, and stores it to out and to kept, which may be NULL. */
NRG_INLINE void round_r(vf *v, int G, uint16_t *out, uint16_t *kept, size_t n, unsigned stream, nrg_dtype D)
{
    if (is_paired(G, D)) {
        vp h[NORM_STEP];
        round_pairs(h, v, G, 1);
        widen_pairs(v, h, G);
        if (kept)
            store_pair_step(h, G, kept, 0);
        if (out)
            store_pair_step(h, G, out, stream);
        return;
    }
    vh h[NORM_STEP];
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        h[j] = to_half(v[j], D);
        v[j] = from_half(h[j], D);
    }
    if (kept)
        store_half_step(h, G, kept, n, 0);
    if (out)
        store_half_step(h, G, out, n, stream);
}

/* The first pass. */
NRG_INLINE void source_step(vf *v, int G, row_operands row, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    load_elements(v, G, row.x, i, n, D, options & OPT_X_F32);
    if (!(options & (OPT_ADD_Y | OPT_STORE_R))) /* one test for rows without a residual */
        return;
    if (options & OPT_ADD_Y)
        add_operand(v, G, row.y, i, n, D, options & OPT_Y_F32);
    if (D == NRG_F32 || options & OPT_R_F32) {
        if (options & OPT_STORE_R)
            store_floats(v, G, (float *)row.r + i, n, options & OPT_STREAM_R, D);
    } else
        round_r(v, G, options & OPT_STORE_R ? (uint16_t *)row.r + i : NULL, options & OPT_KEEP_R ? row.kept + i : NULL, n,
                options & OPT_STREAM_R, D);
}

/* The second pass: r where it can be read, otherwise x and y again. */
NRG_INLINE void source_again(vf *v, int G, row_operands row, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    if (options & OPT_KEEP_R) {
        load_elements(v, G, (const char *)row.kept, i, n, D, 0);
        return;
    }
    if (options & OPT_READ_R) {
        load_elements(v, G, row.r, i, n, D, options & OPT_R_F32);
        return;
    }
    load_elements(v, G, row.x, i, n, D, options & OPT_X_F32);
    if (options & OPT_ADD_Y) {
        add_operand(v, G, row.y, i, n, D, options & OPT_Y_F32);
        if (D != NRG_F32 && !(options & OPT_R_F32))
            round_r(v, G, NULL, NULL, n, 0, D);
    }
}

/* Prefetches `bytes` bytes that lie `ahead` bytes after p. As a number: the address may be past the array. */
NRG_INLINE void prefetch_ahead(const char *p, size_t bytes, size_t ahead)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + b + ahead));
}

/* What a step reads 2 KB further on, further than the hardware looks past a page: worth 1.2 × out of cache; at 1 or 4 KB a little
 * less, and two distances at once nothing more. Where 16-bit r is kept 1 KB: 512 rows of 4096 1.02 to 1.07 × (Granite Rapids). */
NRG_INLINE void prefetch_source(int G, row_operands row, size_t i, unsigned options, norm_policy P)
{
    const size_t size = P.dtype == NRG_F32 ? 4 : 2;
    prefetch_step_ahead(row.x + i * size, G, size, P.ahead);
    if (options & OPT_ADD_Y) {
        if (options & OPT_Y_F32)
            prefetch_step_ahead(row.y + i * 4, G, 4, P.ahead);
        else
            prefetch_step_ahead(row.y + i * size, G, size, P.ahead);
    }
}

#endif
