/* Interleaved measurement: contenders take turns in short batches, so that whatever else the machine does in between meets them
 * all, and each gets the median of its turns.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MEASURE_H
#define NRG_BENCH_MEASURE_H

#include <cstddef>
#include <functional>
#include <vector>

namespace bench
{

/* Makes so many calls, with operands where they are in a placement (workload.h). */
using Batch = std::function<void(unsigned placement, size_t calls)>;

struct Contender {
    Batch run;
    std::function<void()> before = {}; /* before a batch, not timed; may be empty */
    int limit = 0;                     /* not 0: one of those of this number, of which only the fastest counts; dropped early
                                          when it is clearly not that */
    bool wall = false;                 /* by the wall's clock: where the work of other threads is waited for */

    double ns = 0;                   /* result: median ns a call */
    size_t calls = 0;                /* in a batch */
    std::vector<double> sample = {}; /* ns a call of every round */
};

/* Fills in the results. About `seconds` long, where a few rounds do not take longer; bytes: what a call moves; rounds: how many
 * at least, 0 for one for every placement, or, where rounds are long, three. */
void measure(std::vector<Contender> &contenders, double seconds, size_t bytes, size_t rounds = 0);

double median(std::vector<double> values);

/* The median over rounds of a's time divided by b's in the same round. */
double ratio(const Contender &a, const Contender &b);

} // namespace bench

#endif
