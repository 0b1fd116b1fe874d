/* A norm of every head of q and k, their rotation, and a cache.
 *
 * SPDX-License-Identifier: MIT */
#include "qkv.h"

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
