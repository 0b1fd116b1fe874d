/* The cases of rope, and of norms fused with it.
 *
 * SPDX-License-Identifier: MIT */
#include "../norm/settle.h"
#include "rope.h"

#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* What every number of pairs is turned by, alone and with a norm: interleaved or half-split pairs, forward or backward. */
enum { WAYS = 4 };
static const struct {
    int interleaved, backward;
} ways[WAYS] = {{1, 0}, {1, 1}, {0, 0}, {0, 1}};

/* Pairs beyond those from 1 up; heads (of q) and tokens. */
static const struct {
    size_t pairs, tokens, heads;
} large[] = {{64, 70, 8}, {128, 9, 3}, {150, 5, 2}, {515, 3, 2}, {32, 260, 4}, {1500, 2, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

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
    r->rotate_from = sweep_draw(random, 3) ? 0 : sweep_draw(random, 40);
    r->dim = r->rotate_from + 2 * pairs + (sweep_draw(random, 3) ? 0 : sweep_draw(random, 40));
}

static void draw_norm(const sweep_case *c, rope_case *r, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5}, constants[] = {0, 0, 1, -3.25};
    static const float offsets[] = {0, 0, 1};
    static const size_t groups[] = {1, 1, 2, 4};
    nrg_norm_spec *s = &r->norm;
    *s = sweep_draw(random, 2) ? nrg_norm_spec_rms(c->spec.dtype, r->dim, eps[sweep_draw(random, 4)])
                               : nrg_norm_spec_layer(c->spec.dtype, r->dim, eps[sweep_draw(random, 4)]);
    s->w_dtype = sweep_draw(random, 2) ? NRG_F32 : s->dtype;
    s->eps_mode = sweep_draw(random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(random, 5);
    s->c = constants[sweep_draw(random, 4)];
    s->weight_offset = offsets[sweep_draw(random, 3)];
    s->groups = groups[sweep_draw(random, 4)];
    if (r->dim % s->groups)
        s->groups = 1;
    if (sweep_draw(random, 4) == 0)
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
    norm_settle(s, r->tokens && ((r->heads[0] && r->has_w[0]) || (r->heads[1] && r->has_w[1])));
}

static rope_case draw(const sweep_case *c)
{
    rope_case r;
    uint64_t random = c->seed;
    size_t pairs = c->length;
    memset(&r, 0, sizeof r);
    r.tokens = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 6) : 0;
    r.heads[0] = sweep_draw(&random, 8) ? 1 + sweep_draw(&random, 5) : 0;
    r.heads[1] = sweep_draw(&random, 3) ? 0 : 1 + sweep_draw(&random, 3);
    if (c->large) {
        pairs = large[c->large - 1].pairs;
        r.tokens = large[c->large - 1].tokens;
        r.heads[0] = large[c->large - 1].heads;
    }
    const int backward = ways[c->way].backward && nrg_backward_built();
    r.kind = strcmp(sweep_kernel_op(c->kernel), "rope") == 0 ? ROPE_ALONE : backward ? ROPE_NORM_BACKWARD : ROPE_NORM;
    r.backward = r.kind == ROPE_ALONE && backward;
    draw_spec(&r, pairs, ways[c->way].interleaved, &random);
    r.has_positions = sweep_draw(&random, 2) != 0;
    r.table_rows = r.tokens + (sweep_draw(&random, 2) ? sweep_draw(&random, 9) : 0);
    if (r.has_positions && r.table_rows > 2)
        r.table_rows -= sweep_draw(&random, (unsigned)r.table_rows - 1);
    r.accumulate = sweep_draw(&random, 3) == 0;
    for (int i = 0; i < 2; i++) {
        r.by_head[i] = sweep_draw(&random, 4) == 0;
        r.o_by_head[i] = sweep_draw(&random, 4) == 0;
        r.in_place[i] = sweep_draw(&random, 3) == 0;
        /* rows of the gradient of a norm had to lie at equal distances, and keep their numbers */
        if (r.kind == ROPE_NORM_BACKWARD)
            r.o_by_head[i] = 0;
        if (r.in_place[i])
            r.by_head[i] = r.o_by_head[i];
        r.has_w[i] = sweep_draw(&random, 3) != 0;
        r.has_b[i] = sweep_draw(&random, 3) == 0;
        r.has_statistics[i] = sweep_draw(&random, 3) == 0;
    }
    draw_norm(c, &r, &random);
    /* not drawn: what there was before there were batches keeps its numbers, and its hash, of rows in the order they had */
    const int is_in_order = !(r.by_head[0] | r.by_head[1] | r.o_by_head[0] | r.o_by_head[1]);
    r.batch = is_in_order && r.has_positions && r.tokens && c->n % 3 == 0 ? r.tokens % 3 == 0 ? 3 : r.tokens % 2 == 0 ? 2 : 1 : 1;
    return r;
}

nrg_rope_args sweep_rope_args(const sweep_case *c, const rope_case *r)
{
    nrg_rope_args args = nrg_rope_args_init(c->spec.dtype, r->tokens / r->batch, r->dim, NULL);
    args.batch = r->batch;
    args.rotate_from = r->rotate_from;
    args.store = c->store;
    args.table_rows = r->table_rows;
    args.q_heads = r->heads[0];
    args.k_heads = r->heads[1];
    return args;
}

uint32_t sweep_rope_tensors(int q_o) { return NRG_BIT(NRG_ROPE_Q) | NRG_BIT(NRG_ROPE_K) | NRG_BIT(q_o) | NRG_BIT(q_o + 1); }

uint32_t sweep_rope_transposed(const rope_case *r, int q_o)
{
    uint32_t transposed = 0;
    for (int k = 0; k < 2; k++) {
        transposed |= r->by_head[k] ? NRG_BIT(NRG_ROPE_Q + k) : 0;
        transposed |= r->o_by_head[k] ? NRG_BIT(q_o + k) : 0;
    }
    return transposed;
}

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 3 % 3);
    rope_case r = draw(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = r.tokens * (r.heads[0] + r.heads[1]);
    c->shares = sweep_draw_shares(&random);
    c->fused = r.kind != ROPE_ALONE;
    c->weights = NRG_BIT(NRG_ROPE_TABLE);
    if (r.kind == ROPE_NORM_BACKWARD)
        c->reduce_shares = sweep_draw_shares(&random);
    if (r.kind == ROPE_ALONE) {
        nrg_rope_args args = sweep_rope_args(c, &r);
        sweep_add_call(c, &nrg_call_rope, (void *const[]){&r.spec, &args}, NULL,
                       sweep_rope_tensors(NRG_ROPE_Q_O) | (r.has_positions ? NRG_BIT(NRG_ROPE_POSITIONS) : 0),
                       sweep_rope_transposed(&r, NRG_ROPE_Q_O));
    }
#ifndef NRG_NO_NORM
    else
        sweep_norm_rope_add(c, &r);
#endif
    c->operands[SWEEP_OUT].is_optional = c->operands[SWEEP_OUT + 1].is_optional = 0; /* without them the call is another one */
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (operand == NRG_ROPE_POSITIONS)
        sweep_fill_positions(c, operand, 0, (int32_t)draw(c).table_rows - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    rope_case r = draw(c);
    nrg_rope_args args = sweep_rope_args(c, &r);
    nrg_status status = NRG_OK;
#ifndef NRG_NO_NORM
    if (r.kind != ROPE_ALONE)
        return sweep_norm_rope_run(c, &r, memory);
#endif
    sweep_bind_call(c, &nrg_call_rope, (void *const[]){&r.spec, &args}, NULL, memory);
#ifndef NRG_NO_BACKWARD
    if (r.backward) {
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_rope_backward(&r.spec, &args, ith, nth));
        return status;
    }
#endif
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_rope_forward(&r.spec, &args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const kinds[] = {"", ", after a norm", ", and then a norm's gradient"};
    rope_case r = draw(c);
    sweep_append(text, " %zux(%zu + %zu)x%zu, mode %d, n_dims %zu from %zu%s%s", r.tokens, r.heads[0], r.heads[1], r.dim,
                 (int)r.spec.mode, r.spec.n_dims, r.rotate_from, r.backward ? ", backward" : "", kinds[r.kind]);
    if (r.batch > 1)
        sweep_append(text, ", in %zu batches", r.batch);
    if (r.kind != ROPE_ALONE)
        sweep_append(text, " (%s, eps %g, %zu groups, %s)", r.norm.centred ? "layer" : "rms", r.norm.eps, r.norm.groups,
                     nrg_activation_name(r.norm.activation));
}

#define CASES SWEEP_LENGTHS(WAYS, 40, 130, 500, LARGE), .make = make, .fill = fill, .run = run, .describe = describe

const sweep_family sweep_family_rope = {CASES};
#ifndef NRG_NO_NORM
const sweep_family sweep_family_norm_rope = {CASES};
#endif
