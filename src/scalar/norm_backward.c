/* Row normalization, backward: the reference. docs/numerics.md says in words what these loops do to the last bit.
 *
 * A row is done in f32, with statistics and sums in double; where floats do not reach (1/s or a factor at the ends of their
 * range), its elements are done in double too.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../job/norm.h"
#include "activation.h"
#include "element.h"
#include "norm_fast.h"
#include "norm_statistics.h"

enum { BLOCK = 128 };

/* One row of a job, or one group of a row. */
typedef struct backward_row {
    const nrg_norm_backward_job *job;
    nrg_dtype dtype, x_dtype, y_dtype, r_dtype, w_dtype;
    const char *d_o, *dr_in, *x, *y, *z, *w, *b;
    const float *mean; /* NULL: to be recomputed */
} backward_row;

/* What multiplies a row's elements: with q = p - mean, h = q·rstd - left and dp = dh·a - q·b + c. */
typedef struct backward_factors {
    int fallback;
    /* plain */
    float mean, rstd, left;
    float a, b, c;
    /* fallback: the mean in two parts, 1/s; dp = dh·a - h·b + c */
    double pilot, shift, inverse, fallback_a, fallback_b, fallback_c;
} backward_factors;

static float residual(const backward_row *row, size_t i)
{
    float x = load(row->x, i, row->x_dtype);
    return row->y ? rounded_to(x + load(row->y, i, row->y_dtype), row->r_dtype) : x;
}

static float gate(const backward_row *row, size_t i) { return activate(row->job->activation, load(row->z, i, row->dtype)); }

/* p, what was normalized. */
static float input(const void *of, size_t i)
{
    const backward_row *const row = of;
    float r = residual(row, i);
    return row->job->gate == NRG_GATE_PRE ? r * gate(row, i) : r;
}

static double fallback_normalized(const backward_row *row, size_t i, const backward_factors *f)
{
    return (((double)input(row, i) - f->pilot) - f->shift) * f->inverse;
}

/* h, what came out of the norm. */
static float normalized(const backward_row *row, size_t i, const backward_factors *f)
{
    if (f->fallback)
        return (float)fallback_normalized(row, i, f);
    return fmaf(input(row, i) - f->mean, f->rstd, -f->left);
}

static float weight(const backward_row *row, size_t i)
{
    float w = load(row->w, i, row->w_dtype), offset = row->job->formula.w_offset;
    return offset != 0 ? w + offset : w;
}

/* o1 of the forward pass, but for its last bit. */
static float output(const backward_row *row, size_t i, const backward_factors *f)
{
    double o1 = (double)normalized(row, i, f) * row->job->formula.k;
    if (row->w)
        o1 *= (double)weight(row, i);
    if (row->b)
        o1 += (double)load(row->b, i, row->w_dtype);
    return (float)o1;
}

/* do1, the gradient of o1. f is needed where g was applied to o1 itself. */
static float gradient(const backward_row *row, size_t i, const backward_factors *f)
{
    const nrg_norm_backward_job *job = row->job;
    float d = load(row->d_o, i, row->dtype);
    if (job->gate == NRG_GATE_POST)
        return d * gate(row, i);
    if (job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY)
        return d * slope_of(job->activation, output(row, i, f));
    return d;
}

/* dh, without k. */
static float weighted(const backward_row *row, size_t i, const backward_factors *f)
{
    float d = gradient(row, i, f);
    return row->w ? d * weight(row, i) : d;
}

static double fallback_weighted(const backward_row *row, size_t i, const backward_factors *f)
{
    double d = (double)gradient(row, i, f);
    return row->w ? d * (double)weight(row, i) : d;
}

/* ---- statistics, where they were not saved: as in the forward pass ---- */

/* The mean of a centred norm, as the forward pass of this accuracy stores it. */
static float row_mean(const backward_row *row)
{
    const nrg_norm_formula *f = &row->job->formula;
    if (!nrg_norm_is_exact(f, row->dtype)) {
        fast_statistics fast = fast_statistics_of(f, input, row, row->job->dim);
        if (fast.serve)
            return (float)fast.mean;
    }
    row_statistics stat = row_statistics_of(f, input, row, row->job->dim);
    return (float)(stat.pilot + stat.offset);
}

/* ---- factors ---- */

typedef struct plain_sums {
    double q, qq, d, dq; /* Σq and Σq² in double; Σdh and Σdh·q: four elements of a lane add up in f32, the rest in double */
} plain_sums;

static plain_sums sum_plain(const backward_row *row, const backward_factors *f, int with_d)
{
    size_t dim = row->job->dim;
    compensated total_q = {0, 0}, total_qq = {0, 0}, total_d = {0, 0}, total_dq = {0, 0};
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        double q[LANES] = {0}, qq[LANES] = {0}, d[LANES] = {0}, dq[LANES] = {0};
        for (size_t block = segment; block < dim && block < segment + SEGMENT; block += BLOCK) {
            float partial_d[LANES] = {0}, partial_dq[LANES] = {0};
            for (size_t i = block; i < dim && i < block + BLOCK; i++) {
                float p = input(row, i), g = with_d ? weighted(row, i, f) : 0;
                double exact = (double)p - (double)f->mean;
                q[i % LANES] += exact;
                qq[i % LANES] = fma(exact, exact, qq[i % LANES]);
                partial_d[i % LANES] += g;
                partial_dq[i % LANES] = fmaf(g, p - f->mean, partial_dq[i % LANES]);
            }
            for (int l = 0; l < LANES; l++) {
                d[l] += (double)partial_d[l];
                dq[l] += (double)partial_dq[l];
            }
        }
        add_compensated(&total_q, fold_doubles(q, LANES, 1));
        add_compensated(&total_qq, fold_doubles(qq, LANES, 1));
        add_compensated(&total_d, fold_doubles(d, LANES, 1));
        add_compensated(&total_dq, fold_doubles(dq, LANES, 1));
    }
    return (plain_sums){total_q.sum + total_q.lost, total_qq.sum + total_qq.lost, total_d.sum + total_d.lost,
                        total_dq.sum + total_dq.lost};
}

static int in_floats(double value) { return fabs(value) <= (double)FLT_MAX; }

/* Returns 0 where floats do not serve. */
static int plain_factors(const backward_row *row, backward_factors *f, float mean, int needs_output)
{
    const nrg_norm_formula *formula = &row->job->formula;
    f->fallback = 0;
    f->mean = mean;
    plain_sums s = sum_plain(row, f, !needs_output);
    double shift = formula->centred ? s.q / formula->d : 0, variance = s.qq * formula->inv_dim - shift * shift, slope = 1;
    if (variance < 0)
        variance = 0;
    double inverse = inverse_divisor(formula, variance), sigma = sqrt(variance);
    if (!(inverse >= 0x1p-40 && inverse <= 0x1p40 && (s.qq == 0 || s.qq * formula->inv_dim >= 0x1p-80)))
        return 0;
    f->rstd = (float)inverse;
    f->left = (float)(shift * inverse);
    if (needs_output)
        s = sum_plain(row, f, 1);
    if (formula->divisor == NRG_DIV_SIGMA)
        slope = sigma > 0 ? 1 / (sigma * inverse) : 0;
    if (formula->divisor == NRG_DIV_MAX)
        slope = sigma > formula->eps ? 1 : 0;
    double cross = (formula->centred ? s.dq - shift * s.d : s.dq) * inverse * formula->inv_dim;
    double a = formula->k * inverse, b = a * (cross * slope) * inverse, c = -0.0;
    if (formula->centred) /* not as -fma(...): gcc makes of that an instruction which gives a zero the other sign */
        c = fma(shift, b, -(a * (s.d / formula->d)));
    if (nrg_norm_has_no_gradient(formula, sigma))
        a = b = c = 0;
    f->a = (float)a;
    f->b = (float)b;
    f->c = (float)c;
    return in_floats(a) && in_floats(c) && (a == 0 || fabs(a) >= 0x1p-100) &&
           (b == 0 || (fabs(b) >= 0x1p-100 && fabs(b) <= 0x1p100));
}

static void fallback_factors(const backward_row *row, backward_factors *f, const row_statistics *stat)
{
    const nrg_norm_formula *formula = &row->job->formula;
    size_t dim = row->job->dim;
    compensated sum_d = {0, 0}, sum_dt = {0, 0};
    double inverse = inverse_divisor(formula, stat->variance), over = inverse, sigma = sqrt(stat->variance); /* over: a/s */
    f->fallback = 1;
    f->pilot = stat->pilot;
    f->shift = stat->offset;
    f->inverse = inverse;
    for (size_t segment = 0; segment < dim; segment += SEGMENT) {
        double d[LANES] = {0}, dt[LANES] = {0};
        for (size_t i = segment; i < dim && i < segment + SEGMENT; i++) {
            double g = fallback_weighted(row, i, f);
            d[i % LANES] += g;
            dt[i % LANES] = fma(g, (double)input(row, i) - f->pilot, dt[i % LANES]);
        }
        add_compensated(&sum_d, fold_doubles(d, LANES, 1));
        add_compensated(&sum_dt, fold_doubles(dt, LANES, 1));
    }
    const double total_d = sum_d.sum + sum_d.lost, total_dt = sum_dt.sum + sum_dt.lost;
    if (formula->divisor == NRG_DIV_SIGMA)
        over = sigma > 0 ? 1 / sigma : 0;
    if (formula->divisor == NRG_DIV_MAX && sigma <= formula->eps)
        over = 0;
    double cross = total_dt;
    if (formula->centred)
        cross -= f->shift * total_d;
    f->fallback_a = formula->k * f->inverse;
    f->fallback_b = f->fallback_a * (cross * formula->inv_dim * over);
    f->fallback_c = formula->centred ? -(f->fallback_a * (total_d / formula->d)) : -0.0;
    if (nrg_norm_has_no_gradient(formula, sigma))
        f->fallback_a = f->fallback_b = f->fallback_c = 0;
}

static void row_factors(const backward_row *row, backward_factors *f)
{
    const nrg_norm_backward_job *job = row->job;
    const nrg_norm_formula *formula = &job->formula;
    const int needs_output = job->gate == NRG_GATE_NONE && job->activation != NRG_ACT_IDENTITY;
    memset(f, 0, sizeof *f);
    if (plain_factors(row, f, !formula->centred ? 0 : row->mean ? *row->mean : row_mean(row), needs_output))
        return;
    row_statistics stat = row_statistics_of(formula, input, row, job->dim);
    fallback_factors(row, f, &stat);
}

/* ---- elements ---- */

/* Element i of a row, everything read before anything is written: outputs may lie over inputs. */
typedef struct element {
    float dx, dy, dz;
    float d, h;
} element;

static element backward_element(const backward_row *row, size_t i, const backward_factors *f)
{
    const nrg_norm_backward_job *job = row->job;
    element e;
    e.d = gradient(row, i, f);
    e.h = normalized(row, i, f);
    double dp = 0;
    if (f->fallback) {
        dp = fma(fallback_weighted(row, i, f), f->fallback_a, fma(fallback_normalized(row, i, f), -f->fallback_b, f->fallback_c));
        e.dx = (float)dp;
    } else
        e.dx = fmaf(weighted(row, i, f), f->a, fmaf(input(row, i) - f->mean, -f->b, f->c));
    e.dz = 0;
    if (job->gate == NRG_GATE_PRE) {
        float z = load(row->z, i, row->dtype);
        if (!f->fallback)
            dp = (double)e.dx;
        e.dz = (float)(dp * (double)residual(row, i) * (double)slope_of(job->activation, z));
        e.dx *= activate(job->activation, z);
    }
    if (job->gate == NRG_GATE_POST) {
        float z = load(row->z, i, row->dtype);
        e.dz = (float)((double)load(row->d_o, i, row->dtype) * (double)output(row, i, f) * (double)slope_of(job->activation, z));
    }
    if (row->dr_in)
        e.dx += load(row->dr_in, i, row->r_dtype);
    e.dy = job->after ? load(row->d_o, i, row->dtype) : e.dx;
    return e;
}

/* Bytes from the first plane of a tensor to that of row n; and the row's number in it. */
static size_t plane_at(const nrg_planes *planes, int tensor, size_t *n)
{
    size_t bytes = 0, plane;
    if (!planes)
        return 0;
    plane = *n / planes->count[0];
    *n %= planes->count[0];
    for (int k = 1; k < NRG_PLANE_LEVELS; k++) {
        bytes += plane % planes->count[k] * planes->stride[tensor][k];
        plane /= planes->count[k];
    }
    return bytes;
}

/* One group of row n of a tensor; NULL where it is absent. */
static const char *input_at(const nrg_norm_backward_job *job, int tensor, const char *first, size_t stride, nrg_dtype dtype,
                            size_t n, size_t group)
{
    const size_t plane = plane_at(job->planes, tensor, &n);
    return first ? first + plane + n * stride + group * job->dim * element_size(dtype) : NULL;
}

static char *output_at(const nrg_norm_backward_job *job, int tensor, char *first, size_t stride, nrg_dtype dtype, size_t n,
                       size_t group)
{
    const size_t plane = plane_at(job->planes, tensor, &n);
    return first ? first + plane + n * stride + group * job->dim * element_size(dtype) : NULL;
}

static backward_row row_at(const nrg_norm_backward_job *job, size_t n, size_t group, nrg_dtype dtype)
{
    const size_t at = n * job->groups + group, groups = job->groups, dim = job->dim;
    backward_row row = {.job = job, .dtype = dtype};
    row.x_dtype = job->x_f32 ? NRG_F32 : dtype;
    row.y_dtype = job->y_f32 ? NRG_F32 : dtype;
    row.r_dtype = job->r_f32 ? NRG_F32 : dtype;
    row.w_dtype = job->w_f32 ? NRG_F32 : dtype;
    row.d_o = input_at(job, NRG_PLANES_D_O, job->d_o, job->d_o_stride, dtype, n, group);
    row.dr_in = input_at(job, NRG_PLANES_DR_IN, job->dr_in, job->dr_in_stride, row.r_dtype, n, group);
    row.x = input_at(job, NRG_PLANES_X, job->x, job->x_stride, row.x_dtype, n, group);
    row.y = input_at(job, NRG_PLANES_Y, job->y, job->y_stride, row.y_dtype, n, group);
    row.z = input_at(job, NRG_PLANES_Z, job->z, job->z_stride, dtype, n, group);
    row.w = group_at(job->w, 0, row.w_dtype, at, groups, dim);
    row.b = group_at(job->b, 0, row.w_dtype, at, groups, dim);
    row.mean = job->mean ? job->mean + at : NULL;
    return row;
}

/* Rows that add up in f32 before one addition to the partial sum in double. */
enum { ROW_BATCH = 4 };

/* What four rows have added up to, into a column's sum of the block, which begins with it if it is `fresh`; or that sum, as the
 * second phase makes it of several blocks (calls/reduce.h), to `out`. */
static void add_rows(double *sum, float partial, int fresh, float *out, double k, int accumulate)
{
    const double total = fresh ? (double)partial : *sum + (double)partial;
    if (!out)
        *sum = total;
    else if (accumulate)
        *out = (float)((double)*out + k * (0 + total));
    else
        *out = (float)(k * (0 + total));
}

/* One group of up to four rows from row n of the tensor on. dw and db: the group's columns in the partial sums of the block,
 * which begin with these rows if they are `fresh`; NULL where not asked for. */
static void backward(const nrg_norm_backward_job *job, size_t n, size_t rows, size_t group, nrg_dtype dtype, double *dw,
                     double *db, int fresh)
{
    const size_t dim = job->dim;
    const int last = n + rows == job->row_end;
    float *const dw_out = last && job->dw_out ? job->dw_out + group * dim : NULL;
    float *const db_out = last && job->db_out ? job->db_out + group * dim : NULL;
    backward_row row[ROW_BATCH];
    backward_factors f[ROW_BATCH];
    for (size_t k = 0; k < rows; k++) {
        row[k] = row_at(job, n + k, group, dtype);
        row_factors(&row[k], &f[k]);
    }
    for (size_t i = 0; i < dim; i++) {
        float partial_w = 0, partial_b = 0;
        for (size_t k = 0; k < rows; k++) {
            char *dx = output_at(job, NRG_PLANES_DX, job->dx, job->dx_stride, dtype, n + k, group);
            char *dy = output_at(job, NRG_PLANES_DY, job->dy, job->dy_stride, row[k].y_dtype, n + k, group);
            char *dz = output_at(job, NRG_PLANES_DZ, job->dz, job->dz_stride, dtype, n + k, group);
            element e = backward_element(&row[k], i, &f[k]);
            partial_w = k ? fmaf(e.d, e.h, partial_w) : e.d * e.h;
            partial_b = k ? partial_b + e.d : e.d;
            if (dx)
                store(dx, i, dtype, e.dx);
            if (dy)
                store(dy, i, row[k].y_dtype, e.dy);
            if (dz)
                store(dz, i, dtype, e.dz);
        }
        if (dw)
            add_rows(dw + i, partial_w, fresh, dw_out ? dw_out + i : NULL, job->formula.k, job->accumulate);
        if (db)
            add_rows(db + i, partial_b, fresh, db_out ? db_out + i : NULL, 1, job->accumulate);
    }
}

static void norm_backward(const nrg_norm_backward_job *job, nrg_dtype dtype)
{
    for (size_t n = job->row_begin; n < job->row_end; n += ROW_BATCH) {
        const size_t rows = job->row_end - n < ROW_BATCH ? job->row_end - n : ROW_BATCH;
        for (size_t group = 0; group < job->groups; group++) {
            const size_t at = (n / job->block_rows * job->groups + group) * job->dim;
            backward(job, n, rows, group, dtype, job->dw ? job->dw + at : NULL, job->db ? job->db + at : NULL,
                     n % job->block_rows == 0);
        }
    }
}

SCALAR_KERNELS(norm_backward, norm_backward, norm_backward)
