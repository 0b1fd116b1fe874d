/* Scalars of the backward pass: from the sums of a row to the factors of its elements. Of one row, or of the rows of a tile
 * side by side: one row's chain of roots and divisions is about 150 cycles of latency, and sixteen rows' little more.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_BACKWARD_SCALARS_H
#define NRG_TEMPLATE_NORM_BACKWARD_SCALARS_H

#include <float.h>

#include "backward_sum.h"

/* h = q·rstd - left, and dp = dh·a - q·b + c. */
typedef struct gradient_factors {
    float mean, rstd, left;
    float a, b, c;
} gradient_factors;

/* Of a row that needs the fallback: h = ((p - pilot) - offset)·inverse, and dp = dh·a - h·b + c. */
typedef struct fallback_slopes {
    double pilot, offset, inverse, a, b, c;
} fallback_slopes;

typedef struct row_gradient {
    int is_fallback;
    gradient_factors plain;
    fallback_slopes fallback;
} row_gradient;

/* What the sums of q say of a row. */
typedef struct gradient_spread {
    double shift, variance, inverse;
} gradient_spread;

NRG_INLINE int is_in_floats(double value) { return fabs(value) <= (double)FLT_MAX; }

/* The factors of h. Returns 0 where floats do not serve. */
NRG_INLINE int factors_of_h(const nrg_norm_formula *formula, gradient_factors *f, gradient_spread *s, double q, double qq)
{
    s->shift = formula->centred ? q / formula->d : 0;
    s->variance = qq * formula->inv_dim - s->shift * s->shift;
    if (s->variance < 0)
        s->variance = 0;
    s->inverse = inverse_of_variance(formula, s->variance);
    f->rstd = (float)s->inverse;
    f->left = (float)(s->shift * s->inverse);
    return s->inverse >= 0x1p-40 && s->inverse <= 0x1p40 && (qq == 0 || qq * formula->inv_dim >= 0x1p-80);
}

/* The factors of dp, likewise. */
NRG_INLINE int factors_of_dp(const nrg_norm_formula *formula, gradient_factors *f, const gradient_spread *s, double d, double dq)
{
    const double shift = s->shift, inverse = s->inverse, sigma = __builtin_sqrt(s->variance);
    double slope = 1;
    if (formula->divisor == NRG_DIV_SIGMA)
        slope = sigma > 0 ? 1 / (sigma * inverse) : 0;
    if (formula->divisor == NRG_DIV_MAX)
        slope = sigma > formula->eps ? 1 : 0;
    const double cross = (formula->centred ? dq - shift * d : dq) * inverse * formula->inv_dim;
    double a = formula->k * inverse, b = a * (cross * slope) * inverse;
    double c = formula->centred ? fma(shift, b, -(a * (d / formula->d))) : -0.0;
    if (NRG_RARELY(nrg_norm_has_no_gradient(formula, sigma)))
        a = b = c = 0;
    f->a = (float)a;
    f->b = (float)b;
    f->c = (float)c;
    return is_in_floats(a) && is_in_floats(c) && (a == 0 || fabs(a) >= 0x1p-100) &&
           (b == 0 || (fabs(b) >= 0x1p-100 && fabs(b) <= 0x1p100));
}

/* From the statistics of the row, and Σdh and Σdh·(p - pilot). */
static __attribute__((noinline)) void slopes_of_fallback(fallback_slopes *f, const nrg_norm_formula *formula,
                                                         const fallback_statistics *stat, double d, double dt)
{
    const double sigma = __builtin_sqrt(stat->variance);
    f->pilot = stat->pilot;
    f->offset = stat->offset;
    f->inverse = inverse_of_variance(formula, stat->variance);
    double over = f->inverse; /* a/s of the header's formula */
    if (formula->divisor == NRG_DIV_SIGMA)
        over = sigma > 0 ? 1 / sigma : 0;
    if (formula->divisor == NRG_DIV_MAX && sigma <= formula->eps)
        over = 0;
    const double cross = formula->centred ? dt - f->offset * d : dt;
    f->a = formula->k * f->inverse;
    f->b = f->a * (cross * formula->inv_dim * over);
    f->c = formula->centred ? -(f->a * (d / formula->d)) : -0.0;
    if (nrg_norm_has_no_gradient(formula, sigma))
        f->a = f->b = f->c = 0;
}

/* ---- tiles ---- */

/* q and d where the norm is centred. Rows that are not there are as one that is. */
typedef struct gradient_totals {
    double q[TILE], qq[TILE], d[TILE], dq[TILE];
} gradient_totals;

/* wrong: not 0, perhaps NaN, where floats may not serve: factors_of_row then says whether they do. */
typedef struct tile_factors {
    float rstd[TILE], left[TILE], a[TILE], b[TILE], c[TILE];
    double wrong[TILE];
} tile_factors;

/* Whether v is not within least and most, by their squares: exact where those are powers of 2. */
NRG_INLINE vd is_outside(vd v, double least, double most)
{
    const vd square = vd_mul(v, v);
    return vd_or(vd_unless_le(vd_set1(least * least), square), vd_unless_le(square, vd_set1(most * most)));
}

/* Of rows k to k + VN, with a root as divisor. Returns what `wrong` has of them. */
NRG_INLINE vd gradients_side_by_side(tile_factors *to, const nrg_norm_formula *formula, const gradient_totals *t, int k,
                                     int has_mean)
{
    const vd one = vd_set1(1), dim = vd_set1(formula->d), inv_dim = vd_set1(formula->inv_dim), norm = vd_set1(formula->k);
    vd inverse[2], left[2], a[2], b[2], c[2], any = vd_zero();
    NRG_UNROLL
    for (int half = 0; half < 2; half++) {
        const int at = k + half * (int)(VN / 2);
        const vd square = vd_mul(vd_ld(t->qq + at), inv_dim);
        vd shift = vd_zero(), variance = square, cross = vd_ld(t->dq + at);
        if (has_mean) {
            shift = vd_div(vd_ld(t->q + at), dim);
            variance = vd_sub(square, vd_mul(shift, shift));
            cross = vd_sub(cross, vd_mul(shift, vd_ld(t->d + at)));
        }
        const vd sum = vd_add(variance, vd_set1(formula->eps));
        const vd over = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        vd wrong = vd_or(vd_unless_le(vd_zero(), variance), vd_unless_le(vd_set1(0x1p-80), square));
        wrong = vd_or(wrong, vd_or(vd_unless_le(vd_set1(0x1p-40), over), vd_unless_le(over, vd_set1(0x1p40))));
        inverse[half] = over;
        a[half] = vd_mul(norm, over);
        b[half] = vd_mul(vd_mul(a[half], vd_mul(vd_mul(cross, over), inv_dim)), over);
        wrong = vd_or(wrong, is_outside(a[half], 0x1p-100, 0x1p127));
        wrong = vd_or(wrong, is_outside(b[half], 0x1p-100, 0x1p100));
        if (has_mean) {
            left[half] = vd_mul(shift, over);
            c[half] = vd_fma(shift, b[half], vd_mul(vd_mul(vd_set1(-1), a[half]), vd_div(vd_ld(t->d + at), dim)));
            wrong = vd_or(wrong, is_outside(c[half], 0, 0x1p127));
        }
        vd_st(to->wrong + at, wrong);
        any = vd_or(any, wrong);
    }
    v_st_f32(to->rstd + k, v_from_vd(inverse[0], inverse[1]));
    v_st_f32(to->a + k, v_from_vd(a[0], a[1]));
    v_st_f32(to->b + k, v_from_vd(b[0], b[1]));
    if (has_mean) {
        v_st_f32(to->left + k, v_from_vd(left[0], left[1]));
        v_st_f32(to->c + k, v_from_vd(c[0], c[1]));
    }
    return any;
}

static __attribute__((noinline)) int factors_of_row(gradient_factors *f, const nrg_norm_formula *formula,
                                                    const gradient_totals *t, int k)
{
    const int has_mean = formula->centred;
    gradient_spread spread;
    return factors_of_h(formula, f, &spread, has_mean ? t->q[k] : 0, t->qq[k]) &&
           factors_of_dp(formula, f, &spread, has_mean ? t->d[k] : 0, t->dq[k]);
}

/* The factors of count rows, whose means are there. Returns as bits which rows need the fallback. */
NRG_INLINE unsigned factors_of_tile(gradient_factors *f, const nrg_norm_formula *formula, const gradient_totals *t, int count,
                                    int has_mean)
{
    unsigned fallback = 0;
    tile_factors s;
    if (count == 1) /* scalar roots and divisions are there sooner than those of vectors */
        return !factors_of_row(f, formula, t, 0);
    const int is_root = formula->divisor == NRG_DIV_ROOT && !nrg_norm_has_no_gradient(formula, 0);
    vd any = vd_zero();
    for (int k = 0; k < count; k += VN)
        any = vd_or(any, gradients_side_by_side(&s, formula, t, k, has_mean));
    for (int k = 0; k < count; k++) {
        f[k].rstd = s.rstd[k];
        f[k].left = has_mean ? s.left[k] : 0;
        f[k].a = s.a[k];
        f[k].b = s.b[k];
        f[k].c = has_mean ? s.c[k] : -0.0f;
    }
    if (NRG_RARELY(!is_root || vd_any(any)))
        for (int k = 0; k < count; k++)
            if ((!is_root || s.wrong[k] != 0) && !factors_of_row(&f[k], formula, t, k))
                fallback |= 1u << k;
    return fallback;
}

#endif
