/* The loops over elements of the exact grade: of floats alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_EXACT_LOOPS_H
#define NRG_TEMPLATE_NORM_NORM_EXACT_LOOPS_H

#include "norm_apply.h"
#include "norm_sum_rows.h"

static __attribute__((noinline)) void exact_rms(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part)
{
    sum_rows(lanes, t, tt, part, NORM_ANY, NRG_F32, 0);
}

static __attribute__((noinline)) void exact_centred(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part)
{
    sum_rows(lanes, t, tt, part, NORM_ANY, NRG_F32, 1);
}

static __attribute__((noinline)) void exact_apply(const norm_part *part, const norm_scalars *s) { apply_part(part, s, NRG_F32); }

#endif
