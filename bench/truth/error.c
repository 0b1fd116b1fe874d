/* Errors of results over the memory of a case, against 113-bit arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../workload.h"
#include "truth.h"

#ifndef TRUTH_IS_HERE
double bench_error_of(const bench_case *of, const rival_loop *loop)
{
    (void)of;
    (void)loop;
    return 0; /* no wider arithmetic */
}
#else

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

/* The truth is asked for once by nrg and then by its rivals, of one op: the last one is kept. That of sandwich norms is made of
 * results, too: it differs between nrg and a rival. */
static const truth *truth_for(const bench_case *c, truth_maker *maker, const rival_job *job)
{
    static truth kept;
    static bench_case of;
    if (of.op == c->op && of.family == c->family && of.dtype == c->dtype && c->family != &bench_norm_sandwich)
        return &kept;
    memset(kept.count, 0, sizeof kept.count);
    maker(&kept, c, job);
    of = *c;
    return &kept;
}

double bench_error_of(const bench_case *of, const rival_loop *loop)
{
    bench_case c = *of;
    truth_maker *maker = truth_of(&c);
    bench_memory memory;
    bench_call call;
    double worst = 0;
    if (!maker || !c.family->rival || !bench_memory_make(&memory, &c, 1))
        return 0;
    if (bench_call_bind(&call, &c, &memory) == NULL) {
        if (c.family->ready) /* again: what the other placements have made there is of their own operands */
            c.family->ready(&c, call.parts[0].part);
        const rival_job job = bench_rival_job(&c, call.parts[0].part);
        bench_call_before(&call);
        bench_call_run(&call, 0, 1);
        if (loop)
            loop->run(&job);
        worst = worst_of(truth_for(&c, maker, &job), &job, c.dtype);
    }
    bench_call_free(&call);
    bench_memory_free(&memory);
    return worst;
}
#endif
