/* What memory gives: the fastest bare loops of a path over working sets that lie in L1, in L2, and further out.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../limits/limits.h"
#include "../measure.h"
#include "machine.h"
#include "report.h"

enum { READ = 1, COPY = 2, ROWS = 4 };

struct walker {
    void (*run)(const limit_job *job);
    limit_job job;
};

static void walk(void *ctx, unsigned placement, size_t calls)
{
    const struct walker *w = ctx;
    (void)placement;
    for (; calls; calls--)
        w->run(&w->job);
}

void report_sets(size_t bytes[REPORT_SETS])
{
    const size_t l1 = report_cache_bytes(1), l2 = report_cache_bytes(2);
    bytes[0] = (l1 ? l1 : (size_t)32 << 10) / 2;
    bytes[1] = (l2 ? l2 : (size_t)512 << 10) / 2;
    bytes[2] = (size_t)64 << 20;
    bytes[3] = (size_t)1 << 30;
}

static int is_new(const limit_loop *loops, const limit_loop *loop)
{
    for (const limit_loop *l = loops; l < loop; l++)
        if (l->read[0] == loop->read[0])
            return 0;
    return 1;
}

static double fastest(const bench_contender *c, size_t n, int limit)
{
    double ns = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].limit == limit && (ns == 0 || c[i].ns < ns))
            ns = c[i].ns;
    return ns;
}

int report_bandwidth_of(report_bandwidth *b, double seconds)
{
    const limit_loop *loops = limit_loops_of(b->isa);
    const size_t half = b->bytes / 2 / (ROWS * LIMIT_ROW_STEP) * (ROWS * LIMIT_ROW_STEP);
    char *memory = aligned_alloc(4096, (2 * half + 8191) / 4096 * 4096);
    struct walker *walker = calloc((size_t)2 * LIMIT_LOOPS_MAX, sizeof *walker);
    bench_contender *contender = calloc((size_t)2 * LIMIT_LOOPS_MAX, sizeof *contender);
    static char sum[LIMIT_ROW_STEP];
    const int fine = memory && walker && contender && loops;
    size_t n = 0;
    if (fine) {
        memset(memory, 1, 2 * half);
        for (const limit_loop *loop = loops; loop->name; loop++) {
            if (is_new(loops, loop)) {
                walker[n] =
                    (struct walker){loop->read[0], {.in = {memory}, .out = {sum}, .rows = ROWS, .row_bytes = 2 * half / ROWS}};
                contender[n] = (bench_contender){.run = walk, .ctx = &walker[n], .limit = READ};
                n++;
            }
            walker[n] = (struct walker){loop->run[limit_run_index(1, 0, 0)],
                                        {.in = {memory}, .out = {memory + half}, .rows = ROWS, .row_bytes = half / ROWS}};
            contender[n] = (bench_contender){.run = walk, .ctx = &walker[n], .limit = COPY};
            n++;
        }
        bench_measure(contender, n, seconds, b->bytes);
        b->read = 2 * (double)half / fastest(contender, n, READ);
        b->copy = 2 * (double)half / fastest(contender, n, COPY);
    }
    free(contender);
    free(walker);
    free(memory);
    return fine;
}
