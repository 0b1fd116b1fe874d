/* What the functions of nrg/rope.h check of their spec.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_ROPE_SPEC_H
#define NRG_CALLS_ROPE_SPEC_H

#include "checks.h"

enum { ROPE_SPEC_SIZE_MIN = sizeof(nrg_rope_spec) };

#define ROPE_DIMS_MAX ((size_t)1 << 31)

static inline int rope_is_mode(nrg_rope_mode mode)
{
    return mode == NRG_ROPE_NORMAL || mode == NRG_ROPE_NEOX || nrg_rope_has_sections(mode);
}

/* Size, mode and n_dims: what all of them look at. */
static inline nrg_status rope_check_shape(const nrg_rope_spec *s)
{
    if (s->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!rope_is_mode(s->mode))
        return NRG_ERR_ENUM;
    return s->n_dims == 0 || s->n_dims % 2 || s->n_dims > ROPE_DIMS_MAX ? NRG_ERR_DIM : NRG_OK;
}

static inline size_t rope_pairs(const nrg_rope_spec *s) { return s->mode == NRG_ROPE_VISION ? s->n_dims : s->n_dims / 2; }

static inline nrg_status rope_check_sections(const nrg_rope_spec *s)
{
    if (!nrg_rope_has_sections(s->mode))
        return NRG_OK;
    int some = 0;
    for (int i = 0; i < 4; i++) {
        if (s->sections[i] < 0)
            return NRG_ERR_DIM;
        some |= s->sections[i];
    }
    return some ? NRG_OK : NRG_ERR_DIM;
}

#endif
