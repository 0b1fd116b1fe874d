/* Bare loops over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_BARE_H
#define NRG_BENCH_BARE_H

#include "limits/limits.h"
#include "measure.h"
#include "workload.h"

namespace bench
{

struct Bare {
    const limit_loop *loop;
    Batch run;
};

/* The loops of the case's path that move what the case moves, in the order of the path. twice: with two reads and one write, for
 * cases where bench_case_read_twice() is not 0. among: bits of the loops to take, 0: all. Throws std::runtime_error where there
 * is none. */
std::vector<Bare> bare_loops(const bench_case &c, const bench_memory &m, bool twice = false, unsigned among = 0);

} // namespace bench

#endif
