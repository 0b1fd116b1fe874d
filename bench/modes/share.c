/* A case beside its limit and its rivals: the kernel, they, and all bare loops of its path take turns on the same memory.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../bare.h"
#include "../contest.h"
#include "../measure.h"
#include "share.h"

enum { LOOPS_MAX = 2 * LIMIT_LOOPS_MAX, CONTENDERS_MAX = 1 + LOOPS_MAX + BENCH_RIVALS };

/* What one path has in the field: contenders from `first` on, the kernel, then the loops, then the rivals. */
struct side {
    bench_call call;
    bench_bare bare[LOOPS_MAX];
    bench_contest contest[BENCH_RIVALS];
    const char *without; /* why there is no limit for such a call */
    size_t first, end_of_loops, rival[BENCH_RIVALS];
};

struct field {
    bench_memory memory;
    struct side side[BENCH_SHARES_MAX];
    size_t count;
    bench_contender contender[BENCH_SHARES_MAX * CONTENDERS_MAX];
};

/* Which limit a loop may be; a path's numbers are its own. */
enum { ONCE = 1, TWICE = 2, LIMITS = 2 };
static int number_of(size_t side, int limit) { return (int)side * LIMITS + limit; }

/* How far behind the fastest a loop may be to be tried again. */
static const double near = 1.05;

/* The fastest of one limit's loops; 0: there is none. */
static size_t fastest(const struct field *f, size_t side, int limit)
{
    const struct side *s = &f->side[side];
    size_t best = 0;
    for (size_t i = s->first + 1; i < s->end_of_loops; i++)
        if (f->contender[i].limit == number_of(side, limit) && (!best || f->contender[i].ns < f->contender[best].ns))
            best = i;
    return best;
}

static const bench_bare *bare_of(const struct field *f, size_t contender) { return f->contender[contender].ctx; }

static unsigned near_fastest(const struct field *f, size_t side, int limit, const limit_loop *loops)
{
    const struct side *s = &f->side[side];
    const size_t best = fastest(f, side, limit);
    unsigned bits = 0;
    for (size_t i = s->first + 1; best && i < s->end_of_loops; i++)
        if (f->contender[i].limit == number_of(side, limit) && f->contender[i].ns <= near * f->contender[best].ns)
            bits |= 1u << (bare_of(f, i)->loop - loops);
    return bits;
}

static const char *enter(struct field *f, size_t side, const bench_case *c, bench_loops tried)
{
    struct side *s = &f->side[side];
    const limit_loop *loops = limit_loops_of(c->isa);
    if (!loops)
        return "no limit loops for this path";
    const char *wrong = bench_call_bind(&s->call, c, &f->memory);
    if (wrong)
        return wrong;
    s->first = f->count;
    f->contender[f->count++] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &s->call};
    bench_bare *bare = s->bare;
    for (int limit = ONCE; limit <= (bench_case_read_twice(c) ? TWICE : ONCE); limit++) {
        const unsigned among = limit == TWICE ? tried.twice : tried.once;
        for (const limit_loop *loop = loops; loop->name && !s->without; loop++) {
            if (among && !(among >> (loop - loops) & 1))
                continue;
            s->without = (limit == TWICE ? bench_bare_bind_twice : bench_bare_bind)(bare, loop, c, &f->memory);
            if (!s->without && bare->run)
                f->contender[f->count++] = (bench_contender){.run = limit == TWICE ? bench_bare_run_twice : bench_bare_run,
                                                             .ctx = bare++,
                                                             .limit = number_of(side, limit)};
        }
    }
    if (!s->without && f->count == s->first + 1)
        s->without = "no limit loop for these operands";
    if (s->without)
        f->count = s->first + 1;
    s->end_of_loops = f->count;
    for (int r = 0; r < BENCH_RIVALS; r++)
        if (bench_contest_bind(&s->contest[r], (bench_rival)r, c, &s->call)) {
            s->rival[r] = f->count;
            f->contender[f->count++] = (bench_contender){.run = bench_contest_run, .ctx = &s->contest[r]};
        }
    return NULL;
}

static void leave(const struct field *f, size_t side, const bench_case *c, bench_loops *loops, bench_share *share)
{
    const struct side *s = &f->side[side];
    const size_t best = fastest(f, side, ONCE), twice = fastest(f, side, TWICE);
    *share = (bench_share){
        .ns = f->contender[s->first].ns,
        .limit_ns = s->without ? 0 : f->contender[best].ns,
        .loop = s->without ? s->without : bare_of(f, best)->loop->name,
        .twice_ns = twice ? f->contender[twice].ns : 0,
        .elements = (double)bench_shape_elements(c->shape),
        .bytes = (double)bench_case_bytes(c),
    };
    for (int r = 0; r < BENCH_RIVALS; r++)
        share->rival_ns[r] = s->rival[r] ? f->contender[s->rival[r]].ns : 0;
    *loops =
        (bench_loops){near_fastest(f, side, ONCE, limit_loops_of(c->isa)), near_fastest(f, side, TWICE, limit_loops_of(c->isa))};
}

const char *bench_measure_shares(const bench_case *c, size_t n, double seconds, size_t rounds, bench_loops *loops,
                                 bench_share *share)
{
    struct field *f = calloc(1, sizeof *f);
    const char *wrong = "not enough memory";
    if (f && bench_memory_make(&f->memory, c, 1)) {
        wrong = NULL;
        for (size_t i = 0; i < n && !wrong; i++)
            wrong = enter(f, i, &c[i], loops[i]);
        if (!wrong) {
            bench_measure_rounds(f->contender, f->count, seconds, bench_case_bytes(c), rounds);
            for (size_t i = 0; i < n; i++)
                leave(f, i, &c[i], &loops[i], &share[i]);
        }
        for (size_t i = 0; i < n; i++)
            bench_call_free(&f->side[i].call);
        bench_memory_free(&f->memory);
    }
    free(f);
    return wrong;
}

const char *bench_measure_share(const bench_case *c, double seconds, bench_share *share)
{
    bench_loops all = {0, 0};
    return bench_measure_shares(c, 1, seconds, 0, &all, share);
}

int bench_has_rival(const bench_case *c, bench_rival rival) { return bench_contest_loop(rival, c) != NULL; }

double bench_ulp(const bench_case *c, bench_rival rival)
{
    if (!c->family->ulp)
        return 0;
    if (rival == BENCH_RIVALS)
        return c->family->ulp(c, NULL);
    const rival_loop *loop = bench_contest_loop(rival, c);
    return loop && loop->run ? c->family->ulp(c, loop) : 0;
}
