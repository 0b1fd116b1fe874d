/* nrg_relative_scores: added to scores that are there.
 *
 * SPDX-License-Identifier: MIT */
#include "relative.h"

static const bench_op ops[] = {RELATIVE_OP("clip"), RELATIVE_OP("all")};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    relative_bind(bound, c, operand);
}

static nrg_status share(const void *bound, int ith, int nth) { return nrg_relative_scores(bound, ith, nth); }

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        share(bound, 0, 1);
}

const bench_family bench_relative_scores = {
    .kernel = "relative_scores",
    .ops = ops,
    .op_count = sizeof ops / sizeof ops[0],
    .quick_ops = "clip",
    .quick_shapes = "1024x128",
    .operand = {[RELATIVE_IN] = {"scores before", BENCH_IN, BENCH_EVEN},
                [RELATIVE_OUT] = {"scores", BENCH_OUT, BENCH_EVEN},
                [RELATIVE_SCRATCH] = {"rest", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = relative_scratch,
    .bound_size = sizeof(nrg_relative_args),
    .bind = bind,
    .phase = {share},
    .run = run,
};
