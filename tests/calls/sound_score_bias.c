/* SPDX-License-Identifier: MIT */
#include "../../src/operands/score_bias.h"
#include "sound.h"

enum { SPEC = NRG_T5_SPEC, TABLE = NRG_T5_ARGS, ARGS = 0, BATCH = 2, HEADS = 2, QUERIES = 3, KEYS = 4, BUCKETS = 8 };

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

static uint32_t set_up_slopes(void *const *part, int variant)
{
    nrg_alibi_slopes_args *args = part[ARGS];
    args->heads = variant == 2 ? 0 : variant ? 6 : 8;
    args->max_bias = 8;
    return 0;
}

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

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_score_bias_backward_args *)part[ARGS] = nrg_score_bias_backward_args_init(
        variant == HALVES ? NRG_F16 : NRG_F32, batch_of(variant), HEADS, QUERIES, variant == NO_KEYS ? 0 : KEYS, NULL, NULL);
    return 0;
}

static const sound_call calls[] = {
    {&invoke_t5_diagonals_forward, SPEC_VARIANTS, .set_up = set_up_t5, NO_KERNEL},
    {&invoke_t5_diagonals_backward, SPEC_VARIANTS, .set_up = set_up_t5_backward, NO_KERNEL},
    {&invoke_alibi_slopes, 3, .set_up = set_up_slopes, NO_KERNEL},
    {&invoke_alibi_diagonals, SPEC_VARIANTS, .set_up = set_up_alibi, NO_KERNEL},
    {&invoke_score_bias_forward, VARIANTS, .set_up = set_up_forward},
    {&invoke_score_bias_backward, VARIANTS, .set_up = set_up_backward},
};

const sound_family sound_score_bias = {"score_bias", calls, NRG_COUNT(calls)};
