/* --short: channel norms of tensors with few positions, where a vector may hold more than a plane.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../family.h"
#include "modes.h"
#include "share.h"

/* One number of channels, and samples until the tensor is as large as the last, whose planes are long: what differs between
 * columns is the length of a plane. */
static const bench_shape shapes[] = {
    BENCH_IMAGES(2048, 512, 1, 1), BENCH_IMAGES(512, 512, 2, 2), BENCH_IMAGES(292, 512, 1, 7), BENCH_IMAGES(128, 512, 4, 4),
    BENCH_IMAGES(42, 512, 7, 7),   BENCH_IMAGES(32, 512, 8, 8),  BENCH_IMAGES(2, 512, 32, 32),
};

enum { SHAPES = COUNT(shapes), NAMES = 3, CELL_WIDTH = 11 };

/* An instance of one element has no variance: what is left of it is its bias. */
static int is_void(const bench_case *c)
{
    return c->op->over == NRG_CHANNEL_OVER_GROUP && !c->op->groups && c->shape.dim == c->shape.channels;
}

static void share_cell(const bench_args *args, table_row *row, const bench_case *c)
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    if (is_void(c) || !bench_admits(args->shape, shape)) {
        table_cell(row, "-");
        return;
    }
    bench_share s;
    const char *wrong = bench_measure_share(c, bench_seconds(args), &s);
    if (wrong)
        table_cell(row, "%s", wrong);
    else
        table_cell(row, "%.1f (%.2f)", s.bytes / s.ns, s.limit_ns / s.ns);
}

static void head(const bench_args *args, const table *t, const char *kernel)
{
    char text[160];
    snprintf(text, sizeof text, "%s with few positions: GB/s, and in brackets the roofline fraction, by s = height times width",
             kernel);
    bench_title(args, text);
    printf("Shapes (n x c x h x w):");
    for (size_t i = 0; i < SHAPES; i++)
        printf("%s %zux%zux%zux%zu", i ? "," : "", shapes[i].rows, shapes[i].channels, shapes[i].height, shapes[i].width);
    printf(".\nOps ending in -nhwc have channels last (NHWC), the others NCHW. Instance norm with s=1 is omitted: its\n"
           "result is the bias.\n\n");
    table_row row = {NAMES, {"path", "dtype", "op"}};
    for (size_t i = 0; i < SHAPES; i++)
        table_cell(&row, "s=%zu", shapes[i].height * shapes[i].width);
    table_head(t, &row);
}

/* Whether there is such a line. */
static int admitted(const bench_args *args, const bench_case *c)
{
    return nrg_isa_supported(c->isa) && !(c->op->exact && c->dtype != NRG_F32) &&
           bench_admits(args->path, nrg_isa_name(c->isa)) &&
           bench_admits(args->dtype ? args->dtype : "f32", nrg_dtype_name(c->dtype)) && bench_admits(args->op, c->op->name) &&
           (!args->quick || args->op || bench_admits(c->family->quick_ops, c->op->name));
}

static int kernel_lines(const bench_args *args, const char *kernel)
{
    int width[NAMES + SHAPES] = {-6, -5, -9};
    for (int i = NAMES; i < NAMES + SHAPES; i++)
        width[i] = CELL_WIDTH;
    const table t = {args->markdown, COUNT(width), width};
    size_t at = 0;
    while (bench_family_at(at) && strcmp(bench_family_at(at)->kernel, kernel) != 0)
        at++;
    const bench_family *f = bench_family_at(at);
    int lines = 0;
    for (size_t op = 0; f && op < f->op_count; op++)
        bench_widen(&width[2], f->ops[op].name);
    for (int isa = 0; f && isa < NRG_ISA_COUNT; isa++)
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
            for (size_t op = 0; op < f->op_count; op++) {
                bench_case c = {f, dtype, (nrg_isa)isa, &f->ops[op], shapes[0], NRG_STORE_AUTO, NULL};
                if (!admitted(args, &c))
                    continue;
                if (lines++ == 0)
                    head(args, &t, kernel);
                table_row row = {0};
                table_cell(&row, "%s", nrg_isa_name(c.isa));
                table_cell(&row, "%s", nrg_dtype_name(c.dtype));
                table_cell(&row, "%s", c.op->name);
                for (size_t i = 0; i < SHAPES; i++) {
                    c.shape = shapes[i];
                    share_cell(args, &row, &c);
                }
                table_print(&t, &row);
            }
    return lines;
}

int bench_short_mode(const bench_args *args)
{
    static const char *const kernels[] = {"channel_norm_forward", "channel_norm_backward"};
    int lines = 0;
    for (size_t i = 0; i < COUNT(kernels); i++)
        if (bench_admits(args->kernel, kernels[i]))
            lines += kernel_lines(args, kernels[i]);
    if (!lines)
        fputs("nrg-bench: no op with channels has these names\n", stderr);
    return lines ? 0 : 1;
}
