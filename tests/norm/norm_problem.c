/* SPDX-License-Identifier: MIT */
#include "norm_problem.h"

#include <stdlib.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../harness/element.h"
#include "../harness/rows.h"

static nrg_dtype beside(nrg_dtype other, nrg_dtype dtype) { return other == NRG_DTYPE_SAME ? dtype : other; }

norm_problem norm_problem_of(const plain_case *c)
{
    nrg_norm_spec spec = c->c.spec;
    const nrg_norm_spec *const s = &spec;
    norm_settle(&spec, plain_array(c, SWEEP_W) != NULL);
    return (norm_problem){.spec = spec,
                          .y_dtype = beside(s->y_dtype, s->dtype),
                          .r_dtype = beside(s->r_dtype, s->dtype),
                          .w_dtype = beside(s->w_dtype, s->dtype),
                          .rows = c->c.rows,
                          .groups = s->groups,
                          .x = plain_array(c, SWEEP_X),
                          .y = plain_array(c, SWEEP_Y),
                          .z = plain_array(c, SWEEP_Z),
                          .w = plain_array(c, SWEEP_W),
                          .b = plain_array(c, SWEEP_B),
                          .text = c->text};
}

void norm_result_make(norm_result *result, const norm_problem *p)
{
    result->o = element_tensor(p->rows * p->spec.dim, p->spec.dtype);
    result->r = element_tensor(p->rows * p->spec.dim, p->r_dtype);
    result->mean = element_tensor(p->rows * p->groups, NRG_F32);
    result->rstd = element_tensor(p->rows * p->groups, NRG_F32);
}

void norm_result_free(norm_result *result)
{
    free(result->o);
    free(result->r);
    free(result->mean);
    free(result->rstd);
}

void norm_backward_problem_make(norm_backward_problem *p, const plain_case *c)
{
    *p = (norm_backward_problem){.forward = norm_problem_of(c),
                                 .d_o = plain_array(c, SWEEP_D_O),
                                 .dr_in = plain_array(c, SWEEP_DR_IN),
                                 .r = plain_array(c, SWEEP_R_IN),
                                 .accumulate = c->c.accumulate,
                                 .dw = element_tensor(c->c.spec.dim, NRG_F32),
                                 .db = element_tensor(c->c.spec.dim, NRG_F32)};
    row_fill(p->dw, c->c.spec.dim, ROW_NORMAL, NRG_F32, c->c.seed);
    row_fill(p->db, c->c.spec.dim, ROW_NORMAL, NRG_F32, ~c->c.seed);
}

void norm_backward_problem_free(norm_backward_problem *p)
{
    free(p->dw);
    free(p->db);
}

void norm_backward_result_make(norm_backward_result *result, const norm_backward_problem *p)
{
    const norm_problem *f = &p->forward;
    result->dx = element_tensor(f->rows * f->spec.dim, f->spec.dtype);
    result->dy = element_tensor(f->rows * f->spec.dim, f->y_dtype);
    result->dz = element_tensor(f->rows * f->spec.dim, f->spec.dtype);
    result->dw = element_tensor(f->spec.dim, NRG_F32);
    result->db = element_tensor(f->spec.dim, NRG_F32);
}

void norm_backward_result_free(norm_backward_result *result)
{
    free(result->dx);
    free(result->dy);
    free(result->dz);
    free(result->dw);
    free(result->db);
}

nrg_norm_backward_args norm_backward_args(const norm_backward_problem *p, const norm_backward_result *out)
{
    const norm_problem *f = &p->forward;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(f->rows, f->x, f->w, p->d_o, out->dx);
    args.y = f->y;
    args.z = f->z;
    args.b = f->b;
    args.r = p->r;
    if (p->r)
        args.x = NULL;
    if (p->r || f->spec.residual_mode == NRG_RESIDUAL_AFTER)
        args.y = NULL;
    args.dr_in = p->dr_in;
    args.dy = out->dy;
    args.dz = f->z ? out->dz : NULL;
    args.dw = out->dw;
    args.db = out->db;
    args.accumulate = p->accumulate;
    if (p->accumulate) {
        memcpy(out->dw, p->dw, f->spec.dim * sizeof(float));
        memcpy(out->db, p->db, f->spec.dim * sizeof(float));
    }
    const nrg_status status = nrg_norm_backward_workspace(&f->spec, &args, &args.workspace_size);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", nrg_status_string(status), f->text);
    args.workspace = malloc(args.workspace_size);
    ck_assert_ptr_nonnull(args.workspace);
    return args;
}
