/* Threads that run one function together, each as ith of nth, like the pool of an engine. The team has the barrier between steps.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>

enum { MOST_THREADS = 64 };

typedef struct team {
    int nth;
    pthread_barrier_t barrier;
} team;

/* work(data, team, ith) on each of the team's threads, of which the caller is the first. */
typedef void team_work(void *data, team *t, int ith);

void team_begin(team *t, int nth);
void team_end(team *t);
void team_run(team *t, team_work *work, void *data);

/* Nobody goes on before all are here. */
void team_wait(team *t);

#endif
