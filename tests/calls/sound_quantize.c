/* SPDX-License-Identifier: MIT */
#include "../../src/operands/hadamard.h"
#include "../../src/operands/quantize.h"
#include "sound.h"

enum { ARGS };

/* A matrix with scales in its blocks; four dimensions with scales of their own; four rows in each block. */
static const nrg_quant_format formats[] = {NRG_QUANT_Q8_0, NRG_QUANT_INT8_32, NRG_QUANT_Q8_0_4X4};
enum { OWN_SCALES = 1, VARIANTS = NRG_COUNT(formats) };

static uint32_t set_up(void *const *part, int variant)
{
    nrg_quantize_args *args = part[ARGS];
    *args = nrg_quantize_args_init(formats[variant], variant == OWN_SCALES ? NRG_BF16 : NRG_F32, variant == OWN_SCALES ? 3 : 4,
                                   variant == OWN_SCALES ? 40 : 64, NULL, NULL, NULL);
    args->rows2 = args->rows3 = variant == OWN_SCALES ? 2 : 1;
    return variant == OWN_SCALES ? NRG_BIT(NRG_QUANTIZE_SCALES) : 0;
}

static uint32_t set_up_back(void *const *part, int variant)
{
    nrg_dequantize_args *args = part[ARGS];
    *args = nrg_dequantize_args_init(formats[variant], variant == OWN_SCALES ? NRG_BF16 : NRG_F32, variant == OWN_SCALES ? 3 : 4,
                                     variant == OWN_SCALES ? 40 : 64, NULL, NULL, NULL);
    args->rows2 = args->rows3 = variant == OWN_SCALES ? 2 : 1;
    return variant == OWN_SCALES ? NRG_BIT(NRG_DEQUANTIZE_SCALES) : 0;
}

static uint32_t set_up_hadamard(void *const *part, int variant)
{
    *(nrg_hadamard_args *)part[ARGS] = nrg_hadamard_args_init(variant ? NRG_BF16 : NRG_F32, 3, variant ? 128 : 64, NULL, NULL);
    return 0;
}

#define HADAMARD_DIM(value, status) WRONG_U64(ARGS, nrg_hadamard_args, dim, value, status)
static const sound_wrong wrong_hadamard[] = {HADAMARD_DIM(0, NRG_ERR_DIM),
                                             HADAMARD_DIM(32, NRG_ERR_DIM),
                                             HADAMARD_DIM(96, NRG_ERR_DIM),
                                             HADAMARD_DIM(1024, NRG_ERR_DIM),
                                             WRONG_U32(ARGS, nrg_hadamard_args, reserved, 1, NRG_ERR_STRUCT_SIZE),
                                             WRONG_STRIDE(ARGS, nrg_hadamard_args, x_stride),
                                             WRONG_STRIDE(ARGS, nrg_hadamard_args, o_stride)};

static const sound_call calls[] = {
    {&invoke_quantize, VARIANTS, .set_up = set_up},
    {&invoke_dequantize, VARIANTS, .set_up = set_up_back},
    {&invoke_hadamard_forward, 2, set_up_hadamard, WRONG(wrong_hadamard)},
    {&invoke_hadamard_backward, 2, set_up_hadamard, WRONG(wrong_hadamard)},
};

const sound_family sound_quantize = {"quantize", calls, NRG_COUNT(calls)};
