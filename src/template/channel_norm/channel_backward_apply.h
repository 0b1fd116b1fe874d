/* From do1 and x to dx and dy: elements that lie together, with the factors of one channel, and rows of columns with factors of
 * their own. docs/ops/channel_norm.md, "Backward", step 4.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_APPLY_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_BACKWARD_APPLY_H

#include "channel_backward.h"
#include "channel_backward_sum.h"

/* What a channel's elements are multiplied with. */
typedef struct backward_factors {
    int plain, frozen;
    float centre, alpha, minus_beta, gamma;
    double mean, mean_low, exact_alpha, exact_minus_beta, exact_gamma; /* where not plain */
} backward_factors;

static inline backward_factors backward_factors_of(const channel_backward *g, const nrg_channel_statistics *stat, float w)
{
    const double alpha = g->rstd * (double)w;
    backward_factors f = {.plain = backward_is_plain(g, alpha),
                          .frozen = g->frozen,
                          .centre = g->centre,
                          .alpha = (float)alpha,
                          .minus_beta = -(float)g->beta,
                          .gamma = (float)g->gamma,
                          .mean = stat->mean,
                          .mean_low = stat->mean_low,
                          .exact_alpha = alpha,
                          .exact_minus_beta = -g->beta,
                          .exact_gamma = g->exact_gamma};
    return f;
}

typedef struct backward_run {
    const float *d;
    const char *x;
    char *dx, *dy; /* NULL where not asked for */
    size_t n;
    int stream_dx, stream_dy;
    backward_factors f;
} backward_run;

NRG_INLINE vf backward_plain(vf d, vf x, vf centre, vf alpha, vf minus_beta, vf gamma)
{
    return v_fma(d, alpha, v_fma(v_sub(x, centre), minus_beta, gamma));
}

NRG_INLINE void backward_run_step(const backward_run *run, int G, size_t i, size_t n, nrg_dtype D)
{
    const vf centre = v_set1(run->f.centre), alpha = v_set1(run->f.alpha), minus_beta = v_set1(run->f.minus_beta),
             gamma = v_set1(run->f.gamma);
    vf d[V_APPLY], v[V_APPLY];
    load_step(d, G, (const char *)run->d, i, n, NRG_F32);
    if (run->dx) {
        if (!run->f.frozen)
            load_step(v, G, run->x, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = run->f.frozen ? v_mul(d[j], alpha) : backward_plain(d[j], v[j], centre, alpha, minus_beta, gamma);
        store_step(v, G, run->dx, i, n, D, run->stream_dx);
    }
    if (run->dy)
        store_step(d, G, run->dy, i, n, D, run->stream_dy);
}

NRG_INLINE void backward_run_any_of(const backward_run *at, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    const backward_run run = *at;
    size_t i = 0;
    for (; i + step <= run.n; i += step)
        backward_run_step(&run, V_APPLY, i, step, D);
    for (; vector_is_whole(i, run.n, run.stream_dx | run.stream_dy, D); i += VN)
        backward_run_step(&run, 1, i, VN, D);
    for (; i < run.n; i += VN)
        backward_run_step(&run, 1, i, lanes_at(i, run.n), D);
}

NRG_BY_DTYPE(backward_run_any, (run), const backward_run *run)

/* One vector in double. */
NRG_INLINE vf backward_in_double(vf d, vf x, int frozen, vd mean_l, vd mean_h, vd low_l, vd low_h, vd alpha_l, vd alpha_h,
                                 vd beta_l, vd beta_h, vd gamma_l, vd gamma_h)
{
    if (frozen)
        return v_from_vd(vd_mul(vd_low(d), alpha_l), vd_mul(vd_high(d), alpha_h));
    return v_from_vd(vd_fma(vd_low(d), alpha_l, vd_fma(vd_sub(vd_sub(vd_low(x), mean_l), low_l), beta_l, gamma_l)),
                     vd_fma(vd_high(d), alpha_h, vd_fma(vd_sub(vd_sub(vd_high(x), mean_h), low_h), beta_h, gamma_h)));
}

static __attribute__((noinline)) void backward_run_fallback(const backward_run *run, nrg_dtype D)
{
    const vd mean = vd_set1(run->f.mean), low = vd_set1(run->f.mean_low), alpha = vd_set1(run->f.exact_alpha),
             beta = vd_set1(run->f.exact_minus_beta), gamma = vd_set1(run->f.exact_gamma);
    for (size_t i = 0; i < run->n; i += VN) {
        const size_t n = lanes_at(i, run->n);
        vf d[V_APPLY], x[V_APPLY];
        load_step(d, 1, (const char *)run->d, i, n, NRG_F32);
        if (run->dx) {
            load_step(x, 1, run->x, i, n, D);
            x[0] = backward_in_double(d[0], x[0], run->f.frozen, mean, mean, low, low, alpha, alpha, beta, beta, gamma, gamma);
            store_step(x, 1, run->dx, i, n, D, 0);
        }
        if (run->dy)
            store_step(d, 1, run->dy, i, n, D, 0);
    }
}

static inline void apply_backward(const backward_run *run, nrg_dtype D)
{
    if (!run->f.plain)
        backward_run_fallback(run, D);
    else
        backward_run_any(run, D);
}

/* ---- columns ---- */

/* Those of some columns: four arrays of the caller's, one after the other, so that one address finds them all. */
enum { F_CENTRE = 0, F_ALPHA = BACKWARD_COLUMNS, F_MINUS_BETA = 2 * BACKWARD_COLUMNS, F_GAMMA = 3 * BACKWARD_COLUMNS };

typedef struct backward_column_factors {
    float *at; /* 4 · BACKWARD_COLUMNS + VN, of which the first columns may be left out */
    int plain, frozen;
} backward_column_factors;

#define NOBODYS_GRADIENT_FACTORS(f, n)                                                                                           \
    NRG_NOBODYS_LANES((f)->at, F_CENTRE + (n)), NRG_NOBODYS_LANES((f)->at, F_ALPHA + (n)),                                       \
        NRG_NOBODYS_LANES((f)->at, F_MINUS_BETA + (n)), NRG_NOBODYS_LANES((f)->at, F_GAMMA + (n))

/* The same where some are not plain: for few columns. */
enum { BACKWARD_FALLBACK_COLUMNS = 16 };

typedef struct backward_fallback_factors {
    float plain[BACKWARD_FALLBACK_COLUMNS]; /* 1, or 0 where an element is done in double */
    double mean[BACKWARD_FALLBACK_COLUMNS], mean_low[BACKWARD_FALLBACK_COLUMNS], alpha[BACKWARD_FALLBACK_COLUMNS],
        minus_beta[BACKWARD_FALLBACK_COLUMNS], gamma[BACKWARD_FALLBACK_COLUMNS];
} backward_fallback_factors;

typedef struct backward_column_run {
    const float *d;
    const char *x;
    char *dx, *dy;
    size_t d_stride, x_stride, dx_stride, dy_stride; /* bytes */
    size_t rows, width;
    int stream_dx, stream_dy;
    size_t prefetch; /* rows ahead; 0: none */
} backward_column_run;

NRG_INLINE void backward_column_step(const backward_column_run *run, const backward_column_factors *f,
                                     const backward_fallback_factors *c, size_t first, size_t row, size_t k, int G, size_t n,
                                     nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    vf d[V_APPLY], v[V_APPLY];
    if (run->prefetch) {
        NRG_UNROLL
        for (size_t at = 0; at < (size_t)G * VN * sizeof(float); at += 64) {
            __builtin_prefetch(
                (const void *)((uintptr_t)run->d + (row + run->prefetch) * run->d_stride + k * sizeof(float) + at));
            __builtin_prefetch((const void *)((uintptr_t)run->x + (row + run->prefetch) * run->x_stride + k * size + at));
        }
    }
    load_step(d, G, (const char *)run->d + row * run->d_stride, k, n, NRG_F32);
    if (run->dx) {
        if (!f->frozen)
            load_step(v, G, run->x + row * run->x_stride, k, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const size_t at = first + k + (size_t)j * VN;
            const vf alpha = v_ld_f32(f->at + F_ALPHA + at), x = f->frozen ? v_zero() : v[j];
            v[j] = f->frozen ? v_mul(d[j], alpha)
                             : backward_plain(d[j], x, v_ld_f32(f->at + F_CENTRE + at), alpha,
                                              v_ld_f32(f->at + F_MINUS_BETA + at), v_ld_f32(f->at + F_GAMMA + at));
            if (c) {
                const size_t h = k + VN / 2;
                const vf in_double =
                    backward_in_double(d[j], x, f->frozen, vd_ld(c->mean + k), vd_ld(c->mean + h), vd_ld(c->mean_low + k),
                                       vd_ld(c->mean_low + h), vd_ld(c->alpha + k), vd_ld(c->alpha + h), vd_ld(c->minus_beta + k),
                                       vd_ld(c->minus_beta + h), vd_ld(c->gamma + k), vd_ld(c->gamma + h));
                v[j] = v_select(v_lt(v_zero(), v_ld_f32(c->plain + k)), v[j], in_double);
            }
        }
        store_step(v, G, run->dx + row * run->dx_stride + k * size, 0, n, D, run->stream_dx);
    }
    if (run->dy)
        store_step(d, G, run->dy + row * run->dy_stride + k * size, 0, n, D, run->stream_dy);
}

NRG_INLINE void apply_backward_row(const backward_column_run *run, const backward_column_factors *f, size_t row, nrg_dtype D)
{
    enum { G = BACKWARD_COLUMNS >= V_APPLY * VN ? V_APPLY : 2, STEP = G * VN };
    size_t k = 0;
    for (; k + STEP <= run->width; k += STEP)
        backward_column_step(run, f, NULL, 0, row, k, G, STEP, D);
    if (G > 2 && k + 2 * VN <= run->width) {
        backward_column_step(run, f, NULL, 0, row, k, 2, 2 * VN, D);
        k += 2 * VN;
    }
    for (; k < run->width; k += VN)
        backward_column_step(run, f, NULL, 0, row, k, 1, lanes_at(k, run->width), D);
}

/* In turn they ask for rows nearer by, which come as late: 16 rows ahead of 4x784x256 took 1.03 times as long as one after the
 * other. */
NRG_INLINE void apply_plain_columns_of(const backward_column_run *at, const backward_column_factors *factors, nrg_dtype D)
{
    backward_column_run run = *at;
    const backward_column_factors f = *factors;
    const size_t turns = channel_turns(run.stream_dx, run.rows), each = run.rows / turns;
    run.prefetch /= turns;
    for (size_t i = 0; i < each; i++)
        for (size_t turn = 0; turn < turns; turn++)
            apply_backward_row(&run, &f, turn * each + i, D);
    for (size_t row = turns * each; row < run.rows; row++)
        apply_backward_row(&run, &f, row, D);
}

NRG_BY_DTYPE(apply_plain_columns, (run, f), const backward_column_run *run, const backward_column_factors *f)

static __attribute__((noinline)) void apply_backward_columns(const backward_column_run *run, const backward_column_factors *f,
                                                             nrg_dtype D)
{
    float *const factors[] = {f->at + F_CENTRE, f->at + F_ALPHA, f->at + F_MINUS_BETA, f->at + F_GAMMA};
    vf kept[] = {v_zero(), v_zero(), v_zero(), v_zero()};
    swap_behind_columns(factors, run->width, kept);
    apply_plain_columns(run, f, D);
    swap_behind_columns(factors, run->width, kept);
}

/* run: of at most BACKWARD_FALLBACK_COLUMNS columns, whose factors begin at column `first` of f. */
static __attribute__((noinline)) void apply_backward_columns_fallback(const backward_column_run *run,
                                                                      const backward_column_factors *f, size_t first,
                                                                      const backward_fallback_factors *c, nrg_dtype D)
{
    NOBODYS_GRADIENT_FACTORS(f, first + run->width);
    for (size_t row = 0; row < run->rows; row++)
        for (size_t k = 0; k < run->width; k += VN)
            backward_column_step(run, f, c, first, row, k, 1, lanes_at(k, run->width), D);
}

#endif
