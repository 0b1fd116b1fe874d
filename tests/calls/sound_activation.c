/* SPDX-License-Identifier: MIT */
#include <float.h>

#include "../../src/operands/activation.h"
#include "../../src/operands/glu.h"
#include "sound.h"

enum { ARGS, N = 21 };

static uint32_t set_up(void *const *part, int variant)
{
    nrg_activation_flat *args = part[ARGS];
    args->dtype = variant ? NRG_BF16 : NRG_F32;
    args->g = variant ? NRG_ACT_GELU : NRG_ACT_SILU;
    args->count = N;
    return 0;
}

/* ---- rows: a matrix, and four dimensions of 16 bits; activations with α and without ---- */

static nrg_activation activation_of(int variant)
{
    return variant == 0 ? NRG_ACT_SILU : variant == 1 ? NRG_ACT_ELU : NRG_ACT_GELU_QUICK;
}

static uint32_t set_up_rows(void *const *part, int variant)
{
    nrg_activation_args *args = part[ARGS];
    *args = nrg_activation_args_init(activation_of(variant), variant ? NRG_BF16 : NRG_F32, 3, 7, NULL, NULL);
    args->rows2 = args->rows3 = variant ? 2 : 1;
    return 0;
}

/* ---- gated linear units: a matrix of pairs, and two tensors of four dimensions ---- */

enum { GLU_BYTES = 2, GLU_VARIANTS };

static uint32_t set_up_glu(void *const *part, int variant)
{
    nrg_glu_args *args = part[ARGS];
    *args = nrg_glu_args_init(activation_of(variant), variant ? NRG_BF16 : NRG_F32, 3, 7, NULL, NULL, NULL);
    args->rows2 = args->rows3 = variant ? 2 : 1;
    args->limit = variant ? 7 : FLT_MAX;
    args->b_offset = variant ? 1 : 0;
    return 0;
}

static uint32_t set_up_glu_forward(void *const *part, int variant)
{
    set_up_glu(part, variant);
    if (variant == GLU_BYTES)
        ((nrg_glu_args *)part[ARGS])->format = NRG_QUANT_INT8_32;
    return (variant ? NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B) : NRG_BIT(NRG_GLU_X)) |
           (variant == GLU_BYTES ? NRG_BIT(NRG_GLU_PACKED) | NRG_BIT(NRG_GLU_SCALES) : NRG_BIT(NRG_GLU_O));
}

static uint32_t set_up_glu_backward(void *const *part, int variant)
{
    set_up_glu(part, variant);
    return variant ? NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) |
                         NRG_BIT(NRG_GLU_BACKWARD_DB)
                   : NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX);
}

static const sound_call calls[] = {
    {&invoke_activation_forward, 2, .set_up = set_up},
    {&invoke_activation_backward, 2, .set_up = set_up},
    {&invoke_activation_rows_forward, 3, .set_up = set_up_rows},
    {&invoke_activation_rows_backward, 3, .set_up = set_up_rows},
    {&invoke_glu_forward, GLU_VARIANTS, .set_up = set_up_glu_forward},
    {&invoke_glu_backward, GLU_VARIANTS, .set_up = set_up_glu_backward},
};

const sound_family sound_activation = {"activation", calls, NRG_COUNT(calls)};
