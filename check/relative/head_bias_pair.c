/* The cases of head_bias_pair and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { Q = SWEEP_IN, U, V, D_O_U, D_O_V };
enum { O_U = SWEEP_OUT, O_V, DQ, DU, DV };

static const char *const names[SWEEP_OPERANDS] = {[Q] = "q",     [U] = "u",     [V] = "v",   [D_O_U] = "d_o_u", [D_O_V] = "d_o_v",
                                                  [O_U] = "o_u", [O_V] = "o_v", [DQ] = "dq", [DU] = "du",       [DV] = "dv"};

enum { WAYS = 3 }; /* for every length of a head */

static const struct {
    size_t batch, heads, rows, dim;
} large[] = {{1, 8, 20, 64}, {2, 3, 100, 16}, {1, 2, 3, 513}, {1, 1, 2, 4100}, {3, 16, 5, 40}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

/* A tensor may be left out; one of each pair is there. */
typedef struct pair_case {
    size_t shape[3], dim; /* batch, heads, rows */
    nrg_dtype bias_dtype;
    int by_head[2], q_by_head, has[2], has_dq, has_sums[2], accumulate, in_place;
} pair_case;

static pair_case draw(const sweep_case *c)
{
    pair_case p;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&p, 0, sizeof p);
    p.shape[0] = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 2) : 0;
    p.shape[1] = 1 + sweep_draw(&random, 5);
    p.shape[2] = 1 + sweep_draw(&random, 6);
    p.dim = (size_t)length + 1;
    if (length >= small[c->level]) {
        p.shape[0] = large[length - small[c->level]].batch;
        p.shape[1] = large[length - small[c->level]].heads;
        p.shape[2] = large[length - small[c->level]].rows;
        p.dim = large[length - small[c->level]].dim;
    }
    p.bias_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    p.q_by_head = sweep_draw(&random, 3) == 0;
    p.has[0] = sweep_draw(&random, 5) != 0;
    p.has[1] = !p.has[0] || sweep_draw(&random, 5) != 0;
    for (int i = 0; i < 2; i++) {
        p.by_head[i] = sweep_draw(&random, 3) == 0;
        p.has_sums[i] = sweep_draw(&random, 3) != 0;
    }
    p.has_dq = sweep_draw(&random, 4) != 0;
    p.accumulate = sweep_draw(&random, 3) == 0;
    /* in the place of the first of them that is there */
    p.in_place = sweep_draw(&random, 3) == 0;
    if (p.in_place)
        p.by_head[!p.has[0]] = p.q_by_head;
    return p;
}

static void make_forward(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 5 % 3);
    pair_case p = draw(c);
    uint64_t random = ~(c->number << 8);
    c->rows = p.shape[0];
    c->shares = sweep_draw_shares(&random);
    sweep_add_batches(c, Q, c->spec.dtype, p.dim, p.shape, p.q_by_head);
    for (int i = 0; i < 2; i++)
        if (p.has[i]) {
            sweep_add_dense(c, U + i, p.bias_dtype, p.dim, p.shape[1]);
            sweep_add_batches(c, O_U + i, c->spec.dtype, p.dim, p.shape, p.by_head[i]);
        }
    sweep_lay_out(c, &random);
    if (p.in_place)
        sweep_share_place(c, p.has[0] ? O_U : O_V, Q);
}

static nrg_head_bias_args pair_args(const sweep_case *c, const pair_case *p, unsigned char *memory)
{
    nrg_head_bias_args args = nrg_head_bias_args_init(p->shape[0], p->shape[1], p->shape[2], p->dim);
    const struct {
        int operand, by_head;
        nrg_head_strides *strides;
    } tensors[] = {{Q, p->q_by_head, &args.q_strides},          {O_U, p->by_head[0], &args.o_u_strides},
                   {O_V, p->by_head[1], &args.o_v_strides},     {D_O_U, p->by_head[0], &args.d_o_u_strides},
                   {D_O_V, p->by_head[1], &args.d_o_v_strides}, {DQ, p->q_by_head, &args.dq_strides}};
    args.dtype = c->spec.dtype;
    args.bias_dtype = p->bias_dtype;
    args.store = c->spec.store;
    args.accumulate = p->accumulate;
    args.q = sweep_place(c, Q, memory);
    args.u = sweep_place(c, U, memory);
    args.v = sweep_place(c, V, memory);
    args.o_u = sweep_place(c, O_U, memory);
    args.o_v = sweep_place(c, O_V, memory);
    args.d_o_u = sweep_place(c, D_O_U, memory);
    args.d_o_v = sweep_place(c, D_O_V, memory);
    args.dq = sweep_place(c, DQ, memory);
    args.du = sweep_place(c, DU, memory);
    args.dv = sweep_place(c, DV, memory);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        sweep_batch_strides(c, tensors[i].operand, p->shape, tensors[i].by_head, 0, &tensors[i].strides->batch,
                            &tensors[i].strides->head, &tensors[i].strides->row);
    return args;
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    pair_case p = draw(c);
    nrg_head_bias_args args = pair_args(c, &p, memory);
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_head_bias_pair(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const stores[] = {"auto", "keep", "stream"};
    pair_case p = draw(c);
    sweep_append(text, " %zux%zux%zux%zu%s, store %s", p.shape[0], p.shape[1], p.shape[2], p.dim,
                 p.accumulate ? ", accumulate" : "", stores[c->spec.store]);
}

const sweep_family sweep_family_head_bias_pair = {count, make_forward, sweep_fill_rows, run_forward, describe, names};

#ifndef NRG_NO_BACKWARD
static void make_backward(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 5 % 3);
    pair_case p = draw(c);
    uint64_t random = ~(c->number << 8);
    c->rows = p.shape[0];
    c->shares = sweep_draw_shares(&random);
    for (int i = 0; i < 2; i++) {
        if (p.has[i])
            sweep_add_batches(c, D_O_U + i, c->spec.dtype, p.dim, p.shape, p.by_head[i]);
        if (p.has_sums[i])
            sweep_add_dense(c, DU + i, NRG_F32, p.dim, p.shape[1]);
        if (p.has_sums[i] && p.accumulate)
            sweep_accumulate(c, DU + i);
    }
    if (p.has_dq)
        sweep_add_batches(c, DQ, c->spec.dtype, p.dim, p.shape, p.q_by_head);
    sweep_lay_out(c, &random);
    if (p.in_place)
        sweep_share_place(c, DQ, p.has[0] ? D_O_U : D_O_V);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    pair_case p = draw(c);
    nrg_head_bias_args args = pair_args(c, &p, memory);
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_head_bias_pair_backward(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

const sweep_family sweep_family_head_bias_pair_backward = {count, make_backward, sweep_fill_rows, run_backward, describe, names};
#endif
