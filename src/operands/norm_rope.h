/* What the calls of nrg/norm_rope.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_ROPE_H
#define NRG_OPERANDS_NORM_ROPE_H

#include "../../include/nrg/norm_rope.h"
#include "norm.h"
#include "rope.h"

/* Whether the rows of a norm are those of the rotation; or NULL, which is a struct of zeros. */
static inline int nrg_norm_rope_are_rows(size_t rows, size_t rows2, size_t rows3, size_t heads)
{
    return (rows == heads && rows2 == 1 && rows3 == 1) || !(rows | rows2 | rows3);
}

/* Whether args of a norm have nothing that the rotation has. */
static inline int nrg_norm_rope_is_weights_only(const nrg_norm_args *a, size_t heads)
{
    const uintptr_t any = (uintptr_t)a->x | (uintptr_t)a->y | (uintptr_t)a->z | a->y_repeat | a->z_repeat | (unsigned)a->store |
                          (uintptr_t)a->o | (uintptr_t)a->packed | (uintptr_t)a->scales | (uintptr_t)a->r | (uintptr_t)a->r_in;
    return !any && nrg_norm_rope_are_rows(a->rows, a->rows2, a->rows3, heads);
}
static inline int nrg_norm_rope_is_gradient_only(const nrg_norm_backward_args *a, size_t heads)
{
    return !a->d_o && !a->dx && !a->y && !a->r && !a->z && !a->dr_in && !a->dy && !a->dz &&
           nrg_norm_rope_are_rows(a->rows, a->rows2, a->rows3, heads);
}

#include "norm_rope_calls.def"

#endif
