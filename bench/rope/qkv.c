/* nrg_qkv beside the steps by hand: q, k and v of a layer with 32 heads of q and 8 of k and v, 128 elements each, into a cache.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/qkv.h"
#include "../family.h"

enum { HEAD = 128, Q_HEADS = 32, K_HEADS = 8, SLOT_ROOM = 64 };

/* A row is a token's q, k and v: 6144 elements. */
enum { ROW = HEAD * (Q_HEADS + 2 * K_HEADS) };
static const bench_shape shapes[] = {BENCH_ROWS(1, ROW), BENCH_ROWS(512, ROW)};

/* option: bits */
enum { NORM = 1, CACHE_F16 = 2, ANEW = 4, NEOX = 8 };

static void prepare(const bench_case *c, void *const *part)
{
    nrg_qkv_args *a = part[NRG_QKV_ARGS];
    nrg_norm_spec *norm = part[NRG_QKV_NORM];
    *(nrg_rope_spec *)part[NRG_QKV_ROPE] =
        nrg_rope_spec_init(HEAD, c->op->option & NEOX ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 500000);
    if (c->op->option & NORM)
        *norm = nrg_rms_norm_spec(HEAD, 1e-6);
    norm->size = sizeof *norm;
    *a = nrg_qkv_args_init(c->shape.rows, HEAD);
    a->dtype = c->dtype;
    a->k_o_dtype = a->v_o_dtype = c->op->option & CACHE_F16 ? NRG_F16 : NRG_DTYPE_SAME;
    a->store = c->store;
    a->keep = !(c->op->option & ANEW);
    a->q_heads = Q_HEADS;
    a->k_heads = a->v_heads = K_HEADS;
    a->slot_count = c->shape.rows;
}

/* Slots that follow each other, as in a prompt. */
static void ready(const bench_case *c, void *const *part)
{
    const nrg_qkv_args *a = part[NRG_QKV_ARGS];
    int64_t *slots = own_memory(a->slots);
    memset(own_memory(a->workspace), 0, a->workspace_size);
    for (size_t t = 0; slots && t < c->shape.rows; t++)
        slots[t] = (int64_t)t;
}

BENCH_FUNCTION(in_one, nrg_call_qkv, nrg_qkv(part[NRG_QKV_ROPE], part[NRG_QKV_NORM], part[NRG_QKV_ARGS], ith, nth))

#define OP(name, bits)                                                                                                           \
    {                                                                                                                            \
        name, 1 << NRG_QKV_SLOTS | ((bits)&NORM ? 1 << NRG_QKV_Q_W | 1 << NRG_QKV_K_W : 0), BENCH_SHAPES(shapes),                \
            .option = (bits)                                                                                                     \
    }
static const bench_op ops[] = {
    OP("llama", 0),
    OP("llama-f16", CACHE_F16),
    OP("llama-f16-anew", CACHE_F16 | ANEW),
    OP("qwen3", NORM | NEOX),
    OP("qwen3-f16", NORM | NEOX | CACHE_F16),
};

const bench_family bench_qkv = {
    .kernel = "qkv",
    BENCH_OPS(ops),
    .quick_ops = "llama-f16,qwen3-f16",
    .quick_shapes = "1x6144,512x6144",
    .function = &in_one,
    .prepare = prepare,
    .ready = ready,
    .aside = 1 << NRG_QKV_SLOTS | 1 << NRG_QKV_Q_W | 1 << NRG_QKV_K_W | 1 << NRG_QKV_WORKSPACE,
};
