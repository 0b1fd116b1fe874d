/* SPDX-License-Identifier: MIT */
#include "channel_norm_backward_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../norm/norm_backward_case.h"

/* Every path stores the same; scalar is asked. */
static void save_statistics(channel_backward_problem *p)
{
    const channel_problem *f = &p->forward;
    const size_t bytes = f->sets * sizeof *p->statistics;
    if (f->spec.statistics == NRG_STATISTICS_RUNNING)
        return;
    p->statistics = norm_tensor(f->sets, sizeof *p->statistics / sizeof(float), NRG_F32);
    if (f->statistics) {
        memcpy(p->statistics, f->statistics, bytes);
        return;
    }
    nrg_isa active = nrg_isa_active();
    channel_result result;
    channel_result_make(&result, f);
    nrg_channel_norm_args args = channel_args(f, &result);
    if (nrg_isa_set(NRG_ISA_SCALAR) != NRG_OK || nrg_channel_norm_forward(&f->spec, &args, 0, 1) != NRG_OK ||
        nrg_isa_set(active) != NRG_OK)
        ck_abort_msg("the forward pass fails; %s", f->text);
    if (f->n)
        memcpy(p->statistics, result.statistics, bytes);
    channel_result_free(&result);
}

void channel_backward_problem_make(channel_backward_problem *p, const channel_options *options, const channel_shape *shape,
                                   const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    uint64_t state = test_mix(seed + 77);
    channel_options backward = *options;
    memset(p, 0, sizeof *p);
    backward.update = UPDATE_NONE;
    if (backward.source == NRG_STATISTICS_FOLDED)
        backward.source = NRG_STATISTICS_COMPUTE;
    channel_problem_make(&p->forward, &backward, shape, kinds, kind_count, seed);
    p->d_o = channel_tensor(&p->forward, norm_backward_fill, kinds, kind_count, test_draw(&state, 1u << 30));
    save_statistics(p);
    p->accumulate = (int)test_draw(&state, 2);
    p->dw = norm_tensor(1, shape->c, NRG_F32);
    p->db = norm_tensor(1, shape->c, NRG_F32);
    row_fill(p->dw, shape->c, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    row_fill(p->db, shape->c, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    snprintf(p->text, sizeof p->text, "%s%s", p->forward.text, p->accumulate ? ", accumulates" : "");
}

void channel_backward_problem_free(channel_backward_problem *p)
{
    channel_problem_free(&p->forward);
    free(p->d_o);
    free(p->statistics);
    free(p->dw);
    free(p->db);
}

void channel_backward_result_make(channel_backward_result *result, const channel_backward_problem *p)
{
    const channel_problem *f = &p->forward;
    result->dx = norm_tensor(f->rows, f->dim, f->spec.dtype);
    result->dy = norm_tensor(f->rows, f->dim, f->spec.dtype);
    result->dw = norm_tensor(1, f->spec.channels, NRG_F32);
    result->db = norm_tensor(1, f->spec.channels, NRG_F32);
}

void channel_backward_result_free(channel_backward_result *result)
{
    free(result->dx);
    free(result->dy);
    free(result->dw);
    free(result->db);
}

nrg_channel_norm_backward_args channel_backward_args(const channel_backward_problem *p, const channel_backward_result *result)
{
    const channel_problem *f = &p->forward;
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(f->n, f->s, f->x, p->d_o, result->dx);
    args.y = f->y;
    args.w = f->w;
    args.b = f->b;
    args.statistics = f->statistics;
    args.running_mean = f->running_mean;
    args.running_var = f->running_var;
    args.dy = result->dy;
    args.dw = result->dw;
    args.db = result->db;
    args.accumulate = p->accumulate;
    if (p->accumulate) {
        memcpy(result->dw, p->dw, f->spec.channels * sizeof(float));
        memcpy(result->db, p->db, f->spec.channels * sizeof(float));
    }
    return args;
}
