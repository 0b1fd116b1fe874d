/* --selfcheck: a bare loop against itself.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../bare.h"
#include "../measure.h"
#include "modes.h"

static const char *measure(const bench_case *c, double seconds, bench_contender contender[2])
{
    bench_memory memory;
    bench_bare bare;
    if (!bench_memory_make(&memory, c, 1))
        return "no memory";
    const limit_loop *loops = limit_loops_of(c->isa);
    const char *wrong = loops ? bench_bare_bind(&bare, loops, c, &memory) : "no limit loops for this path";
    if (!wrong) {
        for (int i = 0; i < 2; i++)
            contender[i] = (bench_contender){.run = bench_bare_run, .ctx = &bare};
        bench_measure(contender, 2, seconds, bench_case_bytes(c));
    }
    bench_memory_free(&memory);
    return wrong;
}

static int selfcheck_line(const bench_args *args, const table *t, const bench_case *c, const char *shape)
{
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(c->isa));
    table_cell(&row, "%s", shape);
    int fine = 0;
    bench_contender *contender = calloc(2, sizeof *contender);
    const char *wrong = contender ? measure(c, bench_seconds(args), contender) : "no memory";
    if (wrong)
        table_cell(&row, "%s", wrong);
    else {
        double ratio = contender[0].ns / contender[1].ns;
        fine = fabs(ratio - 1) <= 0.05;
        table_time(&row, contender[0].ns);
        table_time(&row, contender[1].ns);
        table_cell(&row, "%.3f", ratio);
        table_cell(&row, "%s", fine ? "ok" : "off: the machine is busy");
    }
    free(contender);
    table_print(t, &row);
    return fine;
}

int bench_selfcheck_mode(const bench_args *args)
{
    static const struct {
        const char *kernel, *op;
        bench_shape shape;
    } lines[] = {
        {"norm_forward", "add+rms", BENCH_ROWS(1, 64)},
        {"norm_forward", "add+rms", BENCH_ROWS(1, 4096)},
        {"norm_forward", "add+rms", BENCH_ROWS(4096, 128)},
        {"norm_forward", "add+rms", BENCH_ROWS(512, 4096)},
        {"norm_forward", "add+rms", BENCH_ROWS(8192, 4096)},
        {"channel_norm_forward", "group", BENCH_IMAGES(2, 640, 32, 32)},
        {"channel_norm_forward", "batch_add_relu", BENCH_IMAGES(32, 64, 112, 112)},
    };
    static const int width[] = {-6, -13, 8, 8, 6, -24};
    table t = {args->markdown, COUNT(width), width};
    bench_title(args, "The same bare loop as two contenders: a ratio of 1 is what an honest harness on a quiet machine gives");
    table_row head = {COUNT(width), {"path", "shape", "one", "other", "ratio", "verdict"}};
    table_head(&t, &head);
    int fine = 1;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (size_t i = 0; i < COUNT(lines); i++) {
            char name[BENCH_SHAPE_MAX];
            const bench_case c = bench_case_of(lines[i].kernel, lines[i].op, NRG_F32, (nrg_isa)isa, lines[i].shape);
            bench_shape_name(c.family, c.shape, name);
            if (nrg_isa_supported((nrg_isa)isa) && bench_admits(args->path, nrg_isa_name((nrg_isa)isa)) &&
                bench_admits(args->shape, name) && bench_admits(args->kernel, lines[i].kernel))
                fine &= selfcheck_line(args, &t, &c, name);
        }
    return fine ? 0 : 1;
}
