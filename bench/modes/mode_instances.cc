/* --instances: what each instance of the row norm gains over the loops that compute its cases without it.
 *
 * SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstring>

#include "../instances/instances.h"
#include "modes.h"

#ifdef QUICK_RIVALS
/* Which is for tests, and has no time for another copy of the kernels. */
int bench::instances_mode(const bench_args &) { return nothing("--instances: not in a build with -Dquick_rivals=true"); }
#else

namespace bench
{

enum { WITH, WITHOUT, SIDES };

static const char *const names[] = {
#define INSTANCE(name, ...) #name,
#include "../../src/template/norm/instances.def"
#undef INSTANCE
    "general"};

/* The instances whose names begin alike: alone, one of them would take over the cases of another. */
static uint64_t relatives_of(int instance)
{
    const size_t length = strcspn(names[instance], "_") + 1;
    uint64_t relatives = 0;
    for (int i = 0; i < INSTANCES; i++)
        relatives |= (uint64_t)(strncmp(names[i], names[instance], length) == 0) << i;
    return relatives;
}

static size_t bytes_of(nrg_isa isa, int instance)
{
#define BYTES(path, value, unused)                                                                                               \
    if (isa == (value))                                                                                                          \
        return nrg_##path##_instances_bytes(instance);
    NRG_WITH_AVX2(BYTES(avx2, NRG_ISA_AVX2, ))
    NRG_WITH_AVX512(BYTES(avx512, NRG_ISA_AVX512, ))
    NRG_WITH_NEON(BYTES(neon, NRG_ISA_NEON, ))
#undef BYTES
    return 0;
}

/* The instance that computes a case, found by a call. */
static int instance_of(Call &call, uint64_t left_out)
{
    bench_left_out = left_out;
    bench_accepted = INSTANCES;
    bench_call_before(&call);
    call.function->run(call.parts[0].part, 1);
    return left_out >> bench_accepted & 1 ? INSTANCES : bench_accepted;
}

/* The case in which an instance gains most; instead: what computes it without the instance. */
struct Best {
    double gain = 0, ns[SIDES] = {};
    std::string name = "none of the cases", instead;
    size_t cases = 0;
};

static void line(const bench_args &args, Table &table, const bench_case &c, Best (&bests)[INSTANCES])
{
    const Memory memory(&c, 1);
    Call call(c, memory);
    const int instance = instance_of(call, 0);
    if (instance == INSTANCES)
        return;
    const uint64_t left_out[SIDES] = {0, relatives_of(instance)};
    std::vector<Contender> by(SIDES, call.contender());
    for (int side = 0; side < SIDES; side++)
        by[side].before = [&, side] {
            bench_call_before(&call);
            bench_left_out = left_out[side];
        };
    const char *const instead = names[instance_of(call, left_out[WITHOUT])];
    measure(by, seconds_of(args), bench_case_bytes(&c));
    const double gain = ratio(by[WITHOUT], by[WITH]);
    Table::Cells cells = cells_of(c);
    cells.insert(cells.begin(), names[instance]);
    table.row(cells, [&]() -> Table::Cells {
        return {text("%.1f", by[WITH].ns), text("%.1f", by[WITHOUT].ns), text("%.2f", gain), instead};
    });
    Best &best = bests[instance];
    const size_t cases = best.cases + 1;
    if (gain > best.gain)
        best = {gain, {by[WITH].ns, by[WITHOUT].ns}, name_of(c), instead};
    best.cases = cases;
}

int instances_mode(const bench_args &args)
{
    static Best bests[NRG_ISA_COUNT][INSTANCES];
    Table table(args,
                "Instances of the row norm (src/template/norm/instances.def): ns of a call with an instance, and without it and "
                "its relatives",
                "instance:-15,path:-6,dtype:-5,op:-15,shape:-10,with:11,without:11,gain:5,instead:-15");
    each_case(
        [&](const bench_case &given) {
            bench_op op = *given.op;
            bench_case c = given;
            if (op.function || op.gate || op.activation || op.fixed_strides || !admits(args, given, "all", "norm_forward"))
                return;
            op.function = &bench_instances;
            c.op = &op;
            try {
                line(args, table, c, bests[c.isa]);
            } catch (const std::runtime_error &wrong) {
                fprintf(stderr, "nrg-bench: %s: %s\n", op.name, wrong.what());
            }
        },
        &bench_norm_forward);

    Table best_table(args, "The case in which each of them gains most",
                     "instance:-15,case:-45,with:11,without:11,gain:5,bytes:6,cases:5,instead:-15");
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (int i = 0; admits(args, (nrg_isa)isa) && i < INSTANCES; i++)
            if (const size_t bytes = bytes_of((nrg_isa)isa, i)) {
                const Best &b = bests[isa][i];
                best_table.row({names[i], b.name, text("%.1f", b.ns[WITH]), text("%.1f", b.ns[WITHOUT]), text("%.2f", b.gain),
                                text("%zu", bytes), text("%zu", b.cases), b.instead});
            }
    return 0;
}

} // namespace bench
#endif
