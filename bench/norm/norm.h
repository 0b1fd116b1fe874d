/* What both families of norms have.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_NORM_NORM_H
#define NRG_BENCH_NORM_NORM_H

#include "../../src/operands/norm.h"
#include "../family.h"

static inline nrg_norm_spec bench_norm_spec(const bench_case *c)
{
    nrg_norm_spec spec =
        c->op->centred ? nrg_norm_spec_layer(c->dtype, c->shape.dim, 1e-5) : nrg_norm_spec_rms(c->dtype, c->shape.dim, 1e-6);
    spec.gate = c->op->gate;
    spec.activation = c->op->activation;
    spec.groups = c->op->groups ? c->op->groups : 1;
    spec.accuracy = c->op->exact ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    spec.format = c->op->format;
    return spec;
}

#endif
