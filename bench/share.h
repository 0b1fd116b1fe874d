/* A case beside its limit, which are bare loops over its memory, and its rivals.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_SHARE_H
#define NRG_BENCH_SHARE_H

#include <array>

#include "limits/limits.h"
#include "measure.h"
#include "rival.h"
#include "workload.h"

namespace bench
{

/* Calls of a loop, each with the job of its placement. */
template <class Job> Batch batch_of(void (*run)(const Job *job), const std::array<Job, BENCH_PLACEMENTS> &jobs)
{
    return [=](unsigned placement, size_t calls) {
        const Job *job = &jobs[placement];
        for (; calls; calls--)
            run(job);
    };
}

struct Bare {
    const limit_loop *loop;
    Batch run;
};

/* The loops of the case's path that move what the case moves, in the order of the path. twice: with two reads and one write, for
 * cases where bench_case_read_twice() is not 0. among: bits of the loops to take, 0: all. Throws std::runtime_error where there
 * is none. */
std::vector<Bare> bare_loops(const bench_case &c, const bench_memory &m, bool twice = false, unsigned among = 0);

struct Share {
    double ns = 0;         /* a call of the kernel */
    double limit_ns = 0;   /* the fastest bare loop; 0 where there is none for such operands */
    const char *loop = ""; /* its name, or why there is none */
    double twice_ns = 0;   /* the fastest with two reads and one write; 0 where one read may do (bench_case_read_twice) */
    double rival_ns[BENCH_RIVALS] = {}; /* of its rivals; 0 where it has none */
    double elements = 0;                /* of a call */
    double bytes = 0;
};

/* Measures all in about `seconds`. Throws std::runtime_error with what went wrong, as the next one. */
Share measure_share(const bench_case &c, double seconds);

/* Bare loops of a path, bit i: the i-th; of the limit, and of that with two reads. 0: all. */
struct Loops {
    unsigned once = 0, twice = 0;
};

/* The same of one case on several paths at once, on the same memory. rounds: how many at least, 0 for as many as measure() takes
 * for right; loops, of each: which to try, and afterwards those that were near the fastest, so that what is alike does not have
 * to try the others again. */
std::vector<Share> measure_shares(const std::vector<bench_case> &paths, double seconds, size_t rounds, std::vector<Loops> &loops);

const char *rival_name(bench_rival rival);

/* The rival of a case, in this build or (run is NULL) in another; NULL where there is none. "-exact" at the end of op does not
 * count: it asks for other numbers of nrg's. */
const rival_loop *rival_of(bench_rival rival, const bench_case &c);

/* It, with the operands of the case's call; empty where there is none in this build. */
Batch rival_batch(bench_rival rival, const bench_case &c, const bench_call &call);

/* The largest error of a case's rival, or (BENCH_RIVALS) of the case itself, in ulps; 0 where that is no figure. Of activations
 * over a dense sample of inputs (activation/ulp.c); error_of: of other ops over the benchmark's numbers. */
double ulp_of(const bench_case &c, bench_rival rival);
double error_of(const bench_case &c, bench_rival rival);

} // namespace bench

#endif
