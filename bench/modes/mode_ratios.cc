/* --ratios: one kernel as a multiple of another.
 *
 * SPDX-License-Identifier: MIT */
#include "modes.h"

using Shapes = std::vector<bench_shape>;
static const Shapes tokens = {BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096)},
                    prompt = {BENCH_ROWS(512, 4096)},
                    wide = {BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(512, 8192), BENCH_ROWS(8192, 4096)},
                    heads = {BENCH_ROWS(4096, 64), BENCH_ROWS(4096, 128)},
                    narrow = {BENCH_ROWS(1, 4096), BENCH_ROWS(4096, 128), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096)},
                    groups = {BENCH_ROWS(4096, 128), BENCH_ROWS(4096, 512), BENCH_ROWS(4096, 1024)},
                    diffusion = {BENCH_IMAGES(2, 640, 32, 32)}, residual = {BENCH_IMAGES(32, 256, 28, 28)},
                    early = {BENCH_IMAGES(32, 64, 112, 112)}, style = {BENCH_IMAGES(4, 64, 256, 256)};

/* The second is in f32. */
static const struct {
    const char *kernel, *op, *to;
    nrg_dtype dtype;
    const Shapes &shapes;
} lines[] = {
    {"norm_forward", "layer", "rms", NRG_F32, wide},
    {"norm_forward", "add+layer", "add+rms", NRG_F32, wide},
    {"norm_forward", "layer", "rms", NRG_F32, heads},
    {"norm_forward", "rms", "rms", NRG_F16, narrow},
    {"norm_forward", "rms", "rms", NRG_BF16, narrow},
    {"norm_forward", "add+rms", "add+rms", NRG_F16, narrow},
    {"norm_forward", "add+rms", "add+rms", NRG_BF16, narrow},
    {"norm_forward", "layer", "layer", NRG_F16, narrow},
    {"norm_forward", "layer", "layer", NRG_BF16, narrow},
    {"norm_forward", "rms+silu-pre-g8", "rms+silu-pre", NRG_F32, groups},
    {"norm_forward", "rms+silu-post-g8", "rms+silu-post", NRG_F32, groups},
    {"norm_forward", "rms-exact", "rms", NRG_F32, tokens},
    {"norm_forward", "layer-exact", "layer", NRG_F32, tokens},
    {"norm_forward", "add+rms-exact", "add+rms", NRG_F32, tokens},
    {"channel_norm_forward", "group-nhwc", "group", NRG_F32, diffusion},
    {"channel_norm_forward", "group_silu", "group", NRG_F32, diffusion},
    {"channel_norm_forward", "group_silu-nhwc", "group_silu", NRG_F32, diffusion},
    {"channel_norm_forward", "layer", "group", NRG_F32, diffusion},
    {"channel_norm_forward", "batch_train-nhwc", "batch_train", NRG_F32, residual},
    {"channel_norm_forward", "batch_train_relu", "batch_train", NRG_F32, residual},
    {"channel_norm_forward", "batch_train-nhwc", "batch_train", NRG_F32, early},
    {"channel_norm_forward", "batch_infer-nhwc", "batch_infer", NRG_F32, residual},
    {"channel_norm_forward", "batch_folded", "batch_infer", NRG_F32, residual},
    {"channel_norm_forward", "instance-nhwc", "instance", NRG_F32, style},
    {"channel_norm_forward", "group", "group", NRG_F16, diffusion},
    {"channel_norm_forward", "group", "group", NRG_BF16, diffusion},
    {"channel_norm_forward", "batch_train", "batch_train", NRG_BF16, early},
    {"channel_norm_forward", "batch_infer", "batch_infer", NRG_BF16, early},
    {"channel_norm_forward", "group-exact", "group", NRG_F32, diffusion},
    {"channel_norm_forward", "batch_train-exact", "batch_train", NRG_F32, residual},
    {"channel_norm_backward", "group-nhwc", "group", NRG_F32, diffusion},
    {"channel_norm_backward", "group_silu", "group", NRG_F32, diffusion},
    {"channel_norm_backward", "batch-nhwc", "batch", NRG_F32, residual},
    {"channel_norm_backward", "batch_relu", "batch", NRG_F32, residual},
    {"channel_norm_backward", "instance-nhwc", "instance", NRG_F32, style},
    {"channel_norm_backward", "group", "group", NRG_BF16, diffusion},
    {"channel_norm_backward", "batch", "batch", NRG_BF16, early},
    {"rope", "normal", "neox", NRG_F32, prompt},
    {"norm_rope", "norm+normal", "norm,normal", NRG_F32, tokens},
    {"norm_rope", "norm+neox", "norm,neox", NRG_F32, tokens},
};

/* Larger than this is left out of --quick, in elements. */
enum { QUICK_MOST = 512 * 16384 };

using Pair = std::vector<bench_case>;

static std::vector<Pair> admitted(const bench_args &args)
{
    std::vector<Pair> pairs;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (const auto &l : lines)
            for (const bench_shape &shape : l.shapes) {
                const Pair p = {bench_case_of(l.kernel, l.op, l.dtype, (nrg_isa)isa, shape),
                                bench_case_of(l.kernel, l.to, NRG_F32, (nrg_isa)isa, shape)};
                if (bench::admits(args, (nrg_isa)isa) && bench_admits(args.kernel ? args.kernel : "norm_forward", l.kernel) &&
                    (!args.quick || bench_shape_elements(shape) <= QUICK_MOST) &&
                    bench_admits(args.shape, bench::shape_of(p[0]).c_str()) &&
                    (bench_admits(args.op, l.op) || bench_admits(args.op, l.to)))
                    pairs.push_back(p);
            }
    return pairs;
}

static std::vector<std::string> cells_of(const Pair &p)
{
    std::vector<std::string> cells = {nrg_isa_name(p[0].isa), bench::shape_of(p[0])};
    for (const bench_case &c : p)
        cells.push_back(bench::text("%s %s", nrg_dtype_name(c.dtype), c.op->name));
    return cells;
}

int bench::ratios_mode(const bench_args &args)
{
    Table table(args, "Speed of one kernel as a multiple of another's (elements/ns)",
                "path:-6,shape:-9,this:-14,against:-14,this:8,against:8,speed:5");
    const std::vector<Pair> pairs = admitted(args);
    if (pairs.empty())
        return nothing("no ratio has these names");
    for (const Pair &p : pairs)
        for (size_t column = 1; column < 4; column++)
            table.widen(column, ::cells_of(p)[column]);
    for (const Pair &p : pairs)
        table.row(::cells_of(p), [&]() -> Table::Cells {
            const std::vector<Contender> two = compare(p, seconds_of(args));
            return {time_text(two[0].ns), time_text(two[1].ns), text("%.2f", ratio(two[1], two[0]))};
        });
    return 0;
}
