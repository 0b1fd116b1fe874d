/* The gradient of softmax's scores over the vectors of a path's vec.h: a row is read for a sum, and again for what is written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_BACKWARD_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_BACKWARD_H

#ifndef NRG_NO_BACKWARD
#include "softmax_row.h"

enum { SOFTMAX_BACK_CHUNK = 1024 };

/* A sum of products so far: of the blocks of a segment, and of segments. */
typedef struct softmax_products {
    vf sum[FAST_FOLDED], lost[FAST_FOLDED];
    norm_total total;
} softmax_products;

NRG_INLINE void softmax_no_products(softmax_products *s)
{
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        s->sum[j] = s->lost[j] = v_zero();
}

NRG_INLINE void softmax_end_products(softmax_products *s)
{
    const vd8 eight = fast_widen(s->sum, s->lost);
    add_compensated(&s->total, vd8_sum(&eight));
    softmax_no_products(s);
}

/* Keys from to end of one tensor as floats, from begin on; the keys before them are 0. */
static void softmax_floats(float *u, const char *p, size_t begin, size_t from, size_t end, nrg_dtype D)
{
    const softmax_source s = {.x = p + from * bytes_of(1, D, 0), .scale = 1};
    vf unused = v_zero();
    for (size_t i = 0; i < from - begin; i += VN)
        v_st_f32(u + i, v_zero());
    softmax_read(&unused, u + (from - begin), &s, end - from, D);
}

/* Σ a·b, or Σ b without a, of n elements; the first is a block's. */
NRG_INLINE void softmax_dot_of(softmax_products *s, const char *a, const char *b, size_t n, nrg_dtype D)
{
    enum { G = (int)FAST_VECTORS < 8 ? (int)FAST_VECTORS : 8 }; /* registers hold as many sums */
    for (size_t block = 0; block < n; block += FAST_BLOCK) {
        const size_t end = n - block < FAST_BLOCK ? n : block + FAST_BLOCK, whole = end - (end - block) % FAST_LANES;
        vf lanes[FAST_VECTORS];
        for (int first = 0; first < (int)FAST_VECTORS; first += G) {
            vf sum[G];
            SOFTMAX_EACH(G) sum[j] = v_zero();
            for (size_t i = block + (size_t)first * VN; i < whole; i += FAST_LANES)
                SOFTMAX_EACH(G)
                {
                    const vf v = load_whole(b, i + (size_t)j * VN, D);
                    sum[j] = a ? v_fma(load_whole(a, i + (size_t)j * VN, D), v, sum[j]) : v_add(sum[j], v);
                }
            SOFTMAX_EACH(G) lanes[first + j] = sum[j];
        }
        for (size_t i = whole, j = 0; i < end; i += VN, j++) {
            const vf v = load_part(b, i, lanes_at(i, end), D);
            lanes[j] = a ? v_fma(load_part(a, i, lanes_at(i, end), D), v, lanes[j]) : v_add(lanes[j], v);
        }
        fast_fold(lanes, 0);
        fast_join(s->sum, s->lost, lanes);
    }
}

NRG_BY_DTYPE(softmax_dot, (s, a, b, n), softmax_products *s, const char *a, const char *b, size_t n)

/* What makes gradients of o and d_o. */
typedef struct softmax_slope {
    float all, scale;
    const char *x; /* NULL without a cap */
    float inner;   /* of x before the tanh */
    int log, stream;
    size_t ahead; /* bytes: where the rows lie that come next, which are fetched; 0: they are in cache */
} softmax_slope;

/* dx = the gradient of scores, of `count` vectors; dx may be one of the others. */
NRG_INLINE void softmax_gradient_step(char *dx, const char *o, const char *d_o, size_t i, int count, size_t lanes,
                                      const softmax_slope *s, int log, nrg_dtype D)
{
    const vf sum = v_set1(s->all), factor = v_set1(s->scale);
    vf y[V_ACT], d[V_ACT];
    load_step(y, count, o, i, lanes, D);
    load_step(d, count, d_o, i, lanes, D);
    if (count > 1 && s->ahead) {
        softmax_fetch(o, bytes_of(i, D, 0) + s->ahead, bytes_of((size_t)count * VN, D, 0));
        softmax_fetch(d_o, bytes_of(i, D, 0) + s->ahead, bytes_of((size_t)count * VN, D, 0));
    }
    if (log) {
        SOFTMAX_EACH(count) y[j] = v_min(v_set1(1), y[j]); /* as far above 0 as no logarithm is */
        softmax_power(count, y, y, v_set1(NRG_SOFTMAX_LOWEST), v_set1(NRG_EXP_MAGIC));
        SOFTMAX_EACH(count) d[j] = v_fnma(v_mul(y[j], v_set1(1 / NRG_SOFTMAX_UNIT)), sum, d[j]);
    } else {
        SOFTMAX_EACH(count) d[j] = v_mul(y[j], v_sub(d[j], sum));
    }
    SOFTMAX_EACH(count) d[j] = v_mul(d[j], factor);
    store_step(d, count, dx, i, lanes, D, count > 1 && s->stream);
}

NRG_INLINE void softmax_gradient_in(char *dx, const char *o, const char *d_o, size_t n, const softmax_slope *s, int log,
                                    nrg_dtype D)
{
    size_t i = 0;
    for (; i + V_ACT * VN <= n; i += V_ACT * VN)
        softmax_gradient_step(dx, o, d_o, i, V_ACT, VN, s, log, D);
    for (; i < n; i += VN)
        softmax_gradient_step(dx, o, d_o, i, 1, lanes_at(i, n), s, log, D);
}

NRG_INLINE void softmax_gradient_of(char *dx, const char *o, const char *d_o, size_t n, const softmax_slope *s, nrg_dtype D)
{
    if (s->log)
        softmax_gradient_in(dx, o, d_o, n, s, 1, D);
    else
        softmax_gradient_in(dx, o, d_o, n, s, 0, D);
}

NRG_BY_DTYPE(softmax_gradient, (dx, o, d_o, n, s), char *dx, const char *o, const char *d_o, size_t n, const softmax_slope *s)

static __attribute__((noinline)) void softmax_times(float *u, const float *slope, size_t n)
{
    for (size_t i = 0; i < n; i += VN)
        v_st_f32(u + i, v_mul(v_ld_f32(u + i), load_lanes(slope + i, lanes_at(i, n))));
}

typedef struct softmax_back {
    float o[SOFTMAX_BACK_CHUNK + VN], d_o[SOFTMAX_BACK_CHUNK + VN];
} softmax_back;

/* u *= 1 - tanh²(x·inner), through a quarter of a chunk at a time. */
static __attribute__((noinline)) void softmax_uncap(float *u, const char *x, size_t n, float inner, nrg_dtype D)
{
    float in[FAST_BLOCK + VN], slope[FAST_BLOCK];
    vf unused = v_zero();
    for (size_t i = 0; i < n; i += FAST_BLOCK) {
        const size_t count = n - i < FAST_BLOCK ? n - i : FAST_BLOCK;
        const softmax_source s = {.x = x + bytes_of(i, D, 0), .scale = inner};
        softmax_read(&unused, in, &s, count, D);
        NRG_PATH_NAME(activate_both)(NRG_ACT_TANH, in, in, slope, count);
        softmax_times(u + i, slope, count);
    }
}

/* The gradient with a cap, through floats on the stack. */
static __attribute__((noinline)) void softmax_back_capped(softmax_back *at, char *dx, const char *o, const char *d_o,
                                                          const softmax_keys *seen, const softmax_slope *slope, nrg_dtype D)
{
    const softmax_end as_is = {.is_log = 1};
    const size_t size = bytes_of(1, D, 0);
    softmax_slope staged = *slope;
    staged.stream = 0;
    staged.ahead = 0;
    for (size_t i = seen->begin, end; i < seen->end; i = end) {
        end = seen->end - i < SOFTMAX_BACK_CHUNK ? seen->end : i + SOFTMAX_BACK_CHUNK;
        const char *y = o + i * size, *up = d_o + i * size;
        if (D != NRG_F32) {
            softmax_floats(at->o, o, i, i, end, D);
            softmax_floats(at->d_o, d_o, i, i, end, D);
            y = (const char *)at->o;
            up = (const char *)at->d_o;
        }
        softmax_gradient((char *)at->o, y, up, end - i, &staged, NRG_F32);
        softmax_uncap(at->o, slope->x + i * size, end - i, slope->inner, D);
        softmax_write(dx + i * size, at->o, end - i, &as_is, slope->stream && ((uintptr_t)dx + i * size) % 64 == 0, D);
    }
}

static __attribute__((noinline)) void softmax_back_row(softmax_back *at, const nrg_softmax_backward_job *job,
                                                       const softmax_at *place, int stream, nrg_dtype D)
{
    const char *o = job->o + softmax_row_at(job->o_stride, place), *d_o = job->d_o + softmax_row_at(job->d_o_stride, place);
    char *dx = job->dx + softmax_row_at(job->dx_stride, place);
    const softmax_keys seen = softmax_seen(job->sight, place->i, job->keys);
    const size_t size = bytes_of(1, D, 0);
    softmax_products sum;
    sum.total = (norm_total){0, 0};
    softmax_no_products(&sum);
    for (size_t begin = seen.first, end; begin < seen.end; begin = end) {
        if (begin < seen.begin) { /* a block that does not begin with the first key: on the stack it does */
            end = begin + FAST_BLOCK < seen.end ? begin + FAST_BLOCK : seen.end;
            softmax_floats(at->o, o, begin, seen.begin, end, D);
            softmax_floats(at->d_o, d_o, begin, seen.begin, end, D);
            softmax_dot(&sum, job->log ? NULL : (const char *)at->o, (const char *)at->d_o, end - begin, NRG_F32);
        } else {
            end = begin - begin % NORM_SEGMENT + NORM_SEGMENT;
            end = end < seen.end ? end : seen.end;
            softmax_dot(&sum, job->log ? NULL : o + begin * size, d_o + begin * size, end - begin, D);
        }
        if (end % NORM_SEGMENT == 0 && end < seen.end)
            softmax_end_products(&sum);
    }
    softmax_end_products(&sum);
    softmax_slope slope = {
        .all = (float)(sum.total.sum + sum.total.lost), .scale = job->scale, .log = job->log, .stream = stream};
    slope.ahead = job->stream ? job->keys * size : 0;
    slope.x = job->x ? job->x + softmax_row_at(job->x_stride, place) : NULL;
    slope.inner = job->inner;
    if (seen.begin)
        softmax_blank(dx, 0, seen.begin, 0, stream, D);
    if (slope.x) {
        softmax_back_capped(at, dx, o, d_o, &seen, &slope, D);
    } else {
        const size_t from = seen.begin * size;
        slope.stream = stream && from % 64 == 0;
        softmax_gradient(dx + from, o + from, d_o + from, seen.end - seen.begin, &slope, D);
    }
    if (seen.end < job->keys)
        softmax_blank(dx, seen.end, job->keys, 0, stream, D);
}

static __attribute__((noinline)) void softmax_backward_rows(const nrg_softmax_backward_job *at, nrg_dtype D)
{
    softmax_back back;
    const nrg_softmax_backward_job job = *at;
    const int stream = !V_SMALL && job.stream && job.dx != job.o && job.dx != job.d_o && job.dx != job.x &&
                       softmax_lines(job.dx, &job.dx_stride);
    softmax_at place = softmax_at_row(job.begin, job.heads, job.queries);
    for (size_t n = job.begin; n < job.end; n++) {
        softmax_back_row(&back, &job, &place, stream, D);
        softmax_next(&place, job.heads, job.queries);
    }
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(softmax_backward, softmax_backward, softmax_backward_rows)
#endif

#endif
