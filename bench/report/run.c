/* Measures what is planned until the time is over.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../family.h"
#include "../modes/modes.h"
#include "../truth/error.h"
#include "report.h"

/* Of the time. FAR has most: its calls take milliseconds each, and there are hundreds of cases. */
static const double share_of[REPORT_PARTS] = {
    [REPORT_MEMORY] = 0.03,   [REPORT_ACCURACY] = 0.09, [REPORT_SWEEP] = 0.08, [REPORT_NEAR] = 0.31,
    [REPORT_PORTABLE] = 0.08, [REPORT_FAR] = 0.39,      [REPORT_LAST] = 0.02};
static const char *const part_name[REPORT_PARTS] = {
    "memory", "errors", "a row from L1 to memory", "shapes in cache", "portable paths", "shapes out of cache", "portable, large"};

/* A case has at least the first, however little time there is, and no more than the second. Of what there is on average it has
 * a part: larger ones take longer than they are asked to, and the clock of a measurement does not count what other processes
 * take of the CPU. */
static const double least_seconds = 0.01, most_seconds = 0.5, part_of_mean = 0.4;

/* Calls that take milliseconds jump less than short ones: the median of so many has to do. */
enum { FAR_ROUNDS = 3 };

struct runner {
    report *r;
    double start, total;
    volatile const int *interrupted;
    report_part part;
    double part_end;
    struct known *known;
    size_t known_count;
};

/* The loops that were near the fastest for so many bytes of so many tensors. */
struct known {
    nrg_isa isa;
    size_t tensors;
    int bytes; /* logarithm, in steps of a quarter octave */
    int twice;
    bench_loops loops;
};

enum { KNOWN_MAX = 4096 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double since(const struct runner *run) { return now() - run->start; }

static void begin(struct runner *run, report_part part)
{
    double until = 0;
    for (int i = 0; i <= (int)part; i++)
        until += share_of[i];
    run->part = part;
    run->part_end = part == REPORT_LAST ? run->total : until * run->total;
}

/* 0: there is no time for it in this part, or none at all. */
static int goes_on(struct runner *run, double cost)
{
    const double t = since(run);
    report_progress(t / run->total, run->total - t, part_name[run->part]);
    return !*run->interrupted && t + cost <= run->part_end;
}

static struct known *known_of(struct runner *run, const bench_case *c)
{
    const struct known key = {
        c->isa, bench_case_tensors(c), (int)(4 * log2((double)bench_case_bytes(c))), bench_case_read_twice(c) != 0, {0, 0}};
    for (size_t i = 0; i < run->known_count; i++) {
        struct known *k = &run->known[i];
        if (k->isa == key.isa && k->tensors == key.tensors && k->bytes == key.bytes && k->twice == key.twice)
            return k;
    }
    if (run->known_count == KNOWN_MAX)
        run->known_count = 0; /* forgets, and measures again */
    run->known[run->known_count] = key;
    return &run->known[run->known_count++];
}

static void measure(struct runner *run, const report_task *task, double seconds)
{
    bench_case c[BENCH_SHARES_MAX];
    bench_loops loops[BENCH_SHARES_MAX];
    bench_share share[BENCH_SHARES_MAX];
    size_t n = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        if (task->paths >> isa & 1) {
            c[n] = task->c;
            c[n].isa = (nrg_isa)isa;
            loops[n] = known_of(run, &c[n])->loops;
            n++;
        }
    const size_t rounds = task->part == REPORT_FAR || task->part == REPORT_LAST ? FAR_ROUNDS : 0;
    if (bench_measure_shares(c, n, seconds, rounds, loops, share) != NULL) {
        run->r->refused++;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        known_of(run, &c[i])->loops = loops[i];
        run->r->row[run->r->rows++] = (report_row){c[i], task->part == REPORT_SWEEP, share[i]};
    }
}

static void run_tasks(struct runner *run, report_part part)
{
    const report_plan *plan = &run->r->plan;
    size_t left = 0;
    begin(run, part);
    for (size_t i = 0; i < plan->count; i++)
        left += plan->task[i].part == part;
    for (size_t i = 0; i < plan->count; i++) {
        const report_task *task = &plan->task[i];
        if (task->part != part)
            continue;
        const double mean = (run->part_end - since(run)) / (double)left--;
        if (goes_on(run, report_task_cost(task)))
            measure(run, task, fmin(fmax(part_of_mean * mean, least_seconds), most_seconds));
    }
}

static void run_memory(struct runner *run)
{
    report *r = run->r;
    size_t sets[REPORT_SETS];
    report_sets(sets);
    begin(run, REPORT_MEMORY);
    for (int set = 0; set < REPORT_SETS; set++)
        for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
            report_bandwidth b = {(nrg_isa)isa, sets[set], 0, 0};
            if (nrg_isa_supported(b.isa) && bench_admits(r->args->path, nrg_isa_name(b.isa)) &&
                goes_on(run, 0.02 + 3e-9 * (double)b.bytes) && report_bandwidth_of(&b, 0.05))
                r->bandwidth[r->bandwidths++] = b;
        }
}

/* nrg first, whose bits are the same on every path, so that the active one stands for all; then the rivals, of every path. */
enum { ROUNDS = 2 };
static int is_asked(int round, nrg_isa isa, bench_rival who)
{
    return who == BENCH_RIVALS ? round == 0 && isa == nrg_isa_active() : round == 1;
}

static void run_error(struct runner *run, const report_task *task, nrg_isa isa, bench_rival who)
{
    report_error e = {task->c, who, 0};
    const nrg_isa before = nrg_isa_active();
    e.c.isa = isa;
    if ((who != BENCH_RIVALS && !bench_has_rival(&e.c, who)) || !goes_on(run, 0.2))
        return;
    e.ulp = bench_error_of(&e.c, who);
    bench_require(nrg_isa_set(before));
    if (e.ulp > 0)
        run->r->error[run->r->errors++] = e;
}

/* Errors do not depend on the shape: the first one serves. Those of rivals are of f32. */
static void run_errors(struct runner *run)
{
    const report_plan *plan = &run->r->plan;
    begin(run, REPORT_ACCURACY);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < plan->count; i++) {
            const report_task *task = &plan->task[i];
            const bench_case *c = &task->c;
            if (task->part == REPORT_SWEEP || (round && c->dtype != NRG_F32) || !bench_shape_equal(c->shape, c->op->shapes[0]))
                continue;
            for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
                for (int who = 0; who <= BENCH_RIVALS; who++)
                    if (task->paths >> isa & 1 && is_asked(round, (nrg_isa)isa, (bench_rival)who))
                        run_error(run, task, (nrg_isa)isa, (bench_rival)who);
        }
}

int report_run(report *r, volatile const int *interrupted)
{
    struct runner run = {.r = r, .start = now(), .total = r->seconds, .interrupted = interrupted};
    size_t most = 1;
    for (size_t i = 0; i < r->plan.count; i++)
        most += NRG_ISA_COUNT;
    r->row = calloc(most, sizeof *r->row);
    r->error = calloc(most * (BENCH_RIVALS + 1), sizeof *r->error);
    r->bandwidth = calloc((size_t)REPORT_SETS * NRG_ISA_COUNT, sizeof *r->bandwidth);
    run.known = calloc(KNOWN_MAX, sizeof *run.known);
    const int fine = r->row && r->error && r->bandwidth && run.known;
    if (fine) {
        run_memory(&run);
        run_errors(&run);
        for (int part = REPORT_SWEEP; part < REPORT_PARTS; part++)
            run_tasks(&run, (report_part)part);
        r->took = since(&run);
        if (!*interrupted)
            report_progress(1, 0, "done");
        report_progress_end();
    }
    free(run.known);
    return fine && !*interrupted;
}
