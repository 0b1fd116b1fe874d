/* See team.h. SPDX-License-Identifier: MIT */
#include "team.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct member {
    team *t;
    team_work *work;
    void *data;
    int ith;
} member;

static void refuse(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "transformer: no %s\n", what);
    exit(1);
}

static void *member_main(void *of)
{
    const member *m = of;
    m->work(m->data, m->t, m->ith);
    return NULL;
}

void team_begin(team *t, int nth)
{
    t->nth = nth;
    refuse(pthread_barrier_init(&t->barrier, NULL, (unsigned)nth), "barrier");
}

void team_end(team *t) { pthread_barrier_destroy(&t->barrier); }

void team_run(team *t, team_work *work, void *data)
{
    pthread_t threads[MOST_THREADS];
    member members[MOST_THREADS];
    for (int i = 1; i < t->nth; i++) {
        members[i] = (member){t, work, data, i};
        refuse(pthread_create(&threads[i], NULL, member_main, &members[i]), "thread");
    }
    work(data, t, 0);
    for (int i = 1; i < t->nth; i++)
        pthread_join(threads[i], NULL);
}

void team_wait(team *t)
{
    if (t->nth > 1)
        pthread_barrier_wait(&t->barrier);
}
