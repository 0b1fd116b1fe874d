/* The cases of heads on their way from the projections to attention.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/qkv.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../norm/settle.h"

enum { WAYS = 4 };
static const struct {
    int interleaved, has_norm;
} ways[WAYS] = {{1, 0}, {0, 0}, {0, 1}, {1, 1}};

/* Pairs beyond those from 1 up; heads (of q) and tokens. */
static const struct {
    size_t pairs, tokens, heads;
} large[] = {{64, 67, 8}, {128, 9, 3}, {64, 5, 3}, {128, 3, 2}, {515, 4, 2}, {32, 150, 4}, {1500, 2, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct qkv_case {
    nrg_rope_spec rope;
    nrg_norm_spec norm;
    nrg_qkv_args args;
    nrg_rope_shares shares; /* the workspace is for more than there are */
    uint32_t there;
    int64_t slot_first, slot_step;
    int is_plain; /* heads are rotated whole and keep their dtype */
} qkv_case;

static void draw_rope(qkv_case *q, size_t pairs, int interleaved, uint64_t *random)
{
    static const nrg_rope_mode half_split[] = {NRG_ROPE_NEOX, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION,
                                               NRG_ROPE_IMROPE_TIME};
    const nrg_rope_mode mode = interleaved ? NRG_ROPE_NORMAL : q->is_plain ? NRG_ROPE_NEOX : half_split[sweep_draw(random, 5)];
    size_t n_dims = 2 * pairs;
    if (mode == NRG_ROPE_VISION) {
        n_dims = pairs + pairs % 2;
        pairs = n_dims;
    }
    q->rope = nrg_rope_spec_init(n_dims, mode, sweep_draw(random, 2) ? 10000 : 1e6);
    for (int i = 0; i < 4; i++)
        q->rope.sections[i] = 1 + (int)sweep_draw(random, 9);
    if (mode == NRG_ROPE_NORMAL || mode == NRG_ROPE_NEOX)
        memset(q->rope.sections, 0, sizeof q->rope.sections);
    if (sweep_draw(random, 4) == 0) {
        q->rope.ext_factor = 1;
        q->rope.freq_scale = 0.25;
        q->rope.n_ctx_orig = 4096;
    }
    q->args.rotate_from = q->is_plain || sweep_draw(random, 3) ? 0 : sweep_draw(random, 40);
    q->args.dim = q->args.rotate_from + 2 * pairs + (q->is_plain || sweep_draw(random, 3) ? 0 : sweep_draw(random, 40));
}

static void draw_norm(qkv_case *q, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5};
    nrg_norm_spec *s = &q->norm;
    *s = sweep_draw(random, 3) ? nrg_norm_spec_rms(NRG_F32, q->args.dim, eps[sweep_draw(random, 4)])
                               : nrg_norm_spec_layer(NRG_F32, q->args.dim, eps[sweep_draw(random, 4)]);
    s->weight_offset = sweep_draw(random, 3) ? 0 : 1;
    s->groups = sweep_draw(random, 4) || q->args.dim % 2 ? 1 : 2;
    s->accuracy = sweep_draw(random, 4) ? NRG_ACCURACY_FAST : NRG_ACCURACY_EXACT;
    if (sweep_draw(random, 5) == 0)
        s->activation = (nrg_activation)sweep_draw(random, NRG_ACT_SOFTPLUS + 1);
}

static nrg_dtype draw_dtype(uint64_t *random)
{
    const unsigned drawn = sweep_draw(random, 5);
    return drawn > NRG_BF16 ? NRG_DTYPE_SAME : (nrg_dtype)drawn;
}

static qkv_case draw(const sweep_case *c)
{
    qkv_case q;
    uint64_t random = c->seed;
    size_t pairs = c->length;
    memset(&q, 0, sizeof q);
    q.args = nrg_qkv_args_init(c->spec.dtype, sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 7) : 0, 0);
    nrg_qkv_args *a = &q.args;
    a->store = c->store;
    a->q_heads = sweep_draw(&random, 8) ? 1 + sweep_draw(&random, 5) : 0;
    a->k_heads = sweep_draw(&random, 3) ? 1 + sweep_draw(&random, 3) : 0;
    q.is_plain = c->large && sweep_draw(&random, 2);
    if (c->large) {
        pairs = large[c->large - 1].pairs;
        a->tokens = large[c->large - 1].tokens;
        a->q_heads = large[c->large - 1].heads;
    }
    draw_rope(&q, pairs, ways[c->way].interleaved, &random);
    a->q_o_dtype = q.is_plain ? NRG_DTYPE_SAME : draw_dtype(&random);
    a->k_o_dtype = draw_dtype(&random);
    a->v_o_dtype = draw_dtype(&random);
    a->keep = (int)sweep_draw(&random, 2);
    q.shares.nth = 7 + (int)sweep_draw(&random, 6);
    q.shares.backward = nrg_backward_built() && !ways[c->way].has_norm && sweep_draw(&random, 6) == 0;
    a->v_dim = a->dim;
    if (!q.shares.backward) {
        a->v_heads = sweep_draw(&random, 3) ? 1 + sweep_draw(&random, 3) : 0;
        if (sweep_draw(&random, 3) == 0)
            a->v_dim = sweep_draw(&random, 2) ? 1 + sweep_draw(&random, 70) : 32 * (1 + sweep_draw(&random, 12));
    }
#ifndef NRG_NO_QUANTIZE
    if (a->dim % 32 == 0 && sweep_draw(&random, 2)) {
        a->k_o_format = NRG_QUANT_Q8_0;
        a->k_o_dtype = NRG_DTYPE_SAME;
    }
    if (a->v_dim % 32 == 0 && sweep_draw(&random, 2)) {
        a->v_o_format = NRG_QUANT_Q8_0;
        a->v_o_dtype = NRG_DTYPE_SAME;
    }
#endif
    if (sweep_draw(&random, 2))
        q.there |= NRG_BIT(NRG_QKV_POSITIONS);
    else
        a->first_position = (int32_t)sweep_draw(&random, 100000) - 1000;
    if (a->tokens && !q.shares.backward && sweep_draw(&random, 3)) {
        static const int64_t steps[] = {1, 1, -1, 2, 3};
        q.there |= NRG_BIT(NRG_QKV_SLOTS);
        q.slot_step = steps[sweep_draw(&random, 5)];
        a->slot_count = 3 * a->tokens + sweep_draw(&random, 5);
        q.slot_first =
            q.slot_step < 0 ? (int64_t)a->slot_count - 1 - (int64_t)sweep_draw(&random, 3) : (int64_t)sweep_draw(&random, 3);
    }
    if (sweep_draw(&random, 3) == 0)
        q.there |= NRG_BIT(NRG_QKV_FACTORS);
    if (ways[c->way].has_norm) {
        draw_norm(&q, &random);
        for (int k = 0; k < 2; k++) {
            const int is_there = a->tokens && (k ? a->k_heads : a->q_heads);
            q.there |= is_there && sweep_draw(&random, 4) ? NRG_BIT(NRG_QKV_Q_W + k) : 0;
            q.there |= is_there && sweep_draw(&random, 3) == 0 ? NRG_BIT(NRG_QKV_Q_B + k) : 0;
        }
        norm_settle(&q.norm, (q.there & (NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W))) != 0);
    }
    const uint32_t tensors[] = {NRG_BIT(NRG_QKV_Q) | NRG_BIT(NRG_QKV_Q_O), NRG_BIT(NRG_QKV_K) | NRG_BIT(NRG_QKV_K_O),
                                NRG_BIT(NRG_QKV_V) | NRG_BIT(NRG_QKV_V_O)};
    q.there |= tensors[0] | tensors[1] | tensors[2];
    /* tests call more shares than an output has rows */
    q.shares.nth += (int)((a->tokens + a->slot_count) * (a->q_heads + a->k_heads + a->v_heads));
    return q;
}

#define PARTS(q) ((void *const[]){&(q)->rope, &(q)->args, &(q)->shares, &(q)->norm})

static const nrg_call *call_of(const sweep_case *c) { return ways[c->way].has_norm ? &nrg_call_qkv : &nrg_call_qkv_bare; }

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 3 % 3);
    qkv_case q = draw(c);
    q.norm.weight_offset = 0; /* of no operand's shape; run has weights for it, see norm_weights */
    uint64_t random = ~(c->seed << 8);
    uint32_t transposed = 0;
    for (int i = NRG_QKV_Q; i <= NRG_QKV_V_O; i++)
        transposed |= sweep_draw(&random, 4) == 0 ? NRG_BIT(i) : 0;
    c->rows = q.args.tokens * (q.args.q_heads + q.args.k_heads + q.args.v_heads);
    c->shares = sweep_draw_shares(&random);
    c->weights = NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_Q_B) | NRG_BIT(NRG_QKV_K_B);
    c->accumulate = 1; /* slots without a token keep what they hold */
    sweep_add_call(c, call_of(c), PARTS(&q), NULL, q.there, transposed);
    c->operands[SWEEP_OUT].is_optional = 0;
    c->operands[SWEEP_SCRATCH].is_kept = q.args.keep;
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const qkv_case q = draw(c);
    void *const place = sweep_place(c, operand, memory);
    if (operand == NRG_QKV_POSITIONS) {
        sweep_fill_positions(c, operand, -5, 200000, memory, random);
    } else if (operand == NRG_QKV_SLOTS) {
        int64_t *slots = place;
        for (size_t t = 0; t < q.args.tokens; t++)
            slots[t] = q.slot_first + (int64_t)t * q.slot_step;
    } else if (operand == NRG_QKV_FACTORS) {
        float *factors = place;
        for (size_t p = 0; p < c->operands[operand].length; p++)
            factors[p] = 1 + (float)sweep_draw(random, 64) / 8;
    } else {
        sweep_fill_rows(c, operand, memory, random);
    }
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    qkv_case q = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, call_of(c), PARTS(&q), NULL, memory);
#ifndef NRG_NO_BACKWARD
    if (q.shares.backward) {
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_qkv_backward(&q.rope, &q.args, ith, nth));
        return status;
    }
#endif
    q.args.q_w = q.args.q_heads ? norm_weights(&q.norm, q.args.q_w) : NULL;
    q.args.k_w = q.args.k_heads ? norm_weights(&q.norm, q.args.k_w) : NULL;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_qkv_forward(ways[c->way].has_norm ? &q.norm : NULL, &q.rope, &q.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const qkv_case q = draw(c);
    const nrg_qkv_args *a = &q.args;
    sweep_append(text, " %zux(%zu + %zu)x%zu and %zux%zu, mode %d, n_dims %zu from %zu, to %s, %s and %s%s", a->tokens,
                 a->q_heads, a->k_heads, a->dim, a->v_heads, a->v_dim, (int)q.rope.mode, q.rope.n_dims, a->rotate_from,
                 nrg_dtype_name(a->q_o_dtype), nrg_dtype_name(a->k_o_dtype), nrg_dtype_name(a->v_o_dtype),
                 q.shares.backward ? ", backward" : "");
    if (a->k_o_format || a->v_o_format)
        sweep_append(text, ", q8_0 of%s%s", a->k_o_format ? " k" : "", a->v_o_format ? " v" : "");
    if (q.there & NRG_BIT(NRG_QKV_SLOTS))
        sweep_append(text, ", slots of %zu from %ld by %ld", a->slot_count, (long)q.slot_first, (long)q.slot_step);
    if (q.norm.dim)
        sweep_append(text, " (%s, eps %g, %zu groups, %s)", q.norm.centred ? "layer" : "rms", q.norm.eps, q.norm.groups,
                     nrg_activation_name(q.norm.activation));
}

const sweep_family sweep_family_qkv = {SWEEP_LENGTHS(WAYS, 30, 90, 400, LARGE), .make = make, .fill = fill, .run = run,
                                       .describe = describe};
