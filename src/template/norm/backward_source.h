/* Source of the backward pass: where rows are, and their chunks as floats.
 *
 * Loops read f32 rows where they are, and 16-bit rows too if these have no gate and no residual. Everything else becomes floats
 * in staging buffers, chunk by chunk, so that one copy of the loops serves all dtypes, gates and residuals.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_SOURCE_H
#define NRG_TEMPLATE_NORM_BACKWARD_SOURCE_H

#include "../../job/activation.h"
#include "fallback_sum.h"

enum {
    GRADIENT_CHUNK = 256, /* elements of a row that are staged and summed at once */
    COLUMN_CHUNK = 128,   /* columns of a batch that are staged at once: whole steps of the activations, whose tails are slow */
    HALF_CHUNK = 1024,    /* both, where only weights are staged */
    GATE_CHUNK = 1024,    /* the former where only gates are staged, */
    GATE_COLUMN_CHUNK = 384, /* and the latter */
    BACKWARD_STAGE = 1536,   /* floats: four chunks of the former, ten of the latter; with clang a call takes 15 KB of stack */
    BACKWARD_ONES = 128      /* elements of the largest step */
};

#define EIGHT_ONES 1, 1, 1, 1, 1, 1, 1, 1
#define MANY_ONES EIGHT_ONES, EIGHT_ONES, EIGHT_ONES, EIGHT_ONES, EIGHT_ONES, EIGHT_ONES, EIGHT_ONES, EIGHT_ONES
static const float backward_ones[BACKWARD_ONES] = {MANY_ONES, MANY_ONES};

/* Weights as floats, with the weight offset. Those of elements i, i + 1, … of a step are at[i & mask] and what follows. */
typedef struct run_weights {
    const float *at;
    size_t mask; /* 0: ones, since there are no weights */
} run_weights;

/* One row, or one group of a row. */
typedef struct backward_row {
    const char *d_o, *dr_in, *x, *y, *z; /* NULL where absent */
    char *dx, *dy, *dz;
} backward_row;

/* How a job is done; and the run of rows that is being done. */
typedef struct backward {
    const nrg_norm_backward_job *job;
    nrg_dtype D;
    int on_output;   /* an activation on the output */
    int is_gated;    /* that, or a gate */
    int is_half;     /* 16-bit rows that loops read and write where they are */
    int is_direct;   /* dp is dx, which loops store */
    int gates_only;  /* f32 rows of which nothing but the gates is staged */
    int keeps_gates; /* those, and g(z) and g′(z) wait in rows of dx and dz from a row's sums to its elements */
    int stream_dx, stream_dy, stream_dz;
    size_t sum_chunk, column_chunk;
    float *stage; /* BACKWARD_STAGE */
    /* the run: rows of one group */
    size_t begin, end, group;
    backward_row first;
    const char *w, *bias; /* NULL where absent */
    const float *mean;    /* of row `begin`; NULL: not centred */
    size_t mean_step;     /* floats from row to row */
    size_t x_ahead;       /* rows of x to those that are prefetched; 0: as for d_o */
} backward;

NRG_INLINE float mean_of_row(const backward *b, size_t n) { return b->mean ? b->mean[(n - b->begin) * b->mean_step] : 0; }

NRG_INLINE const char *operand_at(const char *tensor, size_t bytes) { return tensor ? tensor + bytes : NULL; }
NRG_INLINE char *gradient_at(char *tensor, size_t bytes) { return tensor ? tensor + bytes : NULL; }

/* Row n of the tensors, wherever its plane is: rows of gradients add up in their order. */
static __attribute__((noinline)) void find_row_of_run(backward_row *to, const backward *b, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_planes *p = job->planes;
    const size_t first = b->group * job->dim, own = bytes_of(first, b->D, 0), y = bytes_of(first, b->D, job->y_f32);
    size_t at[NRG_PLANE_TENSORS] = {0}; /* bytes to the plane */
    if (p) {
        size_t plane = n / p->count[0];
        n %= p->count[0];
        for (int k = 1; k < NRG_PLANE_LEVELS; k++) {
            const size_t step = plane % p->count[k];
            plane /= p->count[k];
            for (int i = 0; i < NRG_PLANE_TENSORS; i++)
                at[i] += step * p->stride[i][k];
        }
    }
    *to = (backward_row){
        .d_o = operand_at(job->d_o, at[NRG_PLANES_D_O] + n * job->d_o_stride + own),
        .dr_in = operand_at(job->dr_in, at[NRG_PLANES_DR_IN] + n * job->dr_in_stride + bytes_of(first, b->D, job->r_f32)),
        .x = operand_at(job->x, at[NRG_PLANES_X] + n * job->x_stride + bytes_of(first, b->D, job->x_f32)),
        .y = operand_at(job->y, at[NRG_PLANES_Y] + n * job->y_stride + y),
        .z = operand_at(job->z, at[NRG_PLANES_Z] + n * job->z_stride + own),
        .dx = gradient_at(job->dx, at[NRG_PLANES_DX] + n * job->dx_stride + own),
        .dy = gradient_at(job->dy, at[NRG_PLANES_DY] + n * job->dy_stride + y),
        .dz = gradient_at(job->dz, at[NRG_PLANES_DZ] + n * job->dz_stride + own),
    };
}

/* ---- chunks of n floats; outputs may be inputs ---- */

NRG_INLINE void halves_to_floats_of(float *to, const char *from, size_t begin, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        v_st_f32(to + i, load_whole(from, begin + i, D));
    if (i < n)
        v_stn_f32(to + i, load_part(from, begin + i, n - i, D), n - i);
}

static __attribute__((noinline)) void halves_to_floats(float *to, const char *from, size_t begin, size_t n, nrg_dtype D)
{
    if (D == NRG_F16)
        halves_to_floats_of(to, from, begin, n, NRG_F16);
    else
        halves_to_floats_of(to, from, begin, n, NRG_BF16);
}

/* Elements from begin on as floats: where they are, or copied. */
NRG_INLINE const float *as_floats(const char *tensor, nrg_dtype D, int is_f32, size_t begin, size_t n, float *copy)
{
    if (D == NRG_F32 || is_f32)
        return (const float *)tensor + begin;
    halves_to_floats(copy, tensor, begin, n, D);
    return copy;
}

NRG_INLINE void store_gradient_of(const float *from, char *to, size_t begin, size_t n, int stream, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    vf v[V_APPLY];
    size_t i = 0;
    for (; i + step <= n; i += step) {
        load_step(v, V_APPLY, (const char *)from, i, step, NRG_F32);
        store_step(v, V_APPLY, to, begin + i, step, D, stream);
    }
    for (; i < n; i += VN) {
        load_step(v, 1, (const char *)from, i, lanes_at(i, n), NRG_F32);
        store_step(v, 1, to, begin + i, lanes_at(i, n), D, stream);
    }
}
NRG_BY_DTYPE(store_gradient, (from, to, begin, n, stream), const float *from, char *to, size_t begin, size_t n, int stream)

NRG_INLINE vf sum_as_r(vf a, vf b, nrg_dtype D) { return D == NRG_F32 ? v_add(a, b) : from_half(to_half(v_add(a, b), D), D); }

NRG_INLINE void add_rounded_of(float *out, const float *a, const float *b, size_t n, nrg_dtype D)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        v_st_f32(out + i, sum_as_r(v_ld_f32(a + i), v_ld_f32(b + i), D));
    if (i < n)
        v_stn_f32(out + i, sum_as_r(v_ldn_f32(a + i, n - i), v_ldn_f32(b + i, n - i), D), n - i);
}
/* a + b, rounded to D */
NRG_BY_DTYPE(add_rounded, (out, a, b, n), float *out, const float *a, const float *b, size_t n)

/* a · b */
static __attribute__((noinline)) void multiply_floats(float *out, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        v_st_f32(out + i, v_mul(v_ld_f32(a + i), v_ld_f32(b + i)));
    if (i < n)
        v_stn_f32(out + i, v_mul(v_ldn_f32(a + i, n - i), v_ldn_f32(b + i, n - i)), n - i);
}

/* a · b · c in double, rounded once: two of them may be at the ends of the range. */
NRG_INLINE vf product_of_three(vf a, vf b, vf c)
{
    vd a_low, a_high, b_low, b_high, c_low, c_high;
    vd_both(a, &a_low, &a_high);
    vd_both(b, &b_low, &b_high);
    vd_both(c, &c_low, &c_high);
    return v_from_vd(vd_mul(vd_mul(a_low, b_low), c_low), vd_mul(vd_mul(a_high, b_high), c_high));
}

/* a · o1 · b, to o1 */
static __attribute__((noinline)) void multiply_three(float *o1, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf v = product_of_three(load_lanes(a + i, lanes), load_lanes(o1 + i, lanes), load_lanes(b + i, lanes));
        store_lanes(o1 + i, v, lanes);
    }
}

/* ---- what a chunk of a row is made of ---- */

NRG_INLINE run_weights weights_of_run(const backward *b, size_t begin, size_t n, float *copy)
{
    const nrg_norm_backward_job *job = b->job;
    const float offset = job->formula.w_offset;
    if (!b->w)
        return (run_weights){backward_ones, 0};
    const float *w = as_floats(b->w, b->D, job->w_f32, begin, n, copy);
    if (offset == 0)
        return (run_weights){w, SIZE_MAX};
    for (size_t i = 0; i < n; i += VN)
        store_lanes(copy + i, v_add(load_lanes(w + i, lanes_at(i, n)), v_set1(offset)), lanes_at(i, n));
    return (run_weights){copy, SIZE_MAX};
}

/* r, or x + y rounded as the forward pass has done it. */
NRG_INLINE const float *residual_floats(const backward *b, const backward_row *row, size_t begin, size_t n, float *copy,
                                        float *more)
{
    const nrg_norm_backward_job *job = b->job;
    const float *x = as_floats(row->x, b->D, job->x_f32, begin, n, copy);
    if (!row->y)
        return x;
    add_rounded(copy, x, as_floats(row->y, b->D, job->y_f32, begin, n, more), n, job->r_f32 ? NRG_F32 : b->D);
    return copy;
}

/* g(z)·factor, to out, which may be factor; copy: a staging buffer, where z has 16 bits. */
NRG_INLINE void gated_floats(const backward *b, const backward_row *row, size_t begin, size_t n, const float *factor, float *out,
                             float *copy)
{
    const nrg_activation activation = b->job->activation;
    const nrg_activation_run run = {
        .in = as_floats(row->z, b->D, 0, begin, n, copy), .factor = factor, .value = out, .alpha = nrg_default_alpha(activation)};
    NRG_PATH_NAME(activate_floats)(NRG_PATH_NAME(value_loops)[activation], &run, n);
}

#endif
