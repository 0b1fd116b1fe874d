/* nrg_softmax_forward and nrg_softmax_backward. Shapes are batch x heads x queries x keys.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/softmax.h"
#include "../family.h"

/* A prompt, a token with a long cache, a row of logits; a small prompt that stays in cache. */
static const bench_shape shapes[] = {BENCH_IMAGES(1, 32, 512, 512), BENCH_IMAGES(1, 32, 1, 4096), BENCH_IMAGES(1, 1, 1, 50257),
                                     BENCH_IMAGES(1, 4, 64, 128)};

enum { PLAIN, LOG, CAUSAL };

static const bench_op forward_ops[] = {
    {"softmax", 0, BENCH_SHAPES(shapes), .option = PLAIN},
    {"log-softmax", 0, BENCH_SHAPES(shapes), .option = LOG},
    {"causal", 0, BENCH_SHAPES(shapes), .option = CAUSAL},
    {"mask", NRG_BIT(NRG_SOFTMAX_MASK), BENCH_SHAPES(shapes), .option = PLAIN},
};
static const bench_op backward_ops[] = {
    {"softmax", 0, BENCH_SHAPES(shapes), .option = PLAIN},
    {"log-softmax", 0, BENCH_SHAPES(shapes), .option = LOG},
};

static void prepare_forward(const bench_case *c, void *const *part)
{
    static const float mask = 0;
    const bench_shape s = c->shape;
    nrg_softmax_args *args = part[NRG_SOFTMAX_ARGS];
    *args = nrg_softmax_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL);
    args->scale = 0.125f;
    args->store = c->store;
    args->log = c->op->option == LOG;
    args->causal = c->op->option == CAUSAL;
    args->query_offset = (int64_t)s.width - (int64_t)s.height;
    args->mask_dtype = NRG_F16;
    args->mask_repeat = NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3;
    if (c->op->operands & NRG_BIT(NRG_SOFTMAX_MASK))
        args->mask = &mask;
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    const bench_shape s = c->shape;
    nrg_softmax_backward_args *args = part[NRG_SOFTMAX_ARGS];
    *args = nrg_softmax_backward_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL, NULL);
    args->scale = 0.125f;
    args->store = c->store;
    args->log = c->op->option == LOG;
}

static void rival_forward(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_softmax_args *a = part[NRG_SOFTMAX_ARGS];
    (void)c;
    *job = (rival_job){.rows = a->batch * a->heads * a->queries, .dim = a->keys, .x = a->x, .o = a->o};
}

static void rival_backward(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_softmax_backward_args *a = part[NRG_SOFTMAX_ARGS];
    (void)c;
    *job = (rival_job){.rows = a->batch * a->heads * a->queries, .dim = a->keys, .x = a->o, .d_o = a->d_o, .dx = a->dx};
}

BENCH_FUNCTION(forward, nrg_call_softmax_forward, nrg_softmax_forward(part[NRG_SOFTMAX_ARGS], ith, nth))
BENCH_FUNCTION(backward, nrg_call_softmax_backward, nrg_softmax_backward(part[NRG_SOFTMAX_ARGS], ith, nth))

const bench_family bench_softmax = {
    .kernel = "softmax",
    BENCH_OPS(forward_ops),
    .quick_ops = "softmax",
    .quick_shapes = "1x32x512x512,1x32x1x4096",
    .function = &forward,
    .prepare = prepare_forward,
    .rival_job = rival_forward,
    .wide = NRG_BIT(NRG_SOFTMAX_X),
    .aside = NRG_BIT(NRG_SOFTMAX_MASK),
};

const bench_family bench_softmax_backward = {
    .kernel = "softmax_backward",
    BENCH_OPS(backward_ops),
    .quick_ops = "softmax",
    .quick_shapes = "1x32x512x512,1x32x1x4096",
    .function = &backward,
    .prepare = prepare_backward,
    .rival_job = rival_backward,
    .positive = NRG_BIT(NRG_SOFTMAX_BACKWARD_O),
};
