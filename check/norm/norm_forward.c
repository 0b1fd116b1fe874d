/* The cases of norm_forward.
 *
 * SPDX-License-Identifier: MIT */
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

static const struct {
    uint64_t combinations, rounds;
} levels[] = {[SWEEP_QUICK] = {2, 1}, [SWEEP_DEFAULT] = {16, 1}, [SWEEP_FULL] = {32, 3}};

static uint64_t count(sweep_level level) { return sweep_norm_count(level, levels[level].combinations, levels[level].rounds); }

static void add_operands(sweep_case *c, int combination, uint64_t *random)
{
    const nrg_norm_spec *s = &c->spec;
    int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    sweep_add(c, SWEEP_X, s->dtype, s->dim, c->rows);
    sweep_add(c, SWEEP_O, s->dtype, s->dim, c->rows);
    if (residual != SWEEP_RESIDUAL_NONE)
        sweep_add(c, SWEEP_Y, s->y_dtype, s->dim, c->rows);
    if (s->gate)
        sweep_add(c, SWEEP_Z, s->dtype, s->dim, c->rows);
    /* r without y is a copy of x: rare, but allowed */
    if (residual == SWEEP_RESIDUAL_R || (residual == SWEEP_RESIDUAL_NONE && sweep_draw(random, 6) == 0))
        sweep_add(c, SWEEP_R, s->r_dtype, s->dim, c->rows);
    if (combination & SWEEP_WEIGHT)
        sweep_add(c, SWEEP_W, s->w_dtype, s->dim, 1);
    if (combination & SWEEP_BIAS)
        sweep_add(c, SWEEP_B, s->w_dtype, s->dim, 1);
    if (sweep_draw(random, 3) == 0)
        sweep_add(c, SWEEP_MEAN, NRG_F32, s->groups ? s->groups : 1, c->rows);
    if (sweep_draw(random, 3) == 0)
        sweep_add(c, SWEEP_RSTD, NRG_F32, s->groups ? s->groups : 1, c->rows);
}

/* In place, as the matrix in norm.h allows. */
static void draw_places(sweep_case *c, uint64_t *random)
{
    switch (sweep_draw(random, 14)) {
    case 0:
    case 1:
        sweep_share_place(c, SWEEP_O, SWEEP_X);
        break;
    case 2:
        sweep_share_place(c, SWEEP_O, SWEEP_Y);
        break;
    case 3:
        sweep_share_place(c, SWEEP_R, SWEEP_X);
        break;
    case 4:
        sweep_share_place(c, SWEEP_R, SWEEP_Y);
        break;
    case 5:
        sweep_share_place(c, SWEEP_O, SWEEP_X);
        sweep_share_place(c, SWEEP_R, SWEEP_Y);
        break;
    case 6:
        sweep_share_place(c, SWEEP_O, SWEEP_Y);
        sweep_share_place(c, SWEEP_R, SWEEP_X);
        break;
    case 7:
    case 8:
        sweep_share_place(c, SWEEP_O, SWEEP_Z);
        break;
    default:
        break;
    }
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    uint64_t random = c->number;
    int combination = sweep_norm_draw(level, levels[level].combinations, n, c, &random);
    add_operands(c, combination, &random);
    sweep_lay_out(c, &random);
    draw_places(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    nrg_norm_args args = sweep_forward_args(c, memory);
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_norm_forward(&c->spec, &args, i, c->shares);
    return status;
}

const sweep_family sweep_family_norm_forward = {count, make, sweep_fill_rows, run, sweep_norm_describe, NULL};
