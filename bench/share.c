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
    bench_call_bind(&f->call, c, &f->memory);
    f->contender[0] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &f->call};
    size_t n = 1;
    for (const limit_loop *loop = limit_loops_of(c->isa); loop->name; loop++, n++) {
        bench_bare_bind(&f->bare[n - 1], loop, c, &f->memory);
        f->contender[n] = (bench_contender){.run = bench_bare_run, .ctx = &f->bare[n - 1], .limit = 1};
    }

    /* a call that is refused would be very fast */
    bench_call_before(&f->call);
    if (nrg_isa_active() != c->isa)
        return "the path was refused";
    nrg_status status = nrg_norm_forward(&f->call.spec, &f->call.args[0], 0, 1);
    if (status != NRG_OK)
        return nrg_status_string(status);

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
    if (!f || !bench_memory_make(&f->memory, c->shape, c->dtype, c->op->add, c->op->bias)) {
        free(f);
        return "not enough memory";
    }
    const char *wrong = measure(f, c, seconds, share);
    bench_memory_free(&f->memory);
    free(f);
    return wrong;
}
