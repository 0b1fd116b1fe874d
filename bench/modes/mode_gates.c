/* --gates: what a fused activation costs. Within the caches a norm with an activation can be no faster than the activation.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "compare.h"
#include "../family.h"
#include "modes.h"

/* What the caches hold; from memory both would be as fast as it. The smallest tensors with channels need L3. */
static const char shapes[] = "1x4096,64x4096,512x768,4096x64,4096x128,1x320x64x64,2x640x32x32,32x256x28x28";

struct gates_table {
    const bench_args *args;
    table table;
    int lines;
};

static void gates_line(const bench_case *c, void *ctx)
{
    struct gates_table *t = ctx;
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    if (c->op->activation == NRG_ACT_IDENTITY || !bench_admits_case(t->args, c, "f32,bf16", "norm_forward") ||
        !bench_admits(t->args->path ? NULL : "avx512,avx2,neon", nrg_isa_name(c->isa)) ||
        !bench_admits(t->args->shape ? NULL : shapes, shape))
        return;
    size_t elements = bench_shape_elements(c->shape);
    const char *g = nrg_activation_name(c->op->activation);
    const bench_case two[2] = {*c, bench_case_of("activation", g, c->dtype, c->isa, (bench_shape)BENCH_ROWS(1, elements))};
    table_row row = {0};
    bench_cells_of_case(&row, c);
    table_cell(&row, "%s", g);
    bench_contender *result = malloc(2 * sizeof *result);
    const char *wrong = result ? bench_compare(two, 2, bench_seconds(t->args), result) : "not enough memory";
    if (wrong)
        table_cell(&row, "%s", wrong);
    else {
        table_cell(&row, "%.2f", (double)elements / result[0].ns);
        table_cell(&row, "%.2f", (double)elements / result[1].ns);
        table_cell(&row, "%.2f", bench_ratio(&result[1], &result[0]));
    }
    free(result);
    table_print(&t->table, &row);
    t->lines++;
}

int bench_gates_mode(const bench_args *args)
{
    static const int width[] = {-6, -5, -21, -12, -9, 8, 8, 5};
    struct gates_table t = {args, {args->markdown, COUNT(width), width}, 0};
    bench_title(args, "Elements/ns of a norm with an activation, of the activation alone on as many elements, and the ratio");
    table_row head = {COUNT(width), {"path", "dtype", "op", "shape", "g", "norm", "g alone", "ratio"}};
    table_head(&t.table, &head);
    bench_each_case(NULL, gates_line, &t);
    if (!t.lines)
        fputs("nrg-bench: no op with an activation has these names\n", stderr);
    return t.lines ? 0 : 1;
}
