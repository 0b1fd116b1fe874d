/* SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_sandwich.h"
#include "sound_norm_spec.h"

enum { FIRST = NRG_SANDWICH_FIRST, SECOND = NRG_SANDWICH_SECOND, ARGS = NRG_SANDWICH_ARGS, ROWS = 5, DIM = 12 };

/* Plain; everything; 16 bits; wider dtypes beside 16 bits; four dimensions; the same where y repeats (backward: without);
 * forward, bytes and scales instead of o. */
enum { PLAIN, ALL, HALF, WIDE, PLANES, REPEATED, VARIANTS, BYTES = VARIANTS, FORWARD_VARIANTS };

/* The widest norms of which a workspace's bytes are a number. */
#define WRONG_DIM(n, status)                                                                                                     \
    WITH_U64(FIRST, nrg_norm_spec, groups, 1), WITH_U64(SECOND, nrg_norm_spec, groups, 1),                                       \
        WITH_U64(FIRST, nrg_norm_spec, dim, n), WRONG_U64(SECOND, nrg_norm_spec, dim, n, status)
static const sound_wrong wrong_workspace[] = {WRONG_VARIANT(ALL), WRONG_DIM(SIZE_MAX / 32, NRG_OK),
                                              WRONG_DIM(SIZE_MAX / 32 + 1, NRG_ERR_OVERFLOW),
                                              WRONG_DIM(SIZE_MAX, NRG_ERR_OVERFLOW)};

static void set_specs(void *const *part, int variant)
{
    nrg_norm_spec *first = part[FIRST], *second = part[SECOND];
    *first = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    *second = variant == PLAIN ? nrg_norm_spec_rms(NRG_F32, DIM, 1e-5) : nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    if (variant == ALL) {
        first->centred = 1;
        first->groups = 2;
        second->groups = 3;
    }
    if (variant == PLANES) {
        sound_constants(first);
        sound_constants(second);
    }
    if (variant == HALF || variant == REPEATED)
        first->dtype = second->dtype = NRG_F16;
    if (variant == WIDE) {
        first->dtype = second->dtype = NRG_BF16;
        first->y_dtype = first->r_dtype = second->w_dtype = NRG_F32;
    }
}

static uint32_t set_up_forward(void *const *part, int variant)
{
    nrg_norm_sandwich_args *args = part[ARGS];
    set_specs(part, variant);
    *args = nrg_norm_sandwich_args_init(ROWS, NULL, NULL, NULL, NULL, NULL, NULL);
    if (variant == BYTES)
        ((nrg_norm_spec *)part[SECOND])->format = NRG_QUANT_INT8_32;
    else if (variant >= PLANES) {
        args->rows = 3;
        args->rows2 = args->rows3 = 2;
        args->y_repeat = variant == REPEATED ? NRG_REPEAT_ROWS2 : NRG_REPEAT_NONE;
    }
    const uint32_t o = NRG_BIT(NRG_SANDWICH_O), weights = NRG_BIT(NRG_SANDWICH_W1) | NRG_BIT(NRG_SANDWICH_W2),
                   all = weights | NRG_BIT(NRG_SANDWICH_B1) | NRG_BIT(NRG_SANDWICH_B2) | NRG_BIT(NRG_SANDWICH_R) |
                         NRG_BIT(NRG_SANDWICH_MEAN1) | NRG_BIT(NRG_SANDWICH_RSTD1) | NRG_BIT(NRG_SANDWICH_MEAN2) |
                         NRG_BIT(NRG_SANDWICH_RSTD2);
    return variant == PLAIN   ? o | weights
           : variant == HALF  ? o | weights | NRG_BIT(NRG_SANDWICH_R)
           : variant == BYTES ? all | NRG_BIT(NRG_SANDWICH_PACKED) | NRG_BIT(NRG_SANDWICH_SCALES)
                              : o | all;
}

#define OPERAND(name) NRG_BIT(NRG_SANDWICH_BACKWARD_##name)

static uint32_t set_up_backward(void *const *part, int variant)
{
    nrg_norm_sandwich_backward_args *args = part[ARGS];
    set_specs(part, variant);
    *args = nrg_norm_sandwich_backward_args_init(ROWS, NULL, NULL, NULL, NULL, NULL, NULL);
    if (variant >= PLANES) {
        args->rows = 3;
        args->rows2 = args->rows3 = 2;
    }
    const uint32_t usual = OPERAND(W1) | OPERAND(W2) | OPERAND(DR_IN) | OPERAND(DY),
                   sums = OPERAND(DW1) | OPERAND(DB1) | OPERAND(DW2) | OPERAND(DB2);
    return variant == PLAIN  ? OPERAND(W1) | OPERAND(W2)
           : variant == ALL  ? usual | sums | OPERAND(MEAN1) | OPERAND(MEAN2)
           : variant == HALF ? usual | OPERAND(DW1)
                             : usual;
}

/* A single block's sums are written with the rows. */
static int is_one_block(void *const *part)
{
    const nrg_norm_sandwich_backward_args *args = part[ARGS];
    return nrg_norm_block_count(args->rows * args->rows2 * args->rows3) == 1;
}

#define SUMS (OPERAND(DW1) | OPERAND(DB1) | OPERAND(DW2) | OPERAND(DB2))
static uint32_t spared_by_reduce(void *const *part)
{
    return OPERAND(DX) | OPERAND(DY) | OPERAND(WORKSPACE) | (is_one_block(part) ? SUMS : 0);
}

static const sound_call calls[] = {
    {&invoke_norm_sandwich_forward, FORWARD_VARIANTS, .set_up = set_up_forward},
    {&invoke_norm_sandwich_backward, VARIANTS, .set_up = set_up_backward, .own = SUMS | OPERAND(WORKSPACE)},
    {&invoke_norm_sandwich_backward_reduce, VARIANTS, .set_up = set_up_backward, .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_norm_sandwich_backward_workspace, VARIANTS, set_up_backward, WRONG(wrong_workspace),
     .like = &nrg_call_norm_sandwich_backward},
};

const sound_family sound_norm_sandwich = {"norm", calls, NRG_COUNT(calls)};
