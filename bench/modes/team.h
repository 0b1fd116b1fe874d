/* Two threads that do a call together, as the threads of a host do: each its share of a phase, then a barrier.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_TEAM_H
#define NRG_BENCH_MODES_TEAM_H

#include "../workload.h"

typedef struct bench_team bench_team;

/* The caller and one thread more, on a CPU each. NULL, or why not. */
const char *bench_team_make(bench_team **team);

/* Ends the thread, and lets the caller run where it could before. */
void bench_team_free(bench_team *team);

/* Contexts of contenders: the call by the caller alone while the other sleeps, and by both while it spins between calls. Waking
 * and sleeping belong to `before`, so that no batch pays for them. */
typedef struct bench_team_call {
    bench_team *team;
    bench_call *call;
} bench_team_call;

void bench_team_before_one(void *team_call);
void bench_team_before_two(void *team_call);
void bench_team_run_one(void *team_call, unsigned placement, size_t calls);
void bench_team_run_two(void *team_call, unsigned placement, size_t calls);

#endif
