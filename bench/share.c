/* A case beside its limit: the kernel and all bare loops of its path take turns on the same memory.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "measure.h"
#include "share.h"
#include "workload.h"

struct field {
    bench_memory memory;
    bench_call call;
    bench_bare bare[LIMIT_LOOPS_MAX];
    bench_contender contender[1 + LIMIT_LOOPS_MAX]; /* the kernel, then the loops */
};

static const char *measure(struct field *f, const bench_case *c, double seconds, bench_share *share)
{
    const limit_loop *loop = limit_loops_of(c->isa);
    if (!loop)
        return "no limit loops for this path";
    size_t n = 1;
    for (; loop->name; loop++, n++) {
        const char *wrong = bench_bare_bind(&f->bare[n - 1], loop, c, &f->memory);
        if (wrong)
            return wrong;
        f->contender[n] = (bench_contender){.run = bench_bare_run, .ctx = &f->bare[n - 1], .limit = 1};
    }
    const char *wrong = bench_call_bind(&f->call, c, &f->memory);
    if (wrong)
        return wrong;
    f->contender[0] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &f->call};

    bench_measure(f->contender, n, seconds, bench_case_bytes(c));
    size_t best = 1;
    for (size_t i = 2; i < n; i++)
        if (f->contender[i].ns < f->contender[best].ns)
            best = i;
    *share = (bench_share){
        .ns = f->contender[0].ns,
        .limit_ns = f->contender[best].ns,
        .loop = f->bare[best - 1].loop->name,
        .elements = (double)c->shape.rows * (double)c->shape.dim,
        .bytes = (double)bench_case_bytes(c),
    };
    return NULL;
}

const char *bench_measure_share(const bench_case *c, double seconds, bench_share *share)
{
    struct field *f = calloc(1, sizeof *f);
    const char *wrong = "not enough memory";
    if (f && bench_memory_make(&f->memory, c, 1)) {
        wrong = measure(f, c, seconds, share);
        bench_call_free(&f->call);
        bench_memory_free(&f->memory);
    }
    free(f);
    return wrong;
}
