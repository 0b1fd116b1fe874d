/* Columns of which some are done in double: a strip of them at a time.
 *
 * Rare, so the dtype is looked up at run time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_FALLBACK_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_FALLBACK_H

#include "channel_apply.h"

enum { FALLBACK_PREFETCH = 16 }; /* rows that are prefetched: a strip is too narrow for the hardware to see where it leads */

/* Where a walk over the columns of a block stands. */
typedef struct block_cursor {
    const nrg_channel_statistics *stat;
    size_t channel, in_group, column; /* of the channel */
} block_cursor;

static inline void advance(block_cursor *at, const channel_block *block, size_t columns)
{
    const size_t channels = block->per == 1 ? columns : (at->column + columns == block->per);
    at->column = block->per == 1 || channels ? 0 : at->column + columns;
    at->channel += channels;
    at->in_group += channels;
    if (at->in_group == block->group) {
        at->in_group = 0;
        at->stat = (const nrg_channel_statistics *)((const char *)at->stat + block->stat_stride);
    }
}

/* n floats of w or b from element c on, one for each column where a channel has one. */
NRG_INLINE vf fallback_parameters(const channel_block *block, const char *p, size_t c, size_t n, float absent, nrg_dtype D)
{
    vf v = v_set1(absent);
    if (p)
        load_step_or_f32(&v, 1, p, c, n, D, block->w_f32);
    return v;
}

/* n columns from the cursor on, as vector number `vector`. */
static __attribute__((noinline)) void fallback_of_columns(fallback_factors *to, size_t vector, const channel_block *block,
                                                          block_cursor *at, size_t n, nrg_dtype D)
{
    channel_vd *exact = &to->exact[vector];
    double mean[VN] = {0}, mean_low[VN] = {0}, rstd[VN] = {0};
    float w[VN] = {0}, b[VN] = {0}, plain[VN] = {0};
    if (block->per == 1) {
        const size_t first = block->c + at->channel;
        v_st_f32(w, fallback_parameters(block, block->w, first, n, 1, D));
        v_st_f32(b, fallback_parameters(block, block->b, first, n, 0, D));
    }
    for (size_t k = 0, some; k < n; k += some) {
        /* columns with the same statistics; and with the same parameters, where a channel has several */
        const size_t room = block->per == 1 ? block->group - at->in_group : block->per - at->column, c = block->c + at->channel;
        const nrg_channel_statistics stat = *at->stat;
        const int is_plain = channel_set_is_plain(&stat, block->fast);
        some = n - k < room ? n - k : room;
        for (size_t i = k; i < k + some; i++) {
            mean[i] = stat.mean;
            mean_low[i] = stat.mean_low;
            rstd[i] = stat.rstd;
            if (block->per > 1) {
                w[i] = channel_parameter(block->w, c, block->w_f32, D, 1);
                b[i] = channel_parameter(block->b, c, block->w_f32, D, 0);
            }
            plain[i] = is_plain && channel_weight_is_plain(w[i]) ? 1 : 0;
            to->plain_columns += plain[i] != 0;
        }
        advance(at, block, some);
    }
    const vf vw = v_ld_f32(w), vb = v_ld_f32(b);
    exact->mean_l = vd_ld(mean);
    exact->mean_h = vd_ld(mean + VN / 2);
    exact->low_l = vd_ld(mean_low);
    exact->low_h = vd_ld(mean_low + VN / 2);
    exact->a_l = vd_mul(vd_ld(rstd), vd_low(vw));
    exact->a_h = vd_mul(vd_ld(rstd + VN / 2), vd_high(vw));
    exact->b_l = vd_low(vb);
    exact->b_h = vd_high(vb);
    to->plain[vector] = v_ld_f32(plain);
}

/* The same of a set that is not plain: where there are few rows, this is most of the work. */
static __attribute__((noinline)) void fallback_of_set(fallback_factors *to, size_t vector, const channel_block *block,
                                                      block_cursor *at, size_t n, nrg_dtype D)
{
    const size_t first = block->c + at->channel;
    const vf w = fallback_parameters(block, block->w, first, n, 1, D), b = fallback_parameters(block, block->b, first, n, 0, D);
    const vd mean = vd_set1(at->stat->mean), low = vd_set1(at->stat->mean_low), rstd = vd_set1(at->stat->rstd);
    to->exact[vector] =
        (channel_vd){mean, mean, low, low, vd_mul(rstd, vd_low(w)), vd_mul(rstd, vd_high(w)), vd_low(b), vd_high(b)};
    to->plain[vector] = v_zero();
    advance(at, block, n);
}

/* A strip of `width` columns from the cursor on. */
static void fill_strip(fallback_factors *to, const channel_block *block, block_cursor *at, size_t width, nrg_dtype D)
{
    to->plain_columns = 0;
    for (size_t i = 0; i < width; i += VN) {
        const size_t n = lanes_at(i, width);
        if (block->per == 1 && block->group - at->in_group >= n && block->plain_weights &&
            !channel_set_is_plain(at->stat, block->fast))
            fallback_of_set(to, i / VN, block, at, n, D);
        else
            fallback_of_columns(to, i / VN, block, at, n, D);
    }
}

void fill_fallback(fallback_factors *to, const channel_block *strip, nrg_dtype D)
{
    block_cursor at = {.stat = strip->stat, .in_group = strip->into};
    fill_strip(to, strip, &at, strip->channels * strip->per, D);
}

/* The rows of G vectors of a strip from number `vector` on, or of the first n columns of one. mixed: some columns are plain. */
NRG_INLINE void fallback_rows(const channel_column_run *at, const channel_column_factors *f, const fallback_factors *factors,
                              size_t vector, int G, size_t n, int mixed, nrg_dtype D)
{
    const channel_column_run run = *at;
    for (size_t row = 0; row < run.rows; row++) {
        const char *x = run.x + row * run.x_stride;
        char *o = run.o + row * run.o_stride;
        vf v[FALLBACK_VECTORS];
        __builtin_prefetch((const void *)((uintptr_t)x + FALLBACK_PREFETCH * run.x_stride));
        __builtin_prefetch((const void *)((uintptr_t)o + FALLBACK_PREFETCH * run.o_stride), 1);
        load_step(v, G, x, 0, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const vf in_double = normalized_in_double(v[j], &factors->exact[vector + j]);
            if (mixed) {
                const size_t k = (vector + (size_t)j) * VN;
                const vf hi = v_ld_f32(f->hi + k), lo = v_ld_f32(f->lo + k), shift = v_ld_f32(f->shift + k);
                const vf plain =
                    run.fast ? normalized_fast(v[j], lo, hi, shift) : normalized(v[j], hi, lo, shift, v_ld_f32(f->shift_lo + k));
                v[j] = v_select(v_lt(v_zero(), factors->plain[vector + j]), plain, in_double);
            } else
                v[j] = in_double;
        }
        finish_channel_step(v, G, run.y ? run.y + row * run.y_stride : NULL, o, 0, n, run.finish, 0, D);
    }
}

void apply_strip_fallback(const channel_column_run *strip, const channel_column_factors *f, const fallback_factors *factors,
                          nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), o_size = strip->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    channel_column_run run = *strip;
    if (factors->plain_columns == run.width) {
        apply_columns(&run, f, D);
        return;
    }
    if (run.width == FALLBACK_COLUMNS) {
        fallback_rows(&run, f, factors, 0, FALLBACK_VECTORS, FALLBACK_COLUMNS, factors->plain_columns != 0, D);
        return;
    }
    NOBODYS_FACTORS(f, strip->width);
    for (size_t i = 0; i < strip->width; i += VN) {
        fallback_rows(&run, f, factors, i / VN, 1, lanes_at(i, strip->width), 1, D);
        run.x += VN * size;
        run.y = run.y ? run.y + VN * size : NULL;
        run.o += VN * o_size;
    }
}

void apply_columns_fallback(const channel_column_run *all, const channel_block *block, const channel_column_factors *f,
                            nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), o_size = all->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    block_cursor at = {.stat = block->stat, .in_group = block->into};
    channel_column_run run = *all;
    run.stream = 0;
    for (size_t k = 0; k < all->width; k += run.width) {
        fallback_factors factors;
        const channel_column_factors own = factors_from(f, k);
        run.width = all->width - k < FALLBACK_COLUMNS ? all->width - k : FALLBACK_COLUMNS;
        fill_strip(&factors, block, &at, run.width, D);
        apply_strip_fallback(&run, &own, &factors, D);
        run.x += run.width * size;
        run.y = run.y ? run.y + run.width * size : NULL;
        run.o += run.width * o_size;
    }
}

#endif
