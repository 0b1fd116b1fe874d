/* The cases of norm_forward.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

static void add_operands(sweep_case *c, int combination, uint64_t *random)
{
    const int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    nrg_norm_args args = sweep_norm_args(c);
    uint32_t there = NRG_BIT(NRG_NORM_O);
    there |= residual != SWEEP_RESIDUAL_NONE ? NRG_BIT(NRG_NORM_Y) : 0;
    there |= c->spec.gate ? NRG_BIT(NRG_NORM_Z) : 0;
    there |= combination & SWEEP_WEIGHT ? NRG_BIT(NRG_NORM_W) : 0;
    there |= combination & SWEEP_BIAS ? NRG_BIT(NRG_NORM_B) : 0;
    /* r without y is a copy of x: rare, but allowed */
    if (residual == SWEEP_RESIDUAL_R || (residual == SWEEP_RESIDUAL_NONE && sweep_draw(random, 6) == 0))
        there |= NRG_BIT(NRG_NORM_R);
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_NORM_MEAN) : 0;
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_NORM_RSTD) : 0;
    norm_settle(&c->spec, combination & SWEEP_WEIGHT);
    sweep_add_call(c, &nrg_call_norm_forward, (void *const[]){&c->spec, &args}, sweep_norm_slots, there, 0);
}

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    int combination = sweep_norm_draw(c, sweep_family_norm_forward.ways[c->level], &random);
    add_operands(c, combination, &random);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory) { return sweep_norm_run(c, c->shares, memory); }

const sweep_family sweep_family_norm_forward = {
    .ways = {2, 16, 32}, SWEEP_NORM_LENGTHS, .rounds = {1, 1, 3}, .make = make, .run = run, .describe = sweep_norm_describe};
