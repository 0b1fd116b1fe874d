/* Interleaved measurement.
 *
 * Time is the CPU time of this thread. A kernel neither sleeps nor waits, so on an idle machine that is the wall's time; on a
 * busy one it leaves out the slices that went to other processes. Several threads can be timed by the wall's clock only.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <ctime>

#include "measure.h"
#include "workload.h"

namespace bench
{

/* Long beside the clock's own 0.3 µs, short beside the slices of a scheduler. */
static constexpr double batch_ns = 40e3;

/* Up to here a contender runs once for itself before its batch: it finds the caches as its own repetition leaves them, not as
 * the one before it did. Beyond, the caches hold nothing of use to anybody and a warm-up would double the time; but lines that
 * the one before has left to be written back must not be paid by the next, so they are pushed out by reading something else. */
static constexpr size_t warm_bytes = (size_t)96 << 20, push_bytes = (size_t)48 << 20;

static constexpr size_t rounds_max = 255;

/* A round for every placement; where a round takes longer than this, three. */
static size_t rounds_min(double round_ns) { return round_ns < 0.4e9 ? BENCH_PLACEMENTS : 3; }

static double now_ns(clockid_t clock)
{
    timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double timed(const Contender &c, unsigned placement, size_t calls)
{
    const clockid_t clock = c.wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    const double start = now_ns(clock);
    c.run(placement, calls);
    return now_ns(clock) - start;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double ratio(const Contender &a, const Contender &b)
{
    std::vector<double> ratios(std::min(a.sample.size(), b.sample.size()));
    for (size_t i = 0; i < ratios.size(); i++)
        ratios[i] = a.sample[i] / b.sample[i];
    return median(ratios);
}

static void push_out(const std::vector<char> &other)
{
    const volatile char *line = other.data();
    for (size_t i = 0; i < other.size(); i += 64)
        (void)line[i];
}

/* A first look: ns a call. Doubles the calls until they take long enough to be told from the clock. */
static double estimate(const Contender &c)
{
    if (c.before)
        c.before();
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

/* Bare loops whose best turn so far is far from the best of all of their number are out. */
static std::vector<bool> dropped(const std::vector<Contender> &all, const std::vector<double> &best, std::vector<bool> out)
{
    for (size_t i = 0; i < all.size(); i++)
        for (size_t k = 0; all[i].limit && k < all.size(); k++)
            out[i] = out[i] || (all[k].limit == all[i].limit && best[i] > 1.3 * best[k]);
    return out;
}

void measure(std::vector<Contender> &all, double seconds, size_t bytes, size_t least)
{
    const bool warm = bytes <= warm_bytes;
    const std::vector<char> other(warm ? 0 : push_bytes, 1);
    const size_t n = all.size();
    std::vector<double> best(n);
    std::vector<bool> out(n);
    double round_ns = 0;
    for (size_t i = 0; i < n; i++) {
        push_out(other);
        best[i] = estimate(all[i]);
        all[i].calls = best[i] < batch_ns ? (size_t)(batch_ns / best[i]) + 1 : 1;
    }
    const std::vector<bool> slow = dropped(all, best, out); /* is timed nevertheless: this was a first look at placement 0 */
    for (size_t i = 0; i < n; i++)
        round_ns += slow[i] ? 0 : best[i] * (double)all[i].calls * (warm ? 1.5 : 1.1);

    const double fit = seconds * 1e9 / round_ns;
    least = least ? least : rounds_min(round_ns);
    const size_t rounds = fit < (double)least ? least : fit > (double)rounds_max ? rounds_max : (size_t)fit;
    /* one round alone may decide where more would take seconds */
    const size_t trial = rounds < 2 * BENCH_PLACEMENTS ? 1 : BENCH_PLACEMENTS;
    for (size_t round = 0; round < rounds; round++) {
        const unsigned placement = (unsigned)(round % BENCH_PLACEMENTS);
        if (round == trial)
            out = dropped(all, best, out);
        for (size_t turn = 0; turn < n; turn++) {
            const size_t i = round % 2 ? n - 1 - turn : turn;
            Contender &c = all[i];
            if (out[i])
                continue;
            if (c.before)
                c.before();
            if (warm)
                c.run(placement, c.calls / 4 + 1);
            else
                push_out(other);
            c.sample.push_back(timed(c, placement, c.calls) / (double)c.calls);
            best[i] = std::min(best[i], c.sample.back());
        }
    }
    for (Contender &c : all)
        c.ns = median(c.sample);
}

} // namespace bench
