/* Row normalization, forward: the reference. What these loops do is, to the last bit, what every path does; docs/numerics.md
 * says it in words. Written for reading: nothing here is shared with the templates, so that one can be wrong without the other.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../internal.h"
#include "convert.h"

enum { LANES = 64, BLOCK = 512, SEGMENT = 4096 };

static float load(const char *p, size_t i, nrg_dtype dtype)
{
    if (dtype == NRG_F32)
        return ((const float *)p)[i];
    uint16_t h = ((const uint16_t *)p)[i];
    return dtype == NRG_F16 ? nrg_f16_to_f32(h) : nrg_bf16_to_f32(h);
}

static void store(char *p, size_t i, nrg_dtype dtype, float f)
{
    if (dtype == NRG_F32)
        ((float *)p)[i] = f;
    else
        ((uint16_t *)p)[i] = dtype == NRG_F16 ? nrg_f32_to_f16(f) : nrg_f32_to_bf16(f);
}

/* One row of a job: its operands, and their dtypes. */
typedef struct norm_row {
    const nrg_norm_job *job;
    nrg_dtype dtype, y_dtype, r_dtype, w_dtype;
    const char *x, *y;
    const char *r; /* where r has been stored, which may be x's or y's place; NULL: nowhere */
} norm_row;

/* Element i of r = x + y, rounded to r's dtype. */
static float residual(const norm_row *row, size_t i)
{
    if (row->r)
        return load(row->r, i, row->r_dtype);
    float x = load(row->x, i, row->dtype);
    if (!row->y || row->job->after)
        return x;
    float r = x + load(row->y, i, row->y_dtype);
    if (row->r_dtype == NRG_F16)
        return nrg_f16_to_f32(nrg_f32_to_f16(r));
    if (row->r_dtype == NRG_BF16)
        return nrg_bf16_to_f32(nrg_f32_to_bf16(r));
    return r;
}

typedef struct sums {
    double t, tt; /* Σt and Σt² of t = r·scale - pilot */
} sums;

/* A block's 64 lanes fold to 16: lane l takes l+32, then l+16. */
static void fold(const float lanes[LANES], float folded[16])
{
    for (int l = 0; l < 16; l++)
        folded[l] = (lanes[l] + lanes[l + 32]) + (lanes[l + 16] + lanes[l + 48]);
}

/* s + v = s' + error exactly (Knuth, TAOCP 2, 4.2.2); the errors collect in c. */
static void two_sum(float *s, float *c, float v)
{
    float sum = *s + v, part = sum - *s;
    *c += (*s - (sum - part)) + (v - part);
    *s = sum;
}

/* A segment's 16 compensated lanes, widened and folded by halves. */
static double fold_segment(const float s[16], const float c[16])
{
    double lanes[16];
    for (int l = 0; l < 16; l++)
        lanes[l] = (double)s[l] + (double)c[l];
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static sums sum_row(const norm_row *row, float scale, float pilot)
{
    size_t dim = row->job->dim;
    sums total = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        float s1[16] = {0}, c1[16] = {0}, s2[16] = {0}, c2[16] = {0}, folded[16];
        for (size_t block = segment; block < dim && block < segment + SEGMENT; block += BLOCK) {
            float lanes1[LANES] = {0}, lanes2[LANES] = {0};
            for (size_t i = block; i < dim && i < block + BLOCK; i++) {
                float t = residual(row, i) * scale - pilot;
                lanes1[i % LANES] += t;
                lanes2[i % LANES] = fmaf(t, t, lanes2[i % LANES]);
            }
            fold(lanes1, folded);
            for (int l = 0; l < 16; l++)
                two_sum(&s1[l], &c1[l], folded[l]);
            fold(lanes2, folded);
            for (int l = 0; l < 16; l++)
                two_sum(&s2[l], &c2[l], folded[l]);
        }
        total.t += fold_segment(s1, c1);
        total.tt += fold_segment(s2, c2);
    }
    return total;
}

/* The statistics of a row, of r·2^shift. plain: the row needed no care, shift is 0, the mean is small beside s. */
typedef struct statistics {
    int plain, shift;
    double mean, variance;
} statistics;

/* Σt² / d between these loses nothing to underflow, is far from overflow, and leaves room for w up to 2^80. */
static const double quiet_min = 0x1p-80, quiet_max = 0x1p80;

static statistics careful_statistics(const norm_row *row, double first_mean)
{
    const nrg_norm_job *job = row->job;
    statistics stat = {0, 0, 0, 0};
    uint32_t largest = 0;
    for (size_t i = 0; i < job->dim; i++) {
        uint32_t magnitude = nrg_f32_bits(residual(row, i)) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest == 0)
        return stat;
    if (largest >= 0x7f800000u) {
        stat.mean = stat.variance = NAN;
        return stat;
    }
    /* scaled so that the largest element lies in [2^20, 2^21): differences of elements then are 2^-4 or more, or 0 */
    int exponent;
    frexp((double)nrg_f32_from_bits(largest), &exponent);
    stat.shift = 21 - exponent;
    if (stat.shift > 126)
        stat.shift = 126;
    float scale = (float)ldexp(1.0, stat.shift);
    float pilot = 0;
    if (job->centred && fabs(first_mean) <= 0x1p128)
        pilot = (float)ldexp(first_mean, stat.shift);
    for (int pass = 0; pass < 4; pass++) {
        sums total = sum_row(row, scale, pilot);
        double offset = job->centred ? total.t * job->inv_dim : 0;
        stat.mean = (double)pilot + offset;
        stat.variance = total.tt * job->inv_dim - offset * offset;
        if (!(stat.variance > 0))
            stat.variance = 0;
        float better = (float)stat.mean;
        if (!job->centred || 4 * offset * offset <= stat.variance || better == pilot)
            break;
        pilot = better;
    }
    return stat;
}

static statistics row_statistics(const norm_row *row)
{
    const nrg_norm_job *job = row->job;
    sums total = sum_row(row, 1, 0);
    double square = total.tt * job->inv_dim, mean = job->centred ? total.t * job->inv_dim : 0;
    double variance = square - mean * mean;
    if (square >= quiet_min && square <= quiet_max && 4 * mean * mean <= variance) {
        statistics stat = {1, 0, mean, variance};
        return stat;
    }
    return careful_statistics(row, mean);
}

/* 1/s; 0 where s is 0, NaN for a poisoned row. */
static double inverse_divisor(const nrg_norm_job *job, double variance)
{
    if (isnan(variance))
        return NAN;
    if (job->divisor == NRG_DIV_ROOT) {
        double square = variance + job->eps;
        return square > 0 ? sqrt(square) * (1 / square) : 0;
    }
    double sigma = sqrt(variance), s = job->divisor == NRG_DIV_SIGMA ? sigma + job->eps : sigma > job->eps ? sigma : job->eps;
    return s > 0 ? 1 / s : 0;
}

/* w + weight_offset as two floats, the second its rounding error. */
static void weight(const norm_row *row, size_t i, float *w, float *w_lo)
{
    float stored = load(row->job->w, i, row->w_dtype), offset = row->job->w_offset;
    float sum = stored + offset, part = sum - stored;
    *w = sum;
    *w_lo = (stored - (sum - part)) + (offset - part);
}

/* v·w·factor - mean·w·factor, each product with its rounding error carried along, rounded once at the end. */
static float plain_element(const norm_row *row, size_t i, float v, float hi, float lo, float minus_mean)
{
    const nrg_norm_job *job = row->job;
    if (!job->w)
        return fmaf(v, hi, job->centred ? fmaf(v, lo, minus_mean) : v * lo);
    float w, w_lo;
    weight(row, i, &w, &w_lo);
    float p = v * w, e = fmaf(v, w, -p);
    if (job->w_offset != 0)
        e = fmaf(v, w_lo, e);
    float rest = fmaf(p, lo, e * hi);
    if (job->centred)
        rest = fmaf(minus_mean, w, rest);
    return fmaf(p, hi, rest);
}

/* (v - mean)·w·factor with the difference as two floats, for where the mean may be much larger than it. */
static float careful_element(const norm_row *row, size_t i, float v, float hi, float lo, float mean_hi, float mean_lo)
{
    float t = v - mean_hi, part = t - v;
    float t_lo = ((v - (t - part)) - (mean_hi + part)) - mean_lo;
    if (!row->job->w)
        return fmaf(t, hi, fmaf(t, lo, t_lo * hi));
    float w, w_lo;
    weight(row, i, &w, &w_lo);
    float p = t * w, e = fmaf(t_lo, w, fmaf(t, w, -p));
    if (row->job->w_offset != 0)
        e = fmaf(t, w_lo, e);
    return fmaf(p, hi, fmaf(p, lo, e * hi));
}

/* o = f(r), with factor = (c/√d) / s for r·2^shift. */
static void apply(const norm_row *row, char *o, const statistics *stat, double factor)
{
    const nrg_norm_job *job = row->job;
    float scale = (float)ldexp(1.0, stat->shift);
    float hi = (float)factor, lo = (float)(factor - (double)hi);
    float mean_hi = (float)stat->mean, mean_lo = (float)(stat->mean - (double)mean_hi);
    float minus_mean = (float)(-stat->mean * factor);
    for (size_t i = 0; i < job->dim; i++) {
        float v = residual(row, i);
        float out = stat->plain ? plain_element(row, i, v, hi, lo, minus_mean)
                                : careful_element(row, i, v * scale, hi, lo, mean_hi, mean_lo);
        if (job->b)
            out += load(job->b, i, row->w_dtype);
        if (job->after)
            out += load(row->y, i, row->y_dtype);
        store(o, i, row->dtype, out);
    }
}

static void norm_forward(const nrg_norm_job *job, nrg_dtype dtype)
{
    norm_row current = {
        job, dtype, job->y_f32 ? NRG_F32 : dtype, job->r_f32 ? NRG_F32 : dtype, job->w_f32 ? NRG_F32 : dtype, NULL, NULL, NULL};
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        current.x = job->x + n * job->x_stride;
        current.y = job->y ? job->y + n * job->y_stride : NULL;
        current.r = NULL;
        if (job->r) {
            char *r = job->r + n * job->r_stride;
            for (size_t i = 0; i < job->dim; i++)
                store(r, i, current.r_dtype, residual(&current, i));
            current.r = r;
        }
        statistics stat = row_statistics(&current);
        double inverse = inverse_divisor(job, ldexp(stat.variance, -2 * stat.shift));
        double factor = ldexp(job->k * inverse, -stat.shift);
        if (job->mean)
            job->mean[n] = (float)ldexp(stat.mean, -stat.shift);
        if (job->rstd)
            job->rstd[n] = (float)inverse;
        apply(&current, job->o + n * job->o_stride, &stat, factor);
    }
}

void nrg_scalar_norm_forward_f32(const nrg_norm_job *job) { norm_forward(job, NRG_F32); }
void nrg_scalar_norm_forward_f16(const nrg_norm_job *job) { norm_forward(job, NRG_F16); }
void nrg_scalar_norm_forward_bf16(const nrg_norm_job *job) { norm_forward(job, NRG_BF16); }
