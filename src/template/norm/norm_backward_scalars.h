/* From the sums of several rows to their factors, side by side: a row's chain of roots and divisions is about 150 cycles of
 * latency, and sixteen rows' little more. The arithmetic is that of norm_backward_factors.h, one row at a time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_SCALARS_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_SCALARS_H

#include "norm_backward_factors.h"

enum { BACKWARD_ROWS = 16 };

/* Of some rows; q and d where the norm is centred. */
typedef struct backward_totals {
    double q[BACKWARD_ROWS], qq[BACKWARD_ROWS], d[BACKWARD_ROWS], dq[BACKWARD_ROWS];
} backward_totals;

/* Theirs, as arrays; not 0, perhaps NaN: what is computed here does not serve, but what one row's own arithmetic says may. */
typedef struct backward_many {
    float rstd[BACKWARD_ROWS], left[BACKWARD_ROWS], a[BACKWARD_ROWS], b[BACKWARD_ROWS], c[BACKWARD_ROWS];
    double wrong[BACKWARD_ROWS];
} backward_many;

/* Not within least and most, by their squares: exact where those are powers of 2. */
NRG_INLINE vd backward_wrong_size(vd v, double least, double most)
{
    const vd square = vd_mul(v, v);
    return vd_or(vd_unless_le(vd_set1(least * least), square), vd_unless_le(square, vd_set1(most * most)));
}

/* Of rows i to i + VN, with a root as divisor. Returns what `wrong` has of them. */
NRG_INLINE vd backward_side_by_side(backward_many *s, const nrg_norm_formula *formula, const backward_totals *t, int i,
                                    int centred)
{
    const vd one = vd_set1(1), d = vd_set1(formula->d), inv_dim = vd_set1(formula->inv_dim), k = vd_set1(formula->k);
    vd inverse[2], left[2], a[2], b[2], c[2], any = vd_zero();
    NRG_UNROLL
    for (int half = 0; half < 2; half++) {
        const int at = i + half * (int)(VN / 2);
        const vd square = vd_mul(vd_ld(t->qq + at), inv_dim);
        vd shift = vd_zero(), variance = square, cross = vd_ld(t->dq + at);
        if (centred) {
            shift = vd_div(vd_ld(t->q + at), d);
            variance = vd_sub(square, vd_mul(shift, shift));
            cross = vd_sub(cross, vd_mul(shift, vd_ld(t->d + at)));
        }
        const vd sum = vd_add(variance, vd_set1(formula->eps));
        const vd over = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        vd wrong = vd_or(vd_unless_le(vd_zero(), variance), vd_unless_le(vd_set1(0x1p-80), square));
        wrong = vd_or(wrong, vd_or(vd_unless_le(vd_set1(0x1p-40), over), vd_unless_le(over, vd_set1(0x1p40))));
        inverse[half] = over;
        a[half] = vd_mul(k, over);
        b[half] = vd_mul(vd_mul(a[half], vd_mul(vd_mul(cross, over), inv_dim)), over);
        wrong = vd_or(wrong, backward_wrong_size(a[half], 0x1p-100, 0x1p127));
        wrong = vd_or(wrong, backward_wrong_size(b[half], 0x1p-100, 0x1p100));
        if (centred) {
            left[half] = vd_mul(shift, over);
            c[half] = vd_fma(shift, b[half], vd_mul(vd_mul(vd_set1(-1), a[half]), vd_div(vd_ld(t->d + at), d)));
            wrong = vd_or(wrong, backward_wrong_size(c[half], 0, 0x1p127));
        }
        vd_st(s->wrong + at, wrong);
        any = vd_or(any, wrong);
    }
    v_st_f32(s->rstd + i, v_from_vd(inverse[0], inverse[1]));
    v_st_f32(s->a + i, v_from_vd(a[0], a[1]));
    v_st_f32(s->b + i, v_from_vd(b[0], b[1]));
    if (centred) {
        v_st_f32(s->left + i, v_from_vd(left[0], left[1]));
        v_st_f32(s->c + i, v_from_vd(c[0], c[1]));
    }
    return any;
}

/* What a row's own arithmetic says. */
static __attribute__((noinline)) int factors_alone(backward_plain *f, const nrg_norm_formula *formula, const backward_totals *t,
                                                   int k)
{
    const int centred = formula->centred;
    backward_spread spread;
    return spread_factors(formula, f, &spread, centred ? t->q[k] : 0, t->qq[k]) &&
           slope_factors(formula, f, &spread, centred ? t->d[k] : 0, t->dq[k]);
}

/* The factors of count rows; f[k].mean is there. Totals beyond count are those of any row. Returns as bits which rows need the
 * fallback. */
NRG_INLINE unsigned backward_factors_of(backward_plain *f, const nrg_norm_formula *formula, const backward_totals *t, int count,
                                        int centred)
{
    unsigned fallback = 0;
    backward_many s;
    if (count == 1) /* scalar roots and divisions are there sooner than those of whole vectors */
        return !factors_alone(f, formula, t, 0);
    const int root = formula->divisor == NRG_DIV_ROOT && !nrg_norm_has_no_gradient(formula, 0);
    vd any = vd_zero();
    for (int i = 0; i < count; i += VN)
        any = vd_or(any, backward_side_by_side(&s, formula, t, i, centred));
    for (int k = 0; k < count; k++) {
        f[k].rstd = s.rstd[k];
        f[k].left = centred ? s.left[k] : 0;
        f[k].a = s.a[k];
        f[k].b = s.b[k];
        f[k].c = centred ? s.c[k] : -0.0f;
    }
    if (NRG_RARELY(!root || vd_any(any)))
        for (int k = 0; k < count; k++)
            if ((!root || s.wrong[k] != 0) && !factors_alone(&f[k], formula, t, k))
                fallback |= 1u << k;
    return fallback;
}

#endif
