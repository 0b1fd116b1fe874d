/* Small sets of a segment each, some side by side: groups and instances of few positions. Their statistics are in
 * vectors, since one set's chain of divisions and a root is most of the time that a few elements take.
 *
 * Means of more than 256 σ, and sets of like elements, have their sums around the mean here too (channel_small_far.h). A set
 * that wants integers sends those beside it to the way that serves any, and one that is not plain all of its block.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_SMALL_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_SMALL_H

#include "channel_small_far.h"

/* Whether the sets of a share can be done so, if they turn out to be plain. */
static inline int small_sets_serve(const channel_walk *w)
{
    const nrg_channel_norm_job *job = w->job;
    return !V_SMALL && job->fast && w->plain_weights && job->s <= CHANNEL_SMALL &&
           job->group_channels <= (job->nhwc && job->s > 1 ? CHANNEL_COLUMNS : CHANNEL_SMALL / job->s) &&
           job->group_channels * job->s <= w->cut.length;
}

/* As nrg_statistics_of, of one segment each. t, q: SMALL_SETS of each. Returns whether all sets are sound, and plain. */
NRG_INLINE int small_statistics_of(small_statistics *to, const double *t, const double *q, double count, double eps)
{
    const vd number = vd_set1(count), inverse = vd_set1(1 / count), one = vd_set1(1), most = vd_set1(DBL_MAX);
    vd wrong = vd_zero();
    for (size_t i = 0; i < SMALL_SETS; i += VN / 2) {
        /* 0 + t: what a sum of segments begins with */
        const vd mean = vd_div(vd_add(vd_zero(), vd_ld(t + i)), number), square = vd_mul(mean, mean);
        const vd squares = vd_mul(vd_add(vd_zero(), vd_ld(q + i)), inverse), variance = vd_sub(squares, square);
        const vd sum = vd_add(variance, vd_set1(eps)), rstd = vd_mul(vd_sqrt(sum), vd_div(one, sum)), ratio = vd_mul(mean, rstd);
        wrong = vd_or(wrong, vd_or(vd_unless_le(squares, most), vd_unless_le(sum, most)));
        wrong = vd_or(wrong, vd_unless_le(square, vd_mul(vd_set1(0x1p16), variance)));
        wrong = vd_or(wrong, vd_or(vd_unless_le(ratio, vd_set1(0x1p20)), vd_unless_le(vd_set1(-0x1p20), ratio)));
        wrong = vd_or(wrong, vd_or(vd_unless_le(rstd, vd_set1(0x1p40)), vd_unless_le(vd_set1(0x1p-40), rstd)));
        vd_st(to->mean + i, mean);
        vd_st(to->mean_low + i, vd_zero());
        vd_st(to->variance + i, variance);
        vd_st(to->rstd + i, rstd);
    }
    return !vd_any(wrong);
}

static __attribute__((noinline)) void write_small(const nrg_channel_norm_job *job, size_t set, const small_statistics *from,
                                                  size_t count)
{
    const double elements = (double)(job->group_channels * job->s);
    for (size_t i = 0; i < count; i++) {
        const nrg_channel_statistics stat = {from->mean[i], from->mean_low[i], from->variance[i], from->rstd[i], elements};
        write_statistics(job, set + i, &stat);
    }
}

/* The sums of sets whose elements lie together. */
static inline void sum_small_runs(const channel_walk *w, const channel_sets *sets, const char *x, double *t, double *q)
{
    const size_t n = w->job->group_channels * w->job->s;
    for (size_t i = 0, some; i < sets->count; i += some) {
        some = sets->count - i < NORM_BATCH ? sets->count - i : NORM_BATCH;
        sum_small(x + i * n * w->size, n, some, t + i, q + i, w->job->centred, w->D);
    }
}

/* Of those whose channels lie side by side: a segment is all of their rows. */
static inline void sum_small_columns(const channel_walk *w, const channel_sets *sets, const char *x, double *t, double *q)
{
    const size_t each = sets->channels_each;
    const channel_columns c = columns_at(w, x, w->job->s, sets->count * each);
    sum_columns(&c, t, q, w->D);
    for (size_t i = 0; i < sets->count && each > 1; i++) {
        t[i] = fold_columns(t + i * each, each);
        q[i] = fold_columns(q + i * each, each);
    }
}

/* The factors of a block of sets, with what is asked for of them; but for those that want the way that serves any: these are
 * returned, SMALL_SETS of them a bit. */
static __attribute__((noinline)) unsigned some_small(const channel_walk *w, const channel_sets *sets, channel_column_factors *f)
{
    unsigned others = 0;
    const nrg_channel_norm_job *job = w->job;
    const size_t sample = sets->set / job->groups, channels = job->group_channels;
    const int writes = job->mean || job->rstd || job->statistics, columns = job->nhwc && job->s > 1;
    const char *x = columns ? job->x + sample * job->s * job->x_stride + sets->c * w->size
                            : job->x + sample * job->x_stride + sets->c * job->s * w->size;
    double t[CHANNEL_COLUMNS + SMALL_SETS], q[CHANNEL_COLUMNS + SMALL_SETS];
    const size_t apart = channels * (columns ? 1 : job->s) * w->size; /* sets, in bytes */
    channel_block block = block_of(w, NULL, sets->c, 0, 1);
    if (columns)
        sum_small_columns(w, sets, x, t, q);
    else
        sum_small_runs(w, sets, x, t, q);
    for (size_t i = sets->count; i % SMALL_SETS; i++) {
        t[i] = t[0];
        q[i] = q[0];
    }
    for (size_t first = 0, count; first < sets->count; first += count) {
        small_statistics stat;
        count = sets->count - first < SMALL_SETS ? sets->count - first : SMALL_SETS;
        channel_column_factors own = factors_from(f, first * channels);
        block.c = sets->c + first * channels;
        block.channels = count * channels;
        if (small_statistics_of(&stat, t + first, q + first, (double)(channels * job->s), job->eps) ||
            small_statistics_far(w, x + first * apart, count, &stat, q + first)) {
            if (writes)
                write_small(job, sets->set + first, &stat, count);
            for (size_t i = 0; i < SMALL_SETS; i += VN / 2)
                vd_st(stat.mean + i, vd_add(vd_ld(stat.mean + i), vd_ld(stat.mean_low + i)));
#if V_SMALL /* nothing comes here, and there is no such function: what is not optimized would look for it */
            (void)own, (void)block;
#else
            fill_side_by_side(&own, &block, stat.mean, stat.rstd, w->D);
#endif
        } else
            others |= 1u << first / SMALL_SETS;
    }
    return others;
}

/* Some sets of a block by the way that serves any. totals: room for those of the block. Returns whether they are plain. */
static __attribute__((noinline)) int finish_any(const channel_walk *w, const channel_sets *all, size_t first, size_t count,
                                                const channel_totals *totals, channel_column_factors *f)
{
    const channel_sets sets = some_sets(all, first, count);
    channel_totals own = *totals;
    sum_set_block(w, &sets, &own);
    finish_sets(w, &sets, &own, f, NULL);
    return f->plain;
}

/* All sets of a block. Returns 0 where some are not plain: then the block wants the way that serves any. Not under some_small,
 * whose sums are on the stack. */
static inline int finish_small(const channel_walk *w, const channel_sets *sets, const channel_totals *totals,
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
