/* What a norm's forward and backward pass compute, of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_FORMULA_H
#define NRG_CALLS_NORM_FORMULA_H

#include "../internal.h"
#include "../job/norm.h"
#include "../operands/describe.h"

/* The divisor's three forms: a sum's eps is a mean's of eps/d, a length's of eps/√d. d is a group's. mode: the spec's, which a
 * caller may know. */
NRG_INLINE void set_formula_of(nrg_norm_formula *f, const nrg_norm_spec *s, size_t group_dim, nrg_eps_mode mode)
{
    double dim = (double)group_dim;
    f->centred = s->centred != 0;
    f->w_offset = s->weight_offset;
    f->exact = s->accuracy == NRG_ACCURACY_EXACT;
    f->divisor = NRG_DIV_ROOT;
    f->eps = s->eps;
    switch (mode) {
    case NRG_EPS_MEAN:
        break;
    case NRG_EPS_SUM:
        f->eps = s->eps / dim;
        break;
    case NRG_EPS_NONE:
        f->eps = 0;
        break;
    case NRG_EPS_SIGMA:
        f->divisor = NRG_DIV_SIGMA;
        break;
    case NRG_EPS_MAX:
        f->divisor = NRG_DIV_MAX;
        f->eps = s->eps / sqrt(dim);
        break;
    }
    if (f->eps < 0x1p-600) /* beside floats it is 0, and 1/s would overflow where σ is 0 */
        f->eps = 0;
    f->d = dim;
    f->inv_dim = 1 / dim;
    f->k = s->c_mode == NRG_C_GIVEN ? s->c / sqrt(dim) : 1;
}

static inline void set_formula(nrg_norm_formula *f, const nrg_norm_spec *s, size_t group_dim)
{
    set_formula_of(f, s, group_dim, s->eps_mode);
}

/* The job of a norm inside of another call, without rows: x, o and what else there is are still to be set. Field by field: a
 * literal clears all of it first, by a string instruction, which takes as long as a head. */
static inline void begin_norm(nrg_norm_job *job, const nrg_norm_spec *s, const void *w, const void *b)
{
    job->x = job->y = job->z = NULL;
    job->w = w;
    job->b = b;
    job->o = job->r = NULL;
    job->quant = NULL;
    job->mean = job->rstd = NULL;
    job->statistics = NULL;
    job->x_stride = job->y_stride = job->z_stride = job->o_stride = job->r_stride = 0;
    job->dim = s->groups > 1 ? s->dim / s->groups : s->dim; /* of "== 1" gcc makes a division for all */
    job->groups = s->groups;
    job->row_begin = job->row_end = 0;
    job->y_f32 = job->r_f32 = s->dtype == NRG_F32;
    job->w_f32 = nrg_own_dtype(s->w_dtype, s->dtype) == NRG_F32;
    job->after = job->stream = job->from_r = job->o_f32 = job->alike = 0;
    job->gate = NRG_GATE_NONE;
    job->activation = s->activation;
    job->part = NRG_NORM_WHOLE;
    set_formula(&job->formula, s, job->dim);
}

#endif
