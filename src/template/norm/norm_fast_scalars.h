/* From the sums of rows to their scalars in the fast grade, in double, rounded once: of many rows side by side. One row's chain
 * of folds, root and division is about 100 cycles of latency, and sixteen rows' little more.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_SCALARS_H
#define NRG_TEMPLATE_NORM_NORM_FAST_SCALARS_H

#include "norm_scalars.h"

enum { FAST_ROWS = 16 };

typedef struct fast_scalars {
    float rstd[FAST_ROWS];                     /* 1/s */
    float factor[FAST_ROWS];                   /* (c/√d)/s */
    float centre[FAST_ROWS], shift[FAST_ROWS]; /* m; what its rounding leaves, times -(c/√d)/s. Not set where not centred */
    double needs_fallback[FAST_ROWS];          /* 0: as computed; not 0, perhaps NaN: this row needs the fallback */
    int any;                                   /* 0: none of them does */
} fast_scalars;

/* Of rows i to i + VN. What is not sound may be anything: it is not used. Returns what needs_fallback has of them. */
NRG_INLINE vd fast_scalars_side_by_side(fast_scalars *s, const nrg_norm_job *job, const float *pilot, const double *t,
                                        const double *tt, int i, int centred)
{
    const vd inv_dim = vd_set1(job->formula.inv_dim), eps = vd_set1(job->formula.eps), k = vd_set1(job->formula.k);
    const vd one = vd_set1(1), least = vd_set1(0x1p-80), most = vd_set1(0x1p80), most_inverse = vd_set1(0x1p40);
    const vf start = centred ? v_ld_f32(pilot + i) : v_zero();
    vd inverse[2], factor[2], from[2], offset[2], mean[2], wrong[2];
    NRG_UNROLL
    for (int half = 0; half < 2; half++) {
        const int at = i + half * (int)(VN / 2);
        const vd square = vd_mul(vd_ld(tt + at), inv_dim);
        vd variance = square;
        wrong[half] = vd_unless_le(square, most);
        if (centred) {
            from[half] = half ? vd_high(start) : vd_low(start);
            offset[half] = vd_mul(vd_ld(t + at), inv_dim);
            mean[half] = vd_add(from[half], offset[half]);
            const vd lost = vd_mul(offset[half], offset[half]);
            variance = vd_sub(square, lost);
            wrong[half] = vd_or(wrong[half], vd_unless_le(vd_mul(vd_set1(4), lost), variance));
        }
        const vd sum = vd_add(variance, eps);
        inverse[half] = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        factor[half] = vd_mul(k, inverse[half]);
        const vd squared = vd_mul(factor[half], factor[half]);
        wrong[half] = vd_or(wrong[half], vd_unless_le(inverse[half], most_inverse));
        wrong[half] = vd_or(wrong[half], vd_or(vd_unless_le(least, squared), vd_unless_le(squared, most)));
        vd_st(s->needs_fallback + at, wrong[half]);
    }
    v_st_f32(s->rstd + i, v_from_vd(inverse[0], inverse[1]));
    v_st_f32(s->factor + i, v_from_vd(factor[0], factor[1]));
    if (!centred)
        return vd_or(wrong[0], wrong[1]);
    const vf centre = v_from_vd(mean[0], mean[1]);
    v_st_f32(s->centre + i, centre);
    v_st_f32(s->shift + i, v_from_vd(vd_mul(vd_sub(vd_sub(vd_low(centre), from[0]), offset[0]), factor[0]),
                                     vd_mul(vd_sub(vd_sub(vd_high(centre), from[1]), offset[1]), factor[1])));
    return vd_or(wrong[0], wrong[1]);
}

/* The scalars of one row; and of any with a divisor that few norms have. */
static __attribute__((noinline)) void fast_scalars_alone(fast_scalars *s, const nrg_norm_job *job, float pilot, double t,
                                                         double tt, int i)
{
    const int centred = job->formula.centred;
    const double inv_dim = job->formula.inv_dim, from = centred ? (double)pilot : 0, offset = centred ? t * inv_dim : 0;
    const double square = tt * inv_dim, variance = square - offset * offset;
    const double inverse = inverse_divisor(job->formula.divisor, job->formula.eps, variance), factor = job->formula.k * inverse;
    const float centre = (float)(from + offset);
    s->rstd[i] = (float)inverse;
    s->factor[i] = (float)factor;
    s->centre[i] = centre;
    s->shift[i] = (float)((((double)centre - from) - offset) * factor);
    s->needs_fallback[i] = fast_sums_serve(square, offset, variance, inverse, factor) ? 0 : 1;
}

/* pilot and t are looked at where the norm is centred; arrays have room for FAST_ROWS. */
NRG_INLINE void fast_scalars_of(fast_scalars *s, const nrg_norm_job *job, const float *pilot, const double *t, const double *tt,
                                int count, int centred)
{
    if (NRG_RARELY(job->formula.divisor != NRG_DIV_ROOT)) {
        for (int i = 0; i < count; i++)
            fast_scalars_alone(s, job, centred ? pilot[i] : 0, centred ? t[i] : 0, tt[i], i);
        s->any = 1; /* perhaps */
        return;
    }
    vd wrong = vd_zero();
    for (int i = 0; i < count; i += VN)
        wrong = vd_or(wrong, fast_scalars_side_by_side(s, job, pilot, t, tt, i, centred));
    s->any = vd_any(wrong);
}

#endif
