/* nrg_norm_backward, and nrg_norm_backward_reduce where dw or db is asked for: both phases are one call.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

static const bench_shape shapes[] = {BENCH_ROWS(1, 768),    BENCH_ROWS(1, 4096),    BENCH_ROWS(64, 4096), BENCH_ROWS(512, 768),
                                     BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(4096, 64), BENCH_ROWS(4096, 128),
                                     BENCH_ROWS(1, 64),     BENCH_TAILS(BENCH_ROWS)};

#define SHAPES BENCH_SHAPES(shapes)

/* add+: after the sum: r was kept by the forward pass, and a gradient comes down the residual stream; dy is dx: not written.
 * -dx: without gradients of w and b, as below a frozen norm; -saved: with the mean that the forward pass stored */
static const bench_op ops[] = {
    {"rms", "w,dx,x,dw", SHAPES},
    {"layer", "w,dx,x,dw,db", SHAPES, .centred = 1},
    {"add+rms", "w,dx,r,dr_in,dw", SHAPES},
    {"add+layer", "w,dx,r,dr_in,dw,db", SHAPES, .centred = 1},
    {"layer-saved", "w,dx,x,dw,db,mean", SHAPES, .centred = 1},
    {"add+layer-saved", "w,dx,r,dr_in,dw,db,mean", SHAPES, .centred = 1},
    {"layer-exact", "w,dx,x,dw,db", SHAPES, .centred = 1, .exact = 1}, /* its mean is computed so */
    {"rms-dx", "w,dx,x", SHAPES},
    {"layer-dx", "w,dx,x", SHAPES, .centred = 1},
    {"rms+silu-post", "w,dx,x,dw,z,dz", SHAPES, .gate = NRG_GATE_POST, .activation = NRG_ACT_SILU},
};

static void prepare(const bench_case *c, void *const *part)
{
    nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    *spec = bench_norm_spec(c);
    nrg_norm_backward_args *args = part[NRG_NORM_ARGS];
    *args = nrg_norm_backward_args_init(c->shape.rows, NULL, NULL, NULL, NULL);
    args->store = c->store;
}

/* The mean comes from a forward pass, whose output is where dx will be. */
static void ready(const bench_case *c, void *const *part)
{
    const nrg_norm_backward_args *back = part[NRG_NORM_ARGS];
    nrg_norm_args args = nrg_norm_args_init(c->shape.rows, back->r ? back->r : back->x, NULL, back->dx);
    args.mean = own_memory(back->mean);
    if (args.mean)
        bench_require(nrg_norm_forward(part[NRG_NORM_SPEC], &args, 0, 1));
}

static nrg_status reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    return args->dw || args->db ? nrg_norm_backward_reduce(spec, args, ith, nth) : NRG_OK;
}

BENCH_FUNCTION_OF_TWO(backward, nrg_call_norm_backward, nrg_norm_backward(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], ith, nth),
                      reduce(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], ith, nth))

const bench_family bench_norm_backward = {
    BENCH_OPS(ops, backward, prepare),
    BENCH_QUICK("rms,add+rms,rms+silu-post", "1x4096,512x4096,8192x4096,4096x128"),
    .ready = ready,
    .wide = "z",
    .rival = "x,x=r,z,w,d_o,dr_in,mean,dx,dz,dw,db",
};
