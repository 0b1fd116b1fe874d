/* --ratios: one kernel as a multiple of another.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "compare.h"
#include "../family.h"
#include "modes.h"

/* The second is in f32. */
static const struct line {
    const char *kernel, *op, *to;
    nrg_dtype dtype;
    bench_shape shape;
} lines[] = {
#define ROWS(op, to, dtype, rows, dim)                                                                                           \
    {                                                                                                                            \
        "norm_forward", op, to, NRG_##dtype, BENCH_ROWS(rows, dim)                                                               \
    }
    ROWS("layer", "rms", F32, 1, 4096),
    ROWS("layer", "rms", F32, 512, 4096),
    ROWS("layer", "rms", F32, 512, 8192),
    ROWS("layer", "rms", F32, 8192, 4096),
    ROWS("add+layer", "add+rms", F32, 1, 4096),
    ROWS("add+layer", "add+rms", F32, 512, 4096),
    ROWS("add+layer", "add+rms", F32, 512, 8192),
    ROWS("add+layer", "add+rms", F32, 8192, 4096),
    ROWS("layer", "rms", F32, 4096, 64),
    ROWS("layer", "rms", F32, 4096, 128),
    ROWS("rms", "rms", F16, 1, 4096),
    ROWS("rms", "rms", F16, 4096, 128),
    ROWS("rms", "rms", F16, 512, 4096),
    ROWS("rms", "rms", F16, 8192, 4096),
    ROWS("rms", "rms", BF16, 1, 4096),
    ROWS("rms", "rms", BF16, 4096, 128),
    ROWS("rms", "rms", BF16, 512, 4096),
    ROWS("rms", "rms", BF16, 8192, 4096),
    ROWS("add+rms", "add+rms", F16, 1, 4096),
    ROWS("add+rms", "add+rms", F16, 4096, 128),
    ROWS("add+rms", "add+rms", F16, 512, 4096),
    ROWS("add+rms", "add+rms", F16, 8192, 4096),
    ROWS("add+rms", "add+rms", BF16, 1, 4096),
    ROWS("add+rms", "add+rms", BF16, 4096, 128),
    ROWS("add+rms", "add+rms", BF16, 512, 4096),
    ROWS("add+rms", "add+rms", BF16, 8192, 4096),
    ROWS("layer", "layer", F16, 1, 4096),
    ROWS("layer", "layer", F16, 4096, 128),
    ROWS("layer", "layer", F16, 512, 4096),
    ROWS("layer", "layer", F16, 8192, 4096),
    ROWS("layer", "layer", BF16, 1, 4096),
    ROWS("layer", "layer", BF16, 4096, 128),
    ROWS("layer", "layer", BF16, 512, 4096),
    ROWS("layer", "layer", BF16, 8192, 4096),
    ROWS("rms+silu-pre-g8", "rms+silu-pre", F32, 4096, 128),
    ROWS("rms+silu-pre-g8", "rms+silu-pre", F32, 4096, 512),
    ROWS("rms+silu-pre-g8", "rms+silu-pre", F32, 4096, 1024),
    ROWS("rms+silu-post-g8", "rms+silu-post", F32, 4096, 128),
    ROWS("rms+silu-post-g8", "rms+silu-post", F32, 4096, 512),
    ROWS("rms+silu-post-g8", "rms+silu-post", F32, 4096, 1024),
    ROWS("rms-exact", "rms", F32, 1, 4096),
    ROWS("rms-exact", "rms", F32, 512, 4096),
    ROWS("rms-exact", "rms", F32, 8192, 4096),
    ROWS("layer-exact", "layer", F32, 1, 4096),
    ROWS("layer-exact", "layer", F32, 512, 4096),
    ROWS("layer-exact", "layer", F32, 8192, 4096),
    ROWS("add+rms-exact", "add+rms", F32, 1, 4096),
    ROWS("add+rms-exact", "add+rms", F32, 512, 4096),
    ROWS("add+rms-exact", "add+rms", F32, 8192, 4096),
#undef ROWS
#define FORWARD(op, to, dtype, ...)                                                                                              \
    {                                                                                                                            \
        "channel_norm_forward", op, to, NRG_##dtype, BENCH_IMAGES(__VA_ARGS__)                                                   \
    }
    FORWARD("group-nhwc", "group", F32, 2, 640, 32, 32),
    FORWARD("group_silu", "group", F32, 2, 640, 32, 32),
    FORWARD("group_silu-nhwc", "group_silu", F32, 2, 640, 32, 32),
    FORWARD("layer", "group", F32, 2, 640, 32, 32),
    FORWARD("batch_train-nhwc", "batch_train", F32, 32, 256, 28, 28),
    FORWARD("batch_train_relu", "batch_train", F32, 32, 256, 28, 28),
    FORWARD("batch_train-nhwc", "batch_train", F32, 32, 64, 112, 112),
    FORWARD("batch_infer-nhwc", "batch_infer", F32, 32, 256, 28, 28),
    FORWARD("batch_folded", "batch_infer", F32, 32, 256, 28, 28),
    FORWARD("instance-nhwc", "instance", F32, 4, 64, 256, 256),
    FORWARD("group", "group", F16, 2, 640, 32, 32),
    FORWARD("group", "group", BF16, 2, 640, 32, 32),
    FORWARD("batch_train", "batch_train", BF16, 32, 64, 112, 112),
    FORWARD("batch_infer", "batch_infer", BF16, 32, 64, 112, 112),
    FORWARD("group-exact", "group", F32, 2, 640, 32, 32),
    FORWARD("batch_train-exact", "batch_train", F32, 32, 256, 28, 28),
#undef FORWARD
#define BACKWARD(op, to, dtype, ...)                                                                                             \
    {                                                                                                                            \
        "channel_norm_backward", op, to, NRG_##dtype, BENCH_IMAGES(__VA_ARGS__)                                                  \
    }
    BACKWARD("group-nhwc", "group", F32, 2, 640, 32, 32),
    BACKWARD("group_silu", "group", F32, 2, 640, 32, 32),
    BACKWARD("batch-nhwc", "batch", F32, 32, 256, 28, 28),
    BACKWARD("batch_relu", "batch", F32, 32, 256, 28, 28),
    BACKWARD("instance-nhwc", "instance", F32, 4, 64, 256, 256),
    BACKWARD("group", "group", BF16, 2, 640, 32, 32),
    BACKWARD("batch", "batch", BF16, 32, 64, 112, 112),
#undef BACKWARD
#define ROPE(kernel, op, to, dtype, rows)                                                                                        \
    {                                                                                                                            \
        kernel, op, to, NRG_##dtype, BENCH_ROWS(rows, 4096)                                                                      \
    }
    ROPE("rope", "normal", "neox", F32, 512),
    ROPE("norm_rope", "norm+normal", "norm,normal", F32, 1),
    ROPE("norm_rope", "norm+normal", "norm,normal", F32, 512),
    ROPE("norm_rope", "norm+normal", "norm,normal", F32, 8192),
    ROPE("norm_rope", "norm+neox", "norm,neox", F32, 1),
    ROPE("norm_rope", "norm+neox", "norm,neox", F32, 512),
    ROPE("norm_rope", "norm+neox", "norm,neox", F32, 8192),
#undef ROPE
};

/* Larger than this is left out of --quick, in elements. */
enum { QUICK_MOST = 512 * 16384 };

enum { SHAPE_COLUMN = 1, THIS_COLUMN = 2, TO_COLUMN = 3, COLUMNS = 7 };

static void cells_of(table_row *row, const bench_case c[2])
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c[0].family, c[0].shape, shape);
    table_cell(row, "%s", nrg_isa_name(c[0].isa));
    table_cell(row, "%s", shape);
    table_cell(row, "%s %s", nrg_dtype_name(c[0].dtype), c[0].op->name);
    table_cell(row, "%s %s", nrg_dtype_name(c[1].dtype), c[1].op->name);
}

static int admitted(const bench_args *args, const bench_case c[2])
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c[0].family, c[0].shape, shape);
    return nrg_isa_supported(c[0].isa) && bench_admits(args->kernel ? args->kernel : "norm_forward", c[0].family->kernel) &&
           (!args->quick || bench_shape_elements(c[0].shape) <= QUICK_MOST) && bench_admits(args->path, nrg_isa_name(c[0].isa)) &&
           bench_admits(args->shape, shape) && (bench_admits(args->op, c[0].op->name) || bench_admits(args->op, c[1].op->name));
}

static void ratio_line(const bench_args *args, const table *t, const bench_case c[2])
{
    table_row row = {0};
    cells_of(&row, c);
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

static void cases_of(bench_case c[2], const struct line *l, int isa)
{
    c[0] = bench_case_of(l->kernel, l->op, l->dtype, (nrg_isa)isa, l->shape);
    c[1] = bench_case_of(l->kernel, l->to, NRG_F32, (nrg_isa)isa, l->shape);
}

int bench_ratios_mode(const bench_args *args)
{
    int width[COLUMNS] = {-6, -9, -14, -14, 8, 8, 5}, any = 0;
    const table t = {args->markdown, COLUMNS, width};
    bench_case c[2];
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; i < COUNT(lines); i++) {
            cases_of(c, &lines[i], isa);
            if (!admitted(args, c))
                continue;
            table_row row = {0};
            cells_of(&row, c);
            for (int column = SHAPE_COLUMN; column <= TO_COLUMN; column++)
                bench_widen(&width[column], row.cell[column]);
            any = 1;
        }
    if (!any) {
        fputs("nrg-bench: no ratio has these names\n", stderr);
        return 1;
    }
    bench_title(args, "Speed of one kernel as a multiple of another's (elements/ns)");
    table_row head = {COLUMNS, {"path", "shape", "this", "against", "this", "against", "speed"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; i < COUNT(lines); i++) {
            cases_of(c, &lines[i], isa);
            if (admitted(args, c))
                ratio_line(args, &t, c);
        }
    return 0;
}
