/* --instances: what each instance of the row norm gains over the loops that compute its cases without it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/operands/norm.h"
#include "../family.h"
#include "../instances/instances.h"
#include "../measure.h"
#include "../workload.h"
#include "modes.h"

enum { WITH, WITHOUT, SIDES };

static const char *const name_of[] = {
#define INSTANCE(name, ...) #name,
#include "../../src/template/norm/instances.def"
#undef INSTANCE
    "general"};

BENCH_FUNCTION(forward, nrg_call_norm_forward, bench_instances_forward(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], ith, nth))

/* The instances whose names begin alike: alone, one of them would take over the cases of another. */
static uint64_t relatives_of(int instance)
{
    const size_t length = strcspn(name_of[instance], "_") + 1;
    uint64_t relatives = 0;
    for (int i = 0; i < INSTANCES; i++)
        relatives |= (uint64_t)(strncmp(name_of[i], name_of[instance], length) == 0) << i;
    return relatives;
}

static size_t bytes_of(nrg_isa isa, int instance)
{
#define BYTES(path, value, unused)                                                                                               \
    if (isa == (value))                                                                                                          \
        return nrg_##path##_instances_bytes(instance);
    NRG_WITH_AVX2(BYTES(avx2, NRG_ISA_AVX2, ))
    NRG_WITH_AVX512(BYTES(avx512, NRG_ISA_AVX512, ))
    NRG_WITH_NEON(BYTES(neon, NRG_ISA_NEON, ))
#undef BYTES
    return 0;
}

typedef struct side {
    bench_call *call;
    uint64_t left_out;
} side;

static void before(void *ctx)
{
    const side *s = ctx;
    bench_call_before(s->call);
    bench_left_out = s->left_out;
}

static void run(void *ctx, unsigned placement, size_t calls) { bench_call_run(((const side *)ctx)->call, placement, calls); }

/* The case in which an instance gains most. */
typedef struct best_case {
    double gain, ns[SIDES];
    char name[BENCH_NAME_MAX], instead[TABLE_CELL_MAX]; /* instead: what computes it without the instance */
    size_t cases;
} best_case;

typedef struct instances_table {
    const bench_args *args;
    table table;
    best_case best[NRG_ISA_COUNT][INSTANCES];
} instances_table;

static const int case_width[] = {-15, -6, -5, -15, -10, 11, 11, 5, -15};
static const int best_width[] = {-15, -45, 11, 11, 5, 6, 5, -15};

/* The instance that computes a case, found by a call. */
static int instance_of(bench_call *call, uint64_t left_out)
{
    bench_left_out = left_out;
    bench_accepted = INSTANCES;
    bench_call_before(call);
    bench_call_share(call, 0, 0, 0, 1);
    return left_out >> bench_accepted & 1 ? INSTANCES : bench_accepted;
}

static void measure(instances_table *t, const bench_case *c, bench_call *call)
{
    bench_contender result[SIDES];
    const int instance = instance_of(call, 0);
    if (instance == INSTANCES)
        return;
    side sides[SIDES] = {{call, 0}, {call, relatives_of(instance)}};
    for (int i = 0; i < SIDES; i++)
        result[i] = (bench_contender){.before = before, .run = run, .ctx = &sides[i]};
    const char *const instead = name_of[instance_of(call, sides[WITHOUT].left_out)];
    bench_measure(result, SIDES, bench_seconds(t->args), bench_case_bytes(c));
    const double gain = bench_ratio(&result[WITHOUT], &result[WITH]);
    table_row row = {0};
    table_cell(&row, "%s", name_of[instance]);
    bench_cells_of_case(&row, c);
    table_cell(&row, "%.1f", result[WITH].ns);
    table_cell(&row, "%.1f", result[WITHOUT].ns);
    table_cell(&row, "%.2f", gain);
    table_cell(&row, "%s", instead);
    table_print(&t->table, &row);
    best_case *const best = &t->best[c->isa][instance];
    best->cases++;
    if (gain > best->gain) {
        best->gain = gain;
        best->ns[WITH] = result[WITH].ns;
        best->ns[WITHOUT] = result[WITHOUT].ns;
        bench_case_name(c, best->name);
        snprintf(best->instead, sizeof best->instead, "%s", instead);
    }
}

static void visit(const bench_case *given, void *ctx)
{
    instances_table *t = ctx;
    bench_op op = *given->op;
    bench_case c = *given;
    bench_memory memory;
    bench_call call = {0};
    if (op.function || op.gate || op.activation || op.fixed_strides || !bench_admits_case(t->args, given, "all", "norm_forward"))
        return;
    op.function = &forward;
    c.op = &op;
    const char *wrong = bench_memory_make(&memory, &c, 1) ? bench_call_bind(&call, &c, &memory) : "not enough memory";
    if (wrong)
        fprintf(stderr, "nrg-bench: %s: %s\n", op.name, wrong);
    else
        measure(t, &c, &call);
    bench_call_free(&call);
    bench_memory_free(&memory);
}

static void print_best(const instances_table *t, nrg_isa isa, int instance)
{
    const best_case *best = &t->best[isa][instance];
    table_row row = {0};
    table_cell(&row, "%s", name_of[instance]);
    table_cell(&row, "%s", best->cases ? best->name : "none of the cases");
    table_cell(&row, "%.1f", best->ns[WITH]);
    table_cell(&row, "%.1f", best->ns[WITHOUT]);
    table_cell(&row, "%.2f", best->gain);
    table_cell(&row, "%zu", bytes_of(isa, instance));
    table_cell(&row, "%zu", best->cases);
    table_cell(&row, "%s", best->instead);
    table_print(&(table){t->args->markdown, COUNT(best_width), best_width}, &row);
}

int bench_instances_mode(const bench_args *args)
{
    instances_table *t = calloc(1, sizeof *t);
    if (!t)
        return 1;
    t->args = args;
    t->table = (table){args->markdown, COUNT(case_width), case_width};
    bench_title(args,
                "Instances of the row norm (src/template/norm/instances.def): ns of a call with an instance, and without it and "
                "its relatives");
    table_row head = {COUNT(case_width), {"instance", "path", "dtype", "op", "shape", "with", "without", "gain", "instead"}};
    table_head(&t->table, &head);
    bench_each_case(&bench_norm_forward, visit, t);
    bench_title(args, "The case in which each of them gains most");
    table_row best = {COUNT(best_width), {"instance", "case", "with", "without", "gain", "bytes", "cases", "instead"}};
    table_head(&(table){args->markdown, COUNT(best_width), best_width}, &best);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (int i = 0; i < INSTANCES; i++)
            if (nrg_isa_supported((nrg_isa)isa) && bench_admits(args->path, nrg_isa_name((nrg_isa)isa)) &&
                bytes_of((nrg_isa)isa, i))
                print_best(t, (nrg_isa)isa, i);
    free(t);
    return 0;
}
