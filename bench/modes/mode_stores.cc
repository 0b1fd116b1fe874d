/* --stores: ordinary against non-temporal stores.
 *
 * SPDX-License-Identifier: MIT */
#include "modes.h"

/* Rows, or samples, until so much is touched. With channels: samples small enough for the first line. */
static const struct {
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

int bench::stores_mode(const bench_args &args)
{
    Table table(
        args,
        "Ordinary stores (keep) against non-temporal ones (stream), by the bytes a call touches; auto is the library's rule",
        "path:-6,dtype:-5,op:-11,shape:-13,touched:8,keep:8,stream:8,auto:8,keep/stream:11,best/auto:9");
    const auto line = [&](bench_case c, size_t kib) {
        c.shape.rows = (kib << 10) / (bench_case_tensors(&c) * c.shape.dim * nrg_dtype_size(c.dtype));
        Table::Cells names = cells_of(c);
        names.push_back(kib < 1024 ? text("%zu KiB", kib) : text("%zu MiB", kib >> 10));
        table.row(names, [&]() -> Table::Cells {
            std::vector<bench_case> kinds(3, c);
            kinds[0].store = NRG_STORE_KEEP;
            kinds[1].store = NRG_STORE_STREAM;
            const std::vector<Contender> by = compare(kinds, seconds_of(args));
            /* which of the two it chose shows in its time where the two differ */
            return {time_text(by[0].ns), time_text(by[1].ns), time_text(by[2].ns), text("%.2f", ratio(by[0], by[1])),
                    text("%.2f", std::min(by[0].ns, by[1].ns) / by[2].ns)};
        });
    };
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (int dtype = NRG_F32; admits(args, (nrg_isa)isa) && dtype <= NRG_BF16; dtype++)
            for (const auto &l : lines) {
                const bench_case c = bench_case_of(l.kernel, l.op, (nrg_dtype)dtype, (nrg_isa)isa, l.shape);
                const bool is_asked = bench_admits(args.op, l.op) &&
                                      bench_admits(args.dtype ? args.dtype : "f32", nrg_dtype_name(c.dtype)) &&
                                      bench_admits(args.kernel ? args.kernel : "norm_forward", l.kernel);
                for (size_t kib = 256; is_asked && kib <= (size_t)256 << 10; kib *= args.quick ? 4 : 2)
                    line(c, kib);
            }
    return 0;
}
