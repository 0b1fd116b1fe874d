/* --gates: what a fused activation costs. Within the caches a norm with an activation can be no faster than the activation.
 *
 * SPDX-License-Identifier: MIT */
#include "modes.h"

/* What the caches hold; from memory both would be as fast as it. The smallest tensors with channels need L3. */
static const char shapes[] = "1x4096,64x4096,512x768,4096x64,4096x128,1x320x64x64,2x640x32x32,32x256x28x28";

int bench::gates_mode(const bench_args &args)
{
    Table table(args, "Elements/ns of a norm with an activation, of the activation alone on as many elements, and the ratio",
                "path:-6,dtype:-5,op:-21,shape:-12,g:-9,norm:8,g alone:8,ratio:5");
    each_case([&](const bench_case &c) {
        if (c.op->activation == NRG_ACT_IDENTITY || !admits(args, c, "f32,bf16", "norm_forward") ||
            !bench_admits(args.path ? nullptr : "avx512,avx2,neon", nrg_isa_name(c.isa)) ||
            !bench_admits(args.shape ? nullptr : shapes, shape_of(c).c_str()))
            return;
        const size_t elements = bench_shape_elements(c.shape);
        const char *g = nrg_activation_name(c.op->activation);
        Table::Cells names = cells_of(c);
        names.push_back(g);
        table.row(names, [&]() -> Table::Cells {
            const bench_case alone = bench_case_of("activation", g, c.dtype, c.isa, BENCH_ROWS(1, elements));
            const std::vector<Contender> two = compare({c, alone}, seconds_of(args));
            return {text("%.2f", (double)elements / two[0].ns), text("%.2f", (double)elements / two[1].ns),
                    text("%.2f", ratio(two[1], two[0]))};
        });
    });
    return table.rows() ? 0 : nothing("no op with an activation has these names");
}
