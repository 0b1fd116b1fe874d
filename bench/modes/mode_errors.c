/* --errors: how far results are from what is exact.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../family.h"
#include "../truth/error.h"
#include "modes.h"

/* Beyond these a formula is wrong, the library's or the truth's, which is what this is to find: what is promised is in the
 * headers, and tests hold it to the worst inputs. 16 bits are rounded once; a norm before a rotation is rounded for itself. */
static double limit_of(const bench_case *c)
{
    if (c->dtype == NRG_F32)
        return 5;
    return strcmp(c->family->kernel, "norm_rope") == 0 ? 1.01 : 0.51;
}

static const int width[] = {-24, -4, -24, 8};

struct lines {
    const bench_args *args;
    table table;
    int looked_at, wrong;
};

static void line(const bench_case *c, void *ctx)
{
    struct lines *lines = ctx;
    if (c->isa != nrg_isa_active() || !bench_shape_equal(c->shape, c->op->shapes[0]) ||
        !bench_admits_case(lines->args, c, "all", "all"))
        return;
    const nrg_isa before = nrg_isa_active();
    const double ulp = bench_error_of(c, BENCH_RIVALS);
    bench_require(nrg_isa_set(before));
    if (ulp == 0)
        return;
    const int is_wrong = !(ulp <= limit_of(c));
    table_row row = {0};
    table_cell(&row, "%s", c->family->kernel);
    table_cell(&row, "%s", nrg_dtype_name(c->dtype));
    table_cell(&row, "%s", c->op->name);
    table_cell(&row, is_wrong ? "%.3g !" : "%.3f", ulp);
    table_print(&lines->table, &row);
    lines->looked_at++;
    lines->wrong += is_wrong;
}

int bench_errors_mode(const bench_args *args)
{
    struct lines lines = {args, {args->markdown, COUNT(width), width}, 0, 0};
    bench_title(args, "Errors of results, in ulps of their type");
    table_row head = {0};
    for (size_t i = 0; i < COUNT(width); i++)
        table_cell(&head, "%s", (const char *const[]){"kernel", "type", "op", "ulp"}[i]);
    table_head(&lines.table, &head);
    bench_each_case(NULL, line, &lines);
    printf("\n%d looked at, %d wrong\n", lines.looked_at, lines.wrong);
    return !(lines.looked_at && !lines.wrong);
}
