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

int bench_stores_mode(const bench_args *args)
{
    static const char *const ops[] = {"rms", "add+rms"};
    static const int width[] = {-6, -5, -9, -10, 8, 8, 8, 8, 11, 9};
    table t = {args->markdown, COUNT(width), width};
    bench_title(
        args,
        "Ordinary stores (keep) against non-temporal ones (stream), by the bytes a call touches; auto is the library's rule");
    table_row head = {COUNT(width),
                      {"path", "dtype", "op", "shape", "touched", "keep", "stream", "auto", "keep/stream", "best/auto"}};
    table_head(&t, &head);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
        if (!nrg_isa_supported((nrg_isa)isa) || !bench_admits(args->path, nrg_isa_name((nrg_isa)isa)))
            continue;
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
            if (!bench_admits(args->dtype ? args->dtype : "f32", nrg_dtype_name(dtype)))
                continue;
            for (size_t op = 0; op < COUNT(ops); op++)
                for (size_t kib = 256; bench_admits(args->op, ops[op]) && kib <= (size_t)256 << 10; kib *= args->quick ? 4 : 2)
                    stores_line(args, &t, bench_case_of("norm_forward", ops[op], dtype, (nrg_isa)isa, (bench_shape){1, 4096}),
                                kib);
        }
    }
    return 0;
}
