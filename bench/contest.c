/* Rivals over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "contest.h"

const rival_loop *bench_contest_loop(bench_rival rival, const bench_case *c)
{
    return c->family->rival_job ? bench_rival_loop(rival, c->isa, c->family->kernel, c->op->name, c->dtype) : NULL;
}

int bench_contest_bind(bench_contest *contest, bench_rival rival, const bench_case *c, const bench_call *call)
{
    const rival_loop *loop = bench_contest_loop(rival, c);
    if (!loop || !loop->run)
        return 0;
    contest->run = loop->run;
    memset(contest->job, 0, sizeof contest->job);
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++)
        c->family->rival_job(c, call->parts[p].part, &contest->job[p]);
    return 1;
}

void bench_contest_run(void *contest, unsigned placement, size_t calls)
{
    const bench_contest *c = contest;
    const rival_job *job = &c->job[placement];
    void (*run)(const rival_job *) = c->run;
    for (; calls; calls--)
        run(job);
}
