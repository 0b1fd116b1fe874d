/* A case beside its limit and its rivals: the kernel, they, and all bare loops of its path take turns on the same memory.
 *
 * SPDX-License-Identifier: MIT */
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>

#include "modes/modes.h"
#include "paths.h"
#include "share.h"

namespace bench
{

/* ---- rivals ---- */

const char *rival_name(bench_rival rival) { return rival == BENCH_SLEEF ? "sleef" : "naive"; }

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
static const rival_loop *rivals_of(bench_rival rival, nrg_isa isa)
{
#define RIVALS_OF(path, value, unused)                                                                                           \
    if (isa == (value))                                                                                                          \
        return rival == BENCH_SLEEF ? sleef_loops_##path : naive_loops_##path;
    NRG_EACH_PATH(RIVALS_OF, )
    return nullptr;
}

const rival_loop *rival_of(bench_rival rival, const bench_case &c)
{
    for (const rival_loop *l = c.family->rival ? rivals_of(rival, c.isa) : nullptr; l && l->kernel; l++)
        if (l->dtype == c.dtype && strcmp(l->kernel, bench_kernel_of(c.family)) == 0 &&
            (strcmp(l->op, c.op->name) == 0 || std::string(l->op) + "-exact" == c.op->name))
            return l;
    return nullptr;
}

Batch rival_batch(bench_rival rival, const bench_case &c, const bench_call &call)
{
    const rival_loop *loop = rival_of(rival, c);
    if (!loop || !loop->run)
        return {};
    std::array<rival_job, BENCH_PLACEMENTS> jobs{};
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++)
        jobs[p] = bench_rival_job(&c, call.parts[p].part);
    return batch_of(loop->run, jobs);
}

double error_of(const bench_case &c, bench_rival rival)
{
    const auto measure = c.family->ulp ? c.family->ulp : bench_error_of;
    const rival_loop *loop = rival == BENCH_RIVALS ? nullptr : rival_of(rival, c);
    return rival == BENCH_RIVALS || (loop && loop->run) ? measure(&c, loop) : 0;
}

double ulp_of(const bench_case &c, bench_rival rival) { return c.family->ulp ? error_of(c, rival) : 0; }

/* ---- shares ---- */

/* How far behind the fastest a loop may be to be tried again. */
static constexpr double near = 1.05;

/* Loops of one limit, which are contenders from `first` on. */
struct Limit {
    std::vector<Bare> loops;
    size_t first = 0;

    /* The time of the fastest; *name: its name, *close: bits of those that were near it. */
    double fastest(const std::vector<Contender> &field, nrg_isa isa, const char **name, unsigned *close) const
    {
        double best = 0;
        for (size_t i = 0; i < loops.size(); i++)
            if (best == 0 || field[first + i].ns < best) {
                best = field[first + i].ns;
                *name = loops[i].loop->name;
            }
        *close = 0;
        for (size_t i = 0; i < loops.size(); i++)
            if (field[first + i].ns <= near * best)
                *close |= 1u << (loops[i].loop - limit_loops_of(isa));
        return best;
    }
};

/* What one path has in the field. */
struct Side {
    Call call;
    size_t kernel = 0, rival[BENCH_RIVALS] = {}; /* contenders; rival 0: none */
    Limit once, twice;

    Side(const bench_case &c, const bench_memory &m) : call(c, m) {}
};

static void enter(std::vector<Contender> &field, Limit &limit, std::vector<Bare> loops)
{
    static int number; /* a limit's loops are dropped for those of the same one */
    number++;
    limit = {std::move(loops), field.size()};
    for (const Bare &bare : limit.loops)
        field.push_back({.run = bare.run, .limit = number});
}

static void enter(std::vector<Contender> &field, Side &side, const bench_case &c, const bench_memory &m, const Loops &tried)
{
    side.kernel = field.size();
    field.push_back(side.call.contender());
    try {
        std::vector<Bare> once = bare_loops(c, m, false, tried.once), twice;
        if (bench_case_read_twice(&c))
            twice = bare_loops(c, m, true, tried.twice);
        enter(field, side.once, std::move(once));
        enter(field, side.twice, std::move(twice));
    } catch (const std::runtime_error &) { /* there is no limit for such a call */
    }
    for (int r = 0; r < BENCH_RIVALS; r++)
        if (Batch run = rival_batch((bench_rival)r, c, side.call)) {
            side.rival[r] = field.size();
            field.push_back({.run = std::move(run)});
        }
}

static Share result_of(const std::vector<Contender> &field, const Side &side, const bench_case &c, Loops &loops)
{
    static const char *const no_loop = "no limit loop for these operands";
    Share s = {.ns = field[side.kernel].ns,
               .loop = no_loop,
               .elements = (double)bench_shape_elements(c.shape),
               .bytes = (double)bench_case_bytes(&c)};
    const char *unused;
    s.limit_ns = side.once.fastest(field, c.isa, &s.loop, &loops.once);
    s.twice_ns = side.twice.fastest(field, c.isa, &unused, &loops.twice);
    for (int r = 0; r < BENCH_RIVALS; r++)
        s.rival_ns[r] = side.rival[r] ? field[side.rival[r]].ns : 0;
    return s;
}

std::vector<Share> measure_shares(const std::vector<bench_case> &paths, double seconds, size_t rounds, std::vector<Loops> &loops)
{
    const Memory memory(&paths[0], 1);
    std::vector<Contender> field;
    std::deque<Side> sides;
    std::vector<Share> shares;
    for (size_t i = 0; i < paths.size(); i++) {
        sides.emplace_back(paths[i], memory);
        enter(field, sides[i], paths[i], memory, loops[i]);
    }
    measure(field, seconds, bench_case_bytes(&paths[0]), rounds);
    for (size_t i = 0; i < paths.size(); i++)
        shares.push_back(result_of(field, sides[i], paths[i], loops[i]));
    return shares;
}

Share measure_share(const bench_case &c, double seconds)
{
    std::vector<Loops> all(1);
    return measure_shares({c}, seconds, 0, all)[0];
}

} // namespace bench
