/* Small sets of a segment each, some side by side: groups and instances of few positions. Their statistics are computed in
 * vectors: the divisions and the root of one set, which wait for each other, take longer than its elements.
 *
 * Sets with a mean of more than 256 σ, or of like elements, have sums around their mean. In the general way, instances of 4 to 49
 * elements took 9 to 27 times as long as others (AVX2, EPYC Zen 5). Sets that need integers are computed in that way, together
 * with the sets next to them, and so is a block with a set that is not plain.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_SMALL_H
#define NRG_TEMPLATE_CHANNEL_SMALL_H

#include "column_sum.h"

enum { SMALL_SETS = 16 }; /* at a time: full vectors of floats, and often all there are */

/* Of sets side by side. */
typedef struct small_statistics {
    double mean[SMALL_SETS], mean_low[SMALL_SETS], variance[SMALL_SETS], rstd[SMALL_SETS];
} small_statistics;

/* Whether the sets of a share can be done so, if they turn out to be plain. */
static inline int small_sets_serve(const channel_pass *w)
{
    const nrg_channel_norm_job *job = w->job;
    return !V_SMALL && job->fast && w->plain_weights && job->s <= CHANNEL_SMALL &&
           job->group_channels <= (job->nhwc && job->s > 1 ? CHANNEL_COLUMNS : CHANNEL_SMALL / job->s) &&
           job->group_channels * job->s <= w->cut.length;
}

/* Whether their channels lie side by side, and not their elements. */
static inline int small_columns(const channel_pass *w) { return w->job->nhwc && w->job->s > 1; }

/* Where sets are not plain, whatever their weights. ratio: mean by σ. */
NRG_INLINE vd small_not_plain(vd squares, vd sum, vd ratio, vd rstd)
{
    const vd most = vd_set1(DBL_MAX), infinite = vd_or(vd_unless_le(squares, most), vd_unless_le(sum, most));
    const vd far = vd_or(vd_unless_le(ratio, vd_set1(0x1p20)), vd_unless_le(vd_set1(-0x1p20), ratio));
    return vd_or(vd_or(infinite, far), vd_or(vd_unless_le(rstd, vd_set1(0x1p40)), vd_unless_le(vd_set1(0x1p-40), rstd)));
}

/* As nrg_statistics_of, of one segment each. t, q: SMALL_SETS of each. Returns whether all sets are sound, and plain. */
NRG_INLINE int small_statistics_of(small_statistics *to, const double *t, const double *q, double count, double eps)
{
    const vd number = vd_set1(count), inverse = vd_set1(1 / count), one = vd_set1(1);
    vd wrong = vd_zero();
    for (size_t i = 0; i < SMALL_SETS; i += VN / 2) {
        /* 0 + t: what a sum of segments begins with */
        const vd mean = vd_div(vd_add(vd_zero(), vd_ld(t + i)), number), square = vd_mul(mean, mean);
        const vd squares = vd_mul(vd_add(vd_zero(), vd_ld(q + i)), inverse), variance = vd_sub(squares, square);
        const vd sum = vd_add(variance, vd_set1(eps)), rstd = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        wrong = vd_or(wrong, vd_unless_le(square, vd_mul(vd_set1(0x1p16), variance)));
        wrong = vd_or(wrong, small_not_plain(squares, sum, vd_mul(mean, rstd), rstd));
        vd_st(to->mean + i, mean);
        vd_st(to->mean_low + i, vd_zero());
        vd_st(to->variance + i, variance);
        vd_st(to->rstd + i, rstd);
    }
    return !vd_any(wrong);
}

/* ---- sets whose mean is large beside σ, or whose elements are alike ---- */

/* Sums around a, the mean as f32, of sets that are not sound without. */
typedef struct small_around {
    double a[SMALL_SETS], u[SMALL_SETS], v[SMALL_SETS];
    unsigned char sound[SMALL_SETS];
} small_around;

/* As add_exactly. wrong: where that is not exact. */
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

/* As nrg_around_terms and nrg_statistics_exact. Returns whether two doubles hold all sums, and all sets are plain. */
NRG_INLINE int small_statistics_around(small_statistics *to, const small_around *sums, double count, double eps)
{
    const vd d = vd_set1(count), two = vd_set1(2), minus = vd_set1(-1), one = vd_set1(1);
    vd wrong = vd_zero();
    for (size_t i = 0; i < SMALL_SETS; i += VN / 2) {
        const vd a = vd_ld(sums->a + i), u = vd_ld(sums->u + i);
        const vd twice = vd_mul(two, a), cross = vd_mul(twice, u), square = vd_mul(a, a), squares = vd_mul(d, square);
        vd t = vd_mul(d, a), t_low = vd_zero(), q = vd_ld(sums->v + i), q_low = vd_zero();
        small_add_exactly(&t, &t_low, &wrong, u);
        small_add_exactly(&q, &q_low, &wrong, cross);
        small_add_exactly(&q, &q_low, &wrong, vd_fma(twice, u, vd_mul(cross, minus)));
        small_add_exactly(&q, &q_low, &wrong, squares);
        small_add_exactly(&q, &q_low, &wrong, vd_fma(d, square, vd_mul(squares, minus)));
        small_split(&t, &t_low);
        small_split(&q, &q_low);
        const vd mean = vd_div(t, d), about = vd_sub(vd_mul(q, vd_set1(1 / count)), vd_mul(mean, mean));
        /* what these sums make sound again is left to the general way */
        wrong = vd_or(wrong, vd_unless_le(vd_mul(vd_set1(0x1p16), about), vd_mul(mean, mean)));
        const vd mean_low = vd_div(vd_add(vd_fma(vd_mul(mean, minus), d, t), t_low), d);
        const vd dq = vd_mul(d, q), tt = vd_mul(t, t);
        const vd rest = vd_sub(vd_fma(d, q, vd_mul(dq, minus)), vd_fma(t, t, vd_mul(tt, minus)));
        const vd low = vd_sub(vd_mul(d, q_low), vd_mul(vd_mul(two, t), t_low));
        const vd variance = vd_above_0(vd_div(vd_div(vd_add(vd_sub(dq, tt), vd_add(rest, low)), d), d));
        const vd sum = vd_add(variance, vd_set1(eps)), rstd = vd_mul(vd_sqrt(sum), vd_div(one, sum));
        vd_st(to->mean + i, mean);
        vd_st(to->mean_low + i, mean_low);
        vd_st(to->variance + i, variance);
        vd_st(to->rstd + i, rstd);
        wrong = vd_or(wrong, small_not_plain(q, sum, vd_mul(vd_add(mean, mean_low), rstd), rstd));
    }
    return !vd_any(wrong);
}

/* The sums of `sets` sets from x on. Returns whether their order is of no importance, as in around.h. */
static __attribute__((noinline)) int sum_small_around(const channel_pass *w, small_around *sums, const char *x, size_t sets)
{
    const size_t each = w->job->group_channels, n = each * w->job->s, columns = small_columns(w) ? sets * each : 0;
    int exact = 1;
    for (size_t i = 0; i < sets; i++) {
        channel_around of = {0, 0, 1};
        if (!columns)
            add_part_around(&of, x + i * n * w->size, n, sums->a[i], w->D);
        sums->u[i] = of.u;
        sums->v[i] = of.v;
        exact &= sums->sound[i] | of.exact;
    }
    for (size_t first = 0, set = 0, in_set = 0, width; first < columns; first += width) {
        double u[AROUND_COLUMNS], v[AROUND_COLUMNS];
        float a[AROUND_COLUMNS] = {0};
        size_t set_of[AROUND_COLUMNS];
        width = lesser(columns - first, AROUND_COLUMNS);
        for (size_t k = 0; k < width; k++) {
            set_of[k] = set;
            a[k] = (float)sums->a[set];
            in_set = in_set + 1 == each ? 0 : in_set + 1;
            set += in_set == 0;
        }
        const channel_columns some = {
            .x = x + first * w->size, .centre = a, .stride = w->job->x_stride, .rows = w->job->s, .width = width};
        around_columns(&some, u, v, w->D);
        for (size_t k = 0; k < width; k++) {
            const size_t i = set_of[k];
            sums->u[i] += u[k];
            sums->v[i] += v[k];
            exact &= sums->sound[i] | (part_is_near(sums->a[i], v[k]) & (sums->v[i] <= 4 * (sums->a[i] * sums->a[i])));
        }
    }
    return exact;
}

/* Sets from x on that are not all sound and plain. stat has what their sums alone make of them. For those that are not sound, it
 * is computed again. Returns whether all are plain then. */
static __attribute__((noinline)) int small_statistics_far(const channel_pass *w, const char *x, size_t sets,
                                                          small_statistics *stat)
{
    const double count = (double)(w->job->group_channels * w->job->s);
    small_around sums;
    small_statistics far;
    size_t one = sets; /* that is not sound */
    for (size_t i = 0; i < sets; i++) {
        const nrg_channel_statistics own = {stat->mean[i], 0, stat->variance[i], stat->rstd[i], count};
        sums.a[i] = (double)(float)own.mean;
        sums.sound[i] = (unsigned char)nrg_variance_is_sound(own.mean, own.variance);
        if (!sums.sound[i])
            one = i;
        else if (!channel_set_is_plain(&own, 1))
            return 0;
    }
    if (one == sets || !sum_small_around(w, &sums, x, sets))
        return 0;
    for (size_t i = 0; i < SMALL_SETS; i++)
        if (i >= sets || sums.sound[i]) {
            sums.a[i] = sums.a[one];
            sums.u[i] = sums.u[one];
            sums.v[i] = sums.v[one];
        }
    if (!small_statistics_around(&far, &sums, count, w->job->eps))
        return 0;
    for (size_t i = 0; i < sets; i++)
        if (!sums.sound[i]) {
            stat->mean[i] = far.mean[i];
            stat->mean_low[i] = far.mean_low[i];
            stat->variance[i] = far.variance[i];
            stat->rstd[i] = far.rstd[i];
        }
    return 1;
}

/* ---- blocks ---- */

static __attribute__((noinline)) void write_small(const nrg_channel_norm_job *job, size_t set, const small_statistics *from,
                                                  size_t count)
{
    const double elements = (double)(job->group_channels * job->s);
    for (size_t i = 0; i < count; i++) {
        const nrg_channel_statistics stat = {from->mean[i], from->mean_low[i], from->variance[i], from->rstd[i], elements};
        write_statistics(job, set + i, &stat);
    }
}

/* The sums of sets whose channels lie side by side: a segment is all of their rows. */
static inline void sum_small_columns(const channel_pass *w, const channel_sets *sets, const char *x, double *t, double *q)
{
    const size_t each = sets->channels_each;
    const channel_columns c = columns_at(w, x, w->job->s, sets->count * each);
    sum_columns(&c, t, q, w->D);
    for (size_t i = 0; i < sets->count && each > 1; i++) {
        t[i] = fold_columns(t + i * each, each);
        q[i] = fold_columns(q + i * each, each);
    }
}

/* The statistics and factors of a block of sets, except of those that need the general way: these are returned, one bit for
 * SMALL_SETS of them. */
static __attribute__((noinline)) unsigned some_small(const channel_pass *w, const channel_sets *sets, channel_column_factors *f)
{
    unsigned others = 0;
    const nrg_channel_norm_job *job = w->job;
    const size_t sample = sets->set / job->groups, channels = job->group_channels;
    const int writes = job->mean || job->rstd || job->statistics, columns = small_columns(w);
    const char *x = columns ? job->x + sample * job->s * job->x_stride + sets->c * w->size
                            : job->x + sample * job->x_stride + sets->c * job->s * w->size;
    double t[CHANNEL_COLUMNS + SMALL_SETS], q[CHANNEL_COLUMNS + SMALL_SETS];
    const channel_block block = block_of(w, NULL, sets->c, sets->count * channels, 1);
    const size_t apart = channels * (columns ? 1 : job->s) * w->size; /* sets, in bytes */
    if (columns)
        sum_small_columns(w, sets, x, t, q);
    else
        sum_small(w, x, channels * job->s, sets->count, t, q);
    for (size_t i = sets->count; i % SMALL_SETS; i++) {
        t[i] = t[0];
        q[i] = q[0];
    }
    for (size_t first = 0, count; first < sets->count; first += count) {
        small_statistics stat;
        count = lesser(sets->count - first, SMALL_SETS);
        if (!small_statistics_of(&stat, t + first, q + first, (double)(channels * job->s), job->eps) &&
            !small_statistics_far(w, x + first * apart, count, &stat)) {
            others |= 1u << first / SMALL_SETS;
            continue;
        }
        if (writes)
            write_small(job, sets->set + first, &stat, count);
#if !V_SMALL /* nothing comes here there, and there is no such function: a build without optimization would look for it */
        const channel_column_factors own = factors_from(f, first * channels);
        const channel_block some = some_channels(&block, first * channels, count * channels);
        for (size_t i = 0; i < SMALL_SETS; i += VN / 2)
            vd_st(stat.mean + i, vd_add(vd_ld(stat.mean + i), vd_ld(stat.mean_low + i)));
        fill_side_by_side(&own, &some, stat.mean, stat.rstd, w->D);
#else
        (void)f, (void)block;
#endif
    }
    return others;
}

/* Some sets of a block in the general way. totals: room for those of the block. Returns whether they are plain. */
static __attribute__((noinline)) int finish_any(const channel_pass *w, const channel_sets *all, size_t first, size_t count,
                                                const channel_totals *totals, channel_column_factors *f)
{
    const channel_sets sets = some_sets(all, first, count);
    channel_totals own = *totals;
    sum_set_block(w, &sets, &own);
    finish_sets(w, &sets, &own, f, NULL);
    return f->plain;
}

/* All sets of a block. Returns 0 if some are not plain: the full block then needs the general way. That is not called from
 * some_small, whose sums are on the stack. */
static inline int finish_small(const channel_pass *w, const channel_sets *sets, const channel_totals *totals,
                               channel_column_factors *f)
{
    const unsigned others = some_small(w, sets, f);
    for (size_t first = 0; others >> first / SMALL_SETS; first += SMALL_SETS) {
        const size_t left = sets->count - first, count = left < SMALL_SETS ? left : SMALL_SETS;
        channel_column_factors own = factors_from(f, first * sets->channels_each);
        if (others >> first / SMALL_SETS & 1 && !finish_any(w, sets, first, count, totals, &own))
            return 0;
    }
    f->plain = 1;
    return 1;
}

#endif
