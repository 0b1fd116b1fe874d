/* Apply, backward: the factors of a gradient, and from do1 and x to dx. docs/ops/channel_norm.md, "Backward", step 4.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_BACKWARD_APPLY_H
#define NRG_TEMPLATE_CHANNEL_BACKWARD_APPLY_H

#include "backward_source.h"

/* ---- factors ---- */

/* Four arrays, one after the other, so that one address finds them all: of some channels (planes) or columns. */
enum { F_CENTRE = 0, F_ALPHA = BACKWARD_COLUMNS, F_MINUS_BETA = 2 * BACKWARD_COLUMNS, F_GAMMA = 3 * BACKWARD_COLUMNS };

static inline channel_backward backward_of(const backward_pass *w, const backward_known *known)
{
    channel_backward g = backward_around(&known->stat, w->job->fixed_mean != NULL);
    if (NRG_RARELY(nrg_channel_has_no_gradient(w->job, known->stat.count)))
        g.rstd = 0;
    g.beta = known->beta;
    g.exact_gamma = known->exact_gamma;
    g.gamma = fma(g.delta, g.beta, g.exact_gamma);
    return g;
}

static void fill_constant(float *to, float value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

/* -- alpha of n channels of a set -- */
NRG_INLINE void fill_alpha_of(float *alpha, const char *weights, double rstd, size_t n, nrg_dtype D)
{
    const vd inverse = vd_set1(rstd);
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vf w = !weights ? v_set1(1) : load_part(weights, i, lanes, D);
        store_lanes(alpha + i, v_from_vd(vd_mul(inverse, vd_low(w)), vd_mul(inverse, vd_high(w))), lanes);
    }
}

/* The factors of all channels or columns of a block, `per` of them a channel. Returns whether f32 is accurate enough. */
static __attribute__((noinline)) int fill_gradient(const backward_pass *w, const backward_rows *at, size_t per, float *f)
{
    const channel_block *block = &at->block;
    int plain = 1;
    for (size_t channel = 0, n; channel < block->channels; channel += n) {
        /* channels with the same statistics */
        const size_t group = block_group(block, channel), k = channel * per;
        const channel_backward g = backward_of(w, &at->known[group]);
        n = lesser(block->channels - channel, block->group - (channel + block->into) % block->group);
        if (per == 1 && n > 1 && block->plain_weights) {
            const nrg_dtype D = block->w_f32 ? NRG_F32 : w->D;
            const char *weights = block->w ? block->w + bytes_of(block->c + channel, D, 0) : NULL;
            /* weights and 1/s from 2^-40 to 2^40 leave no room for an alpha that is not plain */
            plain &= backward_is_plain(&g, 1) && backward_between(g.rstd, 0x1p-40, 0x1p40);
            fill_alpha_of(f + F_ALPHA + k, weights, g.rstd, n, D);
        } else
            for (size_t i = channel; i < channel + n; i++) {
                const double alpha = g.rstd * (double)channel_parameter(block->w, block->c + i, block->w_f32, w->D, 1);
                plain &= backward_is_plain(&g, alpha);
                fill_constant(f + F_ALPHA + i * per, (float)alpha, per);
            }
        fill_constant(f + F_CENTRE + k, g.centre, n * per);
        fill_constant(f + F_MINUS_BETA + k, -(float)g.beta, n * per);
        fill_constant(f + F_GAMMA + k, (float)g.gamma, n * per);
    }
    return plain;
}

/* ---- elements ---- */

typedef struct backward_run {
    const float *d;
    const char *x;
    char *dx;
    size_t d_stride, x_stride, dx_stride; /* bytes */
    size_t rows, width;
    const float *f; /* planes: of each row, or of all if f_step is 0; otherwise of each column */
    size_t f_step;
    int planes, frozen, stream_dx;
    size_t prefetch; /* rows ahead; 0: none */
} backward_run;

NRG_INLINE vf backward_plain(vf d, vf x, vf centre, vf alpha, vf minus_beta, vf gamma)
{
    return v_fma(d, alpha, v_fma(v_sub(x, centre), minus_beta, gamma));
}

/* The factors of a row of planes. */
typedef struct gradient_row {
    vf centre, alpha, minus_beta, gamma;
} gradient_row;

/* x becomes dx. of: planes: the row's factors; columns: NULL. */
NRG_INLINE void gradient_step(vf *x, const vf *d, int G, const backward_run *run, const gradient_row *of, size_t k, size_t n)
{
    const float *f = run->f + k;
    NRG_UNROLL
    for (int j = 0; j < G; j++, f += VN) {
        const vf alpha = of ? of->alpha : load_factors(f + F_ALPHA, G, n);
        if (run->frozen)
            x[j] = v_mul(d[j], alpha);
        else if (of)
            x[j] = backward_plain(d[j], x[j], of->centre, alpha, of->minus_beta, of->gamma);
        else
            x[j] = backward_plain(d[j], x[j], load_factors(f + F_CENTRE, G, n), alpha, load_factors(f + F_MINUS_BETA, G, n),
                                  load_factors(f + F_GAMMA, G, n));
    }
}

/* G vectors from column k of a row on, or the first n elements of one. */
NRG_INLINE void backward_step(const backward_run *run, size_t row, const gradient_row *of, size_t k, int G, size_t n, nrg_dtype D)
{
    const char *d_row = (const char *)run->d + row * run->d_stride, *x_row = run->x + row * run->x_stride;
    vf d[V_APPLY], x[V_APPLY];
    if (!of && run->prefetch) {
        prefetch_step_ahead(d_row + k * sizeof(float), G, sizeof(float), run->prefetch * run->d_stride);
        prefetch_step_ahead(x_row + bytes_of(k, D, 0), G, bytes_of(1, D, 0), run->prefetch * run->x_stride);
    }
    load_step(d, G, d_row, k, n, NRG_F32);
    if (run->frozen) /* x is not looked at, which compilers do not see */
        memcpy(x, d, (size_t)G * sizeof *x);
    else
        load_step(x, G, x_row, k, n, D);
    gradient_step(x, d, G, run, of, k, n);
    store_step(x, G, run->dx + row * run->dx_stride, k, n, D, run->stream_dx);
}

NRG_INLINE void backward_row(const backward_run *run, size_t row, const gradient_row *of, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, width = run->width;
    size_t k = 0;
    for (; k + step <= width; k += step)
        backward_step(run, row, of, k, V_APPLY, step, D);
    if (!of && k + 2 * VN <= width) {
        backward_step(run, row, of, k, 2, 2 * VN, D);
        k += 2 * VN;
    }
    for (; of && vector_is_whole(k, width, run->stream_dx, D); k += VN)
        backward_step(run, row, of, k, 1, VN, D);
    for (; k < width; k += VN)
        backward_step(run, row, of, k, 1, lanes_at(k, width), D);
}

/* Rows of columns go in the order of channel_turns. In this order they prefetch rows nearer by, which come as late: 16 rows ahead
 * of 4x784x256 took 1.03 times as long as row by row. */
NRG_INLINE void apply_backward_of(const backward_run *at, nrg_dtype D)
{
    backward_run run = *at;
    if (run.planes) {
        for (size_t i = 0; i < run.rows; i++) {
            const float *f = run.f + i * run.f_step;
            const gradient_row of = {v_set1(f[F_CENTRE]), v_set1(f[F_ALPHA]), v_set1(f[F_MINUS_BETA]), v_set1(f[F_GAMMA])};
            backward_row(&run, i, &of, D);
        }
        return;
    }
    const size_t turns = channel_turns(run.stream_dx, run.rows), apart = turns > 1 ? run.rows / CHANNEL_TURNS : 0;
    run.prefetch /= turns;
    for (size_t i = 0; i < run.rows; i++)
        backward_row(&run, i < CHANNEL_TURNS * apart ? i % CHANNEL_TURNS * apart + i / CHANNEL_TURNS : i, NULL, D);
}

NRG_BY_DTYPE(apply_backward, (run), const backward_run *run)

/* ---- elements in double, a strip of columns at a time ---- */

enum { GRADIENT_COLUMNS = 16 };

typedef struct gradient_strip {
    float plain[GRADIENT_COLUMNS]; /* 1, or 0 where an element is computed in double */
    double mean[GRADIENT_COLUMNS], mean_low[GRADIENT_COLUMNS], alpha[GRADIENT_COLUMNS], minus_beta[GRADIENT_COLUMNS],
        gamma[GRADIENT_COLUMNS];
} gradient_strip;

static void fill_gradient_strip(gradient_strip *to, const backward_pass *w, const backward_rows *at, size_t first, size_t width)
{
    const channel_block *block = &at->block;
    memset(to, 0, sizeof *to);
    for (size_t k = 0; k < width; k++) {
        const size_t channel = w->planes ? 0 : (first + k) / block->per;
        const backward_known *of = &at->known[block_group(block, channel)];
        const channel_backward g = backward_of(w, of);
        const double alpha = g.rstd * (double)channel_parameter(block->w, block->c + channel, block->w_f32, w->D, 1);
        to->plain[k] = backward_is_plain(&g, alpha) ? 1 : 0;
        to->mean[k] = of->stat.mean;
        to->mean_low[k] = of->stat.mean_low;
        to->alpha[k] = alpha;
        to->minus_beta[k] = -g.beta;
        to->gamma[k] = g.exact_gamma;
    }
}

/* The lower or the upper half of a vector: c begins with its column. */
NRG_INLINE vd gradient_in_double(const gradient_strip *c, size_t k, vd d, vd x, int frozen)
{
    const vd alpha = vd_ld(c->alpha + k), h = vd_sub(vd_sub(x, vd_ld(c->mean + k)), vd_ld(c->mean_low + k));
    return frozen ? vd_mul(d, alpha) : vd_fma(d, alpha, vd_fma(h, vd_ld(c->minus_beta + k), vd_ld(c->gamma + k)));
}

/* at: of the run; planes: of its one row. */
static __attribute__((noinline, cold)) void apply_backward_fallback(const backward_pass *w, const backward_run *run,
                                                                    const backward_rows *at)
{
    const float *f = run->f;
    const gradient_row of = {v_set1(f[F_CENTRE]), v_set1(f[F_ALPHA]), v_set1(f[F_MINUS_BETA]), v_set1(f[F_GAMMA])};
    gradient_strip c;
    for (size_t first = 0, width; first < run->width; first += width) {
        width = lesser(run->width - first, GRADIENT_COLUMNS);
        if (first == 0 || !w->planes)
            fill_gradient_strip(&c, w, at, first, w->planes ? GRADIENT_COLUMNS : width);
        for (size_t row = 0; row < run->rows; row++)
            for (size_t k = 0; k < width; k += VN) {
                const size_t n = lanes_at(k, width), i = first + k;
                vf d = load_part((const char *)run->d + row * run->d_stride, i, n, NRG_F32), x = v_zero();
                if (!run->frozen)
                    x = load_part(run->x + row * run->x_stride, i, n, w->D);
                const vf in_double = v_from_vd(gradient_in_double(&c, k, vd_low(d), vd_low(x), run->frozen),
                                               gradient_in_double(&c, k + VN / 2, vd_high(d), vd_high(x), run->frozen));
                gradient_step(&x, &d, 1, run, run->planes ? &of : NULL, i, n);
                x = v_select(v_lt(v_zero(), v_ld_f32(c.plain + k)), x, in_double);
                store_step(&x, 1, run->dx + row * run->dx_stride, i, n, w->D, 0);
            }
    }
}

#endif
