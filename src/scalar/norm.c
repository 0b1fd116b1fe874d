/* Row normalization, forward: the reference. What these loops do is, to the last bit, what every path does; docs/numerics.md
 * says it in words. Written for reading: nothing here is shared with the templates, so that one can be wrong without the other.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../internal.h"
#include "convert.h"

enum { LANES = 32, SEGMENT = 4096 };

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
    double t, tt; /* Σt and Σt² of t = r - pilot */
} sums;

/* A segment's lanes, folded by halves. */
static double fold(double lanes[LANES])
{
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* Element i belongs to lane i mod 32. Squares of floats are exact in double, so that a multiplication and an addition round once,
 * as an fma would; nothing overflows, nothing underflows. */
static sums sum_row(const norm_row *row, double pilot)
{
    size_t dim = row->job->dim;
    sums total = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        double t[LANES] = {0}, tt[LANES] = {0};
        for (size_t i = segment; i < dim && i < segment + SEGMENT; i++) {
            double v = (double)residual(row, i) - pilot;
            t[i % LANES] += v;
            tt[i % LANES] += v * v;
        }
        total.t += fold(t);
        total.tt += fold(tt);
    }
    return total;
}

typedef struct statistics {
    double square, variance; /* Σr²/d, σ² */
    double pilot, offset;    /* m in two parts: the first is enough except where m is more than 1000 σ */
} statistics;

static statistics row_statistics(const norm_row *row)
{
    const nrg_norm_job *job = row->job;
    sums first = sum_row(row, 0);
    double square = first.tt * job->inv_dim;
    statistics stat = {square, square, 0, 0};
    if (!(stat.variance <= DBL_MAX)) {
        stat.pilot = stat.variance = NAN; /* an Inf or a NaN in the row: finite floats cannot overflow the sum */
        return stat;
    }
    if (!job->centred)
        return stat;
    stat.pilot = first.t / job->d;
    stat.variance -= stat.pilot * stat.pilot;
    if (stat.pilot * stat.pilot <= 0x1p20 * stat.variance)
        return stat;
    /* taken out before squaring. In a constant row it is exact, and what is left is 0. */
    sums again = sum_row(row, stat.pilot);
    stat.offset = again.t / job->d;
    stat.variance = again.tt * job->inv_dim - stat.offset * stat.offset;
    if (!(stat.variance > 0))
        stat.variance = 0;
    return stat;
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

/* r·w·factor - mean·w·factor with factor as the two floats hi + lo, each product with its rounding error carried along, rounded
 * once at the end. */
static float plain_element(const norm_row *row, size_t i, float r, float hi, float lo, float minus_mean)
{
    const nrg_norm_job *job = row->job;
    if (!job->w)
        return fmaf(r, hi, job->centred ? fmaf(r, lo, minus_mean) : r * lo);
    float w = load(job->w, i, row->w_dtype), w_lo = 0;
    if (job->w_offset != 0) {
        float sum = w + job->w_offset, part = sum - w;
        w_lo = (w - (sum - part)) + (job->w_offset - part);
        w = sum;
    }
    float p = r * w, e = fmaf(r, w, -p);
    if (job->w_offset != 0)
        e = fmaf(r, w_lo, e);
    float rest = fmaf(p, lo, e * hi);
    if (job->centred && job->w_offset != 0)
        rest = fmaf(minus_mean, w_lo, rest);
    if (job->centred)
        rest = fmaf(minus_mean, w, rest);
    return fmaf(p, hi, rest);
}

/* The same in double, for where floats do not reach: a mean that is large beside s, rows or factors that are very large or small.
 */
static float careful_element(const norm_row *row, size_t i, float r, double pilot, double offset, double factor)
{
    double difference = ((double)r - pilot) - offset;
    if (row->job->w)
        difference *= (double)load(row->job->w, i, row->w_dtype) + (double)row->job->w_offset;
    return (float)(difference * factor);
}

static void apply(const norm_row *row, char *o, const statistics *stat, double inverse)
{
    const nrg_norm_job *job = row->job;
    double factor = job->k * inverse, mean = stat->pilot + stat->offset, square = stat->square;
    int plain = fabs(mean) * inverse <= 0.5 && fabs(factor) >= 0x1p-40 && fabs(factor) <= 0x1p40 &&
                (square == 0 || (square >= 0x1p-80 && square <= 0x1p80));
    float hi = (float)factor, lo = (float)(factor - (double)hi), minus_mean = (float)(-mean * factor);
    for (size_t i = 0; i < job->dim; i++) {
        float r = residual(row, i);
        float out =
            plain ? plain_element(row, i, r, hi, lo, minus_mean) : careful_element(row, i, r, stat->pilot, stat->offset, factor);
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
        double inverse = inverse_divisor(job, stat.variance);
        if (job->mean)
            job->mean[n] = (float)(stat.pilot + stat.offset);
        if (job->rstd)
            job->rstd[n] = (float)inverse;
        apply(&current, job->o + n * job->o_stride, &stat, inverse);
    }
}

void nrg_scalar_norm_forward_f32(const nrg_norm_job *job) { norm_forward(job, NRG_F32); }
void nrg_scalar_norm_forward_f16(const nrg_norm_job *job) { norm_forward(job, NRG_F16); }
void nrg_scalar_norm_forward_bf16(const nrg_norm_job *job) { norm_forward(job, NRG_BF16); }
