/* --short: channel norms of tensors with few positions, where a vector may hold more than a plane.
 *
 * SPDX-License-Identifier: MIT */
#include <cstdio>

#include "../share.h"
#include "modes.h"

/* One number of channels, and samples until the tensor is as large as the last, whose planes are long: what differs between
 * columns is the length of a plane. */
static const bench_shape shapes[] = {
    BENCH_IMAGES(2048, 512, 1, 1), BENCH_IMAGES(512, 512, 2, 2), BENCH_IMAGES(292, 512, 1, 7), BENCH_IMAGES(128, 512, 4, 4),
    BENCH_IMAGES(42, 512, 7, 7),   BENCH_IMAGES(32, 512, 8, 8),  BENCH_IMAGES(2, 512, 32, 32),
};

namespace bench
{

/* An instance of one element has no variance: what is left of it is its bias. */
static bool is_void(const bench_case &c)
{
    return c.op->over == NRG_CHANNEL_OVER_GROUP && !c.op->groups && c.shape.dim == c.shape.channels;
}

static std::string cell_of(const bench_args &args, const bench_case &c)
{
    if (is_void(c) || !bench_admits(args.shape, shape_of(c).c_str()))
        return "-";
    try {
        const Share s = measure_share(c, seconds_of(args));
        return text("%.1f (%.2f)", s.bytes / s.ns, s.limit_ns / s.ns);
    } catch (const std::runtime_error &wrong) {
        return wrong.what();
    }
}

static std::string notes_of(const bench_family &family)
{
    std::string notes = "Shapes (n x c x h x w):";
    bench_case c = {&family, NRG_F32, NRG_ISA_SCALAR, family.ops, shapes[0], NRG_STORE_AUTO, nullptr};
    for (const bench_shape &shape : shapes) {
        c.shape = shape;
        notes += (&shape > shapes ? ", " : " ") + shape_of(c);
    }
    return notes + ".\nOps ending in -nhwc have channels last (NHWC), the others NCHW. Instance norm with s=1 is omitted: its\n"
                   "result is the bias.\n\n";
}

static bool admitted(const bench_args &args, const bench_case &c)
{
    return admits(args, c.isa) && bench_admits(args.dtype ? args.dtype : "f32", nrg_dtype_name(c.dtype)) &&
           bench_admits(args.op, c.op->name) && (!args.quick || args.op || bench_admits(c.family->quick_ops, c.op->name));
}

static size_t print_family(const bench_args &args, const bench_family &family)
{
    std::string columns = "path:-6,dtype:-5,op:-9";
    for (const bench_shape &s : shapes)
        columns += text(",s=%zu:11", s.height * s.width);
    Table table(args,
                text("%s with few positions: GB/s, and in brackets the roofline fraction, by s = height times width",
                     bench_kernel_of(&family)),
                columns, notes_of(family));
    for (size_t op = 0; op < family.op_count; op++)
        table.widen(2, family.ops[op].name);
    each_case(
        [&](bench_case c) {
            if (!bench_shape_equal(c.shape, c.op->shapes[0]) || !admitted(args, c))
                return;
            Table::Cells cells = {nrg_isa_name(c.isa), nrg_dtype_name(c.dtype), c.op->name};
            for (const bench_shape &shape : shapes) {
                c.shape = shape;
                cells.push_back(cell_of(args, c));
            }
            table.row(cells);
        },
        &family);
    return table.rows();
}

int short_mode(const bench_args &args)
{
    size_t lines = 0;
    for (const bench_family *f : {&bench_channel_norm_forward, &bench_channel_norm_backward})
        if (bench_admits(args.kernel, bench_kernel_of(f)))
            lines += print_family(args, *f);
    return lines ? 0 : nothing("no op with channels has these names");
}

} // namespace bench
