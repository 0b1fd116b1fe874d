/* Errors of results over the memory of a case, against 113-bit arithmetic; of activations alone, those of their own sample.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../activation/ulp.h"
#include "../contest.h"
#include "../modes/share.h"
#include "error.h"
#include "truth.h"

#ifndef TRUTH_IS_HERE
/* No wider arithmetic: activations alone have their errors. */
double bench_error_of(const bench_case *of, bench_rival who) { return of->family->ulp ? bench_ulp(of, who) : 0; }
#else

truth_maker *truth_of(bench_case *c)
{
    truth_maker *maker = truth_of_rows(c);
    maker = maker ? maker : truth_of_gradients(c);
    return maker ? maker : truth_of_channels(c);
}

/* Gradients of w and b are floats whatever the tensors are, and looked at where all are. */
static double worst_of(const truth *t, const rival_job *j, nrg_dtype dtype)
{
    const void *const result[TRUTH_OUTPUTS] = {j->o, j->r, j->dx, j->dz, j->dw, j->db};
    double worst = 0;
    for (int output = 0; output < TRUTH_OUTPUTS; output++) {
        if (dtype != NRG_F32 && (output == TRUTH_DW || output == TRUTH_DB))
            continue;
        for (size_t i = 0; i < t->count[output]; i++) {
            const double error = bench_ulps(load(result[output], i, dtype), t->exact[output][i], t->scale[output][i], dtype);
            worst = error > worst ? error : worst;
        }
    }
    return worst;
}

/* The truth is asked for once by nrg and then by its rivals, of one op: the last one is kept. */
static const truth *truth_for(const bench_case *c, truth_maker *maker, const rival_job *job)
{
    static truth kept;
    static bench_case of;
    if (of.op == c->op && of.family == c->family && of.dtype == c->dtype && !truth_is_of_results(c))
        return &kept;
    memset(kept.count, 0, sizeof kept.count);
    maker(&kept, c, job);
    of = *c;
    return &kept;
}

double bench_error_of(const bench_case *of, bench_rival who)
{
    if (of->family->ulp)
        return bench_ulp(of, who);
    bench_case c = *of;
    truth_maker *maker = truth_of(&c);
    bench_memory memory;
    bench_call call;
    bench_contest *contest = calloc(1, sizeof *contest);
    double worst = 0;
    if (contest && maker && c.family->rival_job && bench_memory_make(&memory, &c, 1)) {
        rival_job job = {0};
        if (bench_call_bind(&call, &c, &memory) == NULL) {
            if (c.family->ready) /* again: what the other placements have made there is of their own operands */
                c.family->ready(&c, call.parts[0].part);
            c.family->rival_job(&c, call.parts[0].part, &job);
            bench_call_before(&call);
            bench_call_run(&call, 0, 1);
            const int there = who == BENCH_RIVALS || bench_contest_bind(contest, who, &c, &call);
            if (there && who != BENCH_RIVALS)
                bench_contest_run(contest, 0, 1);
            if (there)
                worst = worst_of(truth_for(&c, maker, &job), &job, c.dtype);
        }
        bench_call_free(&call);
        bench_memory_free(&memory);
    }
    free(contest);
    return worst;
}
#endif
