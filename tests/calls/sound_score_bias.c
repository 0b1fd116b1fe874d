/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../../src/operands/score_bias.h"
#include "sound.h"

enum { SPEC = NRG_BIAS_SPEC, TABLE = NRG_BIAS_ARGS, ARGS = 0, BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, BUCKETS = 8 };

/* ---- making the table ---- */

/* Both directions; one, and 16 bits; no queries; no heads. */
enum { BIDIRECTIONAL, CAUSAL, NO_QUERIES, NO_HEADS, SPEC_VARIANTS };

static void set_up_spec(void *const *part, int variant)
{
    nrg_score_bias_spec *spec = part[SPEC];
    *spec = nrg_score_bias_spec_t5(variant == NO_HEADS ? 0 : HEADS, variant == NO_QUERIES ? 0 : QUERIES, KEYS);
    spec->buckets = BUCKETS;
    spec->max_distance = 20;
    spec->causal = variant == CAUSAL;
    spec->bidirectional = variant != CAUSAL;
}

static uint32_t set_up_t5(void *const *part, int variant)
{
    set_up_spec(part, variant);
    ((nrg_t5_args *)part[TABLE])->dtype = variant == CAUSAL ? NRG_F16 : NRG_F32;
    return 0;
}

static uint32_t set_up_t5_backward(void *const *part, int variant)
{
    set_up_spec(part, variant);
    return 0;
}

static uint32_t set_up_alibi(void *const *part, int variant)
{
    nrg_score_bias_spec *spec = part[SPEC];
    *spec = nrg_score_bias_spec_alibi(variant == NO_HEADS ? 0 : HEADS, variant == NO_QUERIES ? 0 : QUERIES, KEYS);
    spec->causal = variant == CAUSAL;
    return 0;
}

#define WRONG_POSITIONS                                                                                                          \
    WRONG_U64(SPEC, nrg_score_bias_spec, first_position, (1 << 29) - QUERIES + 1, NRG_OK),                                       \
        WRONG_U64(SPEC, nrg_score_bias_spec, first_position, -(int64_t)(1 << 29) + KEYS - 1, NRG_OK),                            \
        WRONG_U64(SPEC, nrg_score_bias_spec, first_position, (1 << 29) - QUERIES + 2, NRG_ERR_POSITION),                         \
        WRONG_U64(SPEC, nrg_score_bias_spec, first_position, -(int64_t)(1 << 29) + KEYS - 2, NRG_ERR_POSITION),                  \
        WRONG_U64(SPEC, nrg_score_bias_spec, first_position, INT64_MAX, NRG_ERR_POSITION),                                       \
        WRONG_U64(SPEC, nrg_score_bias_spec, keys, (uint64_t)1 << 40, NRG_ERR_POSITION),                                         \
        WRONG_U64(SPEC, nrg_score_bias_spec, queries, (uint64_t)1 << 40, NRG_ERR_POSITION)
static const sound_wrong wrong_t5[] = {WRONG_POSITIONS,
                                       WRONG_U32(SPEC, nrg_score_bias_spec, buckets, 3, NRG_ERR_CONSTANT),
                                       WRONG_U32(SPEC, nrg_score_bias_spec, buckets, -8, NRG_ERR_CONSTANT),
                                       WRONG_U32(SPEC, nrg_score_bias_spec, max_distance, BUCKETS / 4 + 1, NRG_OK),
                                       WRONG_VARIANT(CAUSAL),
                                       WRONG_U32(SPEC, nrg_score_bias_spec, max_distance, BUCKETS / 2 + 1, NRG_OK),
                                       WRONG_U32(SPEC, nrg_score_bias_spec, max_distance, BUCKETS / 2, NRG_ERR_CONSTANT)};
static const sound_wrong wrong_alibi[] = {WRONG_POSITIONS, WRONG_U32(SPEC, nrg_score_bias_spec, buckets, 32, NRG_ERR_COMBINATION),
                                          WRONG_U32(SPEC, nrg_score_bias_spec, max_distance, 128, NRG_ERR_COMBINATION)};

static uint32_t set_up_slopes(void *const *part, int variant)
{
    nrg_alibi_slopes_args *args = part[ARGS];
    args->heads = variant == 2 ? 0 : variant ? 6 : 8;
    args->max_bias = 8;
    return 0;
}

static const sound_wrong wrong_slopes[] = {
    WRONG_F64(ARGS, nrg_alibi_slopes_args, max_bias, DBL_MAX, NRG_OK),
};

/* ---- adding it ---- */

/* Dense; 16 bits; samples within rows; one sample; none; no keys. */
enum { DENSE, HALVES, WITHIN, ONE_SAMPLE, NO_SAMPLES, NO_KEYS, VARIANTS };

static size_t batch_of(int variant) { return variant == ONE_SAMPLE ? 1 : variant == NO_SAMPLES ? 0 : BATCH; }

static uint32_t set_up_forward(void *const *part, int variant)
{
    enum { ROW = KEYS * sizeof(float) };
    nrg_score_bias_args *args = part[ARGS];
    *args = nrg_score_bias_args_init(variant == HALVES ? NRG_BF16 : NRG_F32, batch_of(variant), HEADS, QUERIES,
                                     variant == NO_KEYS ? 0 : KEYS, NULL, NULL, NULL);
    args->store = NRG_STORE_KEEP;
    if (variant == WITHIN) {
        args->o_strides = (nrg_head_strides){.row = BATCH * ROW, .head = QUERIES * BATCH * ROW, .batch = ROW};
        args->scores_strides = args->o_strides;
    }
    return 0;
}

static const sound_wrong wrong_forward[] = {
    WRONG_F32(ARGS, nrg_score_bias_args, scale, -FLT_MAX, NRG_OK),
};

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_score_bias_backward_args *)part[ARGS] = nrg_score_bias_backward_args_init(
        variant == HALVES ? NRG_F16 : NRG_F32, batch_of(variant), HEADS, QUERIES, variant == NO_KEYS ? 0 : KEYS, NULL, NULL);
    return 0;
}

static const sound_call calls[] = {
    {&invoke_t5_diagonals_forward, SPEC_VARIANTS, set_up_t5, WRONG(wrong_t5), NO_KERNEL},
    {&invoke_t5_diagonals_backward, SPEC_VARIANTS, set_up_t5_backward, WRONG(wrong_t5), NO_KERNEL},
    {&invoke_alibi_slopes, 3, set_up_slopes, WRONG(wrong_slopes), NO_KERNEL},
    {&invoke_alibi_diagonals, SPEC_VARIANTS, set_up_alibi, WRONG(wrong_alibi), NO_KERNEL},
    {&invoke_score_bias_forward, VARIANTS, set_up_forward, WRONG(wrong_forward)},
    {&invoke_score_bias_backward, VARIANTS, .set_up = set_up_backward},
};

const sound_family sound_score_bias = {"score_bias", calls, NRG_COUNT(calls)};
