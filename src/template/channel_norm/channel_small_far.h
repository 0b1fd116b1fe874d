/* Statistics of small sets whose mean is large beside σ, or whose elements are all alike: from sums around the mean, some sets
 * side by side. What is computed is what channel_around.h, channel_total.h and nrg_statistics_exact make of one set; by these, a
 * set of 4 elements took 140 ns, and 11 where its mean is near.
 *
 * The sums around a are exact where elements are near to it: then their order is of no importance, and x - a is exact in f32.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_SMALL_FAR_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_SMALL_FAR_H

#include "channel_column_sum.h"

enum { SMALL_SETS = AROUND_COLUMNS }; /* at a time: whole vectors of floats, and as often as not all there are */

/* Of sets side by side. */
typedef struct small_statistics {
    double mean[SMALL_SETS], mean_low[SMALL_SETS], variance[SMALL_SETS], rstd[SMALL_SETS];
} small_statistics;

/* Sums around numbers. exact: whether their order does not matter. */
typedef struct small_around {
    double a[SMALL_SETS], u[SMALL_SETS], v[SMALL_SETS];
    unsigned char exact[SMALL_SETS];
} small_around;

/* Of sets whose n elements lie together. */
NRG_INLINE void small_around_runs_of(small_around *sums, const char *x, size_t n, size_t sets, nrg_dtype D)
{
    float ones[VN];
    v_st_f32(ones, v_set1(1));
    const size_t rest = n % VN, whole = n - rest;
    const vf last = rest ? load_lanes(ones, rest) : v_zero(); /* 1 where the last vector has an element */
    for (size_t first = 0; first < sets; first += NORM_BATCH) {
        vd8 folded_u[NORM_BATCH], folded_v[NORM_BATCH];
        const size_t count = sets - first < NORM_BATCH ? sets - first : NORM_BATCH;
        for (size_t set = 0; set < count; set++) {
            const char *at = x + (first + set) * bytes_of(n, D, 0);
            const vf a = v_set1((float)sums->a[first + set]);
            vd u[EXACT_LANE_VDS], v[EXACT_LANE_VDS];
            clear_lane_sums(u, v, 1);
            for (size_t i = 0; i < whole; i += VN) {
                const vf t = v_sub(load_whole(at, i, D), a);
                accumulate_exact(u, v, vd_low(t), vd_high(t), 1);
            }
            if (rest) {
                const vf t = v_sub(load_part(at, whole, rest, D), v_mul(last, a));
                accumulate_exact(u, v, vd_low(t), vd_high(t), 1);
            }
            folded_u[set] = fold_exact(u);
            folded_v[set] = fold_exact(v);
        }
        for (size_t set = count; set < NORM_BATCH; set++) {
            folded_u[set] = folded_u[0];
            folded_v[set] = folded_v[0];
        }
        vd8_sum_rows(folded_u, sums->u + first);
        vd8_sum_rows(folded_v, sums->v + first);
    }
    for (size_t i = 0; i < sets; i++)
        sums->exact[i] = (unsigned char)part_is_near(sums->a[i], sums->v[i]);
}

NRG_BY_DTYPE(small_around_runs, (sums, x, n, sets), small_around *sums, const char *x, size_t n, size_t sets)

/* Of those whose channels lie side by side. */
static inline void small_around_columns(const channel_walk *w, small_around *sums, const char *x, size_t sets)
{
    const size_t each = w->job->group_channels, width = sets * each;
    if (each == 1) {
        around_columns(x, w->job->x_stride, w->job->s, sets, sums->a, sums->u, sums->v, w->D);
        for (size_t i = 0; i < sets; i++)
            sums->exact[i] = (unsigned char)part_is_near(sums->a[i], sums->v[i]);
        return;
    }
    for (size_t i = 0; i < sets; i++) {
        sums->u[i] = sums->v[i] = 0;
        sums->exact[i] = 1;
    }
    for (size_t first = 0, set = 0, in_set = 0, some; first < width; first += some) {
        double a[AROUND_COLUMNS] = {0}, u[AROUND_COLUMNS], v[AROUND_COLUMNS];
        some = width - first < AROUND_COLUMNS ? width - first : AROUND_COLUMNS;
        for (size_t k = 0, s = set, i = in_set; k < some; k++) {
            a[k] = sums->a[s];
            s += i + 1 == each;
            i = i + 1 == each ? 0 : i + 1;
        }
        around_columns(x + first * w->size, w->job->x_stride, w->job->s, some, a, u, v, w->D);
        for (size_t k = 0; k < some; k++) {
            sums->u[set] += u[k];
            sums->v[set] += v[k];
            sums->exact[set] &= (unsigned char)(part_is_near(a[k], v[k]) && sums->v[set] <= 4 * (a[k] * a[k]));
            set += in_set + 1 == each;
            in_set = in_set + 1 == each ? 0 : in_set + 1;
        }
    }
}

/* As add_exactly. wrong: where it was not exact. */
NRG_INLINE void small_add_exactly(vd *high, vd *low, vd *wrong, vd x)
{
    const vd sum = vd_add(*high, x), back = vd_sub(sum, *high);
    const vd error = vd_add(vd_sub(*high, vd_sub(sum, back)), vd_sub(x, back));
    const vd rest = vd_add(*low, error), rest_back = vd_sub(rest, *low);
    const vd rest_error = vd_add(vd_sub(*low, vd_sub(rest, rest_back)), vd_sub(error, rest_back));
    *high = sum;
    *low = rest;
    *wrong = vd_or(*wrong, vd_or(vd_unless_le(rest_error, vd_zero()), vd_unless_le(vd_zero(), rest_error)));
}

/* As split_sum. */
NRG_INLINE void small_split(vd *high, vd *low)
{
    const vd sum = vd_add(*high, *low), back = vd_sub(sum, *high);
    *low = vd_add(vd_sub(*high, vd_sub(sum, back)), vd_sub(*low, back));
    *high = sum;
}

/* Whole vectors of sets: means, what they lack and variances take the place of the sums. Returns whether all sums are held by two
 * doubles, and all sets are plain. */
NRG_INLINE int small_statistics_around(double *rstds, small_around *sums, double count, double eps)
{
    const vd d = vd_set1(count), two = vd_set1(2), minus = vd_set1(-1), one = vd_set1(1);
    vd wrong = vd_zero();
    for (size_t i = 0; i < SMALL_SETS; i += VN / 2) {
        const vd a = vd_ld(sums->a + i), u = vd_ld(sums->u + i);
        const vd twice = vd_mul(two, a), cross = vd_mul(twice, u), square = vd_mul(a, a), squares = vd_mul(d, square);
        vd t = vd_zero(), t_low = vd_zero(), q = vd_zero(), q_low = vd_zero();
        small_add_exactly(&t, &t_low, &wrong, vd_mul(d, a));
        small_add_exactly(&t, &t_low, &wrong, u);
        small_add_exactly(&q, &q_low, &wrong, vd_ld(sums->v + i));
        small_add_exactly(&q, &q_low, &wrong, cross);
        small_add_exactly(&q, &q_low, &wrong, vd_fma(twice, u, vd_mul(cross, minus)));
        small_add_exactly(&q, &q_low, &wrong, squares);
        small_add_exactly(&q, &q_low, &wrong, vd_fma(d, square, vd_mul(squares, minus)));
        small_split(&t, &t_low);
        small_split(&q, &q_low);
        const vd mean = vd_div(t, d), about = vd_sub(vd_mul(q, vd_set1(1 / count)), vd_mul(mean, mean));
        /* what these sums make sound again is left to the way that serves any */
        wrong = vd_or(wrong, vd_unless_le(vd_mul(vd_set1(0x1p16), about), vd_mul(mean, mean)));
        const vd mean_low = vd_div(vd_add(vd_fma(vd_mul(mean, minus), d, t), t_low), d);
        const vd dq = vd_mul(d, q), tt = vd_mul(t, t);
        const vd rest = vd_sub(vd_fma(d, q, vd_mul(dq, minus)), vd_fma(t, t, vd_mul(tt, minus)));
        const vd low = vd_sub(vd_mul(d, q_low), vd_mul(vd_mul(two, t), t_low));
        const vd variance = vd_above_0(vd_div(vd_div(vd_add(vd_sub(dq, tt), vd_add(rest, low)), d), d));
        const vd sum = vd_add(variance, vd_set1(eps)), rstd = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        const vd ratio = vd_mul(vd_add(mean, mean_low), rstd);
        wrong = vd_or(wrong, vd_or(vd_unless_le(q, vd_set1(DBL_MAX)), vd_unless_le(sum, vd_set1(DBL_MAX))));
        wrong = vd_or(wrong, vd_or(vd_unless_le(ratio, vd_set1(0x1p20)), vd_unless_le(vd_set1(-0x1p20), ratio)));
        wrong = vd_or(wrong, vd_or(vd_unless_le(rstd, vd_set1(0x1p40)), vd_unless_le(vd_set1(0x1p-40), rstd)));
        vd_st(sums->a + i, mean);
        vd_st(sums->u + i, mean_low);
        vd_st(sums->v + i, variance);
        vd_st(rstds + i, rstd);
    }
    return !vd_any(wrong);
}

/* Sets from x on of which not all are sound and plain: stat, which has what their sums alone say, is mended where these do not
 * suffice. Returns whether all are plain then. */
static __attribute__((noinline)) int small_statistics_far(const channel_walk *w, const char *x, size_t sets,
                                                          small_statistics *stat, const double *q)
{
    const nrg_channel_norm_job *job = w->job;
    const double count = (double)(job->group_channels * job->s);
    unsigned char sound[SMALL_SETS];
    size_t some = sets; /* one that is not sound */
    small_around sums = {.a = {0}};
    double rstd[SMALL_SETS];
    for (size_t i = 0; i < sets; i++) {
        const nrg_channel_statistics plain = {stat->mean[i], 0, stat->variance[i], stat->rstd[i], count};
        sound[i] = (unsigned char)nrg_variance_is_sound(stat->mean[i], stat->variance[i]);
        if (!(q[i] <= DBL_MAX) || (sound[i] && !channel_set_is_plain(&plain, 1)))
            return 0;
        some = sound[i] ? some : i;
        sums.a[i] = (double)(float)stat->mean[i];
    }
    if (some == sets)
        return 0;
    if (job->nhwc && job->s > 1)
        small_around_columns(w, &sums, x, sets);
    else
        small_around_runs(&sums, x, job->group_channels * job->s, sets, w->D);
    for (size_t i = 0; i < SMALL_SETS; i++) {
        if (i < sets && !sound[i]) {
            if (!sums.exact[i])
                return 0;
            continue;
        }
        sums.a[i] = sums.a[some];
        sums.u[i] = sums.u[some];
        sums.v[i] = sums.v[some];
    }
    if (!small_statistics_around(rstd, &sums, count, job->eps))
        return 0;
    for (size_t i = 0; i < sets; i++) {
        if (sound[i])
            continue;
        stat->mean[i] = sums.a[i];
        stat->mean_low[i] = sums.u[i];
        stat->variance[i] = sums.v[i];
        stat->rstd[i] = rstd[i];
    }
    return 1;
}

#endif
