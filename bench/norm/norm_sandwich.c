/* nrg_norm_sandwich_forward and nrg_norm_sandwich_backward: RMSNorm of what a layer made, the residual, RMSNorm of the sum; and,
 * in turn, the calls of nrg_norm_forward and nrg_norm_backward that do the same.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "norm.h"

#define SHAPES(smallest)                                                                                                         \
    {                                                                                                                            \
        BENCH_ROWS(1, 768), BENCH_ROWS(1, 2048), BENCH_ROWS(1, 4096), BENCH_ROWS(64, 4096), BENCH_ROWS(512, 2304),               \
            BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(1, smallest)                                               \
    }
static const bench_shape shapes[] = SHAPES(64), super_blocks[] = SHAPES(256);

BENCH_FUNCTION_OF_TWO(backward_in_one, nrg_call_norm_sandwich_backward,
                      nrg_norm_sandwich_backward(part[NRG_SANDWICH_FIRST], part[NRG_SANDWICH_SECOND], part[NRG_SANDWICH_ARGS],
                                                 ith, nth),
                      nrg_norm_sandwich_backward_reduce(part[NRG_SANDWICH_FIRST], part[NRG_SANDWICH_SECOND],
                                                        part[NRG_SANDWICH_ARGS], ith, nth))

/* As a host without the call has it. */
static nrg_status call_both(void *const *part, int ith, int nth)
{
    const nrg_norm_sandwich_args *a = part[NRG_SANDWICH_ARGS];
    nrg_norm_spec first = *(const nrg_norm_spec *)part[NRG_SANDWICH_FIRST];
    nrg_norm_args one = nrg_norm_args_init(a->rows, a->x, a->w1, a->r ? a->r : a->o),
                  two = nrg_norm_args_init(a->rows, one.o, a->w2, a->o);
    first.residual_mode = NRG_RESIDUAL_AFTER;
    one.y = a->y;
    one.b = a->b1;
    two.b = a->b2;
    two.packed = a->packed;
    two.scales = a->scales;
    const nrg_status status = nrg_norm_forward(&first, &one, ith, nth);
    return status == NRG_OK ? nrg_norm_forward(part[NRG_SANDWICH_SECOND], &two, ith, nth) : status;
}
BENCH_FUNCTION(in_two, nrg_call_norm_sandwich_forward, call_both(part, ith, nth))

static nrg_status both_backward(void *const *part, int ith, int nth, int is_reduction)
{
    const nrg_norm_sandwich_backward_args *a = part[NRG_SANDWICH_ARGS];
    const nrg_norm_spec *first = part[NRG_SANDWICH_FIRST], *second = part[NRG_SANDWICH_SECOND];
    nrg_norm_backward_args one = nrg_norm_backward_args_init(a->rows, a->x, a->w1, a->dy, a->dx),
                           two = nrg_norm_backward_args_init(a->rows, NULL, a->w2, a->d_o, a->dy);
    size_t bytes = 0;
    one.dw = a->dw1;
    two.r = a->r;
    two.dr_in = a->dr_in;
    two.dw = a->dw2;
    one.workspace = a->workspace;
    bench_require(nrg_norm_backward_workspace(first, &one, &bytes));
    one.workspace_size = bytes;
    two.workspace = a->workspace ? (char *)a->workspace + bytes : NULL;
    two.workspace_size = a->workspace_size - bytes;
    if (is_reduction) {
        const nrg_status status = nrg_norm_backward_reduce(second, &two, ith, nth);
        return status == NRG_OK ? nrg_norm_backward_reduce(first, &one, ith, nth) : status;
    }
    const nrg_status status = nrg_norm_backward(second, &two, ith, nth);
    return status == NRG_OK ? nrg_norm_backward(first, &one, ith, nth) : status;
}
BENCH_FUNCTION_OF_TWO(backward_in_two, nrg_call_norm_sandwich_backward, both_backward(part, ith, nth, 0),
                      both_backward(part, ith, nth, 1))

#define PLAIN BENCH_SHAPES(shapes)
static const bench_op ops[] = {
    {"sandwich", "w1,w2,o,r", PLAIN},
    {"turns", "w1,w2,o,r", PLAIN, .function = &in_two, .fixed_strides = 1},
    {"sandwich-o", "w1,w2,o", PLAIN},
    {"sandwich-layer", "w1,w2,o,b1,b2,r", PLAIN, .centred = 1},
    {"turns-layer", "w1,w2,o,b1,b2,r", PLAIN, .centred = 1, .function = &in_two, .fixed_strides = 1},
    {"sandwich-backward", "w1,w2,dr_in,dy", PLAIN, .function = &backward_in_one},
    {"turns-backward", "w1,w2,dr_in,dy", PLAIN, .function = &backward_in_two, .fixed_strides = 1},
    {"sandwich-backward-dw", "w1,w2,dr_in,dy,dw1,dw2", PLAIN, .function = &backward_in_one},
    {"turns-backward-dw", "w1,w2,dr_in,dy,dw1,dw2", PLAIN, .function = &backward_in_two, .fixed_strides = 1},
};

/* To bytes: in one call, and in two, of which the second makes them. */
static const bench_op quantized_ops[] = {
    {"sandwich-q8_0", "w1,w2,r,packed", BENCH_TO(Q8_0, shapes)},
    {"turns-q8_0", "w1,w2,r,packed", BENCH_TO(Q8_0, shapes), .function = &in_two, .fixed_strides = 1},
    {"sandwich-q8_k", "w1,w2,r,packed", BENCH_TO(Q8_K, super_blocks)},
    {"sandwich-int8", "w1,w2,r,packed,scales", BENCH_TO(INT8, shapes)},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_norm_spec *first = part[NRG_SANDWICH_FIRST];
    *first = *(nrg_norm_spec *)part[NRG_SANDWICH_SECOND] = bench_norm_spec(c);
    first->format = NRG_QUANT_NONE;
    if (bench_function_of(c)->call == &nrg_call_norm_sandwich_forward) {
        nrg_norm_sandwich_args *args = part[NRG_SANDWICH_ARGS];
        *args = nrg_norm_sandwich_args_init(c->shape.rows, NULL, NULL, NULL, NULL, NULL, NULL);
        args->store = c->store;
    } else {
        nrg_norm_sandwich_backward_args *args = part[NRG_SANDWICH_ARGS];
        *args = nrg_norm_sandwich_backward_args_init(c->shape.rows, NULL, NULL, NULL, NULL, NULL, NULL);
        args->store = c->store;
    }
}

#define SANDWICH .rival = "x,y,w=w1,w2,o,r,q=packed,scales"

const bench_family bench_norm_sandwich = {
    BENCH_OPS(ops, call_norm_sandwich_forward, prepare),
    BENCH_QUICK("sandwich,turns", "1x4096,512x4096"),
    SANDWICH,
};

const bench_family bench_norm_sandwich_quantized = {
    BENCH_OPS(quantized_ops, call_norm_sandwich_forward, prepare),
    BENCH_QUICK("sandwich-q8_0", "1x4096,512x4096"),
    SANDWICH,
};
