/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../../src/operands/activation.h"
#include "../../src/operands/glu.h"
#include "sound.h"

enum { ARGS, N = 21 };

static uint32_t set_up(void *const *part, int variant)
{
    nrg_activation_flat *args = part[ARGS];
    args->dtype = variant ? NRG_BF16 : NRG_F32;
    args->activation = variant ? NRG_ACT_GELU : NRG_ACT_SILU;
    args->count = N;
    return 0;
}

/* ---- rows: a matrix, and four dimensions of 16 bits ---- */

static uint32_t set_up_rows(void *const *part, int variant)
{
    nrg_activation_args *args = part[ARGS];
    *args = nrg_activation_args_init(NRG_ACT_SILU, variant ? NRG_BF16 : NRG_F32, 3, 7, NULL, NULL);
    args->rows2 = args->rows3 = variant ? 2 : 1;
    return 0;
}

/* The ends of what α may be. */
#define OF_ALPHA(type, g, value, status) WITH_U32(ARGS, type, activation, g), WRONG_F32(ARGS, type, alpha, value, status)
#define ENDS_OF_ALPHA(type)                                                                                                      \
    OF_ALPHA(type, NRG_ACT_ELU, -0x1p24f, NRG_OK), OF_ALPHA(type, NRG_ACT_ELU, 0x1p24f, NRG_OK),                                 \
        OF_ALPHA(type, NRG_ACT_ELU, -0x1.000002p24f, NRG_ERR_CONSTANT),                                                          \
        OF_ALPHA(type, NRG_ACT_ELU, 0x1.000002p24f, NRG_ERR_CONSTANT), OF_ALPHA(type, NRG_ACT_GELU_QUICK, 0x1p-24f, NRG_OK),     \
        OF_ALPHA(type, NRG_ACT_GELU_QUICK, 0x1.fffffep-25f, NRG_ERR_CONSTANT)

static const sound_wrong wrong_rows[] = {WRONG_U64(ARGS, nrg_activation_args, dx_stride[0], 1, NRG_OK),
                                         ENDS_OF_ALPHA(nrg_activation_args)};
static const sound_wrong wrong_rows_back[] = {ENDS_OF_ALPHA(nrg_activation_args)};

/* ---- gated linear units: a matrix of pairs, and two tensors of four dimensions ---- */

enum { GLU_BYTES = 2, GLU_VARIANTS };

static uint32_t set_up_glu(void *const *part, int variant)
{
    nrg_glu_args *args = part[ARGS];
    *args = nrg_glu_args_init(NRG_ACT_SILU, variant ? NRG_BF16 : NRG_F32, 3, 7, NULL, NULL, NULL);
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

#define GLU_U64(field, value, status) WRONG_U64(ARGS, nrg_glu_args, field, value, status)
#define GLU_F32(field, value, status) WRONG_F32(ARGS, nrg_glu_args, field, value, status)
#define GLU_OPTIONS                                                                                                              \
    GLU_F32(limit, INFINITY, NRG_OK), GLU_F32(limit, -0.0f, NRG_OK), GLU_F32(b_offset, -FLT_MAX, NRG_OK),                        \
        GLU_U64(a, 64, NRG_ERR_COMBINATION), GLU_U64(b, 64, NRG_ERR_COMBINATION), ENDS_OF_ALPHA(nrg_glu_args)
static const sound_wrong wrong_glu[] = {GLU_OPTIONS,
                                        GLU_U64(dx_stride[0], 1, NRG_OK),
                                        GLU_U64(packed, 64, NRG_ERR_COMBINATION),
                                        GLU_U64(scales, 64, NRG_ERR_COMBINATION),
                                        WRONG_VARIANT(1),
                                        GLU_U64(x, 64, NRG_ERR_COMBINATION),
                                        WRONG_VARIANT(GLU_BYTES),
                                        GLU_U64(o, 64, NRG_ERR_COMBINATION)};

static uint32_t set_up_glu_backward(void *const *part, int variant)
{
    set_up_glu(part, variant);
    return variant ? NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) |
                         NRG_BIT(NRG_GLU_BACKWARD_DB)
                   : NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX);
}

static const sound_wrong wrong_glu_back[] = {GLU_OPTIONS, GLU_U64(da, 64, NRG_ERR_COMBINATION),
                                             GLU_U64(db, 64, NRG_ERR_COMBINATION), WRONG_VARIANT(1),
                                             GLU_U64(dx, 64, NRG_ERR_COMBINATION)};

static const sound_call calls[] = {
    {&invoke_activation_forward, 2, .set_up = set_up},
    {&invoke_activation_backward, 2, .set_up = set_up},
    {&invoke_activation_rows_forward, 2, set_up_rows, WRONG(wrong_rows)},
    {&invoke_activation_rows_backward, 2, set_up_rows, WRONG(wrong_rows_back)},
    {&invoke_glu_forward, GLU_VARIANTS, set_up_glu_forward, WRONG(wrong_glu)},
    {&invoke_glu_backward, 2, set_up_glu_backward, WRONG(wrong_glu_back)},
};

const sound_family sound_activation = {"activation", calls, NRG_COUNT(calls)};
