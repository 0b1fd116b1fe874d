/* --table: times, shares of the limit, and ratios to rivals.
 *
 * SPDX-License-Identifier: MIT */
#include <cstdio>

#include "../share.h"
extern "C" {
#include "internal.h"
}
#include "modes.h"

/* Without --kernel and --op: the tables of docs/speed.md. */
static const char default_kernel[] = "norm_forward", default_ops[] = "rms,layer,add+rms,add+layer";

namespace bench
{

static bool admitted(const bench_args &args, const bench_case &c)
{
    return admits(args, c, "f32", default_kernel) && (args.op || args.kernel || bench_admits(default_ops, c.op->name)) &&
           (!args.quick || args.op || bench_admits(c.family->quick_ops, c.op->name)) &&
           (!args.quick || args.shape || bench_admits(c.family->quick_shapes, shape_of(c).c_str()));
}

static std::string notes_of(const bench_family &family)
{
    std::string notes;
    if (family.rival)
        notes +=
            "x plain C: time of the plain C baseline (-O3 -ffast-math, for the path's instruction set) / time of the kernel.\n";
    if (family.rival && family.ulp)
        notes += "x SLEEF: the same for loops with SLEEF's functions. ulp: the largest errors of kernel, plain C and SLEEF.\n";
    if (family.rival)
        notes += "\n";
    if (family.set_elements)
        notes +=
            text("Shapes are n x c x h x w. Ops ending in -nhwc have channels last (NHWC), the others NCHW.\n"
                 "roofline: each input tensor is read once and each output tensor is written once, in any layout.\n"
                 "roofline 2: the tensor of the statistics is read twice. It applies if L2 (%zu KiB) cannot hold a set until "
                 "the second\n"
                 "read; with NHWC, in which sets are interleaved, a sample (batch norm: the full tensor).\n\n",
                 nrg_l2_bytes() >> 10);
    return notes;
}

static std::string text_or_dash(const char *format, double value) { return value > 0 ? text(format, value) : "-"; }

static Table::Cells figures_of(const bench_args &args, const bench_case &c)
{
    const Share s = measure_share(c, seconds_of(args));
    Table::Cells cells = {time_text(s.ns), text("%.2f", s.elements / s.ns)};
    const auto limit = [&](double ns) {
        cells.push_back(text_or_dash("%.2f", ns / s.ns));
        cells.push_back(ns > 0 ? time_text(ns) : "-");
    };
    limit(s.limit_ns);
    if (c.family->set_elements)
        limit(s.twice_ns);
    if (c.family->rival)
        cells.push_back(text_or_dash("%.2f", s.rival_ns[BENCH_NAIVE] / s.ns));
    if (c.family->ulp) {
        cells.push_back(text_or_dash("%.2f", s.rival_ns[BENCH_SLEEF] / s.ns));
        for (bench_rival who : {BENCH_RIVALS, BENCH_NAIVE, BENCH_SLEEF})
            cells.push_back(text_or_dash("%.3g", ulp_of(c, who)));
    }
    cells.push_back(s.loop);
    return cells;
}

static size_t print_family(const bench_args &args, const bench_family &family, int op_width, int shape_width)
{
    const std::string of = args.kernel ? text("%s: ", bench_kernel_of(&family)) : "";
    std::string columns =
        text("path:-6,dtype:-5,op:%d,shape:%d,time:8,elements/ns:11,fraction:5,roofline:8", -op_width, -shape_width);
    columns += family.set_elements ? ",fraction 2:8,roofline 2:8" : "";
    columns += family.rival ? ",x plain C:8" : "";
    columns += family.ulp ? ",x SLEEF:8,ulp:8,plain C's:8,SLEEF's:8" : "";
    Table table(args,
                of + "Time of a call, and its roofline fraction (roofline: the fastest loop that only moves the same bytes)",
                columns + ",the roofline's loop:-39", notes_of(family));
    each_case(
        [&](const bench_case &c) {
            if (admitted(args, c))
                table.row(cells_of(c), [&] { return figures_of(args, c); });
        },
        &family);
    return table.rows();
}

int table_mode(const bench_args &args)
{
    int op_width = 9, shape_width = 9;
    size_t lines = 0;
    each_case([&](const bench_case &c) {
        if (admitted(args, c)) {
            op_width = std::max(op_width, (int)cells_of(c)[2].size());
            shape_width = std::max(shape_width, (int)cells_of(c)[3].size());
        }
    });
    for (size_t i = 0; const bench_family *family = bench_family_at(i); i++)
        lines += print_family(args, *family, op_width, shape_width);
    return lines ? 0 : nothing("no case has these names");
}

} // namespace bench
