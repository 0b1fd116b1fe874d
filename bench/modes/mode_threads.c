/* --threads: two threads against one, barriers included.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "../family.h"
#include "../measure.h"
#include "modes.h"
#include "team.h"

/* One by itself, and both together. */
static const char *measure(bench_team *team, const bench_case *c, double seconds, bench_contender result[2])
{
    bench_memory memory;
    bench_call call;
    if (!bench_memory_make(&memory, c, 1))
        return "not enough memory";
    const char *wrong = bench_call_bind(&call, c, &memory);
    if (!wrong) {
        bench_team_call both = {team, &call};
        result[0] = (bench_contender){.before = bench_team_before_one, .run = bench_team_run_one, .ctx = &both, .wall = 1};
        result[1] = (bench_contender){.before = bench_team_before_two, .run = bench_team_run_two, .ctx = &both, .wall = 1};
        bench_measure(result, 2, seconds, bench_case_bytes(c));
        bench_team_before_one(&both); /* asleep, while memory is freed and made */
    }
    bench_call_free(&call);
    bench_memory_free(&memory);
    return wrong;
}

static int threads_line(const bench_args *args, const table *t, bench_team *team, const bench_case *c)
{
    if (!bench_admits_case(args, c, "f32", NULL))
        return 0;
    table_row row = {0};
    table_cell(&row, "%s", nrg_isa_name(c->isa));
    table_cell(&row, "%s", nrg_dtype_name(c->dtype));
    table_cell(&row, "%s", c->family->kernel);
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    table_cell(&row, "%s", c->op->name);
    table_cell(&row, "%s", shape);
    bench_contender *result = malloc(2 * sizeof *result);
    const char *wrong = result ? measure(team, c, bench_seconds(args), result) : "not enough memory";
    if (wrong)
        table_cell(&row, "%s", wrong);
    else {
        table_time(&row, result[0].ns);
        table_time(&row, result[1].ns);
        table_cell(&row, "%.2f", bench_ratio(&result[0], &result[1]));
    }
    free(result);
    table_print(t, &row);
    return 1;
}

int bench_threads_mode(const bench_args *args)
{
    enum { FITS = 64 * 4096, LARGER = 512 * 4096 };
    static const struct {
        const char *kernel, *op;
        bench_shape shape;
    } lines[] = {
        {"norm_forward", "rms+silu-post", BENCH_ROWS(64, 4096)},
        {"norm_forward", "rms+silu-post", BENCH_ROWS(512, 4096)},
        {"norm_backward", "layer", BENCH_ROWS(64, 4096)},
        {"norm_backward", "layer", BENCH_ROWS(512, 4096)},
        {"activation", "gelu", BENCH_ROWS(1, FITS)},
        {"activation", "gelu", BENCH_ROWS(1, LARGER)},
        {"channel_norm_forward", "group_silu", BENCH_IMAGES(2, 640, 32, 32)},
        {"channel_norm_forward", "group_silu-nhwc", BENCH_IMAGES(2, 640, 32, 32)},
        {"channel_norm_forward", "batch_train", BENCH_IMAGES(32, 256, 28, 28)},
        {"channel_norm_forward", "batch_train-nhwc", BENCH_IMAGES(32, 256, 28, 28)},
        {"channel_norm_forward", "batch_infer", BENCH_IMAGES(32, 256, 28, 28)},
        {"channel_norm_backward", "group", BENCH_IMAGES(2, 640, 32, 32)},
        {"channel_norm_backward", "batch", BENCH_IMAGES(32, 256, 28, 28)},
        {"channel_norm_backward", "batch-nhwc", BENCH_IMAGES(32, 256, 28, 28)},
    };
    static const int width[] = {-6, -5, -21, -16, -12, 10, 11, 8};
    table t = {args->markdown, COUNT(width), width};
    bench_team *team;
    const char *wrong = bench_team_make(&team);
    if (wrong) {
        fprintf(stderr, "nrg-bench: --threads: %s\n", wrong);
        return 1;
    }
    bench_title(args, "Two threads against one, each on a CPU of its own, with a barrier after every phase of every call");
    table_row head = {COUNT(width), {"path", "dtype", "kernel", "op", "shape", "one thread", "two threads", "speed-up"}};
    table_head(&t, &head);
    int any = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (nrg_dtype dtype = NRG_F32; nrg_isa_supported((nrg_isa)isa) && dtype <= NRG_BF16; dtype++)
            for (size_t i = 0; i < COUNT(lines); i++) {
                const bench_case c = bench_case_of(lines[i].kernel, lines[i].op, dtype, (nrg_isa)isa, lines[i].shape);
                any |= threads_line(args, &t, team, &c);
            }
    bench_team_free(team);
    if (!any)
        fputs("nrg-bench: no line has these names\n", stderr);
    return any ? 0 : 1;
}
