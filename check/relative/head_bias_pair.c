/* The cases of head_bias_pair and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative_shift.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { WAYS = 3 }; /* for every length of a head */

static const size_t large[][4] = {{1, 8, 20, 64}, {2, 3, 100, 16}, {1, 2, 3, 513}, {1, 1, 2, 4100}, {3, 16, 5, 40}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE)

/* Of the two outputs or, backward, inputs one is there. */
typedef struct pair_case {
    nrg_head_bias_args args;
    int by_head[2], q_by_head, has[2], has_dq, has_sums[2];
} pair_case;

static pair_case draw(const sweep_case *c, int is_backward)
{
    static const unsigned most[] = {2, 5, 6};
    pair_case p = {.has_dq = 0};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    p.args = nrg_head_bias_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3]);
    const nrg_dtype bias_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    p.args.bias_dtype = is_backward ? NRG_DTYPE_SAME : bias_dtype;
    p.args.store = c->store;
    p.q_by_head = sweep_draw(&random, 3) == 0;
    p.has[0] = sweep_draw(&random, 5) != 0;
    p.has[1] = !p.has[0] || sweep_draw(&random, 5) != 0;
    for (int i = 0; i < 2; i++) {
        p.by_head[i] = sweep_draw(&random, 3) == 0;
        p.has_sums[i] = sweep_draw(&random, 3) != 0;
    }
    p.has_dq = sweep_draw(&random, 4) != 0;
    p.args.accumulate = sweep_draw(&random, 3) == 0 && is_backward;
    if (sweep_draw(&random, 3) == 0) /* as it has to be in place */
        p.by_head[!p.has[0]] = p.q_by_head;
    return p;
}

static pair_case begin(sweep_case *c, int is_backward, uint64_t *random)
{
    c->store = (nrg_store)(c->n / 5 % 3);
    const pair_case p = draw(c, is_backward);
    *random = ~(c->seed << 8);
    c->rows = p.args.batch;
    c->shares = sweep_draw_shares(random);
    return p;
}

static void make_forward(sweep_case *c)
{
    uint64_t random;
    pair_case p = begin(c, 0, &random);
    uint32_t there = 0, transposed = p.q_by_head ? NRG_BIT(NRG_HEAD_BIAS_Q) : 0;
    for (int i = 0; i < 2; i++) {
        there |= p.has[i] ? NRG_BIT(NRG_HEAD_BIAS_U + i) | NRG_BIT(NRG_HEAD_BIAS_O_U + i) : 0;
        transposed |= p.by_head[i] ? NRG_BIT(NRG_HEAD_BIAS_O_U + i) : 0;
    }
    sweep_add_call(c, &nrg_call_head_bias_forward, (void *const[]){&p.args}, NULL, there, transposed);
    sweep_lay_out(c, &random);
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    pair_case p = draw(c, 0);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_head_bias_forward, (void *const[]){&p.args}, NULL, memory);
    p.args.u = p.args.o_u ? p.args.u : NULL;
    p.args.v = p.args.o_v ? p.args.v : NULL;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_head_bias_forward(&p.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_head_bias_args a = draw(c, 0).args;
    sweep_append(text, " %zux%zux%zux%zu", a.batch, a.heads, a.rows, a.dim);
}

const sweep_family sweep_family_head_bias_pair = {LENGTHS, .make = make_forward, .run = run_forward, .describe = describe};

#ifndef NRG_NO_BACKWARD
static void make_backward(sweep_case *c)
{
    uint64_t random;
    pair_case p = begin(c, 1, &random);
    uint32_t there = p.has_dq ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DQ) : 0,
             transposed = p.q_by_head ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DQ) : 0;
    for (int i = 0; i < 2; i++) {
        there |= p.has[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U + i) : 0;
        there |= p.has_sums[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DU + i) : 0;
        transposed |= p.by_head[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U + i) : 0;
    }
    c->weights = NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_V);
    c->accumulate = p.args.accumulate;
    sweep_add_call(c, &nrg_call_head_bias_backward, (void *const[]){&p.args}, NULL, there, transposed);
    sweep_lay_out(c, &random);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    pair_case p = draw(c, 1);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_head_bias_backward, (void *const[]){&p.args}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_head_bias_backward(&p.args, ith, nth));
    return status;
}

const sweep_family sweep_family_head_bias_pair_backward = {LENGTHS, .make = make_backward, .run = run_backward,
                                                           .describe = describe};
#endif
