/* A norm of every head of q and k, their rotation, and a cache.
 *
 * SPDX-License-Identifier: MIT */
#include "qkv.h"

nrg_status nrg_qkv_check_norm(const nrg_norm_spec *norm, const nrg_qkv_args *a)
{
    if (norm->dtype == NRG_DTYPE_SAME)
        return NRG_ERR_ENUM;
    const nrg_status status = nrg_norm_check_spec(norm);
    if (status != NRG_OK)
        return status;
    if (norm->dim != a->dim)
        return NRG_ERR_DIM;
    if (norm->dtype != NRG_F32)
        return NRG_ERR_DTYPE;
    const int offset_fits =
        (!a->q_heads || nrg_norm_offset_fits(norm, a->q_w)) && (!a->k_heads || nrg_norm_offset_fits(norm, a->k_w));
    return norm->gate || norm->residual_mode || norm->format || nrg_norm_alike(norm) > 1 || !offset_fits ? NRG_ERR_COMBINATION
                                                                                                         : NRG_OK;
}

nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, nrg_rope_space *space,
                                size_t *doubles)
{
    space->slices = (size_t)nth;
    space->tokens = args->tokens;
    const nrg_status status =
        nrg_rope_measure_positions(rope, args->dim, args->rotate_from, args->positions, args->first_position, space);
    if (status != NRG_OK)
        return status;
    if (args->v_heads && !args->v_dim)
        return NRG_ERR_DIM;
    if (args->dim > NRG_ROPE_SPACE_MOST)
        return NRG_ERR_OVERFLOW;
    space->block = nrg_qkv_block_rows(args) * args->dim * sizeof(float);
    return nrg_rope_measure_space(space, doubles);
}

nrg_status nrg_qkv_space(const nrg_rope_spec *rope, const nrg_qkv_args *a, int nth, size_t *doubles)
{
    nrg_rope_space space;
    return nrg_qkv_measure_args(rope, a, nth, &space, doubles);
}

#define NRG_OF NRG_QKV
#define NRG_NAME qkv
#include "table.h"

#define NRG_OF NRG_QKV_BARE
#define NRG_NAME qkv_bare
#include "table.h"

#define NRG_OF NRG_QKV_WORKSPACE
#define NRG_NAME qkv_workspace
#include "table.h"
