/* --table: times, shares of the limit, and ratios to rivals.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../family.h"
#include "internal.h"
#include "modes.h"
#include "share.h"

/* Without --kernel and --op: the tables of docs/speed.md. */
static const char default_kernel[] = "norm_forward", default_ops[] = "rms,layer,add+rms,add+layer";

enum { OP_COLUMN = 2, SHAPE_COLUMN = 3 };

/* What a family's lines have beside the columns of all. */
static int has_second_limit(const bench_family *family) { return family->set_elements != NULL; }
static int has_rivals(const bench_family *family) { return family->rival_job != NULL; }
static int has_ulps(const bench_family *family) { return family->ulp != NULL; }

struct share_table {
    const bench_args *args;
    table table;
    int width[TABLE_COLUMNS_MAX];
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
    char shape[BENCH_SHAPE_MAX];
    if (!admitted(t->args, c))
        return;
    bench_shape_name(c->family, c->shape, shape);
    bench_widen(&t->width[OP_COLUMN], c->op->name);
    bench_widen(&t->width[SHAPE_COLUMN], shape);
}

static void explain_rivals(const bench_family *family)
{
    puts("x plain C: time of the plain C baseline (-O3 -ffast-math, for the path's instruction set) / time of the kernel.");
    if (has_ulps(family))
        puts("x SLEEF: the same for loops with SLEEF's functions. ulp: the largest errors of kernel, plain C and SLEEF.");
    puts("");
}

static void explain_second_limit(size_t l2)
{
    printf(
        "Shapes are n x c x h x w. Ops ending in -nhwc have channels last (NHWC), the others NCHW.\n"
        "roofline: each input tensor is read once and each output tensor is written once, in any layout.\n"
        "roofline 2: the tensor of the statistics is read twice. It applies if L2 (%zu KiB) cannot hold a set until the second\n"
        "read; with NHWC, in which sets are interleaved, a sample (batch norm: the full tensor).\n\n",
        l2 >> 10);
}

static void head(struct share_table *t, const bench_family *family)
{
    char text[160];
    snprintf(text, sizeof text,
             "%s%sTime of a call, and its roofline fraction (roofline: the fastest loop that only moves the same bytes)",
             t->args->kernel ? family->kernel : "", t->args->kernel ? ": " : "");
    bench_title(t->args, text);
    if (has_rivals(family))
        explain_rivals(family);
    if (has_second_limit(family))
        explain_second_limit(nrg_l2_bytes());
    table_row row = {8, {"path", "dtype", "op", "shape", "time", "elements/ns", "fraction", "roofline"}};
    if (has_second_limit(family)) {
        table_cell(&row, "fraction 2");
        table_cell(&row, "roofline 2");
    }
    if (has_rivals(family))
        table_cell(&row, "x plain C");
    if (has_ulps(family)) {
        table_cell(&row, "x SLEEF");
        table_cell(&row, "ulp");
        table_cell(&row, "plain C's");
        table_cell(&row, "SLEEF's");
    }
    for (int i = 8; i < row.cells; i++)
        t->width[i] = 8;
    t->width[row.cells] = -39;
    table_cell(&row, "the roofline's loop");
    t->table.columns = row.cells;
    table_head(&t->table, &row);
}

static void cell_or_dash(table_row *row, const char *format, double value)
{
    if (value > 0)
        table_cell(row, format, value);
    else
        table_cell(row, "-");
}

static void limit_cells(table_row *row, double ns, double limit_ns)
{
    cell_or_dash(row, "%.2f", limit_ns / ns);
    if (limit_ns > 0)
        table_time(row, limit_ns);
    else
        table_cell(row, "-");
}

static void cells_of_share(table_row *row, const bench_case *c, const bench_share *s)
{
    table_time(row, s->ns);
    table_cell(row, "%.2f", s->elements / s->ns);
    limit_cells(row, s->ns, s->limit_ns);
    if (has_second_limit(c->family))
        limit_cells(row, s->ns, s->twice_ns);
    if (has_rivals(c->family))
        cell_or_dash(row, "%.2f", s->rival_ns[BENCH_NAIVE] / s->ns);
    if (has_ulps(c->family)) {
        cell_or_dash(row, "%.2f", s->rival_ns[BENCH_SLEEF] / s->ns);
        cell_or_dash(row, "%.3g", bench_ulp(c, BENCH_RIVALS));
        cell_or_dash(row, "%.3g", bench_ulp(c, BENCH_NAIVE));
        cell_or_dash(row, "%.3g", bench_ulp(c, BENCH_SLEEF));
    }
}

static void share_line(const bench_case *c, void *ctx)
{
    struct share_table *t = ctx;
    if (!admitted(t->args, c))
        return;
    if (t->lines++ == 0)
        head(t, c->family);
    table_row row = {0};
    bench_cells_of_case(&row, c);
    bench_share s;
    const char *wrong = bench_measure_share(c, bench_seconds(t->args), &s);
    if (!wrong)
        cells_of_share(&row, c, &s);
    while (row.cells < t->table.columns - 1)
        table_cell(&row, "-");
    table_cell(&row, "%s", wrong ? wrong : s.loop);
    table_print(&t->table, &row);
}

int bench_table_mode(const bench_args *args)
{
    struct share_table t = {.args = args, .width = {-6, -5, -9, -9, 8, 11, 5, 8}};
    t.table = (table){args->markdown, TABLE_COLUMNS_MAX, t.width};
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
