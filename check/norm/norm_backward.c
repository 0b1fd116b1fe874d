/* The cases of norm_backward, both of its phases.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

static const unsigned char slots[] = {
    [NRG_NORM_BACKWARD_X] = SWEEP_X,     [NRG_NORM_BACKWARD_Y] = SWEEP_Y,         [NRG_NORM_BACKWARD_Z] = SWEEP_Z,
    [NRG_NORM_BACKWARD_W] = SWEEP_W,     [NRG_NORM_BACKWARD_B] = SWEEP_B,         [NRG_NORM_BACKWARD_R] = SWEEP_R_IN,
    [NRG_NORM_BACKWARD_D_O] = SWEEP_D_O, [NRG_NORM_BACKWARD_DR_IN] = SWEEP_DR_IN, [NRG_NORM_BACKWARD_MEAN] = SWEEP_MEAN,
    [NRG_NORM_BACKWARD_DX] = SWEEP_DX,   [NRG_NORM_BACKWARD_DY] = SWEEP_DY,       [NRG_NORM_BACKWARD_DZ] = SWEEP_DZ,
    [NRG_NORM_BACKWARD_DW] = SWEEP_DW,   [NRG_NORM_BACKWARD_DB] = SWEEP_DB,       [NRG_NORM_BACKWARD_WORKSPACE] = SWEEP_WORKSPACE,
};

#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static uint32_t draw_inputs(const sweep_case *c, int combination, uint64_t *random)
{
    const int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    uint32_t there = residual == SWEEP_RESIDUAL_R ? OPERAND(R) : 0;
    /* laid out, so that all that is drawn after them stays what it is, and not given */
    const int unread = residual == SWEEP_RESIDUAL_R && sweep_draw(random, 8) == 0;
    there |= residual != SWEEP_RESIDUAL_R || unread ? OPERAND(X) : 0;
    if (residual == SWEEP_RESIDUAL_SUM || unread || (residual == SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2)))
        there |= OPERAND(Y);
    if (residual != SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2))
        there |= OPERAND(DR_IN);
    there |= c->spec.gate ? OPERAND(Z) : 0;
    there |= combination & SWEEP_WEIGHT ? OPERAND(W) : 0;
    there |= combination & SWEEP_BIAS ? OPERAND(B) : 0;
    return there;
}

/* Mostly all of them; dy also where there was no y, dw and db where there was no w or b. */
static uint32_t draw_outputs(sweep_case *c, uint64_t *random)
{
    uint32_t there = sweep_draw(random, 8) ? OPERAND(DX) : 0;
    there |= sweep_draw(random, 2) ? OPERAND(DY) : 0;
    there |= c->spec.gate && sweep_draw(random, 4) ? OPERAND(DZ) : 0;
    there |= sweep_draw(random, 3) ? OPERAND(DW) : 0;
    there |= sweep_draw(random, 3) ? OPERAND(DB) : 0;
    c->accumulate = sweep_draw(random, 3) == 0;
    return there;
}

/* With what a forward pass saved, where one can be run: it has the same inputs. */
static void draw_saved(sweep_case *c, uint64_t *random)
{
    nrg_norm_spec spec = c->spec;
    nrg_norm_args args = sweep_norm_args(c);
    uint32_t there = NRG_BIT(NRG_NORM_O) | NRG_BIT(NRG_NORM_MEAN);
    int after = c->spec.residual_mode == NRG_RESIDUAL_AFTER;
    if (sweep_draw(random, 3) || c->operands[SWEEP_R_IN].rows || (after && !c->operands[SWEEP_Y].rows))
        return;
    c->saved = 1;
    there |= !after && sweep_draw(random, 2) ? NRG_BIT(NRG_NORM_R) : 0;
    norm_settle(&spec, 0); /* w is laid out already */
    sweep_add_before(c, &nrg_call_norm_forward, (void *const[]){&spec, &args}, sweep_norm_slots, there);
}

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL);
    int combination = sweep_norm_draw(c, sweep_family_norm_backward.ways[c->level], &random);
    c->reduce_shares = sweep_draw_shares(&random);
    uint32_t there = draw_inputs(c, combination, &random);
    there |= draw_outputs(c, &random);
    args.rows = c->rows / c->planes;
    args.rows2 = c->planes;
    norm_settle(&c->spec, combination & SWEEP_WEIGHT);
    sweep_add_call(c, &nrg_call_norm_backward, (void *const[]){&c->spec, &args}, slots, there, 0);
    c->operands[SWEEP_DW].is_read = c->operands[SWEEP_DB].is_read = 0; /* what there is before them is not drawn */
    draw_saved(c, &random);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    nrg_norm_spec spec = c->spec;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL);
    args.rows2 = c->planes;
    args.store = c->store;
    sweep_bind_call(c, &nrg_call_norm_backward, (void *const[]){&spec, &args}, slots, memory);
    norm_settle(&spec, args.w != NULL);
    args.accumulate = c->accumulate;
    nrg_status status = c->saved ? sweep_norm_run(c, 1, memory) : NRG_OK;
    if (!c->saved || c->recompute) {
        args.mean = NULL;
    } else if (c->operands[SWEEP_R].rows) {
        args.r = sweep_place(c, SWEEP_R, memory);
        args.r_stride[0] = sweep_stride(c, SWEEP_R);
        args.r_stride[1] = sweep_run_stride(c, SWEEP_R);
    }
    if (args.r)
        args.x = args.y = NULL;
    if (spec.residual_mode == NRG_RESIDUAL_AFTER)
        args.y = NULL;
    if (!spec.centred)
        args.mean = NULL;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_backward(&spec, &args, ith, nth));
    SWEEP_EACH_SHARE(status, c, c->reduce_shares, nrg_norm_backward_reduce(&spec, &args, ith, nth));
    return status;
}

const sweep_family sweep_family_norm_backward = {
    .ways = {1, 4, 32}, SWEEP_NORM_LENGTHS, .rounds = {1, 1, 2}, .make = make, .run = run, .describe = sweep_norm_describe};
