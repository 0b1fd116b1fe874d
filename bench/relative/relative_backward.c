/* nrg_relative_backward, with the ends that nrg_relative_values has kept.
 *
 * SPDX-License-Identifier: MIT */
#include "relative.h"

static const bench_op ops[] = {RELATIVE_OP("clip"), RELATIVE_OP("all")};

static void bind(void *bound, const bench_case *c, char *const operand[BENCH_OPERANDS], size_t scratch)
{
    (void)scratch;
    relative_bind(bound, c, operand);
    nrg_relative_args *args = bound, values = *args;
    args->accumulate = 0;
    args->d_table = (float *)(void *)operand[RELATIVE_OUT];
    if (nrg_relative_values(&values, 0, 1) != NRG_OK)
        args->ends = NULL;
}

static nrg_status share(const void *bound, int ith, int nth) { return nrg_relative_backward(bound, ith, nth); }

static void run(const void *bound, size_t calls)
{
    for (; calls; calls--)
        share(bound, 0, 1);
}

const bench_family bench_relative_backward = {
    .kernel = "relative_backward",
    .ops = ops,
    .op_count = sizeof ops / sizeof ops[0],
    .quick_ops = "clip",
    .quick_shapes = "1024x128",
    .operand = {[RELATIVE_IN] = {"a", BENCH_IN, BENCH_EVEN},
                [RELATIVE_OUT] = {"d_table", BENCH_OUT, BENCH_EVEN},
                [RELATIVE_SCRATCH] = {"rest", BENCH_SCRATCH, BENCH_EVEN}},
    .scratch = relative_scratch,
    .bound_size = sizeof(nrg_relative_args),
    .bind = bind,
    .phase = {share},
    .run = run,
};
