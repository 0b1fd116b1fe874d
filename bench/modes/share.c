/* A case beside its limit and its rivals: the kernel, they, and all bare loops of its path take turns on the same memory.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../bare.h"
#include "../contest.h"
#include "../measure.h"
#include "share.h"

enum { LOOPS_MAX = 2 * LIMIT_LOOPS_MAX };

struct field {
    bench_memory memory;
    bench_call call;
    bench_bare bare[LOOPS_MAX];
    bench_contest contest[BENCH_RIVALS];
    bench_contender contender[1 + LOOPS_MAX + BENCH_RIVALS]; /* the kernel, then the loops, then the rivals */
};

/* Which limit a loop may be. */
enum { ONCE = 1, TWICE = 2 };

/* The fastest of one limit's loops. */
static size_t fastest(const bench_contender *contender, size_t n, int limit)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (contender[i].limit == limit && (!best || contender[i].ns < contender[best].ns))
            best = i;
    return best;
}

static const char *measure(struct field *f, const bench_case *c, double seconds, bench_share *share)
{
    const limit_loop *loops = limit_loops_of(c->isa);
    if (!loops)
        return "no limit loops for this path";
    size_t n = 1;
    const char *without = NULL; /* why there is no limit for such a call */
    for (int limit = ONCE; limit <= (bench_case_read_twice(c) ? TWICE : ONCE); limit++)
        for (const limit_loop *loop = loops; loop->name && !without; loop++, n++) {
            bench_bare *bare = &f->bare[n - 1];
            without = (limit == TWICE ? bench_bare_bind_twice : bench_bare_bind)(bare, loop, c, &f->memory);
            f->contender[n] =
                (bench_contender){.run = limit == TWICE ? bench_bare_run_twice : bench_bare_run, .ctx = bare, .limit = limit};
        }
    if (without)
        n = 1;
    const char *wrong = bench_call_bind(&f->call, c, &f->memory);
    if (wrong)
        return wrong;
    f->contender[0] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &f->call};
    size_t rival[BENCH_RIVALS] = {0}, all = n;
    for (int r = 0; r < BENCH_RIVALS; r++)
        if (bench_contest_bind(&f->contest[r], (bench_rival)r, c, &f->call)) {
            rival[r] = all;
            f->contender[all++] = (bench_contender){.run = bench_contest_run, .ctx = &f->contest[r]};
        }

    bench_measure(f->contender, all, seconds, bench_case_bytes(c));
    const size_t best = fastest(f->contender, n, ONCE), twice = fastest(f->contender, n, TWICE);
    *share = (bench_share){
        .ns = f->contender[0].ns,
        .limit_ns = without ? 0 : f->contender[best].ns,
        .loop = without ? without : f->bare[best - 1].loop->name,
        .twice_ns = twice ? f->contender[twice].ns : 0,
        .elements = (double)bench_shape_elements(c->shape),
        .bytes = (double)bench_case_bytes(c),
    };
    for (int r = 0; r < BENCH_RIVALS; r++)
        share->rival_ns[r] = rival[r] ? f->contender[rival[r]].ns : 0;
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

int bench_has_rival(const bench_case *c, bench_rival rival) { return bench_contest_loop(rival, c) != NULL; }

double bench_ulp(const bench_case *c, bench_rival rival)
{
    if (!c->family->ulp || c->dtype != NRG_F32)
        return 0;
    if (rival == BENCH_RIVALS)
        return c->family->ulp(c, NULL);
    const rival_loop *loop = bench_contest_loop(rival, c);
    return loop && loop->run ? c->family->ulp(c, loop) : 0;
}
