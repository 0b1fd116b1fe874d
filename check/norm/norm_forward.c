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

/* Tiles of rows that have loops of constant length, with the options of most calls. Instead of a residual after the norm: r
 * without y. */
static void make_tiles(sweep_case *c)
{
    static const size_t dims[] = {64, 128};
    uint64_t random = c->seed;
    const uint64_t residual = c->way >> SWEEP_RESIDUAL_SHIFT;
    c->weights = NRG_BIT(SWEEP_W) | NRG_BIT(SWEEP_B);
    c->spec.dim = dims[c->length - 1];
    c->spec.centred = c->way & SWEEP_CENTRED;
    c->spec.eps = 1e-5;
    c->rows = 16 + sweep_draw(&random, 48);
    c->planes = 1;
    c->shares = sweep_draw_shares(&random);
    nrg_norm_args args = sweep_norm_args(c);
    uint32_t there = NRG_BIT(NRG_NORM_O);
    there |= residual == SWEEP_RESIDUAL_SUM || residual == SWEEP_RESIDUAL_R ? NRG_BIT(NRG_NORM_Y) : 0;
    there |= residual == SWEEP_RESIDUAL_R || residual == SWEEP_RESIDUAL_AFTER ? NRG_BIT(NRG_NORM_R) : 0;
    there |= c->way & SWEEP_WEIGHT ? NRG_BIT(NRG_NORM_W) : 0;
    there |= c->way & SWEEP_BIAS ? NRG_BIT(NRG_NORM_B) : 0;
    sweep_add_call(c, &nrg_call_norm_forward, (void *const[]){&c->spec, &args}, sweep_norm_slots, there, 0);
    sweep_lay_out(c, &random);
}

static void make(sweep_case *c)
{
    if (c->level == SWEEP_LOOPS) {
        make_tiles(c);
        return;
    }
    uint64_t random = c->seed;
    int combination = sweep_norm_draw(c, sweep_family_norm_forward.ways[c->level], &random);
    add_operands(c, combination, &random);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory) { return sweep_norm_run(c, c->shares, memory); }

const sweep_family sweep_family_norm_forward = {.ways = {2, 16, 32, SWEEP_COMBINATIONS},
                                                SWEEP_NORM_LENGTHS,
                                                .rounds = {1, 1, 3},
                                                .make = make,
                                                .run = run,
                                                .describe = sweep_norm_describe};
