/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/norm_rope.h"
#include "../../src/operands/sinusoidal.h"
#include "sound.h"

enum { TOKENS = 3, Q_HEADS = 2, K_HEADS = 1, DIM = 12, N_DIMS = 8 };

/* ---- frequencies and tables ---- */

static uint32_t set_up_frequencies(void *const *part, int variant)
{
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    return variant ? NRG_BIT(NRG_ROPE_FREQUENCIES_FACTORS) : 0;
}

static nrg_status run_frequencies(void *const *part, int ith, int nth)
{
    const nrg_rope_frequencies_args *args = part[NRG_ROPE_ARGS];
    (void)ith;
    (void)nth;
    return nrg_rope_frequencies(part[NRG_ROPE_SPEC], args->frequencies, args->magnitude);
}

static const sound_wrong wrong_frequencies[] = {
    WRONG_U32(NRG_ROPE_SPEC, nrg_rope_spec, mode, 1, NRG_ERR_ENUM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, 0, NRG_ERR_DIM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, 7, NRG_ERR_DIM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, ((uint64_t)1 << 31) + 2, NRG_ERR_DIM),
    WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, freq_base, 0, NRG_ERR_CONSTANT),
    WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, freq_base, NAN, NRG_ERR_CONSTANT),
    WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, freq_scale, INFINITY, NRG_ERR_CONSTANT),
    WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, attn_factor, NAN, NRG_ERR_CONSTANT),
};

static const sound_wrong wrong_table[] = {
    WRONG_U32(NRG_ROPE_SPEC, nrg_rope_spec, mode, 1, NRG_ERR_ENUM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, 7, NRG_ERR_DIM),
    WRONG_F64(NRG_ROPE_ARGS, nrg_rope_table_args, magnitude, NAN, NRG_ERR_CONSTANT),
    WRONG_F64(NRG_ROPE_ARGS, nrg_rope_table_args, magnitude, INFINITY, NRG_ERR_CONSTANT),
    WRONG_U32(NRG_ROPE_ARGS, nrg_rope_table_args, first, INT32_MAX - 1, NRG_ERR_POSITION),
};
static const sound_size table_sizes[] = {{NRG_ROPE_ARGS, NRG_AT(nrg_rope_table_args, tokens)}};

static uint32_t set_up_table(void *const *part, int variant)
{
    nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    *spec = nrg_rope_spec_init(N_DIMS, variant == 2 ? NRG_ROPE_MROPE : NRG_ROPE_NORMAL, 10000);
    spec->sections[0] = 1;
    spec->sections[2] = 3;
    *(nrg_rope_table_args *)part[NRG_ROPE_ARGS] = nrg_rope_table_args_init(TOKENS, NULL, 1, NULL);
    return variant ? NRG_BIT(NRG_ROPE_TABLE_POSITIONS) : 0;
}

static nrg_status run_table(void *const *part, int ith, int nth)
{
    return nrg_rope_table(part[NRG_ROPE_SPEC], part[NRG_ROPE_ARGS], ith, nth);
}

/* ---- the rotation ---- */

static nrg_rope_args rope_args(int variant)
{
    nrg_rope_args args = nrg_rope_args_init(TOKENS, DIM, NULL);
    args.q_heads = Q_HEADS;
    args.k_heads = variant == 1 ? 0 : K_HEADS;
    args.dtype = variant == 2 ? NRG_BF16 : NRG_F32;
    args.table_rows = variant ? TOKENS + 1 : 0;
    args.offset = variant == 2 ? 3 : 0;
    args.store = NRG_STORE_KEEP;
    return args;
}

static uint32_t set_up_rope(void *const *part, int variant)
{
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    *(nrg_rope_args *)part[NRG_ROPE_ARGS] = rope_args(variant);
    return variant ? NRG_BIT(NRG_ROPE_POSITIONS) : 0;
}

static void fill_positions(const nrg_rope_args *args)
{
    int32_t *positions = (int32_t *)args->positions; /* the test's own memory */
    for (size_t t = 0; positions && t < args->tokens; t++)
        positions[t] = (int32_t)(t % 2);
}

static void fill_rope(void *const *part) { fill_positions(part[NRG_ROPE_ARGS]); }

static nrg_status run_rope(void *const *part, int ith, int nth)
{
    return nrg_rope(part[NRG_ROPE_SPEC], part[NRG_ROPE_ARGS], ith, nth);
}

static const sound_wrong wrong_rope[] = {
    WRONG_U32(NRG_ROPE_SPEC, nrg_rope_spec, mode, 1, NRG_ERR_ENUM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, 7, NRG_ERR_DIM),
    WRONG_U64(NRG_ROPE_SPEC, nrg_rope_spec, n_dims, DIM + 2, NRG_ERR_DIM),
    WRONG_U64(NRG_ROPE_ARGS, nrg_rope_args, offset, DIM - N_DIMS + 1, NRG_ERR_DIM),
    WRONG_U64(NRG_ROPE_ARGS, nrg_rope_args, table_rows, TOKENS - 1, NRG_ERR_POSITION),
};
static const sound_size rope_sizes[] = {{NRG_ROPE_ARGS, NRG_AT(nrg_rope_args, tokens)},
                                        {NRG_ROPE_ARGS, NRG_AT(nrg_rope_args, dim)},
                                        {NRG_ROPE_ARGS, NRG_AT(nrg_rope_args, q_heads)},
                                        {NRG_ROPE_ARGS, NRG_AT(nrg_rope_args, k_heads)}};

/* ---- with a norm ---- */

static void set_up_specs(void *const *part, int variant)
{
    nrg_norm_spec *norm = part[NRG_NORM_ROPE_NORM];
    nrg_rope_args *args = part[NRG_NORM_ROPE_ARGS];
    *norm = nrg_layer_norm_spec(DIM, 1e-6);
    *(nrg_rope_spec *)part[NRG_NORM_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    *args = rope_args(variant);
    norm->dtype = args->dtype;
    norm->w_dtype = variant == 2 ? NRG_F32 : NRG_DTYPE_SAME;
    norm->groups = variant == 2 ? 3 : 0;
}

static uint32_t set_up_norm_rope(void *const *part, int variant)
{
    set_up_specs(part, variant);
    *(nrg_norm_args *)part[NRG_NORM_ROPE_Q_ARGS] = nrg_norm_args_init(0, NULL, NULL);
    *(nrg_norm_args *)part[NRG_NORM_ROPE_K_ARGS] = nrg_norm_args_init(0, NULL, NULL);
    const uint32_t q =
        NRG_BIT(NRG_NORM_ROPE_Q_W) | NRG_BIT(NRG_NORM_ROPE_Q_B) | NRG_BIT(NRG_NORM_ROPE_Q_MEAN) | NRG_BIT(NRG_NORM_ROPE_Q_RSTD);
    const uint32_t k = NRG_BIT(NRG_NORM_ROPE_K_W) | NRG_BIT(NRG_NORM_ROPE_K_RSTD);
    return (variant == 1 ? q : q | k) | (variant ? NRG_BIT(NRG_ROPE_POSITIONS) : 0);
}

static void fill_norm_rope(void *const *part) { fill_positions(part[NRG_NORM_ROPE_ARGS]); }

static nrg_status run_norm_rope(void *const *part, int ith, int nth)
{
    return nrg_norm_rope_forward(part[NRG_NORM_ROPE_NORM], part[NRG_NORM_ROPE_SPEC], part[NRG_NORM_ROPE_ARGS],
                                 part[NRG_NORM_ROPE_Q_ARGS], part[NRG_NORM_ROPE_K_ARGS], ith, nth);
}

#define WRONG_SPECS                                                                                                              \
    WRONG_U64(NRG_NORM_ROPE_NORM, nrg_norm_spec, dim, DIM - 1, NRG_ERR_DIM),                                                     \
        WRONG_U32(NRG_NORM_ROPE_NORM, nrg_norm_spec, dtype, NRG_F16, NRG_ERR_DTYPE),                                             \
        WRONG_F64(NRG_NORM_ROPE_NORM, nrg_norm_spec, eps, NAN, NRG_ERR_EPS),                                                     \
        WRONG_F64(NRG_NORM_ROPE_NORM, nrg_norm_spec, c, NAN, NRG_ERR_CONSTANT),                                                  \
        WRONG_U32(NRG_NORM_ROPE_NORM, nrg_norm_spec, gate, NRG_GATE_PRE, NRG_ERR_COMBINATION),                                   \
        WRONG_U32(NRG_NORM_ROPE_NORM, nrg_norm_spec, residual_mode, NRG_RESIDUAL_AFTER, NRG_ERR_COMBINATION),                    \
        WRONG_U32(NRG_NORM_ROPE_ARGS, nrg_rope_args, backward, 1, NRG_ERR_COMBINATION),                                          \
        WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, table_rows, TOKENS - 1, NRG_ERR_POSITION)

static const sound_wrong wrong_norm_rope[] = {
    WRONG_SPECS,
    WRONG_U64(NRG_NORM_ROPE_Q_ARGS, nrg_norm_args, rows, 1, NRG_ERR_COMBINATION),
    WRONG_U64(NRG_NORM_ROPE_K_ARGS, nrg_norm_args, x_stride, 64, NRG_ERR_COMBINATION),
};
static const sound_size norm_rope_sizes[] = {{NRG_NORM_ROPE_ARGS, NRG_AT(nrg_rope_args, tokens)},
                                             {NRG_NORM_ROPE_ARGS, NRG_AT(nrg_rope_args, q_heads)}};

#define OPERAND(name) NRG_BIT(NRG_NORM_ROPE_BACKWARD_##name)

static uint32_t set_up_norm_rope_backward(void *const *part, int variant)
{
    set_up_specs(part, variant);
    *(nrg_norm_backward_args *)part[NRG_NORM_ROPE_Q_ARGS] = nrg_norm_backward_args_init(TOKENS * Q_HEADS, NULL, NULL, NULL);
    *(nrg_norm_backward_args *)part[NRG_NORM_ROPE_K_ARGS] =
        nrg_norm_backward_args_init(variant == 1 ? 0 : TOKENS * K_HEADS, NULL, NULL, NULL);
    const uint32_t q = OPERAND(Q_X) | OPERAND(Q_W) | OPERAND(Q_B) | OPERAND(Q_MEAN) | OPERAND(Q_DW) | OPERAND(Q_DB),
                   k = OPERAND(K_X) | OPERAND(K_W) | OPERAND(K_DB);
    return (variant == 1 ? q : q | k) | (variant ? NRG_BIT(NRG_ROPE_POSITIONS) : 0);
}

static nrg_status run_norm_rope_backward(void *const *part, int ith, int nth)
{
    return nrg_norm_rope_backward(part[NRG_NORM_ROPE_NORM], part[NRG_NORM_ROPE_SPEC], part[NRG_NORM_ROPE_ARGS],
                                  part[NRG_NORM_ROPE_Q_ARGS], part[NRG_NORM_ROPE_K_ARGS], ith, nth);
}

static nrg_status run_norm_rope_reduce(void *const *part, int ith, int nth)
{
    return nrg_norm_rope_backward_reduce(part[NRG_NORM_ROPE_NORM], part[NRG_NORM_ROPE_SPEC], part[NRG_NORM_ROPE_ARGS],
                                         part[NRG_NORM_ROPE_Q_ARGS], part[NRG_NORM_ROPE_K_ARGS], ith, nth);
}

static const sound_wrong wrong_norm_rope_backward[] = {
    WRONG_SPECS,
    WRONG_U64(NRG_NORM_ROPE_Q_ARGS, nrg_norm_backward_args, rows, 1, NRG_ERR_COMBINATION),
};

/* ---- sinusoids ---- */

static uint32_t set_up_sines(void *const *part, int variant)
{
    nrg_sinusoidal_frequencies_args *args = part[0];
    args->dim = variant ? 7 : 8;
    args->base = 10000;
    return 0;
}

static nrg_status run_sines(void *const *part, int ith, int nth)
{
    const nrg_sinusoidal_frequencies_args *args = part[0];
    (void)ith;
    (void)nth;
    return nrg_sinusoidal_frequencies(args->dim, args->base, args->frequencies);
}

static const sound_wrong wrong_sines[] = {
    WRONG_U64(0, nrg_sinusoidal_frequencies_args, dim, 0, NRG_ERR_DIM),
    WRONG_U64(0, nrg_sinusoidal_frequencies_args, dim, ((uint64_t)1 << 31) + 2, NRG_ERR_DIM),
    WRONG_F64(0, nrg_sinusoidal_frequencies_args, base, 0, NRG_ERR_CONSTANT),
    WRONG_F64(0, nrg_sinusoidal_frequencies_args, base, NAN, NRG_ERR_CONSTANT),
};

static uint32_t set_up_sine_table(void *const *part, int variant)
{
    nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_ARGS];
    *args = nrg_sinusoidal_args_init(TOKENS, variant ? 7 : 8, NULL, NULL);
    args->dtype = variant ? NRG_F16 : NRG_F32;
    return variant ? NRG_BIT(NRG_SINUSOIDAL_TABLE_POSITIONS) : 0;
}

static nrg_status run_sine_table(void *const *part, int ith, int nth)
{
    return nrg_sinusoidal_table(part[NRG_SINUSOIDAL_ARGS], ith, nth);
}

static const sound_wrong wrong_sine_table[] = {
    WRONG_U64(NRG_SINUSOIDAL_ARGS, nrg_sinusoidal_args, dim, 0, NRG_ERR_DIM),
    WRONG_U32(NRG_SINUSOIDAL_ARGS, nrg_sinusoidal_args, first, INT32_MAX - 1, NRG_ERR_POSITION),
};
static const sound_size sine_table_sizes[] = {{NRG_SINUSOIDAL_ARGS, NRG_AT(nrg_sinusoidal_args, rows)},
                                              {NRG_SINUSOIDAL_ARGS, NRG_AT(nrg_sinusoidal_args, dim)}};

#define WRONG(options, numbers)                                                                                                  \
    .wrong = options, .wrong_count = NRG_COUNT(options), .sizes = numbers, .size_count = NRG_COUNT(numbers)

static const sound_call calls[] = {
    {&nrg_call_rope_frequencies, "rope.h", "nrg_rope_frequencies", 0, 2, set_up_frequencies, NULL, run_frequencies,
     .wrong = wrong_frequencies, .wrong_count = NRG_COUNT(wrong_frequencies)},
    {&nrg_call_rope_table, "rope.h", "nrg_rope_table", 1, 3, set_up_table, NULL, run_table, WRONG(wrong_table, table_sizes)},
    {&nrg_call_rope, "rope.h", "nrg_rope", 1, 3, set_up_rope, fill_rope, run_rope, WRONG(wrong_rope, rope_sizes)},
    {&nrg_call_norm_rope_forward, "norm_rope.h", "nrg_norm_rope_forward", 1, 3, set_up_norm_rope, fill_norm_rope, run_norm_rope,
     WRONG(wrong_norm_rope, norm_rope_sizes)},
    {&nrg_call_norm_rope_backward, "norm_rope.h", "nrg_norm_rope_backward", 1, 3, set_up_norm_rope_backward, fill_norm_rope,
     run_norm_rope_backward, WRONG(wrong_norm_rope_backward, norm_rope_sizes)},
    {&nrg_call_norm_rope_backward, "norm_rope.h", "nrg_norm_rope_backward_reduce", 1, 3, set_up_norm_rope_backward,
     fill_norm_rope, run_norm_rope_reduce, WRONG(wrong_norm_rope_backward, norm_rope_sizes)},
    {&nrg_call_sinusoidal_frequencies, "sinusoidal.h", "nrg_sinusoidal_frequencies", 0, 2, set_up_sines, NULL, run_sines,
     .wrong = wrong_sines, .wrong_count = NRG_COUNT(wrong_sines)},
    {&nrg_call_sinusoidal_table, "sinusoidal.h", "nrg_sinusoidal_table", 1, 2, set_up_sine_table, NULL, run_sine_table,
     WRONG(wrong_sine_table, sine_table_sizes)},
};

const sound_family sound_rope = {"rope", calls, NRG_COUNT(calls)};
