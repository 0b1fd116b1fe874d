/* nrg_softmax_forward, nrg_softmax_backward, softmax in parts, and cross-entropy, whose rows are softmax's. Shapes are batch x
 * heads x queries x keys.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/softmax.h"
#include "../family.h"

/* A prompt, a token with a long cache, a row of logits; a small prompt that stays in cache. */
#define ROWS(rows, keys) BENCH_IMAGES(1, 1, rows, keys)
#define PROMPTS BENCH_IMAGES(1, 32, 512, 512), BENCH_IMAGES(1, 32, 1, 4096), ROWS(1, 50257), BENCH_IMAGES(1, 4, 64, 128)
static const bench_shape shapes[] = {PROMPTS, ROWS(512, 4096), ROWS(1, 64), BENCH_TAILS(ROWS)};
/* of no more queries than keys */
static const bench_shape causal_shapes[] = {PROMPTS, ROWS(512, 4096), ROWS(1, 64), BENCH_IMAGES(1, 8, 512, 512),
                                            BENCH_IMAGES(1, 8, 512, 1024)};

/* A batch of a language model, and one of images. */
static const bench_shape losses[] = {BENCH_IMAGES(1, 1, 64, 32000), BENCH_IMAGES(1, 1, 512, 1024), BENCH_IMAGES(1, 1, 1, 64)};

/* Parts of a cache that were done apart: MERGED of them, the groups of the op. */
static const bench_shape merges[] = {BENCH_IMAGES(1, 32, 512, 128), BENCH_IMAGES(1, 1, 1, 128)};
enum { MERGED = 8 };

enum { PLAIN, LOG, CAUSAL };

static const bench_op forward_ops[] = {
    {"softmax", NULL, BENCH_SHAPES(shapes), .option = PLAIN},
    {"log-softmax", NULL, BENCH_SHAPES(shapes), .option = LOG},
    {"causal", NULL, BENCH_SHAPES(causal_shapes), .option = CAUSAL},
    {"mask", "mask", BENCH_SHAPES(shapes), .option = PLAIN},
    {"part", "m_in,sum_in", BENCH_SHAPES(shapes), .function = &call_softmax_part},
    {"merge", "inverse", BENCH_SHAPES(merges), .function = &call_softmax_merge, .groups = MERGED},
    {"cross-entropy", NULL, BENCH_SHAPES(losses), .function = &call_cross_entropy_forward},
};
static const bench_op backward_ops[] = {
    {"softmax", NULL, BENCH_SHAPES(shapes), .option = PLAIN},
    {"log-softmax", NULL, BENCH_SHAPES(shapes), .option = LOG},
    {"cross-entropy", NULL, BENCH_SHAPES(losses), .function = &call_cross_entropy_backward},
};

static size_t rows_of(bench_shape s) { return s.rows * s.channels * s.height; }

/* Merged rows are one state each: they are elements. */
static bench_shape scan_shape(const bench_op *op, size_t *row, size_t *rows)
{
    if (op->function == &call_softmax_merge) {
        *row *= *rows;
        *rows = 1;
        return (bench_shape)BENCH_IMAGES(1, 1, *row, 1);
    }
    if (op->function == &call_cross_entropy_forward || op->function == &call_cross_entropy_backward)
        return (bench_shape)BENCH_IMAGES(1, 1, *rows, *row);
    return bench_scan_scores(op, row, rows);
}

static void prepare_loss(const bench_case *c, nrg_cross_entropy_args *args)
{
    *args = nrg_cross_entropy_args_init(c->dtype, rows_of(c->shape), c->shape.width, NULL, NULL, NULL, NULL, NULL);
}

/* Classes, and what a forward pass might have come to. */
static void ready(const bench_case *c, void *const *part)
{
    const nrg_cross_entropy_args *args = part[0];
    if (c->op->function != &call_cross_entropy_forward && c->op->function != &call_cross_entropy_backward)
        return;
    int32_t *ids = own_memory(args->ids);
    for (size_t n = 0; n < args->rows; n++)
        ids[n] = (int32_t)(n * 7919 % args->classes);
    for (size_t n = 0; args->m_in && n < args->rows; n++) {
        ((float *)own_memory(args->m_in))[n] = 0;
        ((double *)own_memory(args->others_in))[n] = 3 * (double)args->classes;
    }
}

static void prepare_forward(const bench_case *c, void *const *part)
{
    static const float mask = 0;
    const bench_shape s = c->shape;
    nrg_softmax_args *args = part[NRG_SOFTMAX_ARGS];
    if (c->op->function == &call_cross_entropy_forward) {
        prepare_loss(c, part[0]);
        return;
    }
    if (c->op->function == &call_softmax_merge) {
        *(nrg_softmax_merge_args *)part[0] = nrg_softmax_merge_args_init(c->op->groups, rows_of(s), NULL, NULL, NULL, NULL);
        return;
    }
    *(nrg_softmax_state *)part[NRG_SOFTMAX_PART_STATE] = nrg_softmax_state_init(NULL, NULL, NULL);
    *args = nrg_softmax_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL);
    args->scale = 0.125f;
    args->store = c->store;
    args->log = c->op->option == LOG;
    args->causal = c->op->option == CAUSAL;
    args->mask_dtype = NRG_F16;
    args->mask_repeat = NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3;
    if (c->op->operands && strcmp(c->op->operands, "mask") == 0)
        args->mask = &mask;
}

static void prepare_backward(const bench_case *c, void *const *part)
{
    const bench_shape s = c->shape;
    nrg_softmax_backward_args *args = part[NRG_SOFTMAX_ARGS];
    if (c->op->function == &call_cross_entropy_backward) {
        prepare_loss(c, part[0]);
        return;
    }
    *args = nrg_softmax_backward_args_init(c->dtype, s.rows, s.channels, s.height, s.width, NULL, NULL, NULL);
    args->scale = 0.125f;
    args->store = c->store;
    args->log = c->op->option == LOG;
}

const bench_family bench_softmax = {
    BENCH_OPS(forward_ops, call_softmax_forward, prepare_forward),
    BENCH_QUICK("softmax", "1x32x512x512,1x32x1x4096"),
    .scan_shape = scan_shape,
    .ready = ready,
    .rival = "x,o,m_in,sum_in,m,sum,factor,inverse,ids,loss,others",
    .wide = "x",
    /* of cross-entropy the classes, and sums: where a loop that only reads leaves its own */
    .aside = "mask,ids,others",
};

const bench_family bench_softmax_backward = {
    BENCH_OPS(backward_ops, call_softmax_backward, prepare_backward),
    BENCH_QUICK("softmax", "1x32x512x512,1x32x1x4096"),
    .scan_shape = scan_shape,
    .ready = ready,
    .rival = "x=o,x,d_o,dx,ids,m_in,others_in,d_loss",
    .positive = "o,x",
};
