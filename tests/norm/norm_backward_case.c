/* SPDX-License-Identifier: MIT */
#include "norm_backward_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"

void norm_backward_fill(float *d_o, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = seed;
    size_t how = test_draw(&state, 8);
    if (how < 4) {
        row_fill(d_o, dim, ROW_NORMAL, dtype, test_mix(seed));
        return;
    }
    if (how < 6) {
        row_fill(d_o, dim, kind, dtype, test_mix(seed));
        return;
    }
    row_fill(d_o, dim, ROW_EQUAL, dtype, test_mix(seed));
    size_t place = test_draw(&state, dim + 1); /* dim: nowhere */
    for (size_t i = 0; i < dim && how == 7; i++)
        d_o[i] = i == place ? d_o[i] : 0;
}

static void *gradient(const norm_backward_problem *p, nrg_dtype dtype, const enum row_kind *kinds, size_t kind_count,
                      uint64_t seed)
{
    const size_t dim = p->forward.spec.dim, rows = p->forward.rows;
    uint64_t state = seed;
    void *tensor = norm_tensor(rows, dim, dtype);
    float *row = norm_tensor(1, dim, NRG_F32);
    for (size_t n = 0; n < rows; n++) {
        size_t draw = test_draw(&state, 2) ? 0 : test_draw(&state, kinds ? kind_count : (size_t)ROW_KINDS);
        norm_backward_fill(row, dim, kinds ? kinds[draw] : (enum row_kind)draw, dtype, test_draw(&state, 1u << 30));
        norm_put_row(tensor, n, dim, dtype, row);
    }
    free(row);
    return tensor;
}

/* Every path stores the same; scalar is asked. */
static void save_mean(norm_backward_problem *p)
{
    const norm_problem *f = &p->forward;
    nrg_isa active = nrg_isa_active();
    void *o = norm_tensor(f->rows, f->spec.dim, f->spec.dtype);
    nrg_norm_args args = nrg_norm_args_init(f->rows, f->x, o);
    args.y = f->y;
    args.z = f->z;
    args.mean = p->mean = norm_tensor(f->rows, f->groups, NRG_F32);
    if (nrg_isa_set(NRG_ISA_SCALAR) != NRG_OK || nrg_norm_forward(&f->spec, &args, 0, 1) != NRG_OK ||
        nrg_isa_set(active) != NRG_OK)
        ck_abort_msg("the forward pass fails; %s", f->text);
    free(o);
}

void norm_backward_problem_make(norm_backward_problem *p, const norm_options *options, size_t dim, size_t rows,
                                const enum row_kind *kinds, size_t kind_count, uint64_t seed)
{
    uint64_t state = test_mix(seed + 77);
    memset(p, 0, sizeof *p);
    norm_problem_make(&p->forward, options, dim, rows, kinds, kind_count, seed);
    const int after = options->residual == RESIDUAL_AFTER, with_dr_in = !after && test_draw(&state, 2);
    p->d_o = gradient(p, options->dtype, kinds, kind_count, test_draw(&state, 1u << 30));
    if (with_dr_in)
        p->dr_in = gradient(p, p->forward.r_dtype, kinds, kind_count, test_draw(&state, 1u << 30));
    if (!after) {
        p->r = norm_tensor(rows, dim, p->forward.r_dtype);
        for (size_t i = 0; i < rows * dim; i++) {
            float r = element_get(p->forward.x, i, options->dtype);
            if (p->forward.y)
                r += element_get(p->forward.y, i, p->forward.y_dtype);
            element_set(p->r, i, p->forward.r_dtype, r);
        }
    }
    save_mean(p);
    p->accumulate = (int)test_draw(&state, 2);
    p->dw = norm_tensor(1, dim, NRG_F32);
    p->db = norm_tensor(1, dim, NRG_F32);
    row_fill(p->dw, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    row_fill(p->db, dim, ROW_NORMAL, NRG_F32, test_draw(&state, 1u << 30));
    snprintf(p->text, sizeof p->text, "%s%s%s", p->forward.text, p->dr_in ? ", dr_in" : "", p->accumulate ? ", accumulates" : "");
}

void norm_backward_problem_free(norm_backward_problem *p)
{
    norm_problem_free(&p->forward);
    free(p->d_o);
    free(p->dr_in);
    free(p->r);
    free(p->mean);
    free(p->dw);
    free(p->db);
}

void norm_backward_result_make(norm_backward_result *result, const norm_backward_problem *p)
{
    const norm_problem *f = &p->forward;
    result->dx = norm_tensor(f->rows, f->spec.dim, f->spec.dtype);
    result->dy = norm_tensor(f->rows, f->spec.dim, f->y_dtype);
    result->dz = norm_tensor(f->rows, f->spec.dim, f->spec.dtype);
    result->dw = norm_tensor(1, f->spec.dim, NRG_F32);
    result->db = norm_tensor(1, f->spec.dim, NRG_F32);
}

void norm_backward_result_free(norm_backward_result *result)
{
    free(result->dx);
    free(result->dy);
    free(result->dz);
    free(result->dw);
    free(result->db);
}
