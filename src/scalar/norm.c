/* Row normalization, forward: the reference. What these loops do is, to the last bit, what every path does; docs/numerics.md
 * says it in words. Written for reading: nothing here is shared with the templates, so that one can be wrong without the other.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../job/norm.h"
#include "../job/quantize.h"
#include "activation.h"
#include "element.h"
#include "norm_fast.h"
#include "norm_statistics.h"

/* One row of a job, or one group of a row: its operands, and their dtypes. */
typedef struct norm_row {
    const nrg_norm_job *job;
    nrg_dtype dtype, y_dtype, r_dtype, w_dtype, o_dtype;
    const char *x, *y, *z, *w, *b;
    const char *r; /* where r has been stored, which may be x's or y's place; NULL: nowhere */
    /* by pointers that only the kernels name which need them: a program of plain norms is linked without these functions */
    float (*activate)(nrg_activation, float); /* NULL: neither a gate nor an activation */
    struct quantized *quantized;              /* NULL: o is a row of floats */
} norm_row;

/* Element i of r = x + y, rounded to r's dtype. */
static float residual(const norm_row *row, size_t i)
{
    if (row->r)
        return load(row->r, i, row->r_dtype);
    float x = load(row->x, i, row->dtype);
    if (!row->y || row->job->after)
        return x;
    return rounded_to(x + load(row->y, i, row->y_dtype), row->r_dtype);
}

static float gate(const norm_row *row, size_t i) { return row->activate(row->job->activation, load(row->z, i, row->dtype)); }

/* Element i of p, what is normalized. */
static float input(const void *of, size_t i)
{
    const norm_row *const row = of;
    float r = residual(row, i);
    return row->job->gate == NRG_GATE_PRE ? r * gate(row, i) : r;
}

/* p·w·factor - mean·w·factor with factor as the two floats hi + lo, each product with its rounding error carried along, rounded
 * once at the end. */
static float plain_element(const norm_row *row, size_t i, float p, float hi, float lo, float minus_mean)
{
    const nrg_norm_formula *f = &row->job->formula;
    if (!row->w)
        return fmaf(p, hi, f->centred ? fmaf(p, lo, minus_mean) : p * lo);
    float w = load(row->w, i, row->w_dtype), w_lo = 0;
    if (f->w_offset != 0) {
        float sum = w + f->w_offset, part = sum - w;
        w_lo = (w - (sum - part)) + (f->w_offset - part);
        w = sum;
    }
    float product = p * w, e = fmaf(p, w, -product);
    if (f->w_offset != 0)
        e = fmaf(p, w_lo, e);
    float rest = fmaf(product, lo, e * hi);
    if (f->centred && f->w_offset != 0)
        rest = fmaf(minus_mean, w_lo, rest);
    if (f->centred)
        rest = fmaf(minus_mean, w, rest);
    return fmaf(product, hi, rest);
}

/* The same in double, for where floats do not reach: a mean that is large beside s, rows or factors that are very large or small.
 */
static float fallback_element(const norm_row *row, size_t i, float p, double pilot, double offset, double factor)
{
    double difference = ((double)p - pilot) - offset;
    if (row->w)
        difference *= (double)load(row->w, i, row->w_dtype) + (double)row->job->formula.w_offset;
    return (float)(difference * factor);
}

#ifndef NRG_NO_QUANTIZE
/* Outputs in f32, up to a block of any format at once, on their way to bytes; or, with a scale a row, to its largest magnitude
 * first. */
enum { QUANTIZED_PART = 256 };

typedef struct quantized {
    void (*put)(struct quantized *, size_t i, size_t dim, float out);
    nrg_quant_row to;
    float part[QUANTIZED_PART], amax;
    int finding;
} quantized;

static void put_quantized(quantized *q, size_t i, size_t dim, float out)
{
    const size_t at = i % QUANTIZED_PART;
    q->part[at] = out;
    if (at + 1 < QUANTIZED_PART && i + 1 < dim)
        return;
    if (q->finding)
        q->amax = nrg_scalar_amax(q->part, at + 1, q->amax);
    else
        nrg_scalar_quantize_floats(&q->to, q->part, i - at, at + 1, q->amax);
}
#endif

/* What follows the norm, and the store. */
static void finish(const norm_row *row, char *o, size_t i, float out)
{
    const nrg_norm_job *job = row->job;
    if (row->b)
        out += load(row->b, i, row->w_dtype);
    if (job->gate == NRG_GATE_POST)
        out *= gate(row, i);
    if (row->activate && job->gate == NRG_GATE_NONE)
        out = row->activate(job->activation, out);
    if (job->after)
        out += load(row->y, i, row->y_dtype);
#ifndef NRG_NO_QUANTIZE
    if (row->quantized) {
        row->quantized->put(row->quantized, i, job->dim, out);
        return;
    }
#endif
    store(o, i, row->o_dtype, out);
}

static enum nrg_norm_way apply_exact(const norm_row *row, char *o, const row_statistics *stat, double inverse)
{
    const nrg_norm_job *job = row->job;
    double factor = job->formula.k * inverse, mean = stat->pilot + stat->offset, square = stat->square;
    int plain = fabs(mean) * inverse <= 0.5 && fabs(factor) >= 0x1p-40 && fabs(factor) <= 0x1p40 &&
                (square == 0 || (square >= 0x1p-80 && square <= 0x1p80));
    float hi = (float)factor, lo = (float)(factor - (double)hi), minus_mean = (float)(-mean * factor);
    for (size_t i = 0; i < job->dim && (o || row->quantized); i++) {
        float p = input(row, i);
        float out =
            plain ? plain_element(row, i, p, hi, lo, minus_mean) : fallback_element(row, i, p, stat->pilot, stat->offset, factor);
        finish(row, o, i, out);
    }
    return plain ? NRG_NORM_EXACT : NRG_NORM_DOUBLE;
}

/* The fast grade: two operations an element, three with a mean. */
static void apply_fast(const norm_row *row, char *o, const fast_statistics *stat)
{
    const nrg_norm_formula *f = &row->job->formula;
    for (size_t i = 0; i < row->job->dim && (o || row->quantized); i++) {
        float p = input(row, i), out = f->centred ? fmaf(p - stat->centre, stat->factor, stat->shift) : p * stat->factor;
        if (row->w) {
            float w = load(row->w, i, row->w_dtype);
            out *= f->w_offset != 0 ? w + f->w_offset : w;
        }
        finish(row, o, i, out);
    }
}

/* Which elements such statistics are for: what their row had in a forward pass, and for those from elsewhere floats where the
 * fast grade has room for them. */
static enum nrg_norm_way way_of(const nrg_row_statistics *given, int is_fast, double factor)
{
    switch (given->opaque) {
    case NRG_NORM_EXACT:
        return NRG_NORM_EXACT;
    case NRG_NORM_DOUBLE:
        return NRG_NORM_DOUBLE;
    default: /* the other grade's are as good as unknown */
        break;
    }
    if (is_fast && given->opaque == NRG_NORM_FAST)
        return NRG_NORM_FAST;
    const int floats_serve = given->rstd <= 0x1p40 && factor * factor >= 0x1p-80 && factor * factor <= 0x1p80;
    return is_fast && floats_serve ? NRG_NORM_FAST : NRG_NORM_DOUBLE;
}

/* The elements of a row from its statistics as nrg_norm_statistics stores them. */
static void apply_given(const norm_row *row, char *o, const nrg_row_statistics *given, int is_fast)
{
    const nrg_norm_formula *f = &row->job->formula;
    const double pilot = f->centred ? given->mean : 0, offset = f->centred ? given->mean_low : 0, factor = f->k * given->rstd;
    const enum nrg_norm_way way = way_of(given, is_fast, factor);
    if (way == NRG_NORM_FAST) {
        fast_statistics fast = {.factor = (float)factor, .centre = (float)(pilot + offset)};
        fast.shift = (float)((((double)fast.centre - pilot) - offset) * factor);
        apply_fast(row, o, &fast);
        return;
    }
    const float hi = (float)factor, lo = (float)(factor - (double)hi), minus_mean = (float)(-(pilot + offset) * factor);
    for (size_t i = 0; i < row->job->dim; i++) {
        float p = input(row, i);
        finish(row, o, i,
               way == NRG_NORM_EXACT ? plain_element(row, i, p, hi, lo, minus_mean)
                                     : fallback_element(row, i, p, pilot, offset, factor));
    }
}

#ifndef NRG_NO_QUANTIZE
static void begin_quantized(quantized *q, const nrg_norm_quant *to, size_t n)
{
    const size_t together = nrg_format_rows(to->format);
    q->to = (nrg_quant_row){.q = to->q + n / together * to->q_stride,
                            .scales = to->scales ? (float *)(to->scales + n * to->scales_stride) : NULL,
                            .row = n % together,
                            .format = to->format,
                            .rounding = to->rounding};
    q->amax = 0;
    q->finding = nrg_format_block(to->format) == 0;
}

/* After a row: whether only its largest magnitude is known, and the bytes come now. */
static int is_to_be_applied_again(quantized *q)
{
    const int again = q && q->finding;
    if (again)
        q->finding = 0;
    return again;
}
#else
static int is_to_be_applied_again(const struct quantized *q) { return q != NULL; }
#endif

static void norm_rows(const nrg_norm_job *job, nrg_dtype dtype, float (*activation)(nrg_activation, float), struct quantized *to)
{
    const size_t groups = job->groups, w_groups = job->alike ? 1 : groups, dim = job->dim;
    norm_row row = {.job = job, .dtype = dtype, .activate = activation, .quantized = to};
    row.y_dtype = job->y_f32 ? NRG_F32 : dtype;
    row.r_dtype = job->r_f32 ? NRG_F32 : dtype;
    row.w_dtype = job->w_f32 ? NRG_F32 : dtype;
    row.o_dtype = job->o_f32 ? NRG_F32 : dtype;
    for (size_t n = job->row_begin; n < job->row_end; n++) {
        row.x = group_at(job->x, job->x_stride, dtype, n, groups, dim);
        row.y = group_at(job->y, job->y_stride, row.y_dtype, n, groups, dim);
        row.z = group_at(job->z, job->z_stride, dtype, n, groups, dim);
        row.w = group_at(job->w, 0, row.w_dtype, n, w_groups, dim);
        row.b = group_at(job->b, 0, row.w_dtype, n, w_groups, dim);
        row.r = NULL;
        if (job->from_r)
            row.r = group_at(job->r, job->r_stride, row.r_dtype, n, groups, dim);
        else if (job->r) {
            char *r = group_into(job->r, job->r_stride, row.r_dtype, n, groups, dim);
            for (size_t i = 0; i < dim; i++)
                store(r, i, row.r_dtype, residual(&row, i));
            row.r = r;
        }
        char *o = group_into(job->o, job->o_stride, row.o_dtype, n, groups, dim);
#ifndef NRG_NO_QUANTIZE
        if (to)
            begin_quantized(to, job->quant, n);
#endif
        fast_statistics fast = {0};
        const int is_fast = !nrg_norm_is_exact(&job->formula, dtype);
        if (job->part == NRG_NORM_APPLY) {
            apply_given(&row, o, &job->statistics[n], is_fast);
            continue;
        }
        if (is_fast)
            fast = fast_statistics_of(&job->formula, input, &row, dim);
        double mean = fast.mean, inverse = fast.inverse;
        nrg_row_statistics all = {fast.pilot, fast.offset, fast.variance, inverse, NRG_NORM_FAST};
        if (fast.serve) {
            apply_fast(&row, o, &fast);
            if (is_to_be_applied_again(to))
                apply_fast(&row, o, &fast);
        } else {
            row_statistics stat = row_statistics_of(&job->formula, input, &row, dim);
            mean = stat.pilot + stat.offset;
            inverse = inverse_divisor(&job->formula, stat.variance);
            const enum nrg_norm_way way = apply_exact(&row, o, &stat, inverse);
            if (is_to_be_applied_again(to))
                apply_exact(&row, o, &stat, inverse);
            all = (nrg_row_statistics){stat.pilot, stat.offset, stat.variance, inverse, way};
        }
        if (job->mean)
            job->mean[n] = (float)mean;
        if (job->rstd)
            job->rstd[n] = (float)inverse;
        if (job->statistics)
            job->statistics[n] = all;
    }
}

static void norm_forward(const nrg_norm_job *job, nrg_dtype dtype) { norm_rows(job, dtype, NULL, NULL); }

SCALAR_KERNELS(norm_forward, norm, norm_forward)
SCALAR_KERNELS(norm_rms, norm, norm_forward)

static void norm_gated(const nrg_norm_job *job, nrg_dtype dtype) { norm_rows(job, dtype, activate, NULL); }

SCALAR_KERNELS(norm_gated, norm, norm_gated)

#ifndef NRG_NO_QUANTIZE
static void norm_quantized(const nrg_norm_job *job, nrg_dtype dtype)
{
    quantized q = {.put = put_quantized};
    norm_rows(job, dtype, activate, &q);
}

SCALAR_KERNELS(norm_quantized, norm, norm_quantized)
#endif
