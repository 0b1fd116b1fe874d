/* SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"
#include "sound.h"

enum { ARGS };

/* A matrix with scales in its blocks, and four dimensions with scales of their own. */
static uint32_t set_up(void *const *part, int variant)
{
    nrg_quantize_args *args = part[ARGS];
    *args = nrg_quantize_args_init(variant ? NRG_QUANT_INT8_32 : NRG_QUANT_Q8_0, variant ? NRG_BF16 : NRG_F32, variant ? 3 : 4,
                                   variant ? 40 : 64, NULL, NULL, NULL);
    args->rows2 = args->rows3 = variant ? 2 : 1;
    return variant ? NRG_BIT(NRG_QUANTIZE_SCALES) : 0;
}

static uint32_t set_up_back(void *const *part, int variant)
{
    nrg_dequantize_args *args = part[ARGS];
    *args = nrg_dequantize_args_init(variant ? NRG_QUANT_INT8_32 : NRG_QUANT_Q8_0, variant ? NRG_BF16 : NRG_F32, variant ? 3 : 4,
                                     variant ? 40 : 64, NULL, NULL, NULL);
    args->rows2 = args->rows3 = variant ? 2 : 1;
    return variant ? NRG_BIT(NRG_DEQUANTIZE_SCALES) : 0;
}

#define WRONG_OF(type)                                                                                                           \
    WRONG_U64(ARGS, type, dim, 48, NRG_ERR_DIM), WRONG_U64(ARGS, type, dim, SIZE_MAX / 32 * 32, NRG_ERR_OVERFLOW),               \
        WRONG_U64(ARGS, type, scales, 64, NRG_ERR_COMBINATION), WITH_U32(ARGS, type, format, NRG_QUANT_Q8_0_4X4),                \
        WRONG_U64(ARGS, type, rows, 6, NRG_ERR_DIM), WRONG_VARIANT(1)

static const sound_wrong wrong[] = {WRONG_OF(nrg_quantize_args)};
static const sound_wrong wrong_back[] = {WRONG_OF(nrg_dequantize_args)};

static const sound_size sizes[] = {{ARGS, NRG_AT(nrg_quantize_args, rows2)}, {ARGS, NRG_AT(nrg_quantize_args, rows3)}};
static const sound_size sizes_back[] = {{ARGS, NRG_AT(nrg_dequantize_args, rows2)}, {ARGS, NRG_AT(nrg_dequantize_args, rows3)}};

static const sound_call calls[] = {
    {&invoke_quantize, 2, set_up, WRONG(wrong), NUMBERS(sizes)},
    {&invoke_dequantize, 2, set_up_back, WRONG(wrong_back), NUMBERS(sizes_back)},
};

const sound_family sound_quantize = {"quantize", calls, NRG_COUNT(calls)};
