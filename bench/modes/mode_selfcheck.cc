/* --selfcheck: a bare loop against itself.
 *
 * SPDX-License-Identifier: MIT */
#include <cmath>

#include "../share.h"
#include "modes.h"

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

int bench::selfcheck_mode(const bench_args &args)
{
    Table table(args, "The same bare loop as two contenders: a ratio of 1 is what an honest harness on a quiet machine gives",
                "path:-6,shape:-13,one:8,other:8,ratio:6,verdict:-24");
    size_t fine = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (const auto &line : lines) {
            const bench_case c = bench_case_of(line.kernel, line.op, NRG_F32, (nrg_isa)isa, line.shape);
            if (!admits(args, (nrg_isa)isa) || !bench_admits(args.shape, shape_of(c).c_str()) ||
                !bench_admits(args.kernel, line.kernel))
                continue;
            table.row({nrg_isa_name(c.isa), shape_of(c)}, [&]() -> Table::Cells {
                const Memory memory(&c, 1);
                const Batch run = bare_loops(c, memory)[0].run;
                std::vector<Contender> two = {{.run = run}, {.run = run}};
                measure(two, seconds_of(args), bench_case_bytes(&c));
                const double ratio = two[0].ns / two[1].ns;
                const bool is_fine = fabs(ratio - 1) <= 0.05;
                fine += is_fine;
                return {time_text(two[0].ns), time_text(two[1].ns), text("%.3f", ratio),
                        is_fine ? "ok" : "off: the machine is busy"};
            });
        }
    return fine == table.rows() ? 0 : 1;
}
