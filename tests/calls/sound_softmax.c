/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/cross_entropy.h"
#include "../../src/operands/softmax.h"
#include "sound.h"

enum { ARGS = NRG_SOFTMAX_ARGS, STATE = NRG_SOFTMAX_PART_STATE, BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 5 };

/* All there is, a mask for all heads; 16 bits, log, and nothing but scores; a mask with slopes of another dtype; no keys. */
enum { EVERYTHING, SCORES_ALONE, SLOPES, NO_KEYS, VARIANTS };

static uint32_t set_up(void *const *part, int variant)
{
    nrg_softmax_args *a = part[ARGS];
    *a = nrg_softmax_args_init(variant == SCORES_ALONE ? NRG_BF16 : NRG_F32, BATCH, HEADS, QUERIES, variant == NO_KEYS ? 0 : KEYS,
                               NULL, NULL);
    a->scale = 0.5f;
    a->cap = variant == EVERYTHING ? 20 : INFINITY;
    a->causal = variant != SCORES_ALONE;
    a->window = variant == EVERYTHING ? 4 : SIZE_MAX;
    if (variant == SCORES_ALONE)
        return 0;
    a->mask_dtype = variant == SLOPES ? NRG_F16 : NRG_DTYPE_SAME;
    a->mask_repeat = variant == EVERYTHING ? NRG_REPEAT_ROWS2 : 0;
    a->mask = (const void *)a; /* some address: slopes are refused without */
    return NRG_BIT(NRG_SOFTMAX_MASK) | NRG_BIT(NRG_SOFTMAX_DIAGONALS) | NRG_BIT(NRG_SOFTMAX_SINKS) |
           (variant == SLOPES ? NRG_BIT(NRG_SOFTMAX_SLOPES) : 0);
}

static uint32_t set_up_forward(void *const *part, int variant)
{
    const uint32_t there = set_up(part, variant);
    ((nrg_softmax_args *)part[ARGS])->log = variant == SCORES_ALONE;
    return there;
}

static uint32_t set_up_part(void *const *part, int variant)
{
    nrg_softmax_state *state = part[STATE];
    *state = nrg_softmax_state_init(NULL, NULL, NULL);
    const uint32_t there = set_up(part, variant);
    if (variant != EVERYTHING)
        return there;
    state->m_in = part[STATE];
    state->sum_in = part[STATE];
    return there | NRG_BIT(NRG_SOFTMAX_PART_M_IN) | NRG_BIT(NRG_SOFTMAX_PART_SUM_IN);
}

/* All outputs; only those that are needed; no rows. */
static uint32_t set_up_merge(void *const *part, int variant)
{
    *(nrg_softmax_merge_args *)part[ARGS] =
        nrg_softmax_merge_args_init(variant == 1 ? 1 : 3, variant == 2 ? 0 : 5, NULL, NULL, NULL, NULL);
    return variant ? 0 : NRG_BIT(NRG_SOFTMAX_MERGE_FACTOR) | NRG_BIT(NRG_SOFTMAX_MERGE_INVERSE) | NRG_BIT(NRG_SOFTMAX_MERGE_LSE);
}

/* ---- cross-entropy: a matrix, and 16 bits; no rows ---- */

enum { ROWS = 4, CLASSES = 7 };

static uint32_t set_up_cross_entropy(void *const *part, int variant)
{
    *(nrg_cross_entropy_args *)part[ARGS] = nrg_cross_entropy_args_init(
        variant == 1 ? NRG_BF16 : NRG_F32, variant == 2 ? 0 : ROWS, CLASSES, NULL, NULL, NULL, NULL, NULL);
    return 0;
}

static void fill_ids(void *const *part)
{
    const nrg_cross_entropy_args *a = part[ARGS];
    int32_t *ids = own_memory(a->ids);
    for (size_t n = 0; n < a->rows; n++)
        ids[n] = n == 1 ? -100 : (int32_t)(n + 3);
}

/* Rows whose id is ignored need no kernel. */
static uint32_t spared_if_ignored(void *const *part)
{
    const nrg_cross_entropy_args *a = part[ARGS];
    const int32_t *ids = a->ids;
    size_t n = 0;
    while (ids && n < a->rows && ids[n] == a->ignore_index)
        n++;
    return n < a->rows ? 0 : UINT32_MAX;
}

static nrg_status spoil_ids(void *const *part, int n)
{
    static const int32_t wrong[] = {CLASSES, -1, -99, INT32_MIN, INT32_MAX};
    const nrg_cross_entropy_args *a = part[ARGS];
    if (!a->rows || n >= (int)NRG_COUNT(wrong))
        return NRG_OK;
    int32_t *ids = own_memory(a->ids);
    ids[a->rows - 1] = wrong[n];
    return NRG_ERR_POSITION;
}

/* With a cap, which needs x; without, 16 bits; no heads. */
static uint32_t set_up_backward(void *const *part, int variant)
{
    nrg_softmax_backward_args *a = part[ARGS];
    *a = nrg_softmax_backward_args_init(variant == 1 ? NRG_F16 : NRG_F32, BATCH, variant == 2 ? 0 : HEADS, QUERIES, KEYS, NULL,
                                        NULL, NULL);
    a->scale = 0.5f;
    a->cap = variant == 1 ? INFINITY : 20;
    a->log = variant == 1;
    a->window = variant == 1 ? 2 : SIZE_MAX;
    a->causal = variant == 0;
    return variant == 1 ? 0 : NRG_BIT(NRG_SOFTMAX_BACKWARD_X);
}

static const sound_call calls[] = {
    {&invoke_softmax_forward, VARIANTS, .set_up = set_up_forward},
    {&invoke_softmax_part, VARIANTS, .set_up = set_up_part},
    {&invoke_softmax_merge, 3, .set_up = set_up_merge, NO_KERNEL},
    {&invoke_softmax_backward, 3, .set_up = set_up_backward},
    {&invoke_cross_entropy_forward, 3, set_up_cross_entropy, .fill = fill_ids, .spoil = spoil_ids, .spares = spared_if_ignored,
     .own = UINT32_MAX},
    {&invoke_cross_entropy_backward, 3, set_up_cross_entropy, .fill = fill_ids, .spoil = spoil_ids, .spares = spared_if_ignored,
     .own = UINT32_MAX},
};

const sound_family sound_softmax = {"softmax", calls, NRG_COUNT(calls)};
