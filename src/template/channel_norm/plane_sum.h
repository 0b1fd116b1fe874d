/* The sums of a set whose elements lie in long runs: planes of positions, or all of a group.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_PLANE_SUM_H
#define NRG_TEMPLATE_CHANNEL_PLANE_SUM_H

#include "fast_sum.h"
#include "pass.h"

enum {
    PLANE_CHUNK = 1024, /* elements of a long plane: sums prefetch half as far */
    /* Of groups with AVX-512, whose short bursts of stores wait for what the sums read: 435 to 444 us where 1x320x64x64 takes 417
     * to 429 now; with AVX2 2048 are slower than 1024, 422 to 435 and 403 to 408. Batches, whose planes are far apart, gain
     * nothing. */
    PLANE_GROUP_CHUNK = VN < 16 ? 1024 : 4096,
    /* Where nothing is summed meanwhile: 32x64x112x112 12.4 to 11.3 ms, AVX2 13.2 to 12.7; 16384 are no faster, and prefetches of
     * 2 or 4 KB ahead neither. */
    PLANE_ALONE_CHUNK = 16384,
    /* With SiLU, whose loop asks for what is summed next: it has the time, and the sums would ask in bursts that wait for each
     * other and for the lines that are streamed. Group norm with SiLU, 1x320x64x64, AVX-512 and AVX2: 603 and 770 us where the
     * sums prefetch, in chunks of 1024; 562 and 685 where SiLU does, in chunks of 4096 516 and 630. */
    PLANE_SILU_CHUNK = 4096
};

NRG_BY_DTYPE(add_elements, (lanes, x, n, prefetch), channel_lanes *lanes, const char *x, size_t n, int prefetch)

static inline size_t plane_chunk(const channel_pass *w)
{
    const nrg_channel_norm_job *job = w->job;
    if (job->folded || job->fixed_mean || job->given)
        return PLANE_ALONE_CHUNK;
    if (w->finish == CHANNEL_STORE_SILU)
        return PLANE_SILU_CHUNK;
    return job->groups ? PLANE_GROUP_CHUNK : PLANE_CHUNK;
}

/* How far a set has been summed: runs of elements that lie together, `stride` bytes apart. */
typedef struct plane_sum {
    const char *x;               /* of the present run */
    size_t length, stride, runs; /* runs: those left */
    size_t i;                    /* of the present run */
    size_t segment, in_segment;  /* elements of a whole one; summed of the present one */
    const char *first;           /* element of the present segment */
    int across;                  /* a segment is several runs; otherwise a run ends its segment */
    int64_t *record;             /* where the sums are taken in integers; otherwise NULL */
    int fast;                    /* the present segment is summed in floats */
    channel_lanes lanes;
    fast_lanes fast_lanes;
    channel_total total;
} plane_sum;

static void start_sum(const channel_pass *w, plane_sum *sum, const char *x, size_t length, size_t stride, size_t runs)
{
    sum->x = x;
    sum->length = length;
    sum->stride = stride;
    sum->runs = runs;
    sum->i = sum->in_segment = 0;
    sum->segment = w->cut.length;
    sum->across = !w->job->groups && w->cut.length >= length;
    sum->record = NULL;
    clear_lanes(&sum->lanes);
    memset(&sum->total, 0, sizeof sum->total);
}

static inline void ask_for_lines(const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(from + at);
}

/* The present segment, whose sums are in the lanes. */
static __attribute__((noinline)) void end_exactly(const channel_pass *w, plane_sum *sum, const channel_runs *runs)
{
    double t, q;
    fold_sums(&sum->lanes, &t, &q);
    add_run(w, &sum->total, sum->record, runs, w->job->centred ? t : 0, q);
    clear_lanes(&sum->lanes);
}

/* The present segment, which floats do not serve, once more in double. */
static __attribute__((noinline, cold)) void sum_exactly(const channel_pass *w, plane_sum *sum, const channel_runs *runs)
{
    const char *x = runs->x;
    for (size_t left = runs->count, n; left; left -= n, x += runs->stride) {
        n = left < runs->length ? left : runs->length;
        add_elements(&sum->lanes, x, n, 0, w->D);
    }
    end_exactly(w, sum, runs);
}

static __attribute__((noinline)) void end_segment(const channel_pass *w, plane_sum *sum)
{
    const channel_runs runs = {sum->first, sum->across ? sum->length : sum->in_segment, sum->stride, sum->in_segment};
    sum->in_segment = 0;
    if (!sum->fast) {
        end_exactly(w, sum, &runs);
        return;
    }
    const double count = (double)runs.count, a = (double)sum->fast_lanes.a[0];
    double u, v;
    end_fast(&sum->fast_lanes, &u, &v);
    const fast_use use = use_of_fast(count, a, &u, &v, w->job->centred);
    if (use == FAST_PLAIN)
        add_segment(&sum->total, sum->record, count, u, v);
    else if (use == FAST_AROUND)
        add_segment_around(&sum->total, sum->record, count, a, u, v);
    else
        sum_exactly(w, sum, &runs);
}

/* Where the next segment begins. */
static inline void begin_segment(const channel_pass *w, plane_sum *sum)
{
    const size_t left = sum->across ? sum->runs * sum->length : sum->length - sum->i,
                 count = left < sum->segment ? left : sum->segment;
    sum->first = sum->x + sum->i * w->size;
    sum->fast = w->job->fast && count >= SET_LEAST;
    if (sum->fast)
        start_fast(&sum->fast_lanes, sum->first, w->job->centred, w->D);
}

/* The next chunk. Returns 0 when there are no more. */
static int sum_some(const channel_pass *w, plane_sum *sum)
{
    const nrg_channel_norm_job *job = w->job;
    if (!sum->runs)
        return 0;
    const size_t left = sum->length - sum->i, room = sum->segment - sum->in_segment;
    size_t n = left < plane_chunk(w) ? left : plane_chunk(w);
    n = n < room ? n : room;
    if (!sum->in_segment)
        begin_segment(w, sum);
    /* short runs lie far apart, and the hardware finds no way from one to the next: the same place of the next one is prefetched.
     * Of long ones, its beginning. */
    const int far = job->stream && sum->runs > 1 && sum->length <= 2 * PLANE_CHUNK,
              prefetch = job->stream && !far && w->finish != CHANNEL_STORE_SILU;
    if (far)
        ask_for_lines(sum->x + sum->stride + sum->i * w->size, n * w->size);
    else if (job->stream && sum->runs > 1 && n == left)
        ask_for_lines(sum->x + sum->stride, PLANE_CHUNK * 2);
    if (sum->fast)
        add_fast(&sum->fast_lanes, sum->x + sum->i * w->size, n, prefetch, w->D);
    else
        add_elements(&sum->lanes, sum->x + sum->i * w->size, n, prefetch, w->D);
    sum->i += n;
    sum->in_segment += n;
    if (sum->i == sum->length) {
        sum->x += sum->stride;
        sum->i = 0;
        sum->runs--;
    }
    if (sum->in_segment == sum->segment || !sum->runs || (!sum->across && sum->i == 0))
        end_segment(w, sum);
    return 1;
}

/* The set that is number `unit` of a share: a channel, or a group of sample n. */
static void start_set(const channel_pass *w, plane_sum *sum, size_t n, size_t unit)
{
    const nrg_channel_norm_job *job = w->job;
    const size_t channels = job->groups ? job->group_channels : 1, at = unit * channels * job->s * w->size;
    if (job->groups)
        start_sum(w, sum, job->x + n * job->x_stride + at, channels * job->s, 0, 1);
    else
        start_sum(w, sum, job->x + at, job->s, job->x_stride, job->n);
}

/* The same set again, in integers. */
static __attribute__((noinline, cold)) void sum_set_again(const channel_pass *w, size_t n, size_t unit, int64_t *record)
{
    plane_sum sum;
    start_set(w, &sum, n, unit);
    sum.record = record;
    nrg_sums_clear(record);
    while (sum_some(w, &sum))
        ;
    nrg_sums_carry(record);
}

static __attribute__((noinline, cold)) nrg_set_sums sums_again(const channel_pass *w, size_t n, size_t unit)
{
    int64_t record[NRG_CHANNEL_NORM_SUMS_WORDS];
    sum_set_again(w, n, unit, record);
    return nrg_sums_value(record);
}

/* What is asked for of a set of planes, from its sums. running: of the set, or NULL. */
static inline nrg_channel_statistics finish_plane(const channel_pass *w, size_t n, size_t unit, const channel_total *total,
                                                  nrg_running_sums *running)
{
    const nrg_set_sums sums = total->state == CHANNEL_OVERFLOWED ? sums_again(w, n, unit) : total_sums(total);
    return finish_set(w, w->job->groups ? n * w->job->groups + unit : unit, &sums, running);
}

/* The sums are all that is wanted. */
static __attribute__((noinline, cold)) void write_sums(const channel_pass *w, size_t n, size_t unit, const channel_total *total)
{
    int64_t *record = w->job->sums + (w->job->groups ? n * w->job->groups + unit : unit) * NRG_CHANNEL_NORM_SUMS_WORDS;
    if (total->state) {
        sum_set_again(w, n, unit, record);
        return;
    }
    const nrg_set_sums sums = total_sums(total);
    nrg_sums_put(record, &sums);
}

#endif
