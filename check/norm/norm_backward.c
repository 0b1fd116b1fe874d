/* The cases of norm_backward, both of its phases.
 *
 * SPDX-License-Identifier: MIT */
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

static const struct {
    uint64_t combinations, rounds;
} levels[] = {[SWEEP_QUICK] = {1, 1}, [SWEEP_DEFAULT] = {4, 1}, [SWEEP_FULL] = {32, 2}};

static uint64_t count(sweep_level level) { return sweep_norm_count(level, levels[level].combinations, levels[level].rounds); }

static void add_inputs(sweep_case *c, int combination, uint64_t *random)
{
    const nrg_norm_spec *s = &c->spec;
    int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    sweep_add(c, SWEEP_D_O, s->dtype, s->dim, c->rows);
    if (residual == SWEEP_RESIDUAL_R)
        sweep_add(c, SWEEP_R_IN, s->r_dtype, s->dim, c->rows);
    /* x and y beside r are allowed, and not read */
    int unread = residual == SWEEP_RESIDUAL_R && sweep_draw(random, 8) == 0;
    if (residual != SWEEP_RESIDUAL_R || unread)
        sweep_add(c, SWEEP_X, s->dtype, s->dim, c->rows);
    if (residual == SWEEP_RESIDUAL_SUM || unread || (residual == SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2)))
        sweep_add(c, SWEEP_Y, s->y_dtype, s->dim, c->rows);
    if (residual != SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2))
        sweep_add(c, SWEEP_DR_IN, s->r_dtype, s->dim, c->rows);
    if (s->gate)
        sweep_add(c, SWEEP_Z, s->dtype, s->dim, c->rows);
    if (combination & SWEEP_WEIGHT)
        sweep_add(c, SWEEP_W, s->w_dtype, s->dim, 1);
    if (combination & SWEEP_BIAS)
        sweep_add(c, SWEEP_B, s->w_dtype, s->dim, 1);
}

/* As many doubles as the library says. If it refuses to, its run will say why. */
static void add_workspace(sweep_case *c)
{
    static float any;
    size_t bytes;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(c->rows, NULL, NULL, NULL);
    args.dw = c->operands[SWEEP_DW].rows ? &any : NULL;
    args.db = c->operands[SWEEP_DB].rows ? &any : NULL;
    if (nrg_norm_backward_workspace(&c->spec, &args, &bytes) == NRG_OK && bytes)
        sweep_add(c, SWEEP_WORKSPACE, NRG_F32, bytes / sizeof(float), 1);
}

/* Mostly all of them; dy also where there was no y, dw and db where there was no w or b. */
static void add_outputs(sweep_case *c, uint64_t *random)
{
    const nrg_norm_spec *s = &c->spec;
    if (sweep_draw(random, 8))
        sweep_add(c, SWEEP_DX, s->dtype, s->dim, c->rows);
    if (sweep_draw(random, 2))
        sweep_add(c, SWEEP_DY, s->y_dtype, s->dim, c->rows);
    if (s->gate && sweep_draw(random, 4))
        sweep_add(c, SWEEP_DZ, s->dtype, s->dim, c->rows);
    if (sweep_draw(random, 3))
        sweep_add(c, SWEEP_DW, NRG_F32, s->dim, 1);
    if (sweep_draw(random, 3))
        sweep_add(c, SWEEP_DB, NRG_F32, s->dim, 1);
    c->accumulate = sweep_draw(random, 3) == 0;
    add_workspace(c);
}

/* With what a forward pass saved, where one can be run: it has the same inputs. */
static void draw_saved(sweep_case *c, uint64_t *random)
{
    const nrg_norm_spec *s = &c->spec;
    int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (sweep_draw(random, 3) || c->operands[SWEEP_R_IN].rows || (after && !c->operands[SWEEP_Y].rows))
        return;
    c->saved = 1;
    sweep_add(c, SWEEP_O, s->dtype, s->dim, c->rows);
    sweep_add(c, SWEEP_MEAN, NRG_F32, s->groups ? s->groups : 1, c->rows);
    if (!after && sweep_draw(random, 2))
        sweep_add(c, SWEEP_R, s->r_dtype, s->dim, c->rows);
}

/* In place, as the matrix in norm_backward.h allows. */
static void draw_places(sweep_case *c, uint64_t *random)
{
    if (sweep_draw(random, 3) == 0)
        sweep_share_place(c, SWEEP_DZ, SWEEP_Z);
    switch (sweep_draw(random, 14)) {
    case 0:
        sweep_share_place(c, SWEEP_DX, SWEEP_D_O);
        break;
    case 1:
        sweep_share_place(c, SWEEP_DX, SWEEP_X);
        break;
    case 2:
        sweep_share_place(c, SWEEP_DX, SWEEP_DR_IN);
        break;
    case 3:
        sweep_share_place(c, SWEEP_DX, SWEEP_R_IN);
        break;
    case 4:
        sweep_share_place(c, SWEEP_DY, SWEEP_D_O);
        break;
    case 5:
        sweep_share_place(c, SWEEP_DY, SWEEP_DR_IN);
        break;
    case 6:
        sweep_share_place(c, SWEEP_DY, SWEEP_R_IN);
        break;
    case 7:
        sweep_share_place(c, SWEEP_DX, SWEEP_X);
        sweep_share_place(c, SWEEP_DY, SWEEP_Y);
        break;
    case 8:
        sweep_share_place(c, SWEEP_DX, SWEEP_D_O);
        sweep_share_place(c, SWEEP_DY, SWEEP_DR_IN);
        break;
    case 9:
        if (c->spec.residual_mode != NRG_RESIDUAL_AFTER)
            sweep_share_place(c, SWEEP_DY, SWEEP_DX);
        break;
    default:
        break;
    }
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    uint64_t random = c->number;
    int combination = sweep_norm_draw(level, levels[level].combinations, n, c, &random);
    c->reduce_shares = sweep_draw_shares(&random);
    add_inputs(c, combination, &random);
    add_outputs(c, &random);
    draw_saved(c, &random);
    sweep_lay_out(c, &random);
    draw_places(c, &random);
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    nrg_norm_args args = sweep_forward_args(c, memory);
    return nrg_norm_forward(&c->spec, &args, 0, 1);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    const sweep_operand *o = c->operands;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(
        c->rows, sweep_place(c, SWEEP_X, memory), sweep_place(c, SWEEP_D_O, memory), sweep_place(c, SWEEP_DX, memory));
    args.dr_in = sweep_place(c, SWEEP_DR_IN, memory);
    args.y = sweep_place(c, SWEEP_Y, memory);
    args.r = sweep_place(c, SWEEP_R_IN, memory);
    args.z = sweep_place(c, SWEEP_Z, memory);
    args.w = sweep_place(c, SWEEP_W, memory);
    args.b = sweep_place(c, SWEEP_B, memory);
    args.dy = sweep_place(c, SWEEP_DY, memory);
    args.dz = sweep_place(c, SWEEP_DZ, memory);
    args.dw = sweep_place(c, SWEEP_DW, memory);
    args.db = sweep_place(c, SWEEP_DB, memory);
    args.workspace = sweep_place(c, SWEEP_WORKSPACE, memory);
    args.workspace_size = o[SWEEP_WORKSPACE].length * sizeof(float);
    args.d_o_stride = o[SWEEP_D_O].stride;
    args.dr_in_stride = o[SWEEP_DR_IN].stride;
    args.x_stride = o[SWEEP_X].stride;
    args.y_stride = o[SWEEP_Y].stride;
    args.r_stride = o[SWEEP_R_IN].stride;
    args.z_stride = o[SWEEP_Z].stride;
    args.dx_stride = o[SWEEP_DX].stride;
    args.dy_stride = o[SWEEP_DY].stride;
    args.dz_stride = o[SWEEP_DZ].stride;
    args.accumulate = c->accumulate;
    nrg_status status = c->saved ? run_forward(c, memory) : NRG_OK;
    if (c->saved && !c->recompute) {
        args.mean = sweep_place(c, SWEEP_MEAN, memory);
        if (c->operands[SWEEP_R].rows) {
            args.r = sweep_place(c, SWEEP_R, memory);
            args.r_stride = o[SWEEP_R].stride;
        }
    }
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_norm_backward(&c->spec, &args, i, c->shares);
    for (int i = 0; i < c->reduce_shares && status == NRG_OK; i++)
        status = nrg_norm_backward_reduce(&c->spec, &args, i, c->reduce_shares);
    return status;
}

const sweep_family sweep_family_norm_backward = {count, make, sweep_fill_rows, run, sweep_norm_describe, NULL};
