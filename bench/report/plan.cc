/* What a report measures, and in which order: time is short, so what tells most is first, and breadth before depth: one shape of
 * every op, then the next of every op; f32, then bf16, then f16.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <tuple>

#include "report.h"

namespace bench
{

/* In elements. Beyond the first a call's tensors are out of L2, and a round takes some milliseconds; to scalar code that is
 * much already. */
static constexpr size_t near_most = (size_t)1 << 22, portable_most = (size_t)1 << 18;

/* Of a row alone, by powers of two: from less than L1 to more than what most CPUs have of L3 for a core. */
static constexpr size_t sweep_least = 64, sweep_most = (size_t)1 << 24, sweep_portable_most = (size_t)1 << 18;

static bool is_portable(nrg_isa isa) { return isa == NRG_ISA_SCALAR || isa == NRG_ISA_GENERIC; }

static const struct {
    const char *kernel, *op;
    nrg_dtype dtype;
} sweeps[] = {
    {"norm_forward", "rms", NRG_F32},
    {"norm_forward", "add+rms", NRG_F32},
    {"norm_forward", "layer", NRG_F32},
    {"norm_forward", "rms", NRG_BF16},
    {"norm_forward", "rms+silu-post", NRG_F32},
    {"activation", "silu", NRG_F32},
    {"activation", "gelu", NRG_F32},
    {"softmax", "softmax", NRG_F32},
    {"rope", "neox", NRG_F32},
    {"norm_backward", "rms-dx", NRG_F32},
};

static Part part_of(const bench_case &c)
{
    const size_t elements = bench_shape_elements(c.shape);
    if (is_portable(c.isa))
        return elements <= portable_most ? REPORT_PORTABLE : REPORT_LAST;
    return elements <= near_most ? REPORT_NEAR : REPORT_FAR;
}

/* What is small in all dtypes first, since it takes little; by dtype; by the place among the op's shapes of the same part. */
static unsigned rank_of(const bench_case &c)
{
    const unsigned is_large = part_of(c) == REPORT_NEAR && bench_shape_elements(c.shape) > portable_most;
    bench_case before = c;
    unsigned place = 0;
    for (size_t i = 0; i < c.op->shape_count && !bench_shape_equal(c.op->shapes[i], c.shape); i++) {
        before.shape = c.op->shapes[i];
        place += part_of(before) == part_of(c);
    }
    return (3 * is_large + (c.dtype == NRG_BF16 ? 1 : c.dtype == NRG_F16 ? 2 : 0)) * 64 + place;
}

static void add(std::vector<Task> &plan, const bench_case &c, Part part)
{
    /* the paths of a case do not come one after the other */
    for (auto t = plan.rbegin(); t != plan.rend() && t->c.family == c.family; t++)
        if (t->part == part && t->c.op == c.op && t->c.dtype == c.dtype && bench_shape_equal(t->c.shape, c.shape)) {
            t->paths.push_back(c.isa);
            return;
        }
    plan.push_back({c, part, part == REPORT_SWEEP ? 0 : rank_of(c), {c.isa}});
}

/* Rows of rotations are tokens of heads, which a row has one of at least. */
static size_t least_of(const bench_case &c) { return c.family == &bench_rope ? 128 : std::min(c.op->shapes[0].dim, sweep_least); }

std::vector<Task> report_plan(const bench_args &args)
{
    std::vector<Task> plan;
    for (const auto &s : sweeps)
        for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
            bench_case c = bench_case_of(s.kernel, s.op, s.dtype, (nrg_isa)isa, {});
            if (!admits(args, c.isa) || !bench_admits(args.kernel, s.kernel) || !bench_admits(args.op, s.op) ||
                !bench_admits(args.dtype, nrg_dtype_name(s.dtype)))
                continue;
            for (size_t n = least_of(c); n <= (is_portable(c.isa) ? sweep_portable_most : sweep_most); n *= 2) {
                c.shape = BENCH_ROWS(1, n);
                if (c.op->shapes[0].channels)
                    c.shape = BENCH_IMAGES(1, 1, 1, n);
                add(plan, c, REPORT_SWEEP);
            }
        }
    each_case([&](const bench_case &c) {
        if (admits(args, c))
            add(plan, c, part_of(c));
    });
    std::stable_sort(plan.begin(), plan.end(),
                     [](const Task &a, const Task &b) { return std::tie(a.part, a.rank) < std::tie(b.part, b.rank); });
    return plan;
}

size_t Report::cases() const
{
    size_t n = 0;
    for (const Task &t : plan)
        n += t.part == REPORT_SWEEP ? 0 : t.paths.size();
    return n;
}

/* Of a call: five to try it, one to look at it, five rounds; and the loops beside it. Nanoseconds as of a CPU of 2024; half or
 * double that makes no difference to what it is for. */
double Task::cost() const
{
    const double elements = (double)bench_shape_elements(c.shape), bytes = (double)bench_case_bytes(&c);
    double ns = 5e6 + 0.4 * bytes;
    for (const nrg_isa isa : paths)
        ns += 11 * elements * (isa == NRG_ISA_SCALAR ? 10 : isa == NRG_ISA_GENERIC ? 2 : 0.2) + 25 * 0.1 * bytes;
    return ns * 1e-9;
}

} // namespace bench
