/* Errors of results over the memory of a case, against 113-bit arithmetic; of activations alone, those of their own sample.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../activation/ulp.h"
#include "../contest.h"
#include "../truth/truth.h"
#include "report.h"

#ifndef TRUTH_IS_HERE
/* No wider arithmetic: activations alone have their errors. */
double report_error_of(const bench_case *of, bench_rival who) { return of->family->ulp ? bench_ulp(of, who) : 0; }
#else

truth_maker *truth_of(bench_case *c)
{
    truth_maker *maker = truth_of_rows(c);
    maker = maker ? maker : truth_of_gradients(c);
    return maker ? maker : truth_of_channels(c);
}

/* Gradients of w and b are floats whatever the tensors are. */
static double worst_of(const truth *t, const rival_job *j, nrg_dtype dtype)
{
    const void *const result[TRUTH_OUTPUTS] = {j->o, j->r, j->dx, j->dz, j->dw, j->db};
    double worst = 0;
    for (int output = 0; output < TRUTH_OUTPUTS; output++) {
        const nrg_dtype type = output == TRUTH_DW || output == TRUTH_DB ? NRG_F32 : dtype;
        for (size_t i = 0; i < t->count[output]; i++) {
            const double error = bench_ulps(load(result[output], i, type), t->exact[output][i], t->scale[output][i], type);
            if (!(error <= worst))
                worst = error;
        }
    }
    return worst;
}

/* The truth is asked for once by nrg and then by its rivals, of one op: the last one is kept. */
static const truth *truth_for(const bench_case *c, truth_maker *maker, const rival_job *job)
{
    static truth kept;
    static bench_case of;
    if (of.op == c->op && of.family == c->family && of.dtype == c->dtype)
        return &kept;
    memset(kept.count, 0, sizeof kept.count);
    maker(&kept, c, job);
    of = *c;
    return &kept;
}

double report_error_of(const bench_case *of, bench_rival who)
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
            const truth *t = truth_for(&c, maker, &job);
            if (who == BENCH_RIVALS)
                worst = worst_of(t, &job, c.dtype);
            else if (bench_contest_bind(contest, who, &c, &call)) {
                bench_contest_run(contest, 0, 1);
                worst = worst_of(t, &job, c.dtype);
            }
        }
        bench_call_free(&call);
        bench_memory_free(&memory);
    }
    free(contest);
    return worst;
}
#endif
