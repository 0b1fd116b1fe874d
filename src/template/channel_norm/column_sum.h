/* The sums of sets whose columns lie side by side: channels or positions of batch norm, groups of channels, small groups.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_COLUMN_SUM_H
#define NRG_TEMPLATE_CHANNEL_COLUMN_SUM_H

#include "plane_sum.h"

/* Sets side by side in a block of columns: channels of batch norm from channel c on (per: columns of each), or groups of sample n
 * (per: 1). */
typedef struct channel_sets {
    size_t set, count, c, channels_each, per;
} channel_sets;

/* A block's totals. */
typedef struct totals_room {
    double store[4 * CHANNEL_COLUMNS];
    unsigned char state[CHANNEL_COLUMNS];
} totals_room;

static inline channel_totals block_totals(totals_room *room) { return totals_in(room->store, room->state, CHANNEL_COLUMNS); }

/* Where a block's segments go: to its totals, or where records are given to these, one a set. */
typedef struct sums_sink {
    channel_totals *totals;
    int64_t *records;
} sums_sink;

static void clear_sink(const sums_sink *sink, size_t sets)
{
    if (!sink->records)
        clear_totals(sink->totals, sets);
    else
        for (size_t i = 0; i < sets; i++)
            nrg_sums_clear(sink->records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
}

static inline int64_t *sink_record(const sums_sink *sink, size_t i)
{
    return sink->records ? sink->records + i * NRG_CHANNEL_NORM_SUMS_WORDS : NULL;
}

static inline channel_total sink_total(const sums_sink *sink, size_t i)
{
    return sink->records ? (channel_total){0} : total_of(sink->totals, i);
}

static inline void put_sink(const sums_sink *sink, size_t i, const channel_total *total)
{
    if (!sink->records)
        put_total(sink->totals, i, total);
}

/* A segment that is a run: of one set, or a part of a row. */
static __attribute__((noinline)) void sink_run(const sums_sink *sink, size_t i, const channel_pass *w, const channel_runs *runs,
                                               double t, double q)
{
    channel_total total = sink_total(sink, i);
    add_run(w, &total, sink_record(sink, i), runs, t, q);
    put_sink(sink, i, &total);
}

/* Segments around the means of their sets; NaN: not asked for. */
static __attribute__((noinline)) void sink_columns_around(const sums_sink *sink, const channel_pass *w, const channel_columns *c,
                                                          size_t each, const double *means)
{
    const double count = (double)(c->rows * each);
    channel_around sums = {0, 0, 1};
    for (size_t first = 0, set = 0, in_set = 0, width; first < c->width; first += width) {
        double u[AROUND_COLUMNS], v[AROUND_COLUMNS];
        float a[AROUND_COLUMNS] = {0};
        int asked = 0;
        width = c->width - first < AROUND_COLUMNS ? c->width - first : AROUND_COLUMNS;
        for (size_t k = 0, s = set, i = in_set; k < width; k++) {
            if (means[s] == means[s]) {
                a[k] = (float)means[s];
                asked = 1;
            }
            s += i + 1 == each;
            i = i + 1 == each ? 0 : i + 1;
        }
        if (asked) {
            const channel_columns some = {
                .x = c->x + first * w->size, .centre = a, .stride = c->stride, .rows = c->rows, .width = width};
            around_columns(&some, u, v, w->D);
        }
        for (size_t k = 0; k < width; k++) {
            const int wanted = means[set] == means[set];
            const double centre = (double)a[k];
            if (wanted) {
                sums.u += u[k];
                sums.v += v[k];
                sums.exact &= part_is_near(centre, v[k]);
            }
            if (++in_set < each)
                continue;
            if (wanted && !around_is_exact(&sums, centre)) {
                const channel_runs runs = {c->x + set * each * w->size, each, c->stride, c->rows * each};
                sums = around_in_order(&runs, centre, w->D);
            }
            if (wanted) {
                channel_total total = sink_total(sink, set);
                add_segment_around(&total, sink_record(sink, set), count, centre, sums.u, sums.v);
                put_sink(sink, set, &total);
            }
            sums = (channel_around){0, 0, 1};
            in_set = 0;
            set++;
        }
    }
}

/* A segment of each of the sets of a block, `each` columns of a set. t and q: of every column; t is overwritten. */
static __attribute__((noinline)) void sink_columns(const sums_sink *sink, const channel_pass *w, const channel_columns *c,
                                                   size_t each, double *t, const double *q)
{
    const size_t sets = c->width / each;
    const double count = (double)(c->rows * each);
    int some = 0;
    for (size_t i = 0; i < sets; i++) {
        const double set_t = each == 1 ? t[i] : fold_columns(t + i * each, each);
        const double set_q = each == 1 ? q[i] : fold_columns(q + i * each, each);
        t[i] = (double)NAN; /* a column of this set, or of one before: it has been read */
        if (c->centred && segment_needs_centring(count, set_t, set_q)) {
            t[i] = (double)(float)(set_t / count);
            some = 1;
        } else
            add_segment_of(sink->totals, sink->records, i, count, set_t, set_q);
    }
    if (some)
        sink_columns_around(sink, w, c, each, t);
}

/* ---- the kinds of sets ---- */

/* A copy for each dtype: with one for both of 16 bits, which looks at the dtype as it runs, all sums are 6.5 KB shorter (AVX2),
 * but batch norm of f16 has a speedup of 0.80 to 0.92. */
NRG_BY_DTYPE(sum_columns, (c, t, q), const channel_columns *c, double *t, double *q)

/* At most CHANNEL_BATCH sets of n elements, one after the other. */
NRG_INLINE void sum_batch_of(const char *x, size_t n, size_t count, double *t, double *q, nrg_dtype D)
{
    channel_folds folds;
    for (size_t set = 0; set < count; set++, x += bytes_of(n, D, 0)) {
        const sum_source from = {SUM_SQUARES, x, NULL, NULL};
        fold_set(&folds, set, &from, n, D);
    }
    sum_folds(&folds, count, t, q);
}

NRG_BY_DTYPE(sum_batch, (x, n, count, t, q), const char *x, size_t n, size_t count, double *t, double *q)

/* Small sets of n elements, one after the other. t and q have room for full batches. */
static __attribute__((noinline)) void sum_small(const channel_pass *w, const char *x, size_t n, size_t sets, double *t, double *q)
{
    for (size_t i = 0; i < sets; i += CHANNEL_BATCH)
        sum_batch(x + i * n * w->size, n, lesser(sets - i, CHANNEL_BATCH), t + i, q + i, w->D);
    for (size_t i = 0; i < sets && !w->job->centred; i++)
        t[i] = 0;
}

static inline channel_columns columns_at(const channel_pass *w, const char *x, size_t rows, size_t width)
{
    return (channel_columns){
        .x = x, .stride = w->job->x_stride, .rows = rows, .width = width, .centred = w->job->centred, .prefetch = w->job->stream};
}

/* A row of channels of batch norm whose segments are shorter than their `per` positions. */
static __attribute__((noinline)) void sum_row_pieces(const channel_pass *w, const channel_columns *row, size_t per,
                                                     const sums_sink *sink, const double *t, const double *q)
{
    for (size_t i = 0; i < row->width / per; i++)
        for (size_t begin = 0, n; begin < per; begin += n) {
            n = per - begin < w->cut.length ? per - begin : w->cut.length;
            const size_t k = i * per + begin;
            const channel_runs run = {row->x + k * w->size, n, 0, n};
            sink_run(sink, i, w, &run, fold_columns(t + k, n), fold_columns(q + k, n));
        }
}

/* Whole channels of batch norm, side by side: at most CHANNEL_COLUMNS columns. */
static __attribute__((noinline)) void sum_batch_block(const channel_pass *w, const channel_sets *sets, const sums_sink *sink)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t per = sets->per, all_rows = job->nhwc ? job->n * job->s : job->n;
    const size_t length = w->cut.length / per, period = job->nhwc ? w->cut.period : all_rows; /* in rows */
    for (size_t row = 0, rows; row < all_rows; row += rows) {
        double t[CHANNEL_COLUMNS], q[CHANNEL_COLUMNS];
        const size_t left = period - row % period;
        rows = length == 0 ? 1 : left < length ? left : length;
        const channel_columns c = columns_at(w, job->x + row * job->x_stride + sets->c * per * w->size, rows, sets->count * per);
        sum_columns(&c, t, q, w->D);
        if (length == 0)
            sum_row_pieces(w, &c, per, sink, t, q);
        else
            sink_columns(sink, w, &c, per, t, q);
    }
}

/* One group of a sample, of channels side by side: more than a block holds. */
static __attribute__((noinline)) void sum_wide_group(const channel_pass *w, const char *x, const sums_sink *sink)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, most = w->cut.length / channels;
    for (size_t row = 0, rows; row < job->s; row += rows) {
        double lanes_t[CHANNEL_COLUMN_LANES] = {0}, lanes_q[CHANNEL_COLUMN_LANES] = {0}, t[CHANNEL_COLUMNS], q[CHANNEL_COLUMNS];
        rows = job->s - row < most ? job->s - row : most;
        for (size_t c = 0; c < channels; c += CHANNEL_COLUMNS) {
            const size_t width = channels - c < CHANNEL_COLUMNS ? channels - c : CHANNEL_COLUMNS;
            const channel_columns columns = columns_at(w, x + row * job->x_stride + c * w->size, rows, width);
            sum_columns(&columns, t, q, w->D);
            fold_into(lanes_t, t, width);
            fold_into(lanes_q, q, width);
        }
        const channel_runs runs = {x + row * job->x_stride, channels, job->x_stride, rows * channels};
        sink_run(sink, 0, w, &runs, fold_of(lanes_t), fold_of(lanes_q));
    }
}

/* Some groups of a sample that fill a block together. */
static __attribute__((noinline)) void sum_group_block(const channel_pass *w, const char *x, size_t groups, const sums_sink *sink)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels, most = w->cut.length / channels;
    for (size_t row = 0, rows; row < job->s; row += rows) {
        double t[CHANNEL_COLUMNS], q[CHANNEL_COLUMNS];
        rows = job->s - row < most ? job->s - row : most;
        const channel_columns c = columns_at(w, x + row * job->x_stride, rows, groups * channels);
        sum_columns(&c, t, q, w->D);
        sink_columns(sink, w, &c, channels, t, q);
    }
}

/* Small sets of a segment each, n elements, one after the other. */
static __attribute__((noinline)) void sum_small_sets(const channel_pass *w, const char *x, size_t n, size_t sets,
                                                     const sums_sink *sink)
{
    double t[CHANNEL_BATCH], q[CHANNEL_BATCH];
    for (size_t first = 0, count; first < sets; first += count) {
        count = lesser(sets - first, CHANNEL_BATCH);
        sum_small(w, x + first * n * w->size, n, count, t, q);
        for (size_t i = 0; i < count; i++) {
            const channel_runs run = {x + (first + i) * n * w->size, n, 0, n};
            sink_run(sink, first + i, w, &run, t[i], q[i]);
        }
    }
}

/* Whether groups are so small that many are summed, and then normalized, at once. */
static inline int groups_are_small(const channel_pass *w)
{
    const nrg_channel_norm_job *job = w->job;
    return !job->nhwc && job->groups && job->s <= CHANNEL_SMALL && job->group_channels <= CHANNEL_SMALL / job->s &&
           job->group_channels <= CHANNEL_WIDE && job->group_channels * job->s <= w->cut.length;
}

/* Groups whose elements lie together, one after the other. */
static __attribute__((noinline)) void sum_group_row(const channel_pass *w, const char *x, size_t groups, const sums_sink *sink)
{
    const size_t n = w->job->group_channels * w->job->s;
    if (n <= CHANNEL_SMALL && n <= w->cut.length) {
        sum_small_sets(w, x, n, groups, sink);
        return;
    }
    for (size_t i = 0; i < groups; i++) {
        plane_sum sum;
        start_sum(w, &sum, x + i * n * w->size, n, 0, 1);
        sum.record = sink_record(sink, i);
        while (sum_some(w, &sum))
            ;
        put_sink(sink, i, &sum.total);
    }
}

static void sum_sets(const channel_pass *w, const channel_sets *sets, const sums_sink *sink)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->group_channels;
    clear_sink(sink, sets->count);
    if (!sink->records)
        sink->totals->count = (double)(job->groups ? channels * job->s : job->n * job->s);
    if (!job->groups) {
        sum_batch_block(w, sets, sink);
        return;
    }
    const size_t sample = sets->set / job->groups, k = sets->set % job->groups * channels;
    const char *x = job->nhwc ? job->x + sample * job->s * job->x_stride + k * w->size
                              : job->x + sample * job->x_stride + k * job->s * w->size;
    if (!job->nhwc || job->s == 1)
        sum_group_row(w, x, sets->count, sink);
    else if (channels > CHANNEL_COLUMNS)
        sum_wide_group(w, x, sink);
    else
        sum_group_block(w, x, sets->count, sink);
}

/* ---- where two doubles do not suffice ---- */

enum { SETS_AGAIN = 4 }; /* at once: their integers are on the stack */

static inline channel_sets some_sets(const channel_sets *sets, size_t first, size_t count)
{
    return (channel_sets){sets->set + first, count, sets->c + first * sets->channels_each, sets->channels_each, sets->per};
}

static int some_need_integers(const channel_totals *totals, size_t first, size_t count, int integers)
{
    int some = 0;
    for (size_t i = first; i < first + count; i++)
        some |= needs_integers(totals->state[i], integers);
    return some;
}

/* Sets first to first + count, whose sums then are the doubles nearest to them. */
static __attribute__((noinline, cold)) void sum_some_again(const channel_pass *w, const channel_sets *all, size_t first,
                                                           size_t count, channel_totals *totals)
{
    int64_t records[SETS_AGAIN * NRG_CHANNEL_NORM_SUMS_WORDS];
    const sums_sink sink = {NULL, records};
    const channel_sets sets = some_sets(all, first, count);
    sum_sets(w, &sets, &sink);
    for (size_t i = 0; i < count; i++) {
        const nrg_set_sums value = nrg_sums_value(records + i * NRG_CHANNEL_NORM_SUMS_WORDS);
        const channel_total total = {value.count, value.t, value.t_low, value.q, value.q_low, CHANNEL_ROUNDED};
        put_total(totals, first + i, &total);
    }
}

/* The sums of a block of sets. */
static __attribute__((noinline)) void sum_set_block(const channel_pass *w, const channel_sets *sets, channel_totals *totals)
{
    const sums_sink sink = {totals, NULL};
    sum_sets(w, sets, &sink);
    for (size_t i = 0, count; i < sets->count; i += count) {
        count = sets->count - i < SETS_AGAIN ? sets->count - i : SETS_AGAIN;
        if (some_need_integers(totals, i, count, 0))
            sum_some_again(w, sets, i, count, totals);
    }
}

/* Where the sums are all that is wanted. */
static __attribute__((noinline, cold)) void write_block(const channel_pass *w, const channel_sets *sets, channel_totals *totals)
{
    const sums_sink sink = {totals, NULL};
    sum_sets(w, sets, &sink);
    for (size_t i = 0, count; i < sets->count; i += count) {
        count = sets->count - i < SETS_AGAIN ? sets->count - i : SETS_AGAIN;
        const channel_sets some = some_sets(sets, i, count);
        const sums_sink records = {NULL, w->job->sums + some.set * NRG_CHANNEL_NORM_SUMS_WORDS};
        const int again = some_need_integers(totals, i, count, 1);
        if (again)
            sum_sets(w, &some, &records);
        for (size_t k = 0; k < count; k++) {
            const channel_total total = total_of(totals, i + k);
            const nrg_set_sums value = total_sums(&total);
            if (again)
                nrg_sums_carry(records.records + k * NRG_CHANNEL_NORM_SUMS_WORDS);
            else
                nrg_sums_put(records.records + k * NRG_CHANNEL_NORM_SUMS_WORDS, &value);
        }
    }
}

static inline nrg_set_sums sums_of(const channel_totals *totals, size_t i)
{
    const channel_total total = total_of(totals, i);
    return total_sums(&total);
}

static __attribute__((noinline)) nrg_channel_statistics statistics_of(const channel_pass *w, const channel_totals *totals,
                                                                      size_t i)
{
    const nrg_set_sums value = sums_of(totals, i);
    return set_statistics(w, &value);
}

/* The statistics of a block of sets, and nothing else. */
static __attribute__((noinline)) void write_sets(const channel_pass *w, const channel_sets *sets)
{
    totals_room room;
    channel_totals totals = block_totals(&room);
    if (w->job->sums) {
        write_block(w, sets, &totals);
        return;
    }
    sum_set_block(w, sets, &totals);
    for (size_t i = 0; i < sets->count; i++) {
        const nrg_set_sums value = sums_of(&totals, i);
        finish_set(w, sets->set + i, &value, NULL);
    }
}

static inline channel_block sets_block(const channel_pass *w, const channel_sets *sets, size_t i, size_t count,
                                       const nrg_channel_statistics *stat)
{
    channel_block block = block_of(w, stat, sets->c + i * sets->channels_each, count * sets->channels_each, sets->per);
    block.group = sets->channels_each;
    return block;
}

/* What is asked for of a block of sets, and their factors. running: of the sets, or NULL. */
static __attribute__((noinline)) void finish_sets(const channel_pass *w, const channel_sets *sets, const channel_totals *totals,
                                                  channel_column_factors *f, nrg_running_sums *running)
{
    const size_t columns = sets->channels_each * sets->per;
    nrg_channel_statistics stat = {0};
    /* once, not for each set: to copy what has just been stored word by word waits for it, a third of the time of small sets */
    channel_block block = sets_block(w, sets, 0, 1, &stat);
    f->plain = 1;
    for (size_t i = 0; i < sets->count; i++, block.c += sets->channels_each) {
        const nrg_set_sums value = sums_of(totals, i);
        channel_column_factors from = factors_from(f, i * columns);
        stat = finish_set(w, sets->set + i, &value, running ? &running[i] : NULL);
        fill_factors(&from, &block, w->D);
        f->plain &= from.plain;
    }
}

#endif
