/* Scalars: from the statistics of sets and the parameters of channels to the factors of elements.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_SCALARS_H
#define NRG_TEMPLATE_CHANNEL_SCALARS_H

#include "source.h"

/* The factors of a channel; docs/ops/channel_norm.md, "Elements". */
typedef struct channel_factors {
    int plain;
    float hi, lo, shift, shift_lo; /* as channel_column_factors has them */
    double mean, mean_low, a, b;   /* if not plain */
} channel_factors;

static inline int channel_weight_is_plain(float w) { return channel_between(fabs((double)w), 0x1p-40, 0x1p40); }

int weights_are_plain(const char *w, int w_f32, size_t channels, nrg_dtype D)
{
    for (size_t c = 0; c < channels && w; c++)
        if (!channel_weight_is_plain(channel_parameter(w, c, w_f32, D, 1)))
            return 0;
    return 1;
}

static __attribute__((noinline)) channel_factors block_factors(const channel_block *block, size_t channel, nrg_dtype D)
{
    const float w = channel_parameter(block->w, block->c + channel, block->w_f32, D, 1);
    const float b = channel_parameter(block->b, block->c + channel, block->w_f32, D, 0);
    if (!block->stat)
        return (channel_factors){.plain = 1, .hi = w, .shift = b};
    const nrg_channel_statistics *stat = block_stat(block, block_group(block, channel));
    const double mean = stat->mean + stat->mean_low, rstd = stat->rstd;
    const float high = (float)rstd, low = (float)(rstd - (double)high);
    channel_factors f;
    f.plain = channel_set_is_plain(stat, block->fast) & channel_weight_is_plain(w);
    f.mean = stat->mean;
    f.mean_low = stat->mean_low;
    f.a = rstd * (double)w;
    f.b = (double)b;
    if (block->fast) {
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

/* ---- vectors of channels ---- */

static __attribute__((noinline)) vf load_half_parameters(const char *p, size_t c, size_t n, nrg_dtype D)
{
    return load_part(p, c, n, D);
}

/* n elements of w or b from channel c on. */
NRG_INLINE vf load_parameters(const channel_block *block, const char *p, size_t c, size_t n, float absent, nrg_dtype D)
{
    if (!p)
        return v_set1(absent);
    return D == NRG_F32 || block->w_f32 ? load_lanes((const float *)p + c, n) : load_half_parameters(p, c, n, D);
}

/* Factors from number k on, as block_factors computes them: n channels from number `channel` on, with the same statistics. All
 * are f32, since 16-bit elements have the fast grade. */
NRG_INLINE void fill_exact(channel_column_factors *f, const channel_block *block, const nrg_channel_statistics *stat,
                           size_t channel, size_t n, nrg_dtype D)
{
    const float high_s = (float)stat->rstd;
    const vf high = v_set1(high_s), low = v_set1((float)(stat->rstd - (double)high_s));
    const vd minus_mean = vd_set1(-((stat->mean + stat->mean_low) * stat->rstd));
    for (size_t i = 0; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n), k = channel + i;
        const vf w = load_parameters(block, block->w, block->c + k, lanes, 1, D),
                 b = load_parameters(block, block->b, block->c + k, lanes, 0, D);
        const vf hi = v_mul(w, high), lo = v_fma(w, low, v_fms(w, high, hi));
        const vd shift_l = vd_fma(minus_mean, vd_low(w), vd_low(b)), shift_h = vd_fma(minus_mean, vd_high(w), vd_high(b));
        const vf shift = v_from_vd(shift_l, shift_h);
        store_lanes(f->hi + k, hi, lanes);
        store_lanes(f->lo + k, lo, lanes);
        store_lanes(f->shift + k, shift, lanes);
        store_lanes(f->shift_lo + k, v_from_vd(vd_sub(shift_l, vd_low(shift)), vd_sub(shift_h, vd_high(shift))), lanes);
    }
}

/* The same in the fast grade, up to VN channels. mean, rstd: of the lower and of the upper half of them. */
NRG_INLINE void fill_fast(const channel_column_factors *f, const channel_block *block, const vd mean[2], const vd rstd[2],
                          size_t k, size_t lanes, nrg_dtype D)
{
    const vf w = load_parameters(block, block->w, block->c + k, lanes, 1, D),
             b = load_parameters(block, block->b, block->c + k, lanes, 0, D);
    const vf rounded = v_from_vd(mean[0], mean[1]);
    const vd low = vd_mul(rstd[0], vd_low(w)), high = vd_mul(rstd[1], vd_high(w));
    const vd less_l = vd_sub(vd_low(rounded), mean[0]), less_h = vd_sub(vd_high(rounded), mean[1]);
    store_lanes(f->hi + k, v_from_vd(low, high), lanes);
    store_lanes(f->lo + k, rounded, lanes);
    store_lanes(f->shift + k, v_from_vd(vd_fma(less_l, low, vd_low(b)), vd_fma(less_h, high, vd_high(b))), lanes);
}

static __attribute__((noinline)) void fill_set_fast(const channel_column_factors *f, const channel_block *block, double mean,
                                                    double rstd, size_t k, size_t n, nrg_dtype D)
{
    const vd means[2] = {vd_set1(mean), vd_set1(mean)}, rstds[2] = {vd_set1(rstd), vd_set1(rstd)};
    for (size_t i = 0; i < n; i += VN)
        fill_fast(f, block, means, rstds, k + i, lanes_at(i, n), D);
}

#if !V_SMALL /* small.h does not use it there */
void fill_side_by_side(const channel_column_factors *f, const channel_block *block, const double *mean, const double *rstd,
                       nrg_dtype D)
{
    const size_t each = block->group;
    for (size_t k = 0, set = 0; k < block->channels && each > 1; k += each, set++)
        fill_set_fast(f, block, mean[set], rstd[set], k, each, D);
    for (size_t k = 0; k < block->channels && each == 1; k += VN) {
        const vd means[2] = {vd_ld(mean + k), vd_ld(mean + k + VN / 2)}, rstds[2] = {vd_ld(rstd + k), vd_ld(rstd + k + VN / 2)};
        fill_fast(f, block, means, rstds, k, lanes_at(k, block->channels), D);
    }
}
#endif

/* The factors of a channel's first column, number k, for all of its columns. A masked store takes longer than to store a tail one
 * by one (AVX2). */
static __attribute__((noinline)) void repeat_factors(const channel_column_factors *at, size_t k, size_t columns)
{
    const channel_column_factors f = factors_from(at, k);
    const float hi = f.hi[0], lo = f.lo[0], shift = f.shift[0], shift_lo = f.shift_lo[0];
    size_t i = 0;
    for (; i + VN <= columns; i += VN) {
        v_st_f32(f.hi + i, v_set1(hi));
        v_st_f32(f.lo + i, v_set1(lo));
        v_st_f32(f.shift + i, v_set1(shift));
        v_st_f32(f.shift_lo + i, v_set1(shift_lo));
    }
    for (; i < columns; i++) {
        f.hi[i] = hi;
        f.lo[i] = lo;
        f.shift[i] = shift;
        f.shift_lo[i] = shift_lo;
    }
}

void fill_factors(channel_column_factors *f, const channel_block *block, nrg_dtype D)
{
    f->plain = 1;
    if (block->stat && block->per == 1 && block->group > 1 && block->plain_weights) {
        for (size_t k = 0, n; k < block->channels; k += n) {
            const nrg_channel_statistics *stat = block_stat(block, block_group(block, k));
            n = lesser(block->channels - k, block->group - (k + block->into) % block->group);
            if (block->fast)
                fill_set_fast(f, block, stat->mean + stat->mean_low, stat->rstd, k, n, D);
            else
                fill_exact(f, block, stat, k, n, D);
            f->plain &= channel_set_is_plain(stat, block->fast);
        }
        return;
    }
    for (size_t channel = 0; channel < block->channels; channel++) {
        const channel_factors of = block_factors(block, channel, D);
        const size_t k = channel * block->per;
        f->plain &= of.plain;
        f->hi[k] = of.hi;
        f->lo[k] = of.lo;
        f->shift[k] = of.shift;
        f->shift_lo[k] = of.shift_lo;
        if (block->per > 1)
            repeat_factors(f, k, block->per);
    }
}

#endif
