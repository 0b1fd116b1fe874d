/* The cases of rope, and of norms fused with it; the reference calls one after the other.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_rope.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../norm/settle.h"

/* What every number of pairs is turned by, alone and with a norm: interleaved or half-split pairs, forward or backward. */
enum { WAYS = 4 };
static const struct {
    int interleaved, backward;
} ways[WAYS] = {{1, 0}, {1, 1}, {0, 0}, {0, 1}};

/* Pairs beyond those from 1 up, tokens, and heads of q. */
static const size_t large[][3] = {{64, 70, 8}, {128, 9, 3}, {150, 5, 2}, {515, 3, 2}, {32, 260, 4}, {1500, 2, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

/* plain: of the reference, in which q and k have a norm each. */
typedef struct rope_case {
    nrg_rope_spec spec;
    nrg_rope_args rope;
    nrg_norm_spec norm, plain_norm[2];
    nrg_norm_args forward[2], plain_forward[2];
    nrg_norm_backward_args backward[2], plain_backward[2];
} rope_case;
#define AT(field) SWEEP_AT(rope_case, field)

/* Of q and k. */
typedef struct rope_layout {
    size_t tokens, heads[2];
    int has_positions, accumulate;
    int by_head[2], o_by_head[2], in_place[2];
    int has_w[2], has_b[2], has_statistics[2];
} rope_layout;

static void draw_spec(rope_case *r, size_t pairs, int interleaved, uint64_t *random)
{
    static const nrg_rope_mode half_split[] = {NRG_ROPE_NEOX, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
    nrg_rope_mode mode = interleaved ? NRG_ROPE_NORMAL : half_split[sweep_draw(random, 5)];
    size_t n_dims = 2 * pairs;
    if (mode == NRG_ROPE_VISION) {
        n_dims = pairs + pairs % 2; /* whose pairs are as many */
        pairs = n_dims;
    }
    r->spec = nrg_rope_spec_init(n_dims, mode, 10000);
    r->rope.rotate_from = sweep_draw(random, 3) ? 0 : sweep_draw(random, 40);
    r->rope.dim = r->rope.rotate_from + 2 * pairs + (sweep_draw(random, 3) ? 0 : sweep_draw(random, 40));
}

static void draw_norm(const sweep_case *c, rope_case *r, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5}, constants[] = {0, 0, 1, -3.25};
    static const size_t groups[] = {1, 1, 2, 4};
    nrg_norm_spec *s = &r->norm;
    *s = sweep_draw(random, 2) ? nrg_norm_spec_rms(c->spec.dtype, r->rope.dim, eps[sweep_draw(random, 4)])
                               : nrg_norm_spec_layer(c->spec.dtype, r->rope.dim, eps[sweep_draw(random, 4)]);
    s->w_dtype = sweep_draw(random, 2) ? NRG_F32 : s->dtype;
    s->eps_mode = sweep_draw(random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(random, 5);
    s->c = constants[sweep_draw(random, 4)];
    s->weight_offset = (const float[]){0, 0, 1}[sweep_draw(random, 3)];
    s->groups = groups[sweep_draw(random, 4)];
    if (s->dim % s->groups)
        s->groups = 1;
    if (sweep_draw(random, 4) == 0)
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
}

/* Rows of the gradient of a norm lie at equal distances. */
static rope_layout draw_case(sweep_case *c, rope_case *r, int is_gradient, uint64_t *random)
{
    rope_layout l;
    size_t pairs = c->length;
    l.tokens = sweep_draw(random, 24) ? 1 + sweep_draw(random, 6) : 0;
    l.heads[0] = sweep_draw(random, 8) ? 1 + sweep_draw(random, 5) : 0;
    l.heads[1] = sweep_draw(random, 3) ? 0 : 1 + sweep_draw(random, 3);
    sweep_take_large(c, large[0], 3, (size_t *const[]){&pairs, &l.tokens, &l.heads[0]});
    r->rope = nrg_rope_args_init(c->spec.dtype, l.tokens, 0, NULL);
    r->rope.q_heads = l.heads[0];
    r->rope.k_heads = l.heads[1];
    draw_spec(r, pairs, ways[c->way].interleaved, random);
    l.has_positions = sweep_draw(random, 2) != 0;
    r->rope.table_rows = l.tokens + (sweep_draw(random, 2) ? sweep_draw(random, 9) : 0);
    if (l.has_positions && r->rope.table_rows > 2)
        r->rope.table_rows -= sweep_draw(random, (unsigned)r->rope.table_rows - 1);
    l.accumulate = sweep_draw(random, 3) == 0;
    for (int k = 0; k < 2; k++) {
        l.by_head[k] = sweep_draw(random, 4) == 0;
        l.o_by_head[k] = sweep_draw(random, 4) == 0 && !is_gradient;
        l.in_place[k] = sweep_draw(random, 3) == 0;
        if (l.in_place[k])
            l.by_head[k] = l.o_by_head[k];
        const int is_there = l.tokens && l.heads[k];
        l.has_w[k] = sweep_draw(random, 3) != 0 && is_there;
        l.has_b[k] = sweep_draw(random, 3) == 0 && is_there;
        l.has_statistics[k] = sweep_draw(random, 3) == 0 && is_there;
    }
    draw_norm(c, r, random);
    norm_settle(&r->norm, l.has_w[0] || l.has_w[1]);
    /* not drawn: hashes depend on the number of draws */
    if (!(l.by_head[0] | l.by_head[1] | l.o_by_head[0] | l.o_by_head[1]) && l.has_positions && l.tokens && c->n % 3 == 0)
        r->rope.batch = l.tokens % 3 == 0 ? 3 : l.tokens % 2 == 0 ? 2 : 1;
    r->rope.tokens /= r->rope.batch;
    c->rows = l.tokens * (l.heads[0] + l.heads[1]);
    c->weights = NRG_BIT(NRG_ROPE_TABLE);
    return l;
}

/* Adds a call whose q_o has that number. */
static void add(sweep_case *c, sweep_when when, const sweep_call *call, const rope_layout *l, uint32_t there, int q_o)
{
    uint32_t transposed = 0;
    there |= l->has_positions ? NRG_BIT(NRG_ROPE_POSITIONS) : 0;
    for (int k = 0; k < 2; k++) {
        there |= NRG_BIT(NRG_ROPE_Q + k) | NRG_BIT(q_o + k);
        transposed |= l->by_head[k] ? NRG_BIT(NRG_ROPE_Q + k) : 0;
        transposed |= l->o_by_head[k] ? NRG_BIT(q_o + k) : 0;
    }
    sweep_add(c, when, call, there, transposed);
    c->operands[SWEEP_OUT].is_optional = c->operands[SWEEP_OUT + 1].is_optional = 0; /* without them the call is another one */
}

static const sweep_call rotation = {&invoke_rope_forward, .part = {AT(spec), AT(rope)}, .store = AT(rope.store)};
#ifndef NRG_NO_BACKWARD
static const sweep_call rotation_back = {&invoke_rope_backward, .part = {AT(spec), AT(rope)}, .store = AT(rope.store)};
#endif

static void draw(sweep_case *c, uint64_t *random)
{
    const sweep_call *call = &rotation;
    const rope_layout l = draw_case(c, sweep_structs(c), 0, random);
#ifndef NRG_NO_BACKWARD
    if (ways[c->way].backward)
        call = &rotation_back;
#endif
    add(c, SWEEP_ALWAYS, call, &l, 0, NRG_ROPE_Q_O);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const rope_case *r = sweep_const_structs(c);
    if (operand == NRG_ROPE_POSITIONS)
        sweep_fill_positions(c, operand, 0, (int32_t)r->rope.table_rows - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const rope_case *r = sweep_const_structs(c);
    sweep_append(text, ", mode %d, n_dims %zu from %zu", (int)r->spec.mode, r->spec.n_dims, r->rope.rotate_from);
    if (c->fused)
        sweep_describe_norm(&r->norm, text);
}

#define CASES SWEEP_LENGTHS(WAYS, 40, 130, 500, LARGE), .fill = fill, .describe = describe

const sweep_family sweep_family_rope = {CASES, .draw = draw};

#ifndef NRG_NO_NORM
/* ---- with a norm before the rotation ---- */

static void give_weights(void *const *part)
{
    nrg_norm_args *q = part[3], *k = part[4];
    q->w = norm_weights(part[0], q->w);
    k->w = norm_weights(part[0], k->w);
}

/* The reference: norms of q and k, in the order of their description, and the rotation of their results. */
enum { NONE = SWEEP_NOWHERE, Q = NRG_ROPE_Q, K, QW = NRG_NORM_ROPE_Q_W, KW, QB, KB };
enum { O = SWEEP_OUT, MEAN = O + 2, RSTD = MEAN + 2 };
static const unsigned char norm_slots[2][NRG_NORM_OPERANDS] = {{Q, NONE, NONE, QW, QB, O, NONE, MEAN, RSTD, NONE, NONE},
                                                               {K, NONE, NONE, KW, KB, O + 1, NONE, MEAN + 1, RSTD + 1, NONE,
                                                                NONE}},
                           in_place[] = {NRG_ROPE_TABLE, NRG_ROPE_POSITIONS, O, O + 1, O, O + 1};
static const sweep_call fused = {&invoke_norm_rope_forward,
                                 .part = {AT(norm), AT(spec), AT(rope), AT(forward[0]), AT(forward[1])}, .store = AT(rope.store),
                                 .fix = give_weights},
                        norms[] = {{&invoke_norm_forward, .slots = norm_slots[0],
                                    .part = {AT(plain_norm[0]), AT(plain_forward[0])}},
                                   {&invoke_norm_forward, .slots = norm_slots[1],
                                    .part = {AT(plain_norm[1]), AT(plain_forward[1])}}},
                        rotation_in_place = {&invoke_rope_forward, .slots = in_place, .part = {AT(spec), AT(rope)}};

/* The specs of the reference. Returns the offset of weights, which the fused call's spec gets after the call is added: the call
 * has weights for it where q or k has none (norm_weights). */
static float settle(rope_case *r, const rope_layout *l)
{
    const float offset = r->norm.weight_offset;
    for (int k = 0; k < 2; k++) {
        r->plain_norm[k] = r->norm;
        norm_settle(&r->plain_norm[k], l->has_w[k]);
    }
    r->norm.weight_offset = 0;
    return offset;
}

static void draw_forward(sweep_case *c, uint64_t *random)
{
    rope_case *r = sweep_structs(c);
    const rope_layout l = draw_case(c, r, 0, random);
    const float offset = settle(r, &l);
    uint32_t there = 0;
    for (int k = 0; k < 2; k++) {
        r->forward[k] = nrg_norm_args_init(l.tokens * l.heads[k], NULL, NULL, NULL);
        r->plain_forward[k] = nrg_norm_args_init(l.heads[k], NULL, NULL, NULL);
        r->plain_forward[k].rows2 = l.tokens;
        there |= l.has_w[k] ? NRG_BIT(NRG_NORM_ROPE_Q_W + k) : 0;
        there |= l.has_b[k] ? NRG_BIT(NRG_NORM_ROPE_Q_B + k) : 0;
        there |= l.has_statistics[k] ? NRG_BIT(NRG_NORM_ROPE_Q_MEAN + k) | NRG_BIT(NRG_NORM_ROPE_Q_RSTD + k) : 0;
    }
    c->weights |= ~(uint32_t)0 << NRG_NORM_ROPE_Q_W;
    add(c, SWEEP_FUSED, &fused, &l, there, NRG_NORM_ROPE_Q_O);
    r->norm.weight_offset = offset;
    sweep_add_last(c, SWEEP_PLAIN, &norms[0]);
    sweep_add_last(c, SWEEP_PLAIN, &norms[1]);
    sweep_add_last(c, SWEEP_PLAIN, &rotation_in_place);
}

#ifndef NRG_NO_BACKWARD
static void give_weights_back(void *const *part)
{
    nrg_norm_backward_args *q = part[3], *k = part[4];
    q->w = norm_weights(part[0], q->w);
    k->w = norm_weights(part[0], k->w);
}

/* In the reference, the rotated gradient is in the place of the result. */
enum { QX = NRG_NORM_ROPE_BACKWARD_Q_X, KX, BACK_QW, BACK_KW, BACK_QB, BACK_KB };
enum { DW = O + 2, DB = DW + 2, SPACE = SWEEP_SCRATCH };
static const unsigned char back_slots[2][NRG_NORM_BACKWARD_OPERANDS] = {
    {QX, NONE, NONE, BACK_QW, BACK_QB, NONE, O, NONE, NONE, O, NONE, NONE, DW, DB, SPACE},
    {KX, NONE, NONE, BACK_KW, BACK_KB, NONE, O + 1, NONE, NONE, O + 1, NONE, NONE, DW + 1, DB + 1, SPACE + 1}};
#define NORM_BACKWARD &invoke_norm_backward, &invoke_norm_backward_reduce
static const sweep_call fused_back = {&invoke_norm_rope_backward, &invoke_norm_rope_backward_reduce,
                                      .part = {AT(norm), AT(spec), AT(rope), AT(backward[0]), AT(backward[1])},
                                      .store = AT(rope.store), .fix = give_weights_back},
                        norms_back[] = {
                            {NORM_BACKWARD, .slots = back_slots[0], .part = {AT(plain_norm[0]), AT(plain_backward[0])}},
                            {NORM_BACKWARD, .slots = back_slots[1], .part = {AT(plain_norm[1]), AT(plain_backward[1])}}};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    rope_case *r = sweep_structs(c);
    const rope_layout l = draw_case(c, r, 1, random);
    const float offset = settle(r, &l);
    uint32_t there = 0;
    c->accumulate = l.accumulate;
    for (int k = 0; k < 2; k++) {
        r->backward[k] = nrg_norm_backward_args_init(l.tokens * l.heads[k], NULL, NULL, NULL, NULL);
        r->plain_backward[k] = nrg_norm_backward_args_init(l.heads[k], NULL, NULL, NULL, NULL);
        r->plain_backward[k].rows2 = l.tokens;
        r->backward[k].accumulate = r->plain_backward[k].accumulate = l.accumulate;
        there |= l.has_w[k] ? NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_W + k) | NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_DW + k) : 0;
        there |= l.has_b[k] ? NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_B + k) | NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_DB + k) : 0;
    }
    c->weights |= ~(uint32_t)0 << NRG_NORM_ROPE_BACKWARD_Q_W;
    add(c, SWEEP_FUSED, &fused_back, &l, there, NRG_NORM_ROPE_BACKWARD_Q_O);
    for (int k = 0; k < 2; k++)
        if (!l.in_place[k])
            c->operands[O + k].over = 0;
    r->norm.weight_offset = offset;
    sweep_add_last(c, SWEEP_PLAIN, &rotation_back);
    sweep_add_last(c, SWEEP_PLAIN, &norms_back[0]);
    sweep_add_last(c, SWEEP_PLAIN, &norms_back[1]);
}
#endif

static void draw_fused(sweep_case *c, uint64_t *random)
{
#ifndef NRG_NO_BACKWARD
    if (ways[c->way].backward) {
        draw_backward(c, random);
        return;
    }
#endif
    draw_forward(c, random);
}

const sweep_family sweep_family_norm_rope = {CASES, .draw = draw_fused};
#endif
