/* SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "sound_norm_spec.h"

enum { SPEC = NRG_NORM_SPEC, ARGS = NRG_NORM_ARGS, ROWS = 5, DIM = 12 };

/* Plain; residual and statistics; gated groups of 16 bits; the residual after; wider dtypes beside 16 bits; one row; four
 * dimensions; the same where y and z repeat, groups that share w and b; forward, bytes and scales instead of o. */
enum { PLAIN, RESIDUAL, GATED, AFTER, WIDE, ROW, PLANES, REPEATED, VARIANTS, BYTES = VARIANTS, FORWARD_VARIANTS };

/* A workspace may be larger than it has to be. Without operands, of args only rows, dw and db are looked at. */
static const sound_wrong wrong_backward[] = {WRONG_VARIANT(RESIDUAL),
                                             WRONG_U64(ARGS, nrg_norm_backward_args, workspace_size, SIZE_MAX, NRG_OK)};
#define WRONG_BYTES(variant, gradients)                                                                                          \
    WRONG_VARIANT(variant), WRONG_U64(SPEC, nrg_norm_spec, dim, SIZE_MAX / 8 / (gradients), NRG_OK),                             \
        WRONG_U64(SPEC, nrg_norm_spec, dim, SIZE_MAX / 8 / (gradients) + 1, NRG_ERR_OVERFLOW)
static const sound_wrong wrong_workspace[] = {WRONG_BYTES(RESIDUAL, 2), WRONG_BYTES(WIDE, 1)};

/* Planes and volumes, and what repeats. */
#define SET_PLANES(args, variant)                                                                                                \
    do {                                                                                                                         \
        if ((variant) != PLANES && (variant) != REPEATED)                                                                        \
            break;                                                                                                               \
        (args)->rows = 3;                                                                                                        \
        (args)->rows2 = (args)->rows3 = 2;                                                                                       \
        (args)->y_repeat = (variant) == REPEATED ? NRG_REPEAT_ROWS2 : NRG_REPEAT_NONE;                                           \
        (args)->z_repeat = (variant) == REPEATED ? NRG_REPEAT_ROWS | NRG_REPEAT_ROWS3 : NRG_REPEAT_NONE;                         \
    } while (0)

static nrg_norm_spec spec_of(int variant)
{
    nrg_norm_spec spec = variant == PLAIN ? nrg_norm_spec_rms(NRG_F32, DIM, 1e-6) : nrg_norm_spec_layer(NRG_F32, DIM, 1e-6);
    if (variant == BYTES)
        spec.format = NRG_QUANT_INT8_32;
    if (variant == GATED || variant == REPEATED) {
        spec.weights = variant == REPEATED ? NRG_WEIGHTS_GROUP : NRG_WEIGHTS_ROW;
        spec.dtype = NRG_F16;
        spec.gate = NRG_GATE_POST;
        spec.activation = NRG_ACT_SILU;
        spec.groups = 3;
    }
    if (variant == AFTER)
        spec.residual_mode = NRG_RESIDUAL_AFTER;
    if (variant == ROW)
        sound_constants(&spec);
    if (variant == WIDE) {
        spec.dtype = NRG_BF16;
        spec.y_dtype = spec.r_dtype = spec.w_dtype = NRG_F32;
    }
    return spec;
}

static uint32_t set_up_forward(void *const *part, int variant)
{
    *(nrg_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_norm_args *)part[ARGS] = nrg_norm_args_init(variant == ROW ? 1 : ROWS, NULL, NULL, NULL);
    SET_PLANES((nrg_norm_args *)part[ARGS], variant);
    const uint32_t o = NRG_BIT(NRG_NORM_O), weights = NRG_BIT(NRG_NORM_W) | NRG_BIT(NRG_NORM_B),
                   residual = NRG_BIT(NRG_NORM_Y) | NRG_BIT(NRG_NORM_R),
                   statistics = NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD);
    switch (variant) {
    case BYTES:
        return weights | residual | statistics | NRG_BIT(NRG_NORM_PACKED) | NRG_BIT(NRG_NORM_SCALES);
    case PLAIN:
        return o | NRG_BIT(NRG_NORM_W);
    case GATED:
    case REPEATED:
        return o | weights | residual | statistics | NRG_BIT(NRG_NORM_Z);
    case AFTER:
        return o | weights | NRG_BIT(NRG_NORM_Y);
    default:
        return o | weights | residual | statistics;
    }
}

/* ---- statistics alone, and elements from them ---- */

enum { MORE = NRG_NORM_STATISTICS_MORE };

#define OPERAND(name) NRG_BIT(NRG_NORM_STATISTICS_##name)
static uint32_t set_up_statistics(void *const *part, int variant)
{
    nrg_norm_spec *spec = part[SPEC];
    set_up_forward(part, variant);
    if (variant == GATED)
        spec->gate = NRG_GATE_PRE;
    const uint32_t all = OPERAND(MEAN) | OPERAND(RSTD) | OPERAND(STATISTICS), residual = OPERAND(Y) | OPERAND(R);
    return variant == PLAIN   ? OPERAND(STATISTICS)
           : variant == GATED ? all | residual | OPERAND(Z)
           : variant == AFTER ? OPERAND(RSTD)
                              : all | residual;
}
#undef OPERAND

#define OPERAND(name) NRG_BIT(NRG_NORM_ELEMENTS_##name)
static uint32_t set_up_elements(void *const *part, int variant)
{
    set_up_forward(part, variant);
    const uint32_t weights = OPERAND(W) | OPERAND(B), gate = variant == GATED || variant == REPEATED ? OPERAND(Z) : 0;
    return variant == PLAIN      ? OPERAND(X) | OPERAND(W)
           : variant == RESIDUAL ? weights | OPERAND(R)
                                 : weights | gate | OPERAND(X) | OPERAND(Y);
}
#undef OPERAND

/* ---- backward ---- */

#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_norm_backward_args *)part[ARGS] = nrg_norm_backward_args_init(variant == ROW ? 1 : ROWS, NULL, NULL, NULL, NULL);
    SET_PLANES((nrg_norm_backward_args *)part[ARGS], variant);
    const uint32_t sums = OPERAND(DW) | OPERAND(DB), usual = OPERAND(W) | OPERAND(B) | OPERAND(MEAN) | OPERAND(DX) | OPERAND(DY);
    switch (variant) {
    case PLAIN:
        return OPERAND(X) | OPERAND(W) | OPERAND(DX);
    case RESIDUAL:
        return usual | sums | OPERAND(R) | OPERAND(DR_IN);
    case GATED:
    case REPEATED:
        return usual | sums | OPERAND(X) | OPERAND(Y) | OPERAND(Z) | OPERAND(DZ);
    case AFTER:
        return usual | OPERAND(X);
    default:
        return usual | OPERAND(X) | OPERAND(Y) | OPERAND(DR_IN) | OPERAND(DB);
    }
}

/* After the norm dy is d_o, and not dx. */
static nrg_status spoil_backward(void *const *part, int n)
{
    const nrg_norm_spec *spec = part[SPEC];
    nrg_norm_backward_args *args = part[ARGS];
    if (n || spec->residual_mode != NRG_RESIDUAL_AFTER)
        return NRG_OK;
    args->dy = args->dx;
    return NRG_ERR_OVERLAP;
}

/* A single block's sums are dw and db themselves. */
static int is_one_block(void *const *part)
{
    const nrg_norm_backward_args *args = part[ARGS];
    return nrg_norm_block_count(args->rows * args->rows2 * args->rows3 * nrg_norm_alike(part[SPEC])) == 1;
}

static uint32_t spared_by_reduce(void *const *part)
{
    return OPERAND(DX) | OPERAND(DY) | OPERAND(DZ) | OPERAND(WORKSPACE) | (is_one_block(part) ? OPERAND(DW) | OPERAND(DB) : 0);
}

static const sound_call calls[] = {
    {&invoke_norm_forward, FORWARD_VARIANTS, .set_up = set_up_forward},
    {&invoke_norm_statistics, VARIANTS, .set_up = set_up_statistics, .always = 1},
    {&invoke_norm_elements, VARIANTS, .set_up = set_up_elements},
    {&invoke_norm_backward, VARIANTS, set_up_backward, WRONG(wrong_backward), .spoil = spoil_backward,
     .own = OPERAND(DW) | OPERAND(DB) | OPERAND(WORKSPACE)},
    {&invoke_norm_backward_reduce, VARIANTS, set_up_backward, WRONG(wrong_backward), .spoil = spoil_backward,
     .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_norm_backward_workspace, VARIANTS, set_up_backward, WRONG(wrong_workspace), .like = &nrg_call_norm_backward},
};

const sound_family sound_norm = {"norm", calls, NRG_COUNT(calls)};
