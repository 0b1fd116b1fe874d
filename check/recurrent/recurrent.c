/* The cases of recurrent, and of both phases of its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/recurrent.h"

#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Inputs of both directions; forward, these are the first three, and p is the output. */
enum { W = SWEEP_IN, B, P0, P, DP };

/* dim, n and chains */
static const size_t large[][3] = {{128, 5, 3}, {200, 3, 2}, {257, 3, 1}, {300, 2, 2}, {16, 40, 9}, {8, 5, 130}, {31, 7, 33}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS .ways = {2, 6, 12}, .small = {40, 100, 300}, .large = LARGE

typedef struct recurrent_case {
    nrg_recurrent_args args;
    nrg_recurrent_backward_args backward;
} recurrent_case;
#define AT(field) SWEEP_AT(recurrent_case, field)

/* side by side: chains lie position by position, not one after the other */
typedef struct recurrent_layout {
    int has_b, p_side_by_side, dp_side_by_side, has_dp0, has_dw, has_db;
} recurrent_layout;

static recurrent_layout draw(sweep_case *c, uint64_t *random)
{
    recurrent_case *r = sweep_structs(c);
    recurrent_layout l;
    size_t dim = c->length, n = sweep_draw(random, 20) ? 1 + sweep_draw(random, 7) : 0,
           chains = sweep_draw(random, 20) ? 1 + sweep_draw(random, 6) : 0;
    sweep_take_large(c, large[0], 3, (size_t *const[]){&dim, &n, &chains});
    r->args = nrg_recurrent_args_init(c->spec.dtype, n, dim, NULL, NULL, NULL);
    r->backward = nrg_recurrent_backward_args_init(c->spec.dtype, n, dim, NULL, NULL, NULL, NULL);
    r->args.chains = r->backward.chains = chains;
    r->args.w_dtype = r->backward.w_dtype = sweep_draw(random, 2) ? NRG_F32 : c->spec.dtype;
    r->args.p0_dtype = r->backward.p0_dtype = sweep_draw(random, 3) ? c->spec.dtype : NRG_F32;
    l.has_b = sweep_draw(random, 3) != 0;
    l.p_side_by_side = sweep_draw(random, 3) == 0;
    l.dp_side_by_side = sweep_draw(random, 3) == 0;
    l.has_dp0 = sweep_draw(random, 4) != 0;
    l.has_dw = sweep_draw(random, 4) != 0;
    l.has_db = !l.has_dw || sweep_draw(random, 2);
    r->backward.accumulate = sweep_draw(random, 3) == 0;
    c->rows = n * chains;
    c->weights = NRG_BIT(W);
    return l;
}

/* Mostly a matrix that leaves vectors where the tangent is not flat. */
static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    if ((operand != W && operand != P) || !sweep_draw(random, 4)) {
        sweep_fill_rows(c, operand, memory, random);
        return;
    }
    for (size_t row = 0; row < o->rows; row++)
        sweep_fill_line(memory + sweep_row(o, row), sweep_type_size(o->type), (nrg_dtype)o->type, o->length, sweep_kind_gentle(),
                        random);
}

static const sweep_call forward = {&invoke_recurrent_forward, .part = {AT(args)}};

static void draw_forward(sweep_case *c, uint64_t *random)
{
    const recurrent_layout l = draw(c, random);
    sweep_add(c, SWEEP_ALWAYS, &forward, l.has_b ? NRG_BIT(NRG_RECURRENT_B) : 0, l.p_side_by_side ? NRG_BIT(NRG_RECURRENT_P) : 0);
}

const sweep_family sweep_family_recurrent = {LENGTHS, .draw = draw_forward, .fill = fill};

#ifndef NRG_NO_BACKWARD
/* Phase 1 shows g, copied from its workspace, and d_p0; phase 2 dw and db. */
enum { G = SWEEP_OUT, DP0, DW, DB };

static const unsigned char backward_slots[] = {W, P0, P, DP, DP0, DW, DB, SWEEP_SCRATCH};
static const sweep_call phase1 = {&invoke_recurrent_backward, .slots = backward_slots, .part = {AT(backward)}},
                        phases = {&invoke_recurrent_backward, &invoke_recurrent_backward_reduce, .slots = backward_slots,
                                  .part = {AT(backward)}};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    const sweep_call *call = sweep_family_of(c)->call;
    const int has_sums = call->reduce != NULL;
    const recurrent_layout l = draw(c, random);
    const recurrent_case *r = sweep_structs(c);
    uint32_t there = l.has_dp0 ? NRG_BIT(NRG_RECURRENT_BACKWARD_D_P0) : 0,
             transposed = l.p_side_by_side ? NRG_BIT(NRG_RECURRENT_BACKWARD_P) : 0;
    there |= has_sums && l.has_dw ? NRG_BIT(NRG_RECURRENT_BACKWARD_DW) : 0;
    there |= has_sums && l.has_db ? NRG_BIT(NRG_RECURRENT_BACKWARD_DB) : 0;
    transposed |= l.dp_side_by_side ? NRG_BIT(NRG_RECURRENT_BACKWARD_DP) : 0;
    c->accumulate = has_sums && r->backward.accumulate;
    if (!c->rows) { /* w and the p0 there are, which nothing is computed from, as where there is something */
        const unsigned char slots[] = {W, SWEEP_NOWHERE, r->args.chains ? P0 : SWEEP_NOWHERE, SWEEP_NOWHERE};
        nrg_recurrent_args some = r->args;
        some.positions = 1;
        some.chains += !some.chains;
        sweep_add_call(c, &nrg_call_recurrent_forward, (void *const[]){&some}, slots, 0, 0);
    }
    sweep_add(c, SWEEP_ALWAYS, call, there, transposed);
    if (c->operands[SWEEP_SCRATCH].rows) {
        sweep_operand *g = &c->operands[G];
        *g = c->operands[SWEEP_SCRATCH];
        g->length -= NRG_RECURRENT_MARK;
        g->stride = g->length * sizeof(float);
    }
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    const nrg_status status = sweep_run_calls(c, memory);
    if (status == NRG_OK && c->operands[SWEEP_SCRATCH].rows)
        memcpy(sweep_place(c, G, memory), sweep_place(c, SWEEP_SCRATCH, memory), c->operands[G].stride);
    return status;
}

#define CASES LENGTHS, .draw = draw_backward, .fill = fill, .run = run

const sweep_family sweep_family_recurrent_backward = {CASES, .call = &phase1};
const sweep_family sweep_family_recurrent_reduce = {CASES, .call = &phases};
#endif
