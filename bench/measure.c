/* Interleaved measurement.
 *
 * Time is the CPU time of this thread. A kernel neither sleeps nor waits, so on an idle machine that is the wall's time; on a
 * busy one it leaves out the slices that went to other processes. Several threads can be timed by the wall's clock only.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200112L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"
#include "workload.h"

/* Long beside the clock's own 0.3 µs, short beside the slices of a scheduler. */
static const double batch_ns = 40e3;

/* Up to here a contender runs once for itself before its batch: it finds the caches as its own repetition leaves them, not as
 * the one before it did. Beyond, the caches hold nothing of use to anybody and a warm-up would double the time; but lines that
 * the one before has left to be written back must not be paid by the next, so they are pushed out by reading something else. */
static const size_t warm_bytes = (size_t)96 << 20, push_bytes = (size_t)48 << 20;

/* A round for every placement; where a round takes longer than this, three. */
static size_t rounds_min(double round_ns) { return round_ns < 0.4e9 ? BENCH_PLACEMENTS : 3; }

static double now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double timed(const bench_contender *c, unsigned placement, size_t calls)
{
    clockid_t clock = c->wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double start = now_ns(clock);
    c->run(c->ctx, placement, calls);
    return now_ns(clock) - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *values, size_t n)
{
    double sorted[BENCH_ROUNDS_MAX];
    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double bench_ratio(const bench_contender *a, const bench_contender *b)
{
    double ratio[BENCH_ROUNDS_MAX];
    size_t n = a->rounds < b->rounds ? a->rounds : b->rounds;
    for (size_t i = 0; i < n; i++)
        ratio[i] = a->sample[i] / b->sample[i];
    return bench_median(ratio, n);
}

static void push_out(const char *other)
{
    if (!other)
        return;
    const volatile char *line = other;
    for (size_t i = 0; i < push_bytes; i += 64)
        (void)line[i];
}

/* A first look: ns a call. Doubles the calls until they take long enough to be told from the clock. */
static double estimate(bench_contender *c)
{
    if (c->before)
        c->before(c->ctx);
    double ns = timed(c, 0, 1);
    if (ns > 5e6)
        return ns; /* the pages are touched already; another run would only cost time */
    size_t calls = 1;
    do {
        ns = timed(c, 0, calls);
        calls *= 2;
    } while (ns < batch_ns / 4);
    return ns * 2 / (double)calls;
}

static double least_of(const bench_contender *c, size_t n, const double *best, int limit)
{
    double least = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].limit == limit && (least == 0 || best[i] < least))
            least = best[i];
    return least;
}

/* Bare loops whose best turn so far is far from the best of all of their number are out. */
static void drop(const bench_contender *c, size_t n, const double *best, unsigned char *out)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].limit && best[i] > 1.3 * least_of(c, n, best, c[i].limit))
            out[i] = 1;
}

void bench_measure(bench_contender *c, size_t n, double seconds, size_t bytes) { bench_measure_rounds(c, n, seconds, bytes, 0); }

void bench_measure_rounds(bench_contender *c, size_t n, double seconds, size_t bytes, size_t least)
{
    int warm = bytes <= warm_bytes;
    char *other = NULL;
    if (!warm && (other = malloc(push_bytes)))
        memset(other, 1, push_bytes);
    double *best = calloc(n, sizeof *best);
    unsigned char *out = calloc(n, 1);
    if (!best || !out)
        abort();

    double round_ns = 0;
    for (size_t i = 0; i < n; i++) {
        push_out(other);
        best[i] = estimate(&c[i]);
        c[i].rounds = 0;
        c[i].calls = best[i] < batch_ns ? (size_t)(batch_ns / best[i]) + 1 : 1;
    }
    drop(c, n, best, out); /* counts the cost of a round only; nobody is dropped for a first look at placement 0 */
    for (size_t i = 0; i < n; i++)
        if (!out[i])
            round_ns += best[i] * (double)c[i].calls * (warm ? 1.5 : 1.1);
    memset(out, 0, n);

    double fit = seconds * 1e9 / round_ns;
    if (!least)
        least = rounds_min(round_ns);
    size_t rounds = fit < (double)least ? least : fit > BENCH_ROUNDS_MAX ? BENCH_ROUNDS_MAX : (size_t)fit;
    /* one round alone may decide where more would take seconds */
    size_t trial = rounds < 2 * BENCH_PLACEMENTS ? 1 : BENCH_PLACEMENTS;
    for (size_t round = 0; round < rounds; round++) {
        if (round == trial)
            drop(c, n, best, out);
        for (size_t turn = 0; turn < n; turn++) {
            size_t i = round % 2 ? n - 1 - turn : turn;
            if (out[i])
                continue;
            unsigned placement = (unsigned)(round % BENCH_PLACEMENTS);
            if (c[i].before)
                c[i].before(c[i].ctx);
            if (warm)
                c[i].run(c[i].ctx, placement, c[i].calls / 4 + 1);
            else
                push_out(other);
            double ns = timed(&c[i], placement, c[i].calls) / (double)c[i].calls;
            c[i].sample[c[i].rounds++] = ns;
            if (ns < best[i])
                best[i] = ns;
        }
    }
    for (size_t i = 0; i < n; i++)
        c[i].ns = bench_median(c[i].sample, c[i].rounds);
    free(out);
    free(best);
    free(other);
}
