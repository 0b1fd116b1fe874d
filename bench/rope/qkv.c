/* nrg_qkv_forward: q, k and v of a layer with 32 heads of q and 8 of k and v, of 128 elements each, into a cache. A shape's row
 * are a token's heads of q.
 *
 * No bare loop moves tensors of two lengths: the limit reads two tensors of q's size and writes one, which are as many bytes as
 * q, k and v, read and written (with a cache of f16 beside f32: a twelfth more).
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/qkv.h"
#include "../family.h"

enum { HEAD = BENCH_HEAD, Q_HEADS = 32, K_HEADS = 8, ROW = HEAD * Q_HEADS, TOKENS_MOST = 512 };

static const bench_shape shapes[] = {BENCH_ROWS(1, ROW), BENCH_ROWS(TOKENS_MOST, ROW)};

/* option: bits. ANEW: nothing is kept, as in memory that others use between calls */
enum { NORM = 1, CACHE_F16 = 2, ANEW = 4, NEOX = 8 };
static const double eps = 1e-6;

static void prepare(const bench_case *c, void *const *part)
{
    nrg_qkv_args *a = part[NRG_QKV_ARGS];
    *(nrg_rope_spec *)part[NRG_QKV_ROPE] =
        nrg_rope_spec_init(bench_head_of(c), c->op->option & NEOX ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 500000);
    if (c->op->option & NORM)
        *(nrg_norm_spec *)part[NRG_QKV_NORM] = nrg_norm_spec_rms(NRG_F32, bench_head_of(c), eps);
    *(nrg_rope_shares *)part[NRG_QKV_SHARES] = (nrg_rope_shares){.nth = 2};
    *a = nrg_qkv_args_init(c->dtype, c->shape.rows, bench_head_of(c));
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

/* Its table is ready made. */
static void rival_numbers(const bench_case *c, void *const *part, rival_job *job)
{
    static alignas(64) float table[TOKENS_MOST * HEAD];
    double frequencies[HEAD], magnitude;
    bench_require(nrg_rope_frequencies(part[NRG_QKV_ROPE], frequencies, &magnitude));
    const nrg_rope_table_args args = nrg_rope_table_args_init(c->shape.rows, frequencies, magnitude, table);
    bench_require(nrg_rope_table(part[NRG_QKV_ROPE], &args, 0, 1));
    job->k_heads = K_HEADS;
    job->table = table;
}

#define TENSORS "q,k,v,slots,q_o,k_o,v_o"
#define IN_SLOTS(name, bits)                                                                                                     \
    {                                                                                                                            \
        name, TENSORS, BENCH_SHAPES(shapes), .function = &call_qkv_bare, .option = (bits)                                        \
    }
#define NORMED(name, bits)                                                                                                       \
    {                                                                                                                            \
        name, TENSORS ",q_w,k_w", BENCH_SHAPES(shapes), .option = NORM | NEOX | (bits)                                           \
    }
static const bench_op ops[] = {
    IN_SLOTS("llama", 0), IN_SLOTS("llama-f16", CACHE_F16), IN_SLOTS("llama-f16-anew", CACHE_F16 | ANEW),
    NORMED("qwen3", 0),   NORMED("qwen3-f16", CACHE_F16),
};

const bench_family bench_qkv = {
    BENCH_OPS(ops, call_qkv_forward, prepare),
    BENCH_QUICK("llama,qwen3", "1x4096,512x4096"),
    .scan_heads = Q_HEADS,
    .rival = "x=q,k,v,q_w,k_w,slots,o=q_o,k_o,v_o",
    .rival_numbers = rival_numbers,
    .ready = ready,
    .aside = "slots,q_w,k_w,workspace,k,v,k_o,v_o",
    .also = BENCH_IN,
};
