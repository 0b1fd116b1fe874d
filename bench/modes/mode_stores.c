/* --stores: ordinary against non-temporal stores.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "compare.h"
#include "modes.h"

static void stores_line(const bench_args *args, const table *t, bench_case c, size_t kib)
{
    static const nrg_store kinds[] = {NRG_STORE_KEEP, NRG_STORE_STREAM, NRG_STORE_AUTO};
    enum { KINDS = 3 };
    c.shape.rows = (kib << 10) / (bench_case_tensors(&c) * c.shape.dim * nrg_dtype_size(c.dtype));
    table_row row = {0};
    bench_cells_of_case(&row, &c);
    if (kib < 1024)
        table_cell(&row, "%zu KiB", kib);
    else
        table_cell(&row, "%zu MiB", kib >> 10);

    bench_case kind[KINDS];
    for (int i = 0; i < KINDS; i++) {
        kind[i] = c;
        kind[i].store = kinds[i];
    }
    bench_contender *contender = malloc(KINDS * sizeof *contender);
    const char *wrong = contender ? bench_compare(kind, KINDS, bench_seconds(args), contender) : "not enough memory";
    if (wrong)
        table_cell(&row, "%s", wrong);
    else {
        for (int i = 0; i < KINDS; i++)
            table_time(&row, contender[i].ns);
        table_cell(&row, "%.2f", bench_ratio(&contender[0], &contender[1]));
        /* which of the two it chose shows in its time where the two differ */
        double best = contender[0].ns < contender[1].ns ? contender[0].ns : contender[1].ns;
        table_cell(&row, "%.2f", best / contender[2].ns);
    }
    free(contender);
    table_print(t, &row);
}

/* Rows, or samples, until so much is touched. With channels: samples small enough for the first line. */
static const struct line {
    const char *kernel, *op;
    bench_shape shape;
} lines[] = {
    {"norm_forward", "rms", BENCH_ROWS(1, 4096)},
    {"norm_forward", "add+rms", BENCH_ROWS(1, 4096)},
    {"channel_norm_forward", "group", BENCH_IMAGES(1, 64, 16, 16)},
    {"channel_norm_forward", "group-nhwc", BENCH_IMAGES(1, 64, 16, 16)},
    {"channel_norm_forward", "batch_train", BENCH_IMAGES(1, 64, 16, 16)},
    {"channel_norm_forward", "batch_infer", BENCH_IMAGES(1, 64, 16, 16)},
};

int bench_stores_mode(const bench_args *args)
{
    static const int width[] = {-6, -5, -11, -13, 8, 8, 8, 8, 11, 9};
    table t = {args->markdown, COUNT(width), width};
    bench_title(
        args,
        "Ordinary stores (keep) against non-temporal ones (stream), by the bytes a call touches; auto is the library's rule");
    table_row head = {COUNT(width),
                      {"path", "dtype", "op", "shape", "touched", "keep", "stream", "auto", "keep/stream", "best/auto"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (nrg_dtype dtype = NRG_F32; nrg_isa_supported((nrg_isa)isa) && dtype <= NRG_BF16; dtype++)
            for (const struct line *l = lines; l < lines + COUNT(lines); l++) {
                const bench_case c = bench_case_of(l->kernel, l->op, dtype, (nrg_isa)isa, l->shape);
                if (!bench_admits(args->path, nrg_isa_name(c.isa)) || !bench_admits(args->op, c.op->name) ||
                    !bench_admits(args->dtype ? args->dtype : "f32", nrg_dtype_name(dtype)) ||
                    !bench_admits(args->kernel ? args->kernel : "norm_forward", l->kernel))
                    continue;
                for (size_t kib = 256; kib <= (size_t)256 << 10; kib *= args->quick ? 4 : 2)
                    stores_line(args, &t, c, kib);
            }
    return 0;
}
