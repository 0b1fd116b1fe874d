/* --table: times and shares of the limit.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "family.h"
#include "modes.h"
#include "share.h"

/* Without --kernel and --op: the table of the README. */
static const char default_kernel[] = "norm_forward", default_ops[] = "rms,layer,add+rms,add+layer";

enum { OP_COLUMN = 2, COLUMNS = 9 };

struct share_table {
    const bench_args *args;
    table table;
    int width[COLUMNS];
    int lines; /* of the kernel at hand */
};

static int admitted(const bench_args *args, const bench_case *c)
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    return bench_admits_case(args, c, "f32", default_kernel) &&
           (args->op || args->kernel || bench_admits(default_ops, c->op->name)) &&
           (!args->quick || args->op || bench_admits(c->family->quick_ops, c->op->name)) &&
           (!args->quick || args->shape || bench_admits(c->family->quick_shapes, shape));
}

static void widen(const bench_case *c, void *ctx)
{
    struct share_table *t = ctx;
    int length = (int)strlen(c->op->name);
    if (admitted(t->args, c) && length > -t->width[OP_COLUMN])
        t->width[OP_COLUMN] = -length;
}

static void head(const struct share_table *t, const char *kernel)
{
    char text[160];
    snprintf(text, sizeof text,
             "%s%sTime of a call, and the share of the limit (the fastest bare loop that moves the same bytes)",
             t->args->kernel ? kernel : "", t->args->kernel ? ": " : "");
    bench_title(t->args, text);
    table_row row = {COLUMNS, {"path", "dtype", "op", "shape", "time", "elements/ns", "share", "limit", "the limit's loop"}};
    table_head(&t->table, &row);
}

static void share_line(const bench_case *c, void *ctx)
{
    struct share_table *t = ctx;
    if (!admitted(t->args, c))
        return;
    if (t->lines++ == 0)
        head(t, c->family->kernel);
    table_row row = {0};
    bench_cells_of_case(&row, c);
    bench_share s;
    const char *wrong = bench_measure_share(c, bench_seconds(t->args), &s);
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
}

int bench_table_mode(const bench_args *args)
{
    struct share_table t = {.args = args, .width = {-6, -5, -9, -9, 8, 11, 5, 8, -39}};
    t.table = (table){args->markdown, COLUMNS, t.width};
    bench_each_case(NULL, widen, &t);
    const bench_family *family;
    int lines = 0;
    for (size_t i = 0; (family = bench_family_at(i)) != NULL; i++) {
        t.lines = 0;
        bench_each_case(family, share_line, &t);
        lines += t.lines;
    }
    if (!lines)
        fputs("nrg-bench: no case has these names\n", stderr);
    return lines ? 0 : 1;
}
