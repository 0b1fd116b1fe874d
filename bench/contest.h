/* Rivals over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_CONTEST_H
#define NRG_BENCH_CONTEST_H

#include "rival.h"
#include "workload.h"

typedef struct bench_contest {
    void (*run)(const rival_job *job);
    rival_job job[BENCH_PLACEMENTS];
} bench_contest;

/* The rival of a case; NULL where there is none for such cases. */
const rival_loop *bench_contest_loop(bench_rival rival, const bench_case *c);

/* Gives it the operands of the case's call. 0: there is none, or the build is without it. */
int bench_contest_bind(bench_contest *contest, bench_rival rival, const bench_case *c, const bench_call *call);

/* As a contender. */
void bench_contest_run(void *contest, unsigned placement, size_t calls);

#endif
