/* SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"
#include "../../src/operands/relative_shift.h"
#include "sound.h"

enum { BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, DIM = 6, ARGS = 0 };

/* ---- Shaw's ---- */

/* Dense; a table for each head, and 16 bits; heads within rows, of one sample; no heads that each would have a table; no keys. */
enum { DENSE, PER_HEAD, ONE_SAMPLE, NO_HEADS, NO_KEYS, RELATIVE_VARIANTS };

static nrg_relative_args relative_args(int variant)
{
    const int is_per_head = variant == PER_HEAD || variant == NO_HEADS;
    nrg_relative_args args =
        nrg_relative_args_init(is_per_head ? NRG_F16 : NRG_F32, variant == ONE_SAMPLE ? 1 : BATCH,
                               variant == NO_HEADS ? 0 : HEADS, QUERIES, variant == NO_KEYS ? 0 : KEYS, DIM, -2, 2);
    args.accumulate = variant != NO_KEYS; /* the sums of nothing are written */
    args.table_per_head = is_per_head;
    if (variant == ONE_SAMPLE) {
        const nrg_head_strides vectors = {.row = HEADS * DIM * sizeof(float), .head = DIM * sizeof(float)},
                               rows = {.row = HEADS * KEYS * sizeof(float), .head = KEYS * sizeof(float)};
        args.q_strides = args.o_strides = vectors;
        args.a_strides = args.scores_strides = rows;
    }
    return args;
}

static uint32_t set_up_scores(void *const *part, int variant)
{
    nrg_relative_args *args = part[ARGS];
    *args = relative_args(variant);
    if (args->table_per_head)
        args->table_dtype = NRG_F32;
    return 0;
}

static uint32_t set_up_values(void *const *part, int variant)
{
    nrg_relative_args *args = part[ARGS];
    *args = relative_args(variant);
    if (args->table_per_head)
        args->table_dtype = NRG_F32;
    return variant == DENSE ? 0 : NRG_BIT(NRG_RELATIVE_VALUES_ENDS);
}

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_relative_args *)part[ARGS] = relative_args(variant);
    return variant == DENSE ? 0 : NRG_BIT(NRG_RELATIVE_BACKWARD_ENDS);
}

/* As far as tables of memory reach. */
#define WRONG_ENDS(end, status)                                                                                                  \
    WRONG_U64(ARGS, nrg_relative_args, p_max, end, status), WRONG_U64(ARGS, nrg_relative_args, p_min, -(end), status)
static const sound_wrong wrong_ends[] = {WRONG_ENDS((int64_t)1 << 60, NRG_ERR_OVERFLOW)};

/* ---- the shift ---- */

/* Transformer-XL's; XLNet's, and 16 bits; the same without keys; without columns. */
static uint32_t set_up_shift(void *const *part, int variant)
{
    nrg_relative_shift_args *args = part[ARGS];
    *args = variant ? nrg_relative_shift_args_xlnet(NRG_BF16, BATCH, HEADS, QUERIES, KEYS)
                    : nrg_relative_shift_args_transformer_xl(NRG_F32, BATCH, HEADS, QUERIES, KEYS);
    if (variant == 2)
        args->keys = 0;
    if (variant == 3)
        args->rel = 0;
    return 0;
}

/* ---- the two biases ---- */

/* Both of them; in 16 bits; the first one, of one head; none; of no rows. */
enum { BOTH, HALVES, FIRST, NONE, NO_ROWS, PAIR_VARIANTS };

static nrg_head_bias_args bias_args(int variant)
{
    nrg_head_bias_args args = nrg_head_bias_args_init(variant == HALVES ? NRG_F16 : NRG_F32, BATCH, variant == FIRST ? 1 : HEADS,
                                                      variant == NO_ROWS ? 0 : QUERIES, DIM);
    args.store = NRG_STORE_KEEP;
    return args;
}

static uint32_t set_up_pair(void *const *part, int variant)
{
    nrg_head_bias_args *args = part[ARGS];
    *args = bias_args(variant);
    if (variant == HALVES)
        args->bias_dtype = NRG_F32;
    const uint32_t first = NRG_BIT(NRG_HEAD_BIAS_U) | NRG_BIT(NRG_HEAD_BIAS_O_U);
    if (variant == NONE)
        return 0;
    return variant == FIRST ? first : first | NRG_BIT(NRG_HEAD_BIAS_V) | NRG_BIT(NRG_HEAD_BIAS_O_V);
}

static uint32_t set_up_pair_back(void *const *part, int variant)
{
    *(nrg_head_bias_args *)part[ARGS] = bias_args(variant);
    const uint32_t first =
        NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DQ) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DU);
    if (variant == NONE)
        return 0;
    return variant == FIRST ? first : first | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_V) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DV);
}

static const sound_call calls[] = {
    {&invoke_relative_scores, RELATIVE_VARIANTS, set_up_scores, WRONG(wrong_ends)},
    {&invoke_relative_values, RELATIVE_VARIANTS, set_up_values, WRONG(wrong_ends)},
    {&invoke_relative_backward, RELATIVE_VARIANTS, set_up_backward, WRONG(wrong_ends)},
    {&invoke_relative_shift_forward, 4, .set_up = set_up_shift},
    {&invoke_relative_shift_backward, 4, .set_up = set_up_shift},
    {&invoke_head_bias_forward, PAIR_VARIANTS, .set_up = set_up_pair},
    {&invoke_head_bias_backward, PAIR_VARIANTS, .set_up = set_up_pair_back},
};

const sound_family sound_relative = {"relative", calls, NRG_COUNT(calls)};
