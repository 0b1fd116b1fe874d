/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "../../src/operands/norm.h"
#include "sound.h"

enum { SPEC = NRG_NORM_SPEC, ARGS = NRG_NORM_ARGS, ROWS = 5, DIM = 12 };

static const sound_wrong wrong_spec[] = {
    WRONG_U64(SPEC, nrg_norm_spec, dim, 0, NRG_ERR_DIM),
    WRONG_U64(SPEC, nrg_norm_spec, groups, 5, NRG_ERR_DIM),
    WRONG_U32(SPEC, nrg_norm_spec, y_dtype, NRG_F16, NRG_ERR_DTYPE),
    WRONG_U32(SPEC, nrg_norm_spec, r_dtype, NRG_BF16, NRG_ERR_DTYPE),
    WRONG_U32(SPEC, nrg_norm_spec, w_dtype, NRG_F16, NRG_ERR_DTYPE),
    WRONG_F64(SPEC, nrg_norm_spec, eps, -1e-6, NRG_ERR_EPS),
    WRONG_F64(SPEC, nrg_norm_spec, eps, INFINITY, NRG_ERR_EPS),
    WRONG_F64(SPEC, nrg_norm_spec, eps, NAN, NRG_ERR_EPS),
    WRONG_F64(SPEC, nrg_norm_spec, c, NAN, NRG_ERR_CONSTANT),
    WRONG_F64(SPEC, nrg_norm_spec, c, 3.5e38, NRG_ERR_CONSTANT),
    WRONG_F64(SPEC, nrg_norm_spec, c, -INFINITY, NRG_ERR_CONSTANT),
    WRONG_F32(SPEC, nrg_norm_spec, weight_offset, INFINITY, NRG_ERR_CONSTANT),
    WRONG_F32(SPEC, nrg_norm_spec, weight_offset, NAN, NRG_ERR_CONSTANT),
};

static const sound_size sizes[] = {{SPEC, NRG_AT(nrg_norm_spec, dim)}, {ARGS, NRG_AT(nrg_norm_args, rows)}};

/* Plain; residual and statistics; gated groups of 16 bits; the residual after; wider dtypes beside 16 bits; one row. */
enum { PLAIN, RESIDUAL, GATED, AFTER, WIDE, ROW, VARIANTS };

static nrg_norm_spec spec_of(int variant)
{
    nrg_norm_spec spec = variant == PLAIN ? nrg_rms_norm_spec(DIM, 1e-6) : nrg_layer_norm_spec(DIM, 1e-6);
    if (variant == GATED) {
        spec.dtype = NRG_F16;
        spec.gate = NRG_GATE_POST;
        spec.activation = NRG_ACT_SILU;
        spec.groups = 3;
    }
    if (variant == AFTER)
        spec.residual_mode = NRG_RESIDUAL_AFTER;
    if (variant == WIDE) {
        spec.dtype = NRG_BF16;
        spec.y_dtype = spec.r_dtype = spec.w_dtype = NRG_F32;
    }
    spec.store = NRG_STORE_KEEP;
    return spec;
}

static uint32_t set_up_forward(void *const *part, int variant)
{
    *(nrg_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_norm_args *)part[ARGS] = nrg_norm_args_init(variant == ROW ? 1 : ROWS, NULL, NULL);
    const uint32_t weights = NRG_BIT(NRG_NORM_W) | NRG_BIT(NRG_NORM_B), residual = NRG_BIT(NRG_NORM_Y) | NRG_BIT(NRG_NORM_R),
                   statistics = NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD);
    switch (variant) {
    case PLAIN:
        return NRG_BIT(NRG_NORM_W);
    case GATED:
        return weights | residual | statistics | NRG_BIT(NRG_NORM_Z);
    case AFTER:
        return weights | NRG_BIT(NRG_NORM_Y);
    default:
        return weights | residual | statistics;
    }
}

static nrg_status run_forward(void *const *part, int ith, int nth) { return nrg_norm_forward(part[SPEC], part[ARGS], ith, nth); }

#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static uint32_t set_up_backward(void *const *part, int variant)
{
    *(nrg_norm_spec *)part[SPEC] = spec_of(variant);
    *(nrg_norm_backward_args *)part[ARGS] = nrg_norm_backward_args_init(variant == ROW ? 1 : ROWS, NULL, NULL, NULL);
    const uint32_t sums = OPERAND(DW) | OPERAND(DB), usual = OPERAND(W) | OPERAND(B) | OPERAND(MEAN) | OPERAND(DX) | OPERAND(DY);
    switch (variant) {
    case PLAIN:
        return OPERAND(X) | OPERAND(W) | OPERAND(DX);
    case RESIDUAL:
        return usual | sums | OPERAND(R) | OPERAND(DR_IN);
    case GATED:
        return usual | sums | OPERAND(X) | OPERAND(Y) | OPERAND(Z) | OPERAND(DZ);
    case AFTER:
        return usual | OPERAND(X);
    default:
        return usual | OPERAND(X) | OPERAND(Y) | OPERAND(DR_IN) | OPERAND(DB);
    }
}

static nrg_status run_backward(void *const *part, int ith, int nth)
{
    return nrg_norm_backward(part[SPEC], part[ARGS], ith, nth);
}

static nrg_status run_reduce(void *const *part, int ith, int nth)
{
    return nrg_norm_backward_reduce(part[SPEC], part[ARGS], ith, nth);
}

#define SPEC_IS_WRONG .wrong = wrong_spec, .wrong_count = NRG_COUNT(wrong_spec), .sizes = sizes, .size_count = NRG_COUNT(sizes)

static const sound_call calls[] = {
    {&nrg_call_norm_forward, "norm.h", "nrg_norm_forward", 1, VARIANTS, set_up_forward, NULL, run_forward, SPEC_IS_WRONG},
    {&nrg_call_norm_backward, "norm_backward.h", "nrg_norm_backward", 1, VARIANTS, set_up_backward, NULL, run_backward,
     SPEC_IS_WRONG},
    {&nrg_call_norm_backward, "norm_backward.h", "nrg_norm_backward_reduce", 1, VARIANTS, set_up_backward, NULL, run_reduce,
     SPEC_IS_WRONG},
};

const sound_family sound_norm = {"norm", calls, NRG_COUNT(calls)};
