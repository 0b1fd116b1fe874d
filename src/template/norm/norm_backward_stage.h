/* The backward pass works on floats: chunks of rows that are not floats in memory already, as they are needed, are staged in
 * small arrays. One copy of the loops then serves all dtypes, gates and residuals, and f32 rows without any go untouched.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_STAGE_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_STAGE_H

#include "../../job/norm.h"
#include "../step.h"

/* One row, or one group of a row. */
typedef struct backward_row {
    const char *d_o, *dr_in, *x, *y, *z, *w, *b;
    char *dx, *dy, *dz;
} backward_row;

/* Operands that are not there stay so. */
NRG_INLINE const char *group_of(const char *tensor, size_t stride, size_t n, size_t at, nrg_dtype D, int is_f32)
{
    return tensor ? tensor + n * stride + bytes_of(at, D, is_f32) : NULL;
}

NRG_INLINE char *group_into(char *tensor, size_t stride, size_t n, size_t at, nrg_dtype D, int is_f32)
{
    return tensor ? tensor + n * stride + bytes_of(at, D, is_f32) : NULL;
}

/* A row of a plane, of which the job's pointers are the first. Rows of gradients add up in their order, wherever they lie. */
NRG_INLINE void move_to_plane(backward_row *row, const nrg_planes *p, size_t plane)
{
    size_t at[NRG_PLANE_TENSORS] = {0};
    for (int k = 1; k < NRG_PLANE_LEVELS; k++) {
        const size_t step = plane % p->count[k];
        plane /= p->count[k];
        for (int i = 0; i < NRG_PLANE_TENSORS; i++)
            at[i] += step * p->stride[i][k];
    }
    row->d_o += at[NRG_PLANES_D_O];
    if (row->dr_in)
        row->dr_in += at[NRG_PLANES_DR_IN];
    row->x += at[NRG_PLANES_X];
    if (row->y)
        row->y += at[NRG_PLANES_Y];
    if (row->z)
        row->z += at[NRG_PLANES_Z];
    if (row->dx)
        row->dx += at[NRG_PLANES_DX];
    if (row->dy)
        row->dy += at[NRG_PLANES_DY];
    if (row->dz)
        row->dz += at[NRG_PLANES_DZ];
}

/* Of the first plane. */
NRG_INLINE backward_row backward_row_at(const nrg_norm_backward_job *job, size_t n, size_t group, nrg_dtype D)
{
    const size_t at = group * job->dim;
    backward_row row = {
        .d_o = group_of(job->d_o, job->d_o_stride, n, at, D, 0),
        .dr_in = group_of(job->dr_in, job->dr_in_stride, n, at, D, job->r_f32),
        .x = group_of(job->x, job->x_stride, n, at, D, job->x_f32),
        .y = group_of(job->y, job->y_stride, n, at, D, job->y_f32),
        .z = group_of(job->z, job->z_stride, n, at, D, 0),
        .w = group_of(job->w, 0, 0, at, D, job->w_f32),
        .b = group_of(job->b, 0, 0, at, D, job->w_f32),
        .dx = group_into(job->dx, job->dx_stride, n, at, D, 0),
        .dy = group_into(job->dy, job->dy_stride, n, at, D, job->y_f32),
        .dz = group_into(job->dz, job->dz_stride, n, at, D, 0),
    };
    return row;
}

/* ---- chunks of n floats; outputs may be inputs ---- */

NRG_INLINE void floats_from(float *to, const char *from, size_t begin, size_t n, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, end = begin + n;
    size_t i = begin;
    vf v[V_APPLY];
    for (; i + step <= end; i += step) {
        load_step(v, V_APPLY, from, i, step, D);
        store_f32_step(v, V_APPLY, to + (i - begin), step, 0);
    }
    for (; i < end; i += VN) {
        load_step(v, 1, from, i, lanes_at(i, end), D);
        store_f32_step(v, 1, to + (i - begin), lanes_at(i, end), 0);
    }
}

static __attribute__((noinline)) void halves_to_floats(float *to, const char *from, size_t begin, size_t n, nrg_dtype D)
{
    if (D == NRG_F16)
        floats_from(to, from, begin, n, NRG_F16);
    else
        floats_from(to, from, begin, n, NRG_BF16);
}

/* Elements from begin on as floats: where they are, or copied. */
NRG_INLINE const float *as_floats(const char *tensor, nrg_dtype D, int is_f32, size_t begin, size_t n, float *copy)
{
    if (D == NRG_F32 || is_f32)
        return (const float *)tensor + begin;
    halves_to_floats(copy, tensor, begin, n, D);
    return copy;
}

NRG_INLINE void floats_to(const float *from, char *to, size_t begin, size_t n, nrg_dtype D, int stream)
{
    const size_t step = (size_t)V_APPLY * VN, end = begin + n;
    size_t i = begin;
    vf v[V_APPLY];
    for (; i + step <= end; i += step) {
        load_step(v, V_APPLY, (const char *)from, i - begin, step, NRG_F32);
        store_step(v, V_APPLY, to, i, step, D, stream);
    }
    for (; i < end; i += VN) {
        load_step(v, 1, (const char *)from, i - begin, lanes_at(i, end), NRG_F32);
        store_step(v, 1, to, i, lanes_at(i, end), D, stream);
    }
}

static __attribute__((noinline)) void store_floats(const float *from, char *to, size_t begin, size_t n, nrg_dtype D, int stream)
{
    if (D == NRG_F32)
        floats_to(from, to, begin, n, NRG_F32, stream);
    else if (D == NRG_F16)
        floats_to(from, to, begin, n, NRG_F16, stream);
    else
        floats_to(from, to, begin, n, NRG_BF16, stream);
}

/* How add_floats rounds: as r is. */
NRG_INLINE vf rounded(vf v, nrg_dtype D) { return D == NRG_F32 ? v : from_half(to_half(v, D), D); }

NRG_INLINE void add_rounded(float *out, const float *a, const float *b, size_t n, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    size_t i = 0;
    vf v[V_APPLY], u[V_APPLY];
    for (; i + step <= n; i += step) {
        load_step(v, V_APPLY, (const char *)a, i, step, NRG_F32);
        load_step(u, V_APPLY, (const char *)b, i, step, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < V_APPLY; j++)
            v[j] = rounded(v_add(v[j], u[j]), D);
        store_f32_step(v, V_APPLY, out + i, step, 0);
    }
    for (; i < n; i += VN) {
        load_step(v, 1, (const char *)a, i, lanes_at(i, n), NRG_F32);
        load_step(u, 1, (const char *)b, i, lanes_at(i, n), NRG_F32);
        v[0] = rounded(v_add(v[0], u[0]), D);
        store_f32_step(v, 1, out + i, lanes_at(i, n), 0);
    }
}

/* out = a + b, rounded to D. */
static __attribute__((noinline)) void add_floats(float *out, const float *a, const float *b, size_t n, nrg_dtype D)
{
    if (D == NRG_F32)
        add_rounded(out, a, b, n, NRG_F32);
    else if (D == NRG_F16)
        add_rounded(out, a, b, n, NRG_F16);
    else
        add_rounded(out, a, b, n, NRG_BF16);
}

/* out = a · b */
static __attribute__((noinline)) void multiply_floats(float *out, const float *a, const float *b, size_t n)
{
    const size_t step = (size_t)V_APPLY * VN;
    size_t i = 0;
    vf v[V_APPLY], u[V_APPLY];
    for (; i + step <= n; i += step) {
        load_step(v, V_APPLY, (const char *)a, i, step, NRG_F32);
        load_step(u, V_APPLY, (const char *)b, i, step, NRG_F32);
        NRG_UNROLL
        for (int j = 0; j < V_APPLY; j++)
            v[j] = v_mul(v[j], u[j]);
        store_f32_step(v, V_APPLY, out + i, step, 0);
    }
    for (; i < n; i += VN) {
        load_step(v, 1, (const char *)a, i, lanes_at(i, n), NRG_F32);
        load_step(u, 1, (const char *)b, i, lanes_at(i, n), NRG_F32);
        v[0] = v_mul(v[0], u[0]);
        store_f32_step(v, 1, out + i, lanes_at(i, n), 0);
    }
}

/* out = a · b · c, in double and rounded once: two of them may be at the ends of the range. */
static __attribute__((noinline)) void multiply_three(float *out, const float *a, const float *b, const float *c, size_t n)
{
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf u = load_lanes(a + i, lanes), v = load_lanes(b + i, lanes), w = load_lanes(c + i, lanes);
        vd low = vd_mul(vd_mul(vd_low(u), vd_low(v)), vd_low(w)), high = vd_mul(vd_mul(vd_high(u), vd_high(v)), vd_high(w));
        store_lanes(out + i, v_from_vd(low, high), lanes);
    }
}

NRG_INLINE void fill_floats(float *to, float value, size_t n)
{
    for (size_t i = 0; i < n; i += VN)
        store_lanes(to + i, v_set1(value), lanes_at(i, n));
}

/* w + weight_offset; NULL: ones. */
NRG_INLINE const float *weight_floats(const nrg_norm_backward_job *job, const backward_row *row, nrg_dtype D, size_t begin,
                                      size_t n, float *copy)
{
    if (!row->w)
        return NULL;
    const float *w = as_floats(row->w, D, job->w_f32, begin, n, copy);
    if (job->formula.w_offset == 0)
        return w;
    const vf offset = v_set1(job->formula.w_offset);
    for (size_t i = 0; i < n; i += VN)
        store_lanes(copy + i, v_add(load_lanes(w + i, lanes_at(i, n)), offset), lanes_at(i, n));
    return copy;
}

/* r = x + y, rounded as the forward pass did. */
NRG_INLINE const float *residual_floats(const nrg_norm_backward_job *job, const backward_row *row, nrg_dtype D, size_t begin,
                                        size_t n, float *copy, float *more)
{
    const float *x = as_floats(row->x, D, job->x_f32, begin, n, copy);
    if (!row->y)
        return x;
    add_floats(copy, x, as_floats(row->y, D, job->y_f32, begin, n, more), n, D == NRG_F32 || job->r_f32 ? NRG_F32 : D);
    return copy;
}

#endif
