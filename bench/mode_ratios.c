/* --ratios: one kernel as a multiple of another.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "compare.h"
#include "modes.h"

static void ratio_line(const bench_args *args, const table *t, const bench_case c[2])
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c[0].family, c[0].shape, shape);
    if (!bench_admits(args->path, nrg_isa_name(c[0].isa)) || !bench_admits(args->shape, shape) ||
        !(bench_admits(args->op, c[0].op->name) || bench_admits(args->op, c[1].op->name)))
        return;
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(c[0].isa));
    table_cell(&row, "%s", shape);
    table_cell(&row, "%s %s", nrg_dtype_name(c[0].dtype), c[0].op->name);
    table_cell(&row, "%s %s", nrg_dtype_name(c[1].dtype), c[1].op->name);
    bench_contender *result = malloc(2 * sizeof *result);
    const char *wrong = result ? bench_compare(c, 2, bench_seconds(args), result) : "not enough memory";
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

int bench_ratios_mode(const bench_args *args)
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
    bench_title(args, "Speed of one kernel as a multiple of another's (elements/ns)");
    table_row head = {COUNT(width), {"path", "shape", "this", "against", "this", "against", "speed"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; nrg_isa_supported((nrg_isa)isa) && i < COUNT(lines); i++) {
            const bench_case c[2] = {bench_case_of("norm_forward", lines[i].op, lines[i].dtype, (nrg_isa)isa, lines[i].shape),
                                     bench_case_of("norm_forward", lines[i].to, NRG_F32, (nrg_isa)isa, lines[i].shape)};
            if (!args->quick || lines[i].shape.rows <= 512)
                ratio_line(args, &t, c);
        }
    return 0;
}
