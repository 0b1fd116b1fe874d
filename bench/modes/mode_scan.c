/* --scan SEED CASES: ops, types, shapes and layouts that nobody chose, each against rows that suit vectors and against AVX2.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../measure.h"
#include "../report/report.h"
#include "../scan.h"
#include "../workload.h"
#include "modes.h"

/* Of one case: a few dozen rounds of short calls, three of long ones. */
static const double usual_seconds = 0.01;
enum { ROUNDS_MIN = 3 };

/* What a case is judged by. A ratio beyond its limit is measured twice more, and the least of the three counts: noise seldom hits
 * the same case three times. */
typedef enum scan_ratio {
    LONG_ROW,  /* time per element / that of the reference; rows of at least 64 elements */
    SHORT_ROW, /* time / that of rows of 64 elements; rows of fewer */
    OTHER_PATH /* time / that on the other path */
} scan_ratio;
enum { RATIOS = 3, REPEATS = 2, WORST = 20 };
static const double limit[RATIOS] = {1.5, 1.5, 1.1};

typedef struct scan_result {
    size_t number;
    double ns, reference_ns, other_ns; /* of a call */
    double ratio[RATIOS];              /* 0: none */
} scan_result;

/* The case on either path shares memory; the reference has its own, since a family fills some operands to suit a shape. */
enum { CASE, REFERENCE, OTHER, CONTENDERS };

typedef struct scan_call {
    bench_call call;
    const bench_layout *layout;
    const bench_memory *memory;
} scan_call;

/* Fills an input again whose place an output takes: a batch begins with the same data as any other. */
static void before(void *ctx)
{
    scan_call *s = ctx;
    for (int i = 0; i < BENCH_OPERANDS; i++)
        if (s->layout->of[i].over)
            bench_memory_refill(s->memory, s->layout->of[i].over - 1);
    bench_call_before(&s->call);
}

static void run(void *ctx, unsigned placement, size_t calls) { bench_call_run(&((scan_call *)ctx)->call, placement, calls); }

typedef struct scan {
    const bench_args *args;
    bench_scan_ops ops;
    uint64_t seed;
    size_t cases, refused;
    nrg_isa best, other; /* the same: there is no other */
    scan_result *result;
    size_t results;
} scan;

/* Dense bytes of a case: elements, in which every operand counts, as few ops have matrices beside their rows. */
static double work_of(const bench_case *c)
{
    bench_case dense = *c;
    dense.layout = NULL;
    return (double)bench_case_bytes(&dense);
}

/* What a call returns after the measurement: a refused one would be very fast. */
static nrg_status status_of(scan_call *s)
{
    nrg_status status = NRG_OK;
    before(s);
    for (int phase = 0; phase < bench_call_phases(&s->call) && status == NRG_OK; phase++)
        status = bench_call_share(&s->call, 0, phase, 0, 1);
    return status;
}

static const char *measure(const scan *s, bench_scan_case *drawn, bench_contender contender[CONTENDERS])
{
    bench_memory memory[OTHER] = {0};
    scan_call call[CONTENDERS] = {0};
    bench_case c[CONTENDERS] = {drawn->c, drawn->reference, drawn->c};
    const int n = s->other == s->best ? OTHER : CONTENDERS;
    const char *wrong = NULL;
    c[CASE].isa = c[REFERENCE].isa = s->best;
    c[OTHER].isa = s->other;
    if (!bench_memory_make(&memory[CASE], &c[CASE], 1) || !bench_memory_make(&memory[REFERENCE], &c[REFERENCE], 1))
        wrong = "not enough memory";
    for (int i = 0; i < n && !wrong; i++) {
        call[i].layout = c[i].layout;
        call[i].memory = &memory[i == REFERENCE ? REFERENCE : CASE];
        wrong = bench_call_bind(&call[i].call, &c[i], call[i].memory);
        contender[i] = (bench_contender){.before = before, .run = run, .ctx = &call[i]};
    }
    if (!wrong)
        bench_measure_rounds(contender, (size_t)n, s->args->seconds > 0 ? s->args->seconds : usual_seconds,
                             bench_case_bytes(&drawn->c), ROUNDS_MIN);
    for (int i = 0; i < n && !wrong; i++)
        if (status_of(&call[i]) != NRG_OK)
            wrong = nrg_status_string(status_of(&call[i]));
    for (int i = 0; i < n; i++)
        bench_call_free(&call[i].call);
    for (int i = 0; i < OTHER; i++)
        bench_memory_free(&memory[i]);
    return wrong;
}

static const char *ratios_of(const scan *s, bench_scan_case *drawn, scan_result *r)
{
    bench_contender *contender = malloc(CONTENDERS * sizeof *contender);
    const char *wrong = contender ? measure(s, drawn, contender) : "not enough memory";
    if (!wrong) {
        const double ratio = bench_ratio(&contender[CASE], &contender[REFERENCE]);
        r->ns = contender[CASE].ns;
        r->reference_ns = contender[REFERENCE].ns;
        if (drawn->row < BENCH_SCAN_STEP)
            r->ratio[SHORT_ROW] = ratio;
        else
            r->ratio[LONG_ROW] = ratio * work_of(&drawn->reference) / work_of(&drawn->c);
        if (s->other != s->best) {
            r->other_ns = contender[OTHER].ns;
            r->ratio[OTHER_PATH] = bench_ratio(&contender[CASE], &contender[OTHER]);
        }
    }
    free(contender);
    return wrong;
}

static int is_beyond(const scan_result *r)
{
    int beyond = 0;
    for (int i = 0; i < RATIOS; i++)
        beyond |= r->ratio[i] > limit[i];
    return beyond;
}

static void scan_case(scan *s, size_t number)
{
    bench_scan_case drawn;
    scan_result r = {.number = number};
    bench_scan_draw(&drawn, &s->ops, s->args, s->seed, number);
    const char *wrong = ratios_of(s, &drawn, &r);
    for (int i = 0; i < REPEATS && !wrong && is_beyond(&r); i++) {
        scan_result again = r;
        wrong = ratios_of(s, &drawn, &again);
        for (int k = 0; k < RATIOS; k++)
            if (again.ratio[k] < r.ratio[k])
                r.ratio[k] = again.ratio[k];
    }
    if (!wrong) {
        s->result[s->results++] = r;
        return;
    }
    char name[BENCH_NAME_MAX], layout[BENCH_LAYOUT_MAX];
    drawn.c.isa = s->best;
    bench_case_name(&drawn.c, name);
    bench_scan_layout_name(&drawn, layout);
    printf("%zu: %s, %s: %s\n", number, name, layout, wrong);
    s->refused++;
}

static scan_ratio sorted_by;
static int by_ratio(const void *a, const void *b)
{
    const double x = ((const scan_result *)a)->ratio[sorted_by], y = ((const scan_result *)b)->ratio[sorted_by];
    return (x < y) - (x > y);
}

static void print_time(double ns)
{
    table_row row = {0};
    table_time(&row, ns);
    printf("  %8s", row.cell[0]);
}

static void print_line(const scan *s, const scan_result *r, scan_ratio which)
{
    bench_scan_case drawn;
    char name[BENCH_NAME_MAX], layout[BENCH_LAYOUT_MAX];
    bench_scan_draw(&drawn, &s->ops, s->args, s->seed, r->number);
    drawn.c.isa = s->best;
    bench_case_name(&drawn.c, name);
    bench_scan_layout_name(&drawn, layout);
    printf("%6.2f  %6zu", r->ratio[which], r->number);
    print_time(r->ns);
    print_time(which == OTHER_PATH ? r->other_ns : r->reference_ns);
    printf("  %s  %s\n", name, layout);
}

/* Ratios are sorted, the largest first. */
static double quantile(const scan_result *r, size_t n, scan_ratio which, double part)
{
    const size_t at = (size_t)((1 - part) * (double)n);
    return r[at < n ? at : n - 1].ratio[which];
}

static void print_ratios(scan *s, scan_ratio which)
{
    static const char *const title[RATIOS] = {
        "Rows of at least 64 elements: time per element / that of the next multiple of 64, dense and aligned",
        "Rows of fewer: time of a row / that of a row of 64 elements, dense and aligned",
        "All: time on %s / time on %s",
    };
    char text[160];
    size_t n = 0, tenth = 0, half = 0;
    sorted_by = which;
    qsort(s->result, s->results, sizeof *s->result, by_ratio);
    while (n < s->results && s->result[n].ratio[which] > 0) {
        tenth += s->result[n].ratio[which] > 1.1;
        half += s->result[n].ratio[which] > 1.5;
        n++;
    }
    if (!n)
        return;
    snprintf(text, sizeof text, title[which], nrg_isa_name(s->best), nrg_isa_name(s->other));
    bench_title(s->args, text);
    printf("%zu cases: median %.2f, 90 %% %.2f, 99 %% %.2f, worst %.2f; %zu (%.1f %%) beyond 1.1, %zu (%.1f %%) beyond 1.5\n", n,
           quantile(s->result, n, which, 0.5), quantile(s->result, n, which, 0.9), quantile(s->result, n, which, 0.99),
           s->result[0].ratio[which], tenth, 100.0 * (double)tenth / (double)n, half, 100.0 * (double)half / (double)n);
    puts(" ratio    case      time   against");
    for (size_t i = 0; i < n && i < WORST; i++)
        print_line(s, &s->result[i], which);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The path to compare and the one to compare it with. */
static void choose_paths(scan *s)
{
    s->best = s->other = nrg_isa_active();
    for (int isa = 0; s->args->path && isa < NRG_ISA_COUNT; isa++)
        if (nrg_isa_supported((nrg_isa)isa) && bench_admits(s->args->path, nrg_isa_name((nrg_isa)isa)))
            s->best = s->other = (nrg_isa)isa;
    if (s->best == NRG_ISA_AVX512 && nrg_isa_supported(NRG_ISA_AVX2))
        s->other = NRG_ISA_AVX2;
    else
        printf("SKIP: comparison with AVX2: the path is %s, not AVX-512\n", nrg_isa_name(s->best));
}

int bench_scan_mode(const bench_args *args)
{
    scan s = {.args = args, .seed = args->scan_seed, .cases = args->scan_only ? 1 : args->scan_cases};
    s.result = calloc(s.cases, sizeof *s.result);
    if (!bench_scan_ops_make(&s.ops, args) || !s.result || !s.ops.count) {
        fputs(s.ops.of && s.result ? "nrg-bench: no op has these names\n" : "nrg-bench: not enough memory\n", stderr);
        free(s.ops.of);
        free(s.result);
        return 1;
    }
    choose_paths(&s);
    const double begun = now();
    for (size_t i = 0; i < s.cases; i++) {
        const double done = (double)i / (double)s.cases;
        report_progress(done, done > 0 ? (now() - begun) * (1 - done) / done : 0, "scan");
        scan_case(&s, args->scan_only ? args->scan_only : i + 1);
    }
    report_progress_end();
    for (int which = 0; which < RATIOS; which++)
        print_ratios(&s, (scan_ratio)which);
    printf("\n%zu cases of %zu ops in %.0f s, %zu refused\n", s.results, s.ops.count, now() - begun, s.refused);
    free(s.ops.of);
    free(s.result);
    return s.refused != 0;
}
