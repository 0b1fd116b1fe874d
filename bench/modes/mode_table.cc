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

static void print_head(const bench_args &args, const bench_family &family, const Table &table)
{
    title(args, text("%s%sTime of a call, and its roofline fraction (roofline: the fastest loop that only moves the same bytes)",
                     args.kernel ? bench_kernel_of(&family) : "", args.kernel ? ": " : ""));
    if (family.rival) {
        puts("x plain C: time of the plain C baseline (-O3 -ffast-math, for the path's instruction set) / time of the kernel.");
        if (family.ulp)
            puts("x SLEEF: the same for loops with SLEEF's functions. ulp: the largest errors of kernel, plain C and SLEEF.");
        puts("");
    }
    if (family.set_elements)
        printf("Shapes are n x c x h x w. Ops ending in -nhwc have channels last (NHWC), the others NCHW.\n"
               "roofline: each input tensor is read once and each output tensor is written once, in any layout.\n"
               "roofline 2: the tensor of the statistics is read twice. It applies if L2 (%zu KiB) cannot hold a set until the "
               "second\n"
               "read; with NHWC, in which sets are interleaved, a sample (batch norm: the full tensor).\n\n",
               nrg_l2_bytes() >> 10);
    table.head();
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
    std::vector<Table::Column> columns = {{"path", -6}, {"dtype", -5},       {"op", -op_width}, {"shape", -shape_width},
                                          {"time", 8},  {"elements/ns", 11}, {"fraction", 5},   {"roofline", 8}};
    const auto add = [&](bool is_there, std::initializer_list<const char *> titles) {
        for (const char *of : titles)
            if (is_there)
                columns.push_back({of, 8});
    };
    add(family.set_elements, {"fraction 2", "roofline 2"});
    add(family.rival, {"x plain C"});
    add(family.ulp, {"x SLEEF", "ulp", "plain C's", "SLEEF's"});
    columns.push_back({"the roofline's loop", -39});
    Table table(args, columns);
    each_case(
        [&](const bench_case &c) {
            if (!admitted(args, c))
                return;
            if (!table.rows())
                print_head(args, family, table);
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
