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

/* Pairs beyond those from 1 up, tokens, and heads of q. */
static const size_t large[][3] = {{64, 67, 8}, {128, 9, 3}, {64, 5, 3}, {128, 3, 2}, {515, 4, 2}, {32, 150, 4}, {1500, 2, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct qkv_case {
    nrg_rope_spec rope;
    nrg_qkv_args args;
    nrg_rope_shares shares; /* the workspace is for more than there are */
    nrg_norm_spec norm;
    int64_t slot_first, slot_step;
} qkv_case;
#define AT(field) SWEEP_AT(qkv_case, field)
#define QKV_PART .part = {AT(rope), AT(args), AT(shares), AT(norm)}, .store = AT(args.store)

static void give_weights(void *const *part)
{
    nrg_qkv_args *a = part[NRG_QKV_ARGS];
    a->q_w = a->q_heads ? norm_weights(part[NRG_QKV_NORM], a->q_w) : NULL;
    a->k_w = a->k_heads ? norm_weights(part[NRG_QKV_NORM], a->k_w) : NULL;
}
static const sweep_call with_norm = {&invoke_qkv_forward, QKV_PART, .fix = give_weights}, bare = {&invoke_qkv_bare, QKV_PART};
#ifndef NRG_NO_BACKWARD
static const sweep_call backward = {&invoke_qkv_backward, QKV_PART};
#endif

/* is_plain: heads are rotated whole. */
static void draw_rope(qkv_case *q, size_t pairs, int interleaved, int is_plain, uint64_t *random)
{
    static const nrg_rope_mode half_split[] = {NRG_ROPE_NEOX, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION,
                                               NRG_ROPE_IMROPE_TIME};
    const nrg_rope_mode mode = interleaved ? NRG_ROPE_NORMAL : is_plain ? NRG_ROPE_NEOX : half_split[sweep_draw(random, 5)];
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
    q->args.rotate_from = is_plain || sweep_draw(random, 3) ? 0 : sweep_draw(random, 40);
    q->args.dim = q->args.rotate_from + 2 * pairs + (is_plain || sweep_draw(random, 3) ? 0 : sweep_draw(random, 40));
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

/* Returns which operands are there. */
static uint32_t draw_args(const sweep_case *c, qkv_case *q, uint64_t *random)
{
    size_t pairs = c->length;
    uint32_t there = 0;
    nrg_qkv_args *a = &q->args;
    *a = nrg_qkv_args_init(c->spec.dtype, sweep_draw(random, 24) ? 1 + sweep_draw(random, 7) : 0, 0);
    a->q_heads = sweep_draw(random, 8) ? 1 + sweep_draw(random, 5) : 0;
    a->k_heads = sweep_draw(random, 3) ? 1 + sweep_draw(random, 3) : 0;
    const int is_plain = c->large && sweep_draw(random, 2);
    sweep_take_large(c, large[0], 3, (size_t *const[]){&pairs, &a->tokens, &a->q_heads});
    draw_rope(q, pairs, ways[c->way].interleaved, is_plain, random);
    a->q_o_dtype = is_plain ? NRG_DTYPE_SAME : draw_dtype(random);
    a->k_o_dtype = draw_dtype(random);
    a->v_o_dtype = draw_dtype(random);
    a->keep = (int)sweep_draw(random, 2);
    q->shares.nth = 7 + (int)sweep_draw(random, 6);
    q->shares.backward = nrg_backward_built() && !ways[c->way].has_norm && sweep_draw(random, 6) == 0;
    a->v_dim = a->dim;
    if (!q->shares.backward) {
        a->v_heads = sweep_draw(random, 3) ? 1 + sweep_draw(random, 3) : 0;
        if (sweep_draw(random, 3) == 0)
            a->v_dim = sweep_draw(random, 2) ? 1 + sweep_draw(random, 70) : 32 * (1 + sweep_draw(random, 12));
    }
#ifndef NRG_NO_QUANTIZE
    if (a->dim % 32 == 0 && sweep_draw(random, 2)) {
        a->k_o_format = NRG_QUANT_Q8_0;
        a->k_o_dtype = NRG_DTYPE_SAME;
    }
    if (a->v_dim % 32 == 0 && sweep_draw(random, 2)) {
        a->v_o_format = NRG_QUANT_Q8_0;
        a->v_o_dtype = NRG_DTYPE_SAME;
    }
#endif
    if (sweep_draw(random, 2))
        there |= NRG_BIT(NRG_QKV_POSITIONS);
    else
        a->first_position = (int32_t)sweep_draw(random, 100000) - 1000;
    if (a->tokens && !q->shares.backward && sweep_draw(random, 3)) {
        static const int64_t steps[] = {1, 1, -1, 2, 3};
        there |= NRG_BIT(NRG_QKV_SLOTS);
        q->slot_step = steps[sweep_draw(random, 5)];
        a->slot_count = 3 * a->tokens + sweep_draw(random, 5);
        q->slot_first =
            q->slot_step < 0 ? (int64_t)a->slot_count - 1 - (int64_t)sweep_draw(random, 3) : (int64_t)sweep_draw(random, 3);
    }
    if (sweep_draw(random, 3) == 0)
        there |= NRG_BIT(NRG_QKV_FACTORS);
    if (ways[c->way].has_norm) {
        draw_norm(q, random);
        for (int k = 0; k < 2; k++) {
            const int is_there = a->tokens && (k ? a->k_heads : a->q_heads);
            there |= is_there && sweep_draw(random, 4) ? NRG_BIT(NRG_QKV_Q_W + k) : 0;
            there |= is_there && sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_QKV_Q_B + k) : 0;
        }
        norm_settle(&q->norm, (there & (NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W))) != 0);
    }
    for (int i = 0; i < 3; i++)
        there |= NRG_BIT(NRG_QKV_Q + i) | NRG_BIT(NRG_QKV_Q_O + i);
    /* tests call more shares than an output has rows */
    q->shares.nth += (int)((a->tokens + a->slot_count) * (a->q_heads + a->k_heads + a->v_heads));
    return there;
}

static void draw(sweep_case *c, uint64_t *random)
{
    qkv_case *q = sweep_structs(c);
    const sweep_call *call = ways[c->way].has_norm ? &with_norm : &bare;
    const uint32_t there = draw_args(c, q, random);
    const float offset = q->norm.weight_offset;
    uint64_t layout = ~(c->seed << 8);
    uint32_t transposed = 0;
    for (int i = NRG_QKV_Q; i <= NRG_QKV_V_O; i++)
        transposed |= sweep_draw(&layout, 4) == 0 ? NRG_BIT(i) : 0;
    c->rows = q->args.tokens * (q->args.q_heads + q->args.k_heads + q->args.v_heads);
    c->weights = NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_Q_B) | NRG_BIT(NRG_QKV_K_B);
    c->accumulate = 1; /* slots without a token keep what they hold */
#ifndef NRG_NO_BACKWARD
    if (q->shares.backward)
        call = &backward;
#endif
    q->norm.weight_offset = 0; /* of no operand's shape; the call has weights for it, see norm_weights */
    sweep_add(c, SWEEP_ALWAYS, call, there, transposed);
    q->norm.weight_offset = offset;
    c->operands[SWEEP_OUT].is_optional = 0;
    c->operands[SWEEP_SCRATCH].is_kept = q->args.keep;
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const qkv_case *q = sweep_const_structs(c);
    void *const place = sweep_place(c, operand, memory);
    if (operand == NRG_QKV_POSITIONS) {
        sweep_fill_positions(c, operand, -5, 200000, memory, random);
    } else if (operand == NRG_QKV_SLOTS) {
        int64_t *slots = place;
        for (size_t t = 0; t < q->args.tokens; t++)
            slots[t] = q->slot_first + (int64_t)t * q->slot_step;
    } else if (operand == NRG_QKV_FACTORS) {
        float *factors = place;
        for (size_t p = 0; p < c->operands[operand].length; p++)
            factors[p] = 1 + (float)sweep_draw(random, 64) / 8;
    } else {
        sweep_fill_rows(c, operand, memory, random);
    }
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const qkv_case *q = sweep_const_structs(c);
    sweep_append(text, ", mode %d, n_dims %zu from %zu, k %s, v %s", (int)q->rope.mode, q->rope.n_dims, q->args.rotate_from,
                 nrg_quant_format_name(q->args.k_o_format), nrg_quant_format_name(q->args.v_o_format));
    if (q->norm.dim)
        sweep_describe_norm(&q->norm, text);
}

const sweep_family sweep_family_qkv = {SWEEP_LENGTHS(WAYS, 30, 90, 400, LARGE), .draw = draw, .fill = fill, .describe = describe};
