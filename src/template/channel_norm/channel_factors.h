/* The factors of channels, and of a block of columns.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_FACTORS_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_FACTORS_H

#include "channel_elements.h"

int weights_are_plain(const char *w, int w_f32, size_t channels, nrg_dtype D)
{
    for (size_t c = 0; c < channels && w; c++)
        if (!channel_weight_is_plain(channel_parameter(w, c, w_f32, D, 1)))
            return 0;
    return 1;
}

static inline channel_factors channel_factors_of(const nrg_channel_statistics *stat, int fast, float w, float b)
{
    const double mean = stat->mean + stat->mean_low, rstd = stat->rstd;
    const float high = (float)rstd, low = (float)(rstd - (double)high);
    channel_factors f;
    f.plain = channel_set_is_plain(stat, fast) & channel_weight_is_plain(w);
    f.mean = stat->mean;
    f.mean_low = stat->mean_low;
    f.a = rstd * (double)w;
    f.b = (double)b;
    if (fast) {
        f.hi = (float)f.a;
        f.lo = (float)mean;
        f.shift = (float)fma((double)f.lo - mean, f.a, f.b);
        f.shift_lo = 0;
        return f;
    }
    f.hi = w * high;
    f.lo = fmaf(w, low, fmaf(w, high, -f.hi));
    const double shift = fma(-(mean * rstd), (double)w, (double)b);
    f.shift = (float)shift;
    f.shift_lo = (float)(shift - (double)f.shift);
    return f;
}

/* Up to VN channels of one set, one column each: as channel_factors_of. */
NRG_INLINE void fill_step(channel_column_factors *f, vf w, vf b, vf high, vf low, vd minus_mean, size_t k, size_t lanes)
{
    const vf hi = v_mul(w, high), lo = v_fma(w, low, v_fms(w, high, hi));
    const vd shift_l = vd_fma(minus_mean, vd_low(w), vd_low(b)), shift_h = vd_fma(minus_mean, vd_high(w), vd_high(b));
    const vf shift = v_from_vd(shift_l, shift_h);
    const vf shift_lo = v_from_vd(vd_sub(shift_l, vd_low(shift)), vd_sub(shift_h, vd_high(shift)));
    store_lanes(f->hi + k, hi, lanes);
    store_lanes(f->lo + k, lo, lanes);
    store_lanes(f->shift + k, shift, lanes);
    store_lanes(f->shift_lo + k, shift_lo, lanes);
}

/* In the fast grade. mean, rstd: of the lower and of the upper half of the columns. */
NRG_INLINE void fill_step_fast(channel_column_factors *f, vf w, vf b, const vd mean[2], const vd rstd[2], size_t k, size_t lanes)
{
    const vf rounded = v_from_vd(mean[0], mean[1]);
    const vd low = vd_mul(rstd[0], vd_low(w)), high = vd_mul(rstd[1], vd_high(w));
    const vd less_l = vd_sub(vd_low(rounded), mean[0]), less_h = vd_sub(vd_high(rounded), mean[1]);
    store_lanes(f->hi + k, v_from_vd(low, high), lanes);
    store_lanes(f->lo + k, rounded, lanes);
    store_lanes(f->shift + k, v_from_vd(vd_fma(less_l, low, vd_low(b)), vd_fma(less_h, high, vd_high(b))), lanes);
}

NRG_INLINE void fill_set_fast_of(channel_column_factors *f, const char *w, const char *b, double exact_mean, double exact_rstd,
                                 size_t k, size_t n, nrg_dtype D)
{
    const vf one = v_set1(1), zero = v_zero();
    const vd mean[2] = {vd_set1(exact_mean), vd_set1(exact_mean)}, rstd[2] = {vd_set1(exact_rstd), vd_set1(exact_rstd)};
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        fill_step_fast(f, w ? load_part(w, i, lanes, D) : one, b ? load_part(b, i, lanes, D) : zero, mean, rstd, k + i, lanes);
    }
}

#if !V_SMALL /* channel_small.h has no use for it there */
/* Sets of a channel each. */
NRG_INLINE void fill_channels_of(channel_column_factors *f, const char *w, const char *b, const double *means,
                                 const double *rstds, size_t n, nrg_dtype D)
{
    const vf one = v_set1(1), zero = v_zero();
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        const vd mean[2] = {vd_ld(means + i), vd_ld(means + i + VN / 2)}, rstd[2] = {vd_ld(rstds + i), vd_ld(rstds + i + VN / 2)};
        fill_step_fast(f, w ? load_part(w, i, lanes, D) : one, b ? load_part(b, i, lanes, D) : zero, mean, rstd, i, lanes);
    }
}

NRG_INLINE void fill_side_by_side_of(channel_column_factors *f, const channel_block *block, const double *mean,
                                     const double *rstd, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), each = block->group;
    const char *w = block->w ? block->w + block->c * size : NULL, *b = block->b ? block->b + block->c * size : NULL;
    if (each == 1) {
        fill_channels_of(f, w, b, mean, rstd, block->channels, D);
        return;
    }
    for (size_t k = 0, set = 0; k < block->channels; k += each, set++) {
        fill_set_fast_of(f, w, b, mean[set], rstd[set], k, each, D);
        w = w ? w + each * size : NULL;
        b = b ? b + each * size : NULL;
    }
}

void fill_side_by_side(const channel_column_factors *to, const channel_block *block, const double *mean, const double *rstd,
                       nrg_dtype D)
{
    channel_column_factors f = *to;
    if (D == NRG_F32 || block->w_f32)
        fill_side_by_side_of(&f, block, mean, rstd, NRG_F32);
    else
        fill_side_by_side_of(&f, block, mean, rstd, D);
}
#endif

/* Of f32 alone: 16-bit elements have the fast grade. */
NRG_INLINE void fill_set_of(channel_column_factors *f, const char *w, const char *b, const nrg_channel_statistics *stat, size_t k,
                            size_t n)
{
    const float high_s = (float)stat->rstd, low_s = (float)(stat->rstd - (double)high_s);
    const vf high = v_set1(high_s), low = v_set1(low_s), one = v_set1(1), zero = v_zero();
    const vd minus_mean = vd_set1(-((stat->mean + stat->mean_low) * stat->rstd));
    size_t i = 0;
    for (; i + VN <= n; i += VN)
        fill_step(f, w ? load_whole(w, i, NRG_F32) : one, b ? load_whole(b, i, NRG_F32) : zero, high, low, minus_mean, k + i, VN);
    if (i < n)
        fill_step(f, w ? load_part(w, i, n - i, NRG_F32) : one, b ? load_part(b, i, n - i, NRG_F32) : zero, high, low, minus_mean,
                  k + i, n - i);
}

/* n channels of one set from channel c on, to columns from k on; all weights are plain. */
static inline void fill_set(channel_column_factors *f, const channel_block *block, const nrg_channel_statistics *stat, size_t c,
                            size_t k, size_t n, nrg_dtype D)
{
    const size_t at = bytes_of(c, D, block->w_f32);
    const char *w = block->w ? block->w + at : NULL, *b = block->b ? block->b + at : NULL;
    if (!block->fast)
        fill_set_of(f, w, b, stat, k, n);
    else if (D == NRG_F32 || block->w_f32)
        fill_set_fast_of(f, w, b, stat->mean + stat->mean_low, stat->rstd, k, n, NRG_F32);
    else
        fill_set_fast_of(f, w, b, stat->mean + stat->mean_low, stat->rstd, k, n, D);
}

channel_factors block_factors(const channel_block *block, size_t channel, nrg_dtype D)
{
    const float w = channel_parameter(block->w, block->c + channel, block->w_f32, D, 1);
    const float b = channel_parameter(block->b, block->c + channel, block->w_f32, D, 0);
    if (!block->stat)
        return (channel_factors){.plain = 1, .hi = w, .shift = b};
    return channel_factors_of(block_stat(block, block_group(block, channel)), block->fast, w, b);
}

void fill_factors(channel_column_factors *f, const channel_block *block, nrg_dtype D)
{
    f->plain = 1;
    if (block->stat && block->per == 1 && block->group > 1 && block->plain_weights) {
        for (size_t k = 0; k < block->channels; k += block->group) {
            const size_t left = block->channels - k, n = left < block->group ? left : block->group;
            const nrg_channel_statistics *stat = block_stat(block, k / block->group);
            fill_set(f, block, stat, block->c + k, k, n, D);
            f->plain &= channel_set_is_plain(stat, block->fast);
        }
        return;
    }
    for (size_t channel = 0; channel < block->channels; channel++) {
        const channel_factors of = block_factors(block, channel, D);
        f->plain &= of.plain;
        for (size_t k = channel * block->per; k < (channel + 1) * block->per; k++) {
            f->hi[k] = of.hi;
            f->lo[k] = of.lo;
            f->shift[k] = of.shift;
            f->shift_lo[k] = of.shift_lo;
        }
    }
}

#endif
