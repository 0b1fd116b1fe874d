/* The tables: shares of the limit, ratios between kernels, store kinds, and the harness against itself.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "measure.h"
#include "share.h"
#include "table.h"
#include "workload.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static double seconds_of(const bench_args *args) { return args->seconds > 0 ? args->seconds : args->quick ? 0.15 : 0.3; }

static void shape_name(bench_shape shape, char name[48]) { snprintf(name, 48, "%zux%zu", shape.rows, shape.dim); }

static int admits_case(const bench_args *args, const bench_case *c)
{
    char shape[48];
    shape_name(c->shape, shape);
    return bench_admits(args->dtype ? args->dtype : "f32", nrg_dtype_name(c->dtype)) &&
           bench_admits(args->path, nrg_isa_name(c->isa)) &&
           bench_admits(args->op      ? args->op
                        : args->quick ? "rms,add+rms"
                                      : NULL,
                        c->op->name) &&
           bench_admits(args->shape   ? args->shape
                        : args->quick ? "1x4096,512x4096,8192x4096,4096x128"
                                      : NULL,
                        shape);
}

static void title(const bench_args *args, const char *text) { printf(args->markdown ? "\n**%s**\n\n" : "\n%s\n\n", text); }

/* ---- --table ---- */

struct share_table {
    const bench_args *args;
    table table;
    int lines;
};

static void share_line(const bench_case *c, void *ctx)
{
    struct share_table *t = ctx;
    if (!admits_case(t->args, c))
        return;
    char shape[48];
    shape_name(c->shape, shape);
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(c->isa));
    table_cell(&row, "%s", nrg_dtype_name(c->dtype));
    table_cell(&row, "%s", c->op->name);
    table_cell(&row, "%s", shape);
    bench_share s;
    const char *wrong = bench_measure_share(c, seconds_of(t->args), &s);
    if (wrong) {
        for (int i = 0; i < 4; i++)
            table_cell(&row, "-");
        table_cell(&row, "%s", wrong);
    } else {
        table_time(&row, s.ns);
        table_cell(&row, "%.2f", s.elements / s.ns);
        table_cell(&row, "%.2f", s.limit_ns / s.ns);
        table_time(&row, s.limit_ns);
        table_cell(&row, "%s", s.loop);
    }
    table_print(&t->table, &row);
    t->lines++;
}

static int table_mode(const bench_args *args)
{
    static const int width[] = {-6, -5, -9, -9, 8, 11, 5, 8, -39};
    struct share_table t = {args, {args->markdown, COUNT(width), width}, 0};
    title(args, "Time of a call, and the share of the limit (the fastest bare loop that moves the same bytes)");
    table_row head = {COUNT(width),
                      {"path", "dtype", "op", "shape", "time", "elements/ns", "share", "limit", "the limit's loop"}};
    table_head(&t.table, &head);
    bench_each_case(share_line, &t);
    if (!t.lines)
        fputs("nrg-bench: no case has these names\n", stderr);
    return t.lines ? 0 : 1;
}

/* ---- --ratios ---- */

/* Two cases of one shape take turns. They share memory where the dtype is the same. */
static const char *measure_two(const bench_case c[2], double seconds, bench_contender result[2])
{
    bench_memory memory[2];
    bench_call *call = malloc(2 * sizeof *call);
    int shared = c[0].dtype == c[1].dtype, bias = c[0].op->bias || c[1].op->bias, made = 0;
    if (call && bench_memory_make(&memory[0], c[0].shape, c[0].dtype, c[0].op->add, bias))
        made = 1 + (!shared && bench_memory_make(&memory[1], c[1].shape, c[1].dtype, c[1].op->add, bias));
    if (made + shared >= 2) {
        for (int i = 0; i < 2; i++) {
            bench_call_bind(&call[i], &c[i], &memory[shared ? 0 : i]);
            result[i] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &call[i]};
        }
        bench_measure(result, 2, seconds, bench_case_bytes(&c[0]));
    }
    for (int i = 0; i < made; i++)
        bench_memory_free(&memory[i]);
    free(call);
    return made + shared >= 2 ? NULL : "not enough memory";
}

static void ratio_line(const bench_args *args, const table *t, const bench_case c[2])
{
    char shape[48];
    shape_name(c[0].shape, shape);
    if (!bench_admits(args->path, nrg_isa_name(c[0].isa)) || !bench_admits(args->shape, shape) ||
        !(bench_admits(args->op, c[0].op->name) || bench_admits(args->op, c[1].op->name)))
        return;
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(c[0].isa));
    table_cell(&row, "%s", shape);
    table_cell(&row, "%s %s", nrg_dtype_name(c[0].dtype), c[0].op->name);
    table_cell(&row, "%s %s", nrg_dtype_name(c[1].dtype), c[1].op->name);
    bench_contender *result = malloc(2 * sizeof *result);
    const char *wrong = result ? measure_two(c, seconds_of(args), result) : "not enough memory";
    if (wrong)
        table_cell(&row, "%s", wrong);
    else {
        table_time(&row, result[0].ns);
        table_time(&row, result[1].ns);
        table_cell(&row, "%.2f", bench_ratio(&result[1], &result[0]));
    }
    free(result);
    table_print(t, &row);
}

static int ratios_mode(const bench_args *args)
{
    static const struct {
        const char *op, *to;
        nrg_dtype dtype;
        bench_shape shape;
    } lines[] = {
        {"layer", "rms", NRG_F32, {1, 4096}},           {"layer", "rms", NRG_F32, {512, 4096}},
        {"layer", "rms", NRG_F32, {512, 8192}},         {"layer", "rms", NRG_F32, {8192, 4096}},
        {"add+layer", "add+rms", NRG_F32, {1, 4096}},   {"add+layer", "add+rms", NRG_F32, {512, 4096}},
        {"add+layer", "add+rms", NRG_F32, {512, 8192}}, {"add+layer", "add+rms", NRG_F32, {8192, 4096}},
        {"rms", "rms", NRG_F16, {8192, 4096}},          {"rms", "rms", NRG_BF16, {8192, 4096}},
        {"add+rms", "add+rms", NRG_F16, {8192, 4096}},  {"add+rms", "add+rms", NRG_BF16, {8192, 4096}},
    };
    static const int width[] = {-6, -9, -14, -14, 8, 8, 5};
    table t = {args->markdown, COUNT(width), width};
    title(args, "Speed of one kernel as a multiple of another's (elements/ns)");
    table_row head = {COUNT(width), {"path", "shape", "this", "against", "this", "against", "speed"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; nrg_isa_supported((nrg_isa)isa) && i < COUNT(lines); i++) {
            const bench_case c[2] = {
                {"norm_forward", lines[i].dtype, (nrg_isa)isa, bench_find_op(lines[i].op), lines[i].shape, NRG_STORE_AUTO},
                {"norm_forward", NRG_F32, (nrg_isa)isa, bench_find_op(lines[i].to), lines[i].shape, NRG_STORE_AUTO}};
            if (!args->quick || lines[i].shape.rows <= 512)
                ratio_line(args, &t, c);
        }
    return 0;
}

/* ---- --stores ---- */

static void stores_line(const bench_args *args, const table *t, nrg_isa isa, nrg_dtype dtype, const bench_op *op, size_t kib)
{
    static const nrg_store kinds[] = {NRG_STORE_KEEP, NRG_STORE_STREAM, NRG_STORE_AUTO};
    enum { KINDS = 3, DIM = 4096 };
    size_t rows = (kib << 10) / ((op->add ? 4 : 2) * DIM * nrg_dtype_size(dtype));
    bench_case c = {"norm_forward", dtype, isa, op, {rows, DIM}, NRG_STORE_AUTO};
    char shape[48];
    shape_name(c.shape, shape);

    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(isa));
    table_cell(&row, "%s", nrg_dtype_name(dtype));
    table_cell(&row, "%s", op->name);
    table_cell(&row, "%s", shape);
    if (kib < 1024)
        table_cell(&row, "%zu KiB", kib);
    else
        table_cell(&row, "%zu MiB", kib >> 10);

    bench_memory memory;
    bench_call *call = malloc(KINDS * sizeof *call);
    bench_contender *contender = malloc(KINDS * sizeof *contender);
    if (!call || !contender || !bench_memory_make(&memory, c.shape, dtype, op->add, op->bias))
        table_cell(&row, "no memory");
    else {
        for (int i = 0; i < KINDS; i++) {
            c.store = kinds[i];
            bench_call_bind(&call[i], &c, &memory);
            contender[i] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &call[i]};
        }
        bench_measure(contender, KINDS, seconds_of(args), bench_case_bytes(&c));
        for (int i = 0; i < KINDS; i++)
            table_time(&row, contender[i].ns);
        table_cell(&row, "%.2f", bench_ratio(&contender[0], &contender[1]));
        /* which of the two it chose shows in its time where the two differ */
        double best = contender[0].ns < contender[1].ns ? contender[0].ns : contender[1].ns;
        table_cell(&row, "%.2f", best / contender[2].ns);
        bench_memory_free(&memory);
    }
    free(contender);
    free(call);
    table_print(t, &row);
}

static int stores_mode(const bench_args *args)
{
    static const char *const ops[] = {"rms", "add+rms"};
    static const int width[] = {-6, -5, -9, -10, 8, 8, 8, 8, 11, 9};
    table t = {args->markdown, COUNT(width), width};
    title(args,
          "Ordinary stores (keep) against non-temporal ones (stream), by the bytes a call touches; auto is the library's rule");
    table_row head = {COUNT(width),
                      {"path", "dtype", "op", "shape", "touched", "keep", "stream", "auto", "keep/stream", "best/auto"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
        if (!nrg_isa_supported((nrg_isa)isa) || !bench_admits(args->path, nrg_isa_name((nrg_isa)isa)))
            continue;
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
            if (!bench_admits(args->dtype ? args->dtype : "f32", nrg_dtype_name(dtype)))
                continue;
            for (size_t op = 0; op < COUNT(ops); op++)
                for (size_t kib = 256; bench_admits(args->op, ops[op]) && kib <= (size_t)256 << 10; kib *= args->quick ? 4 : 2)
                    stores_line(args, &t, (nrg_isa)isa, dtype, bench_find_op(ops[op]), kib);
        }
    }
    return 0;
}

/* ---- --selfcheck ---- */

static int selfcheck_line(const bench_args *args, const table *t, nrg_isa isa, bench_shape shape)
{
    const bench_case c = {"norm_forward", NRG_F32, isa, bench_find_op("add+rms"), shape, NRG_STORE_AUTO};
    char name[48];
    shape_name(shape, name);
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(isa));
    table_cell(&row, "%s", name);
    int fine = 0;
    bench_memory memory;
    bench_contender *contender = calloc(2, sizeof *contender);
    if (!contender || !bench_memory_make(&memory, shape, c.dtype, c.op->add, c.op->bias))
        table_cell(&row, "no memory");
    else {
        bench_bare bare;
        bench_bare_bind(&bare, limit_loops_of(isa), &c, &memory);
        for (int i = 0; i < 2; i++)
            contender[i] = (bench_contender){.run = bench_bare_run, .ctx = &bare};
        bench_measure(contender, 2, seconds_of(args), bench_case_bytes(&c));
        double ratio = contender[0].ns / contender[1].ns;
        fine = fabs(ratio - 1) <= 0.05;
        table_time(&row, contender[0].ns);
        table_time(&row, contender[1].ns);
        table_cell(&row, "%.3f", ratio);
        table_cell(&row, "%s", fine ? "ok" : "off: the machine is busy");
        bench_memory_free(&memory);
    }
    free(contender);
    table_print(t, &row);
    return fine;
}

static int selfcheck_mode(const bench_args *args)
{
    static const bench_shape shapes[] = {{1, 64}, {1, 4096}, {4096, 128}, {512, 4096}, {8192, 4096}};
    static const int width[] = {-6, -9, 8, 8, 6, -24};
    table t = {args->markdown, COUNT(width), width};
    title(args, "The same bare loop as two contenders: a ratio of 1 is what an honest harness on a quiet machine gives");
    table_row head = {COUNT(width), {"path", "shape", "one", "other", "ratio", "verdict"}};
    table_head(&t, &head);
    int fine = 1;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            char name[48];
            shape_name(shapes[i], name);
            if (nrg_isa_supported((nrg_isa)isa) && bench_admits(args->path, nrg_isa_name((nrg_isa)isa)) &&
                bench_admits(args->shape, name))
                fine &= selfcheck_line(args, &t, (nrg_isa)isa, shapes[i]);
        }
    return fine ? 0 : 1;
}

int bench_run_modes(const bench_args *args)
{
    nrg_isa before = nrg_isa_active();
    int status = 0;
    if (args->selfcheck)
        status |= selfcheck_mode(args);
    if (args->table)
        status |= table_mode(args);
    if (args->ratios)
        status |= ratios_mode(args);
    if (args->stores)
        status |= stores_mode(args);
    nrg_isa_set(before);
    return status;
}
