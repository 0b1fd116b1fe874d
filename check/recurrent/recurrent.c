/* The cases of recurrent, and of both phases of its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { W = SWEEP_IN, B, P0, P, DP };
enum { O = SWEEP_OUT, G, DP0, DW, DB };

static const char *const names[SWEEP_OPERANDS] = {
    [W] = "w", [B] = "b", [P0] = "p0", [P] = "p", [DP] = "dp", [O] = "p", [G] = "g", [DP0] = "dp0", [DW] = "dw", [DB] = "db"};

/* Every length of a vector up to small in `each` shapes, and those beyond. */
static const struct {
    size_t small;
    uint64_t each;
} levels[] = {[SWEEP_QUICK] = {40, 2}, [SWEEP_DEFAULT] = {100, 6}, [SWEEP_FULL] = {300, 12}};

static const struct {
    size_t dim, n, chains;
} large[] = {{128, 5, 3}, {200, 3, 2}, {257, 3, 1}, {300, 2, 2}, {16, 40, 9}, {8, 5, 130}, {31, 7, 33}};
enum { LARGE = sizeof large / sizeof large[0] };

static uint64_t count(sweep_level level) { return levels[level].each * (levels[level].small + LARGE); }

typedef struct recurrent_case {
    size_t dim, n, chains;
    nrg_dtype w_dtype, p0_dtype;
    int has_b, p_side_by_side, dp_side_by_side; /* chains: position by position, not one after the other */
    int has_dp0, has_dw, has_db, accumulate;
} recurrent_case;

static recurrent_case draw(const sweep_case *c)
{
    recurrent_case r;
    uint64_t random = c->number, length = c->n / levels[c->level].each;
    memset(&r, 0, sizeof r);
    r.dim = (size_t)length + 1;
    r.n = sweep_draw(&random, 20) ? 1 + sweep_draw(&random, 7) : 0;
    r.chains = sweep_draw(&random, 20) ? 1 + sweep_draw(&random, 6) : 0;
    if (length >= levels[c->level].small) {
        r.dim = large[length - levels[c->level].small].dim;
        r.n = large[length - levels[c->level].small].n;
        r.chains = large[length - levels[c->level].small].chains;
    }
    r.w_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    r.p0_dtype = sweep_draw(&random, 3) ? c->spec.dtype : NRG_F32;
    r.has_b = sweep_draw(&random, 3) != 0;
    r.p_side_by_side = sweep_draw(&random, 3) == 0;
    r.dp_side_by_side = sweep_draw(&random, 3) == 0;
    r.has_dp0 = sweep_draw(&random, 4) != 0;
    r.has_dw = sweep_draw(&random, 4) != 0;
    r.has_db = !r.has_dw || sweep_draw(&random, 2);
    r.accumulate = sweep_draw(&random, 3) == 0;
    return r;
}

static void add_vectors(sweep_case *c, const recurrent_case *r, int operand, int side_by_side)
{
    sweep_add_heads(c, operand, c->spec.dtype, r->dim, r->n, r->chains, !side_by_side, 0);
}

static void make_forward(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    recurrent_case r = draw(c);
    uint64_t random = c->number + (n << 32);
    c->rows = r.n * r.chains;
    c->shares = sweep_draw_shares(&random);
    sweep_add_tensor(c, W, r.w_dtype, r.dim, r.dim);
    if (r.has_b)
        sweep_add_dense(c, B, r.w_dtype, r.dim, 1);
    sweep_add_tensor(c, P0, r.p0_dtype, r.dim, r.chains);
    add_vectors(c, &r, O, r.p_side_by_side);
    sweep_lay_out(c, &random);
}

#ifndef NRG_NO_BACKWARD
/* Phase 1 shows g and dp0, phase 2 dw and db. */
static void make_gradient(uint64_t n, sweep_case *c, int sums)
{
    recurrent_case r = draw(c);
    uint64_t random = c->number + (n << 32);
    c->rows = r.n * r.chains;
    c->shares = sweep_draw_shares(&random);
    c->reduce_shares = sums ? sweep_draw_shares(&random) : 1;
    sweep_add_tensor(c, W, r.w_dtype, r.dim, r.dim);
    sweep_add_tensor(c, P0, r.p0_dtype, r.dim, r.chains);
    add_vectors(c, &r, P, r.p_side_by_side);
    add_vectors(c, &r, DP, r.dp_side_by_side);
    sweep_add_dense(c, G, NRG_F32, r.dim, r.n * r.chains);
    if (r.has_dp0)
        sweep_add_tensor(c, DP0, NRG_F32, r.dim, r.chains);
    if (sums && r.has_dw)
        sweep_add_tensor(c, DW, NRG_F32, r.dim, r.dim);
    if (sums && r.has_db)
        sweep_add_dense(c, DB, NRG_F32, r.dim, 1);
    if (r.accumulate) {
        sweep_accumulate(c, DW);
        sweep_accumulate(c, DB);
    }
    sweep_lay_out(c, &random);
}

static void make_backward(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    make_gradient(n, c, 0);
}

static void make_reduce(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    make_gradient(n, c, 1);
}
#endif

/* Mostly a matrix that leaves vectors where the tangent is not flat. */
static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    int is_gentle = (operand == W || operand == P) && sweep_draw(random, 4);
    for (size_t row = 0; row < o->rows; row++)
        if (is_gentle)
            sweep_fill_line(memory + sweep_row(o, row), sweep_type_size(o->type), (nrg_dtype)o->type, o->length,
                            sweep_kind_gentle(), random);
        else
            sweep_fill_operand_row(c, operand, row, operand == W, memory, random);
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    recurrent_case r = draw(c);
    nrg_recurrent_args args =
        nrg_recurrent_args_init(r.dim, r.n, sweep_place(c, W, memory), sweep_place(c, P0, memory), sweep_place(c, O, memory));
    nrg_status status = NRG_OK;
    args.chains = r.chains;
    args.dtype = c->spec.dtype;
    args.w_dtype = r.w_dtype;
    args.p0_dtype = r.p0_dtype;
    args.b = sweep_place(c, B, memory);
    args.w_stride = sweep_stride(c, W);
    args.p0_stride = sweep_stride(c, P0);
    sweep_head_strides(c, O, !r.p_side_by_side, 1, &args.p_stride, &args.p_chain_stride);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_recurrent_forward(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

#ifndef NRG_NO_BACKWARD
static nrg_status run_gradient(const sweep_case *c, unsigned char *memory)
{
    recurrent_case r = draw(c);
    nrg_recurrent_backward_args args = nrg_recurrent_backward_args_init(
        r.dim, r.n, sweep_place(c, W, memory), sweep_place(c, P0, memory), sweep_place(c, P, memory), sweep_place(c, DP, memory));
    nrg_status status = NRG_OK;
    args.chains = r.chains;
    args.dtype = c->spec.dtype;
    args.w_dtype = r.w_dtype;
    args.p0_dtype = r.p0_dtype;
    args.accumulate = r.accumulate;
    args.dw = sweep_place(c, DW, memory);
    args.db = sweep_place(c, DB, memory);
    args.dp0 = sweep_place(c, DP0, memory);
    args.workspace = sweep_place(c, G, memory);
    args.workspace_size = c->operands[G].rows * c->operands[G].stride;
    args.w_stride = sweep_stride(c, W);
    args.p0_stride = sweep_stride(c, P0);
    args.dw_stride = sweep_stride(c, DW);
    args.dp0_stride = sweep_stride(c, DP0);
    sweep_head_strides(c, P, !r.p_side_by_side, 1, &args.p_stride, &args.p_chain_stride);
    sweep_head_strides(c, DP, !r.dp_side_by_side, 1, &args.dp_stride, &args.dp_chain_stride);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_recurrent_backward(&args, sweep_share(c, i, c->shares), c->shares);
    for (int i = 0; i < c->reduce_shares && (args.dw || args.db) && status == NRG_OK; i++)
        status = nrg_recurrent_backward_reduce(&args, sweep_share(c, i, c->reduce_shares), c->reduce_shares);
    return status;
}
#endif

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    recurrent_case r = draw(c);
    sweep_append(text, " %zu chains of %zux%zu%s%s", r.chains, r.n, r.dim, r.p_side_by_side ? ", side by side" : "",
                 c->operands[DW].rows + c->operands[DB].rows && r.accumulate ? ", accumulate" : "");
}

const sweep_family sweep_family_recurrent = {count, make_forward, fill, run_forward, describe, names};
#ifndef NRG_NO_BACKWARD
const sweep_family sweep_family_recurrent_backward = {count, make_backward, fill, run_gradient, describe, names};
const sweep_family sweep_family_recurrent_reduce = {count, make_reduce, fill, run_gradient, describe, names};
#endif
