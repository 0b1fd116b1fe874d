/* What a report measures, and in which order: time is short, so what tells most is first, and breadth before depth: one shape of
 * every op, then the next of every op; f32, then bf16, then f16.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../family.h"
#include "../modes/modes.h"
#include "report.h"

/* In elements. Beyond the first a call's tensors are out of L2, and a round takes some milliseconds; to scalar code that is
 * much already. */
static const size_t near_most = (size_t)1 << 22, portable_most = (size_t)1 << 18;

/* Of a row alone, by powers of two: from less than L1 to more than what most CPUs have of L3 for a core. */
static const size_t sweep_least = 64, sweep_most = (size_t)1 << 24, sweep_portable_most = (size_t)1 << 18;

static const unsigned portable = 1u << NRG_ISA_SCALAR | 1u << NRG_ISA_GENERIC;

static const struct sweep {
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

struct making {
    report_plan *plan;
    const bench_args *args;
    int failed;
};

static report_part part_of(const bench_case *c)
{
    const size_t elements = bench_shape_elements(c->shape);
    if (portable >> c->isa & 1)
        return elements <= portable_most ? REPORT_PORTABLE : REPORT_LAST;
    return elements <= near_most ? REPORT_NEAR : REPORT_FAR;
}

/* What is small in all dtypes first, since it takes little; by dtype; by the place among the op's shapes of the same part. */
static unsigned rank_of(const bench_case *c)
{
    static const unsigned dtype[] = {[NRG_F32] = 0, [NRG_BF16] = 1, [NRG_F16] = 2};
    const unsigned is_large = part_of(c) == REPORT_NEAR && bench_shape_elements(c->shape) > portable_most;
    bench_case before = *c;
    unsigned place = 0;
    for (size_t i = 0; i < c->op->shape_count && !bench_shape_equal(c->op->shapes[i], c->shape); i++) {
        before.shape = c->op->shapes[i];
        place += part_of(&before) == part_of(c);
    }
    return (3 * is_large + dtype[c->dtype]) * 64 + place;
}

static void add(struct making *m, const bench_case *c, report_part part)
{
    report_plan *plan = m->plan;
    /* the paths of a case do not come one after the other */
    for (size_t i = plan->count; i-- > 0;) {
        report_task *t = &plan->task[i];
        if (t->part == part && t->c.family == c->family && t->c.op == c->op && t->c.dtype == c->dtype &&
            bench_shape_equal(t->c.shape, c->shape)) {
            t->paths |= 1u << c->isa;
            return;
        }
        if (t->c.family != c->family)
            break;
    }
    if (plan->count == plan->room) {
        const size_t room = plan->room ? 2 * plan->room : 1024;
        report_task *larger = realloc(plan->task, room * sizeof *larger);
        if (!larger) {
            m->failed = 1;
            return;
        }
        plan->task = larger;
        plan->room = room;
    }
    plan->task[plan->count] = (report_task){*c, part, 1u << c->isa, rank_of(c), (unsigned)plan->count};
    plan->count++;
}

static void add_case(const bench_case *c, void *ctx)
{
    struct making *m = ctx;
    if (bench_admits_case(m->args, c, "all", "all"))
        add(m, c, part_of(c));
}

/* Rows of rotations are tokens of heads, which a row has one of at least. */
static size_t least_of(const bench_case *c)
{
    const size_t least = c->op->shapes[0].dim < sweep_least ? c->op->shapes[0].dim : sweep_least;
    return c->family == &bench_rope ? 128 : least;
}

static void add_sweep(struct making *m, const struct sweep *s)
{
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
        const bench_shape any = {0};
        if (!nrg_isa_supported((nrg_isa)isa))
            continue;
        bench_case c = bench_case_of(s->kernel, s->op, s->dtype, (nrg_isa)isa, any);
        const int has_channels = c.op->shapes[0].channels != 0;
        const size_t most = portable >> isa & 1 ? sweep_portable_most : sweep_most;
        for (size_t n = least_of(&c); n <= most; n *= 2) {
            c.shape = has_channels ? (bench_shape)BENCH_IMAGES(1, 1, 1, n) : (bench_shape)BENCH_ROWS(1, n);
            if (bench_admits(m->args->kernel, s->kernel) && bench_admits(m->args->op, s->op) &&
                bench_admits(m->args->dtype, nrg_dtype_name(s->dtype)) && bench_admits(m->args->path, nrg_isa_name((nrg_isa)isa)))
                add(m, &c, REPORT_SWEEP);
        }
    }
}

static int by_order(const void *a, const void *b)
{
    const report_task *x = a, *y = b;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->part != REPORT_SWEEP && x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

int report_plan_make(report_plan *plan, const bench_args *args)
{
    struct making m = {plan, args, 0};
    *plan = (report_plan){0};
    for (size_t i = 0; i < COUNT(sweeps); i++)
        add_sweep(&m, &sweeps[i]);
    bench_each_case(NULL, add_case, &m);
    if (!m.failed && plan->count)
        qsort(plan->task, plan->count, sizeof *plan->task, by_order);
    return !m.failed;
}

size_t report_plan_cases(const report_plan *plan)
{
    size_t cases = 0;
    for (size_t i = 0; i < plan->count; i++)
        for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
            cases += plan->task[i].part != REPORT_SWEEP && plan->task[i].paths >> isa & 1;
    return cases;
}

/* Of a call: five to try it, one to look at it, five rounds; and the loops beside it. Nanoseconds as of a CPU of 2024; half or
 * double that makes no difference to what it is for. */
double report_task_cost(const report_task *task)
{
    const double elements = (double)bench_shape_elements(task->c.shape), bytes = (double)bench_case_bytes(&task->c);
    double ns = 5e6 + 0.4 * bytes;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        if (task->paths >> isa & 1)
            ns += 11 * elements * (isa == NRG_ISA_SCALAR ? 10 : isa == NRG_ISA_GENERIC ? 2 : 0.2) + 25 * 0.1 * bytes;
    return ns * 1e-9;
}
