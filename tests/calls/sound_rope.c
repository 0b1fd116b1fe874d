/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "../../src/operands/norm_rope.h"
#include "../../src/operands/qkv.h"
#include "../../src/operands/sinusoidal.h"
#include "../harness/support.h"
#include "sound_norm_spec.h"

enum { TOKENS = 3, Q_HEADS = 2, K_HEADS = 1, DIM = 12, N_DIMS = 8 };

#define ROPE_U32(part, field, value, status) WRONG_U32(part, nrg_rope_spec, field, value, status)
#define ROPE_U64(part, field, value, status) WRONG_U64(part, nrg_rope_spec, field, value, status)

/* What all calls look at of a spec; and numbers that only nrg_rope_frequencies does. */
#define WRONG_ROPE_SPEC(part)                                                                                                    \
    ROPE_U32(part, mode, 3, NRG_ERR_ENUM), ROPE_U32(part, mode, 4, NRG_ERR_ENUM), ROPE_U32(part, mode, 9, NRG_ERR_ENUM),         \
        ROPE_U32(part, mode, 10, NRG_ERR_ENUM), ROPE_U32(part, mode, 16, NRG_ERR_ENUM), ROPE_U32(part, mode, 25, NRG_ERR_ENUM),  \
        ROPE_U32(part, mode, 26, NRG_ERR_ENUM), ROPE_U32(part, mode, 32, NRG_ERR_ENUM), ROPE_U32(part, mode, 41, NRG_ERR_ENUM),  \
        ROPE_U32(part, mode, 42, NRG_ERR_ENUM), ROPE_U32(part, mode, 56, NRG_ERR_ENUM), ROPE_U32(part, mode, 256, NRG_ERR_ENUM), \
        ROPE_U32(part, mode, 264, NRG_ERR_ENUM), ROPE_U32(part, mode, 297, NRG_ERR_ENUM),                                        \
        ROPE_U64(part, n_dims, ((uint64_t)1 << 31) + 1, NRG_ERR_DIM),                                                            \
        ROPE_U64(part, n_dims, ((uint64_t)1 << 31) + 2, NRG_ERR_DIM), ROPE_U64(part, n_dims, SIZE_MAX - 1, NRG_ERR_DIM)
#define UNUSED_CONSTANTS(part)                                                                                                   \
    WITH_F64(part, nrg_rope_spec, freq_base, NAN), WITH_F64(part, nrg_rope_spec, freq_scale, NAN),                               \
        WITH_F64(part, nrg_rope_spec, attn_factor, NAN), WRONG_F64(part, nrg_rope_spec, ext_factor, NAN, NRG_OK)

/* ---- pairs ---- */

/* Two modes of which one has twice as many. */
static uint32_t set_up_pairs(void *const *part, int variant)
{
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, variant ? NRG_ROPE_VISION : NRG_ROPE_NEOX, 10000);
    return 0;
}

/* It has no status, and is 0 where nrg_rope_forward, of no tokens, has one. */
static nrg_status run_pairs(void *const *part, int ith, int nth)
{
    const nrg_rope_args nothing = nrg_rope_args_init(NRG_F32, 0, SIZE_MAX, NULL);
    const nrg_status status = nrg_rope_forward(part[NRG_ROPE_SPEC], &nothing, 0, 1);
    (void)ith;
    (void)nth;
    ck_assert((nrg_rope_pairs(part[NRG_ROPE_SPEC]) != 0) == (status == NRG_OK));
    return status;
}

static const invoke_function pairs = {"nrg_rope_pairs", &nrg_call_rope_pairs, run_pairs, NULL, NULL};

static const sound_wrong wrong_pairs[] = {WRONG_ROPE_SPEC(NRG_ROPE_SPEC), UNUSED_CONSTANTS(NRG_ROPE_SPEC),
                                          ROPE_U64(NRG_ROPE_SPEC, n_dims, (uint64_t)1 << 31, NRG_OK)};

/* ---- frequencies and tables ---- */

static uint32_t set_up_frequencies(void *const *part, int variant)
{
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    return variant ? NRG_BIT(NRG_ROPE_FREQUENCIES_FACTORS) : 0;
}

#define SPEC_U32(field, value, status) ROPE_U32(NRG_ROPE_SPEC, field, value, status)
#define SPEC_U64(field, value, status) ROPE_U64(NRG_ROPE_SPEC, field, value, status)
#define SPEC_F64(field, value, status) WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, field, value, status)
#define SPEC_WITH(field, value) WITH_U32(NRG_ROPE_SPEC, nrg_rope_spec, field, value)
#define SPEC_WITH_F64(field, value) WITH_F64(NRG_ROPE_SPEC, nrg_rope_spec, field, value)

/* Sections where there are any to be had, and where nobody looks. */
#define WRONG_SECTION(k, value)                                                                                                  \
    SPEC_WITH(mode, NRG_ROPE_MROPE), SPEC_WITH(sections[((k) + 1) % 4], 1), SPEC_U32(sections[k], value, NRG_ERR_DIM)
#define WRONG_SECTIONS                                                                                                           \
    SPEC_U32(mode, NRG_ROPE_VISION, NRG_ERR_DIM), SPEC_U32(mode, NRG_ROPE_IMROPE, NRG_ERR_DIM),                                  \
        SPEC_U32(mode, NRG_ROPE_IMROPE_TIME, NRG_ERR_DIM), WRONG_SECTION(0, -1), WRONG_SECTION(1, -1), WRONG_SECTION(2, -1),     \
        WRONG_SECTION(3, -1), WRONG_SECTION(0, INT_MIN), WRONG_SECTION(3, INT_MIN), SPEC_WITH(sections[0], 1),                   \
        SPEC_U32(mode, NRG_ROPE_NEOX, NRG_ERR_COMBINATION), SPEC_WITH(sections[3], -1),                                          \
        SPEC_U32(mode, NRG_ROPE_NORMAL, NRG_ERR_COMBINATION)

/* Options that the others do not use. */
#define UNUSED_OPTIONS                                                                                                           \
    SPEC_U32(yarn, NRG_ROPE_YARN_NO_MSCALE, NRG_ERR_COMBINATION), SPEC_F64(factor, 2, NRG_ERR_COMBINATION),                      \
        SPEC_F64(factor, NAN, NRG_ERR_COMBINATION), SPEC_F64(low_freq_factor, 0, NRG_ERR_COMBINATION),                           \
        NTK SPEC_F64(low_freq_factor, NAN, NRG_ERR_COMBINATION), NTK SPEC_F64(high_freq_factor, 5, NRG_ERR_COMBINATION)

/* Numbers that have to be from 2^-400 to 2^400, with the options that go before, each with a comma. */
#define NO_NUMBER(field, ...)                                                                                                    \
    __VA_ARGS__ SPEC_F64(field, NAN, NRG_ERR_CONSTANT), __VA_ARGS__ SPEC_F64(field, INFINITY, NRG_ERR_CONSTANT),                 \
        __VA_ARGS__ SPEC_F64(field, -INFINITY, NRG_ERR_CONSTANT),                                                                \
        __VA_ARGS__ SPEC_F64(field, 0x1.0000000000001p400, NRG_ERR_CONSTANT)
#define NOT_POSITIVE(field, ...)                                                                                                 \
    NO_NUMBER(field, __VA_ARGS__), __VA_ARGS__ SPEC_F64(field, 0, NRG_ERR_CONSTANT),                                             \
        __VA_ARGS__ SPEC_F64(field, -1, NRG_ERR_CONSTANT), __VA_ARGS__ SPEC_F64(field, 0x1.fffffffffffffp-401, NRG_ERR_CONSTANT)
#define YARN SPEC_WITH_F64(ext_factor, 1), SPEC_WITH(n_ctx_orig, 4096),
#define NTK SPEC_WITH(scaling, NRG_ROPE_SCALING_NTK),
#define LLAMA3 SPEC_WITH(scaling, NRG_ROPE_SCALING_LLAMA3), SPEC_WITH(n_ctx_orig, 8192),
#define WRONG_BAND(low, high) LLAMA3 SPEC_WITH_F64(low_freq_factor, low), SPEC_F64(high_freq_factor, high, NRG_ERR_CONSTANT)

static const sound_wrong wrong_frequencies[] = {
    WRONG_ROPE_SPEC(NRG_ROPE_SPEC),
    WRONG_SECTIONS,
    NTK SPEC_U64(n_dims, 2, NRG_ERR_DIM),
    NOT_POSITIVE(freq_base, ),
    NOT_POSITIVE(freq_scale, ),
    NOT_POSITIVE(factor, NTK),
    NOT_POSITIVE(beta_fast, YARN),
    NOT_POSITIVE(beta_slow, YARN),
    SPEC_F64(freq_scale, 0x1p-400, NRG_OK),
    YARN SPEC_F64(beta_fast, 0x1p400, NRG_OK),
    YARN SPEC_F64(beta_slow, 0x1p-400, NRG_OK),
    NO_NUMBER(attn_factor, ),
    SPEC_F64(attn_factor, -1, NRG_OK),
    NO_NUMBER(ext_factor, SPEC_WITH(n_ctx_orig, 4096), ),
    YARN SPEC_U32(yarn, NRG_ROPE_YARN_MOST, NRG_OK),
    YARN SPEC_U32(n_ctx_orig, 0, NRG_ERR_CONSTANT),
    YARN SPEC_U32(n_ctx_orig, -1, NRG_ERR_CONSTANT),
    YARN SPEC_U32(n_ctx_orig, INT_MIN, NRG_ERR_CONSTANT),
    YARN SPEC_F64(freq_base, 1, NRG_ERR_CONSTANT),
    LLAMA3 SPEC_U32(n_ctx_orig, 0, NRG_ERR_CONSTANT),
    LLAMA3 SPEC_U32(n_ctx_orig, -1, NRG_ERR_CONSTANT),
    WRONG_BAND(4, 1),
    WRONG_BAND(2, 2),
    WRONG_BAND(-1, 4),
    WRONG_BAND(NAN, 4),
    WRONG_BAND(1, NAN),
    WRONG_BAND(1, INFINITY),
    WRONG_BAND(INFINITY, INFINITY),
    UNUSED_OPTIONS, /* ggml's call has these in any case */
    SPEC_WITH_F64(beta_fast, NAN),
    SPEC_WITH_F64(beta_slow, NAN),
    SPEC_U32(n_ctx_orig, INT_MIN,
             NRG_OK), /* no pair turns more than 2^18 radians from one position to the next: the last one, with a base below 1 */
    SPEC_F64(freq_base, 0x1p-40, NRG_ERR_CONSTANT),
    SPEC_F64(freq_base, 0x1p-24, NRG_OK),
    SPEC_F64(freq_base, 0x1p400, NRG_OK),
};

/* A pair's factor: no number above 0, or one that makes it too fast. */
static nrg_status spoil_frequencies(void *const *part, int n)
{
    static const float factors[] = {0, -0.0f, -1, NAN, INFINITY, -INFINITY, 0x1p-60f};
    const nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    const int count = sizeof factors / sizeof factors[0];
    if (!spec->freq_factors || n >= N_DIMS / 2 * count)
        return NRG_OK;
    float *own = own_memory(spec->freq_factors);
    own[n / count] = factors[n % count];
    return NRG_ERR_CONSTANT;
}

#define TABLE_U32(field, value, status) WRONG_U32(NRG_ROPE_ARGS, nrg_rope_table_args, field, value, status)
#define TABLE_U64(field, value, status) WRONG_U64(NRG_ROPE_ARGS, nrg_rope_table_args, field, value, status)

/* Of the last variant, which has positions: what then is not looked at. */
static const sound_wrong wrong_table[] = {
    WRONG_ROPE_SPEC(NRG_ROPE_SPEC),
    SPEC_WITH(sections[0], 0),
    SPEC_WITH(sections[1], 0),
    SPEC_WITH(sections[2], 0),
    SPEC_U32(mode, NRG_ROPE_MROPE, NRG_ERR_DIM),
    WRONG_SECTION(0, -1),
    WRONG_SECTION(1, -1),
    WRONG_SECTION(2, -1),
    WRONG_SECTION(3, INT_MIN),
    SPEC_U32(sections[0], -1, NRG_OK),
    UNUSED_CONSTANTS(NRG_ROPE_SPEC),
    TABLE_U32(first_position, INT32_MAX - TOKENS + 2, NRG_ERR_POSITION),
    TABLE_U32(first_position, INT32_MAX - TOKENS + 1, NRG_OK),
    TABLE_U32(first_position, INT32_MIN, NRG_OK),
    TABLE_U64(tokens, (uint64_t)1 << 32, NRG_ERR_POSITION),
    WITH_U64(NRG_ROPE_ARGS, nrg_rope_table_args, tokens, 0),
    SPEC_U64(n_dims, 7, NRG_ERR_DIM),
};

static uint32_t set_up_table(void *const *part, int variant)
{
    nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    *spec = nrg_rope_spec_init(N_DIMS, variant == 2 ? NRG_ROPE_MROPE : NRG_ROPE_NORMAL, 10000);
    spec->sections[0] = 1;
    spec->sections[2] = 3;
    *(nrg_rope_table_args *)part[NRG_ROPE_ARGS] = nrg_rope_table_args_init(TOKENS, NULL, 1, NULL);
    return variant ? NRG_BIT(NRG_ROPE_TABLE_POSITIONS) : 0;
}

/* ---- the rotation ---- */

/* Batches: one, of two calls; two with positions of their own; three that share theirs. */
static size_t batch_of(int variant) { return variant > 1 ? (size_t)variant : 1; }

static nrg_rope_args rope_args(int variant)
{
    nrg_rope_args args = nrg_rope_args_init(variant == 2 ? NRG_BF16 : NRG_F32, TOKENS, DIM, NULL);
    args.q_heads = Q_HEADS;
    args.k_heads = variant == 1 ? 0 : K_HEADS;
    args.table_rows = variant ? TOKENS + 1 : TOKENS;
    args.rotate_from = variant == 2 ? 3 : 0;
    args.batch = batch_of(variant);
    args.shared_table_ids = variant == 3;
    args.store = NRG_STORE_KEEP;
    return args;
}

/* The operands that may be absent. In place without outputs: k of variant 0, q of variant 3. */
static uint32_t rope_there(int variant, unsigned q_o)
{
    return NRG_BIT(NRG_ROPE_Q) | (variant != 1 ? NRG_BIT(NRG_ROPE_K) : 0) | (variant ? NRG_BIT(NRG_ROPE_POSITIONS) : 0) |
           (variant < 3 ? NRG_BIT(q_o) : 0) | (variant > 1 ? NRG_BIT(q_o + 1) : 0);
}

static uint32_t set_up_rope(void *const *part, int variant)
{
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    *(nrg_rope_args *)part[NRG_ROPE_ARGS] = rope_args(variant);
    return rope_there(variant, NRG_ROPE_Q_O);
}

static size_t position_rows(const nrg_rope_args *args) { return args->shared_table_ids ? 1 : args->batch; }

static int32_t *position_of(const nrg_rope_args *args, size_t batch, size_t token)
{
    const size_t stride = args->table_ids_batch_stride ? args->table_ids_batch_stride : args->tokens * sizeof(int32_t);
    return (int32_t *)((char *)own_memory(args->table_ids) + batch * stride) + token;
}

static void fill_positions(const nrg_rope_args *args)
{
    for (size_t b = 0; args->table_ids && b < position_rows(args); b++)
        for (size_t t = 0; t < args->tokens; t++)
            *position_of(args, b, t) = (int32_t)((b + t) % 2);
}

static void fill_rope(void *const *part) { fill_positions(part[NRG_ROPE_ARGS]); }

static nrg_status spoil_positions(nrg_rope_args *args, int n)
{
    static const int32_t wrong[] = {-1, INT32_MIN, TOKENS + 1, INT32_MAX};
    const int all = args->table_ids ? (int)position_rows(args) * TOKENS : 0;
    if (!all || n > 4 * all)
        return NRG_OK;
    if (n < 4 * all) {
        *position_of(args, (size_t)n / 4 / TOKENS, (size_t)n / 4 % TOKENS) = wrong[n % 4];
    } else {
        args->table_rows = TOKENS;
        *position_of(args, 0, 0) = TOKENS;
    }
    return NRG_ERR_POSITION;
}

static nrg_status spoil_rope(void *const *part, int n) { return spoil_positions(part[NRG_ROPE_ARGS], n); }

#define ARGS_U32(part, field, value, status) WRONG_U32(part, nrg_rope_args, field, value, status)
#define ARGS_U64(part, field, value, status) WRONG_U64(part, nrg_rope_args, field, value, status)
#define ARGS_WITH(part, field, value) WITH_U64(part, nrg_rope_args, field, value)

#define WRONG_ROTATION(spec, args)                                                                                               \
    WRONG_ROPE_SPEC(spec), UNUSED_CONSTANTS(spec), WITH_U32(spec, nrg_rope_spec, sections[0], -1),                               \
        ROPE_U32(spec, mode, NRG_ROPE_MROPE, NRG_OK), ROPE_U64(spec, n_dims, DIM + 2, NRG_ERR_DIM),                              \
        WITH_U32(spec, nrg_rope_spec, mode, NRG_ROPE_VISION), ROPE_U64(spec, n_dims, DIM / 2 + 1, NRG_ERR_DIM),                  \
        ARGS_U64(args, rotate_from, DIM - N_DIMS, NRG_OK), ARGS_U64(args, rotate_from, DIM - N_DIMS + 1, NRG_ERR_DIM),           \
        ARGS_U64(args, rotate_from, DIM, NRG_ERR_DIM), ARGS_U64(args, rotate_from, DIM + 1, NRG_ERR_DIM),                        \
        ARGS_U64(args, rotate_from, SIZE_MAX - N_DIMS + 1, NRG_ERR_DIM), ARGS_U32(args, store, NRG_STORE_STREAM, NRG_OK),        \
        ARGS_WITH(args, tokens, 0), ROPE_U64(spec, n_dims, 7, NRG_ERR_DIM)

/* Without heads there are no pointers; strides are not read. */
#define WITHOUT(args, name)                                                                                                      \
    ARGS_WITH(args, name##_heads, 0), ARGS_WITH(args, name, 0), ARGS_WITH(args, name##_o, 0),                                    \
        ARGS_WITH(args, name##_strides.row, 1), ARGS_WITH(args, name##_strides.head, 1),                                         \
        ARGS_WITH(args, name##_o_strides.row, 1), ARGS_WITH(args, name##_strides.batch, 1)
#define WITHOUT_HEADS(args)                                                                                                      \
    WITHOUT(args, q), ARGS_U32(args, shared_table_ids, 0, NRG_OK), WITHOUT(args, k),                                             \
        ARGS_U32(args, shared_table_ids, 0, NRG_OK), WITHOUT(args, q), WITHOUT(args, k), ARGS_U64(args, table, 0, NRG_OK),       \
        WITHOUT(args, q), ARGS_U64(args, q, 64, NRG_ERR_COMBINATION), WITHOUT(args, q),                                          \
        ARGS_U64(args, q_o, 64, NRG_ERR_COMBINATION), WITHOUT(args, k), ARGS_U64(args, k, 64, NRG_ERR_COMBINATION),              \
        WITHOUT(args, k), ARGS_U64(args, k_o, 64, NRG_ERR_COMBINATION)

static const sound_wrong wrong_rope[] = {WRONG_ROTATION(NRG_ROPE_SPEC, NRG_ROPE_ARGS), WITHOUT_HEADS(NRG_ROPE_ARGS)};

/* ---- with a norm ---- */

static void set_up_specs(void *const *part, int variant)
{
    nrg_norm_spec *norm = part[NRG_NORM_ROPE_NORM];
    nrg_rope_args *args = part[NRG_NORM_ROPE_ARGS];
    *norm = nrg_norm_spec_layer(NRG_F32, DIM, 1e-6);
    *(nrg_rope_spec *)part[NRG_NORM_ROPE_SPEC] = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    *args = rope_args(variant);
    norm->dtype = args->dtype;
    norm->w_dtype = variant == 2 ? NRG_F32 : NRG_DTYPE_SAME;
    norm->groups = variant == 2 ? 3 : 1;
}

static uint32_t set_up_norm_rope(void *const *part, int variant)
{
    set_up_specs(part, variant);
    *(nrg_norm_args *)part[NRG_NORM_ROPE_Q_ARGS] = nrg_norm_args_init(batch_of(variant) * TOKENS * Q_HEADS, NULL, NULL, NULL);
    *(nrg_norm_args *)part[NRG_NORM_ROPE_K_ARGS] =
        nrg_norm_args_init(variant == 1 ? 0 : batch_of(variant) * TOKENS * K_HEADS, NULL, NULL, NULL);
    const uint32_t q =
        NRG_BIT(NRG_NORM_ROPE_Q_W) | NRG_BIT(NRG_NORM_ROPE_Q_B) | NRG_BIT(NRG_NORM_ROPE_Q_MEAN) | NRG_BIT(NRG_NORM_ROPE_Q_RSTD);
    const uint32_t k = NRG_BIT(NRG_NORM_ROPE_K_W) | NRG_BIT(NRG_NORM_ROPE_K_RSTD) |
                       (variant ? NRG_BIT(NRG_NORM_ROPE_K_B) | NRG_BIT(NRG_NORM_ROPE_K_MEAN) : 0);
    return (variant == 1 ? q : q | k) | rope_there(variant, NRG_NORM_ROPE_Q_O);
}

static void fill_norm_rope(void *const *part) { fill_positions(part[NRG_NORM_ROPE_ARGS]); }

static nrg_status spoil_norm_rope(void *const *part, int n) { return spoil_positions(part[NRG_NORM_ROPE_ARGS], n); }

#define WITH_DTYPES(dtype_)                                                                                                      \
    WITH_U32(NRG_NORM_ROPE_NORM, nrg_norm_spec, dtype, dtype_), WITH_U32(NRG_NORM_ROPE_ARGS, nrg_rope_args, dtype, dtype_)

#define WRONG_SPECS                                                                                                              \
    WRONG_NORM_SPEC(NRG_NORM_ROPE_NORM), WRONG_ROTATION(NRG_NORM_ROPE_SPEC, NRG_NORM_ROPE_ARGS), WITH_DTYPES(NRG_F16),           \
        NORM_U32(NRG_NORM_ROPE_NORM, w_dtype, NRG_BF16, NRG_ERR_DTYPE), WITH_DTYPES(NRG_F16),                                    \
        NORM_U32(NRG_NORM_ROPE_NORM, w_dtype, NRG_F32, NRG_OK)

/* As WITHOUT, where the norm has no rows either. */
#define NORM_ROWS(name, number) WITH_U64(NRG_NORM_ROPE_##name##_ARGS, nrg_norm_args, rows, number)
#define WITHOUT_NORM(name, part) WITHOUT(NRG_NORM_ROPE_ARGS, name), NORM_ROWS(part, 0)
#define WITH_OFFSET(part) WITH_U32(part, nrg_norm_spec, weight_offset, 0x3f800000)

static const sound_wrong wrong_norm_rope[] = {
    WRONG_SPECS,
    WITHOUT_NORM(q, Q),
    ARGS_U32(NRG_NORM_ROPE_ARGS, shared_table_ids, 0, NRG_OK),
    WITHOUT_NORM(k, K),
    ARGS_U32(NRG_NORM_ROPE_ARGS, shared_table_ids, 0, NRG_OK),
    WITHOUT_NORM(q, Q),
    WITHOUT_NORM(k, K),
    ARGS_U64(NRG_NORM_ROPE_ARGS, table, 0, NRG_OK),
    WITHOUT(NRG_NORM_ROPE_ARGS, q), /* whose norm has rows */
    ARGS_U32(NRG_NORM_ROPE_ARGS, shared_table_ids, 0, NRG_ERR_COMBINATION),
    WITHOUT_NORM(q, Q),
    ARGS_U64(NRG_NORM_ROPE_ARGS, q, 64, NRG_ERR_COMBINATION),
    WITHOUT_NORM(k, K),
    ARGS_U64(NRG_NORM_ROPE_ARGS, k_o, 64, NRG_ERR_COMBINATION),
    NORM_ROWS(Q, 0),
    NORM_ROWS(K, 0),
    ARGS_U64(NRG_NORM_ROPE_ARGS, batch, 0, NRG_OK),
    WITH_OFFSET(NRG_NORM_ROPE_NORM),
    WRONG_U64(NRG_NORM_ROPE_Q_ARGS, nrg_norm_args, w, 0, NRG_ERR_COMBINATION),
    WITH_OFFSET(NRG_NORM_ROPE_NORM),
    WRONG_U64(NRG_NORM_ROPE_K_ARGS, nrg_norm_args, w, 0, NRG_ERR_COMBINATION),
};

#define OPERAND(name) NRG_BIT(NRG_NORM_ROPE_BACKWARD_##name)

static uint32_t set_up_norm_rope_backward(void *const *part, int variant)
{
    set_up_specs(part, variant);
    *(nrg_norm_backward_args *)part[NRG_NORM_ROPE_Q_ARGS] =
        nrg_norm_backward_args_init(batch_of(variant) * TOKENS * Q_HEADS, NULL, NULL, NULL, NULL);
    *(nrg_norm_backward_args *)part[NRG_NORM_ROPE_K_ARGS] =
        nrg_norm_backward_args_init(variant == 1 ? 0 : batch_of(variant) * TOKENS * K_HEADS, NULL, NULL, NULL, NULL);
    const uint32_t q = OPERAND(Q_W) | OPERAND(Q_B) | OPERAND(Q_MEAN) | OPERAND(Q_DW) | OPERAND(Q_DB),
                   k = OPERAND(K_W) | OPERAND(K_DB) | (variant ? OPERAND(K_B) | OPERAND(K_MEAN) | OPERAND(K_DW) : 0);
    return (variant == 1 ? q : q | k) | rope_there(variant, NRG_NORM_ROPE_BACKWARD_Q_O);
}

#define BACKWARD_U64(part, field, value, status) WRONG_U64(part, nrg_norm_backward_args, field, value, status)
#define BACKWARD_WITH(part, field, value) WITH_U64(part, nrg_norm_backward_args, field, value)

static const sound_wrong wrong_norm_rope_backward[] = {
    WRONG_SPECS,
    ARGS_U64(NRG_NORM_ROPE_ARGS, q_o_strides.row, (Q_HEADS + 1) * DIM * 4, NRG_OK),
    ARGS_U64(NRG_NORM_ROPE_ARGS, q_o_strides.batch, 1, NRG_OK),
    WITHOUT(NRG_NORM_ROPE_ARGS, q),
    BACKWARD_WITH(NRG_NORM_ROPE_Q_ARGS, x, 1),
    BACKWARD_U64(NRG_NORM_ROPE_Q_ARGS, rows, 0, NRG_OK),
    WITHOUT(NRG_NORM_ROPE_ARGS, k),
    BACKWARD_WITH(NRG_NORM_ROPE_K_ARGS, x, 1),
    BACKWARD_U64(NRG_NORM_ROPE_K_ARGS, rows, 0, NRG_OK),
    BACKWARD_WITH(NRG_NORM_ROPE_Q_ARGS, dw, 0),
    BACKWARD_U64(NRG_NORM_ROPE_Q_ARGS, workspace_size, DIM * 8, NRG_OK),
    BACKWARD_WITH(NRG_NORM_ROPE_Q_ARGS, db, 0),
    BACKWARD_U64(NRG_NORM_ROPE_Q_ARGS, workspace_size, DIM * 8 - 1, NRG_ERR_WORKSPACE),
    BACKWARD_WITH(NRG_NORM_ROPE_Q_ARGS, workspace_size, SIZE_MAX),
    BACKWARD_U64(NRG_NORM_ROPE_K_ARGS, workspace_size, SIZE_MAX, NRG_OK),
    BACKWARD_WITH(NRG_NORM_ROPE_K_ARGS, db, 0),
    BACKWARD_U64(NRG_NORM_ROPE_K_ARGS, workspace, 0, NRG_OK),
    WITH_OFFSET(NRG_NORM_ROPE_NORM),
    BACKWARD_U64(NRG_NORM_ROPE_Q_ARGS, w, 0, NRG_ERR_COMBINATION),
    WITH_OFFSET(NRG_NORM_ROPE_NORM),
    BACKWARD_U64(NRG_NORM_ROPE_K_ARGS, w, 0, NRG_ERR_COMBINATION),
    WRONG_VARIANT(3),
    ARGS_U64(NRG_NORM_ROPE_ARGS, k_o_strides.batch, TOKENS *K_HEADS *DIM * 4 + 4, NRG_OK),
    ARGS_U64(NRG_NORM_ROPE_ARGS, k_o_strides.batch, TOKENS *K_HEADS *DIM * 4 - 4, NRG_ERR_STRIDE),
    ARGS_U64(NRG_NORM_ROPE_ARGS, k_o_strides.batch, TOKENS *K_HEADS *DIM * 4, NRG_OK),
    BACKWARD_U64(NRG_NORM_ROPE_Q_ARGS, rows, TOKENS *Q_HEADS, NRG_ERR_COMBINATION),
};

/* Gradients that are the heads' own sums, of a single block of rows. */
static uint32_t of_one_block(void *const *part)
{
    const nrg_norm_backward_args *q = part[NRG_NORM_ROPE_Q_ARGS], *k = part[NRG_NORM_ROPE_K_ARGS];
    return (nrg_norm_block_count(q->rows) == 1 ? OPERAND(Q_DW) | OPERAND(Q_DB) : 0) |
           (nrg_norm_block_count(k->rows) == 1 ? OPERAND(K_DW) | OPERAND(K_DB) : 0);
}

#define SUMS (OPERAND(Q_DW) | OPERAND(Q_DB) | OPERAND(K_DW) | OPERAND(K_DB))
static uint32_t spared_by_rows(void *const *part) { return SUMS & ~of_one_block(part); }

static uint32_t spared_by_reduce(void *const *part)
{
    return NRG_BIT(NRG_ROPE_Q) | NRG_BIT(NRG_ROPE_K) | OPERAND(Q_O) | OPERAND(K_O) | OPERAND(Q_WORKSPACE) | OPERAND(K_WORKSPACE) |
           of_one_block(part);
}

/* ---- with a workspace ---- */

#define POSITIONS_OPERAND(name) NRG_BIT(NRG_ROPE_POSITIONS_##name)

/* In place; of several axes and batches; of k alone, with factors. */
static uint32_t set_up_positions(void *const *part, int variant)
{
    nrg_rope_spec *rope = part[NRG_ROPE_SPEC];
    nrg_rope_positions_args *args = part[NRG_ROPE_ARGS];
    *rope = nrg_rope_spec_init(N_DIMS, variant == 1 ? NRG_ROPE_MROPE : NRG_ROPE_NEOX, 10000);
    rope->sections[0] = variant == 1;
    rope->sections[2] = variant == 1 ? 3 : 0;
    *args = nrg_rope_positions_args_init(variant == 1 ? NRG_F16 : NRG_F32, TOKENS, DIM, NULL);
    args->q_heads = variant == 2 ? 0 : Q_HEADS;
    args->k_heads = K_HEADS;
    args->batch = variant == 1 ? 2 : 1;
    args->store = NRG_STORE_KEEP;
    ((nrg_rope_shares *)part[NRG_ROPE_SHARES])->nth = 1;
    return POSITIONS_OPERAND(K) | (variant == 2 ? POSITIONS_OPERAND(K_O) | POSITIONS_OPERAND(FACTORS) : POSITIONS_OPERAND(Q)) |
           (variant == 1 ? POSITIONS_OPERAND(POSITIONS) | POSITIONS_OPERAND(Q_O) : 0);
}

static void fill_factors(const nrg_rope_spec *rope)
{
    for (size_t p = 0; rope->freq_factors && p < N_DIMS / 2; p++)
        ((float *)own_memory(rope->freq_factors))[p] = 2;
}

static nrg_status spoil_factors(const nrg_rope_spec *rope, int n)
{
    static const float factors[] = {0, -1, NAN, INFINITY};
    if (!rope->freq_factors || n >= 4)
        return NRG_OK;
    ((float *)own_memory(rope->freq_factors))[n] = factors[n];
    return NRG_ERR_CONSTANT;
}

static void fill_rope_positions(void *const *part) { fill_factors(part[NRG_ROPE_SPEC]); }
static nrg_status spoil_rope_positions(void *const *part, int n) { return spoil_factors(part[NRG_ROPE_SPEC], n); }

static uint32_t set_up_positions_workspace(void *const *part, int variant)
{
    set_up_positions(part, variant);
    return 0;
}

#define POSITIONS_U32(field, value, status) WRONG_U32(NRG_ROPE_ARGS, nrg_rope_positions_args, field, value, status)
#define POSITIONS_U64(field, value, status) WRONG_U64(NRG_ROPE_ARGS, nrg_rope_positions_args, field, value, status)
#define POSITIONS_WITH(field, value) WITH_U64(NRG_ROPE_ARGS, nrg_rope_positions_args, field, value)

/* The angles of a spec. */
#define WRONG_ANGLES                                                                                                             \
    WRONG_ROPE_SPEC(NRG_ROPE_SPEC), WRONG_SECTIONS, NTK SPEC_U64(n_dims, 2, NRG_ERR_DIM), NOT_POSITIVE(freq_base, ),             \
        NO_NUMBER(attn_factor, ), UNUSED_OPTIONS, SPEC_U64(n_dims, DIM + 2, NRG_ERR_DIM)
/* The workspace query does not compute them. */
#define WRONG_TURNS SPEC_F64(freq_base, 0x1p-40, NRG_ERR_CONSTANT), SPEC_F64(freq_base, 0x1p-24, NRG_OK)

#define WRONG_POSITIONS_ARGS                                                                                                     \
    POSITIONS_U64(rotate_from, DIM - N_DIMS, NRG_OK), POSITIONS_U64(rotate_from, DIM - N_DIMS + 1, NRG_ERR_DIM),                 \
        POSITIONS_U32(first_position, INT32_MAX - TOKENS + 2, NRG_ERR_POSITION),                                                 \
        POSITIONS_U32(first_position, INT32_MAX - TOKENS + 1, NRG_OK),                                                           \
        POSITIONS_U64(tokens, (uint64_t)1 << 40, NRG_ERR_POSITION), POSITIONS_U64(tokens, (uint64_t)1 << 30, NRG_ERR_OVERFLOW)

static const sound_wrong wrong_positions[] = {
    WRONG_ANGLES,
    WRONG_TURNS,
    WRONG_POSITIONS_ARGS,
    POSITIONS_U32(keep, 1, NRG_OK),
    POSITIONS_WITH(q, 0),
    POSITIONS_WITH(q_strides.row, 1),
    POSITIONS_U64(q_heads, 0, NRG_OK),
    POSITIONS_WITH(q, 0),
    POSITIONS_WITH(q_o, 64),
    POSITIONS_U64(q_heads, 0, NRG_ERR_COMBINATION),
    POSITIONS_WITH(batch, 0),
    POSITIONS_U64(workspace, 0, NRG_OK),
    POSITIONS_WITH(tokens, 0),
    POSITIONS_U64(workspace, 0, NRG_OK),
};

static const sound_wrong wrong_positions_workspace[] = {WRONG_ANGLES, WRONG_POSITIONS_ARGS};

/* ---- q, k and v ---- */

enum { V_DIM = 5, SLOTS = 7 };

/* Without slots; with all there is; of several axes, with factors; of v alone. */
static uint32_t set_up_bare(void *const *part, int variant)
{
    nrg_rope_spec *rope = part[NRG_QKV_ROPE];
    nrg_qkv_args *args = part[NRG_QKV_ARGS];
    *rope = nrg_rope_spec_init(N_DIMS, variant == 2 ? NRG_ROPE_MROPE : NRG_ROPE_NORMAL, 10000);
    rope->sections[0] = variant == 2;
    rope->sections[2] = variant == 2 ? 3 : 0;
    *args = nrg_qkv_args_init(variant == 1 ? NRG_BF16 : NRG_F32, TOKENS, DIM);
    args->q_heads = variant == 3 ? 0 : Q_HEADS;
    args->k_heads = variant == 3 ? 0 : K_HEADS;
    args->v_heads = variant ? K_HEADS : 0;
    args->v_dim = variant == 1 ? V_DIM : DIM;
    args->slot_count = variant % 2 ? SLOTS : 0;
    args->store = NRG_STORE_KEEP;
    ((nrg_rope_shares *)part[NRG_QKV_SHARES])->nth = 1;
    if (variant == 1) {
        args->k_o_dtype = args->v_o_dtype = NRG_F16;
        args->q_o_dtype = NRG_F32;
    }
    return (variant < 3 ? NRG_BIT(NRG_QKV_Q) | NRG_BIT(NRG_QKV_Q_O) | NRG_BIT(NRG_QKV_K) | NRG_BIT(NRG_QKV_K_O) : 0) |
           (variant ? NRG_BIT(NRG_QKV_V) | NRG_BIT(NRG_QKV_V_O) : 0) | (variant >= 2 ? NRG_BIT(NRG_QKV_POSITIONS) : 0) |
           (variant == 2 ? NRG_BIT(NRG_QKV_FACTORS) : 0) | (variant % 2 ? NRG_BIT(NRG_QKV_SLOTS) : 0);
}

static uint32_t set_up_qkv(void *const *part, int variant)
{
    *(nrg_norm_spec *)part[NRG_QKV_NORM] = nrg_norm_spec_layer(NRG_F32, DIM, 1e-6);
    return set_up_bare(part, variant) |
           (variant == 1 ? NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_Q_B) | NRG_BIT(NRG_QKV_K_B) : 0);
}

/* q and k alone. */
static uint32_t set_up_qkv_backward(void *const *part, int variant)
{
    const uint32_t refused = NRG_BIT(NRG_QKV_V) | NRG_BIT(NRG_QKV_V_O) | NRG_BIT(NRG_QKV_SLOTS);
    const uint32_t there = set_up_bare(part, variant);
    ((nrg_qkv_args *)part[NRG_QKV_ARGS])->v_heads = 0;
    ((nrg_qkv_args *)part[NRG_QKV_ARGS])->slot_count = 0;
    ((nrg_rope_shares *)part[NRG_QKV_SHARES])->backward = 1;
    return there & ~refused;
}

/* What belongs to slots and positions, where they are and where they are not. */
static void settle_qkv(void *const *part)
{
    nrg_qkv_args *args = part[NRG_QKV_ARGS];
    args->slot_count = args->slots ? SLOTS : 0;
    args->first_position = args->positions ? 0 : args->first_position;
}

static void fill_qkv(void *const *part)
{
    const nrg_qkv_args *args = part[NRG_QKV_ARGS];
    for (size_t t = 0; args->slots && t < args->tokens; t++)
        ((int64_t *)own_memory(args->slots))[t] = SLOTS - 1 - 2 * (int64_t)t;
    fill_factors(part[NRG_QKV_ROPE]);
}

static nrg_status spoil_qkv(void *const *part, int n)
{
    static const int64_t wrong[] = {-2, INT64_MIN, SLOTS, INT64_MAX};
    const nrg_qkv_args *args = part[NRG_QKV_ARGS];
    if (!args->slots)
        return spoil_factors(part[NRG_QKV_ROPE], n);
    if (n > 4 * TOKENS)
        return NRG_OK;
    int64_t *slots = own_memory(args->slots);
    if (n == 4 * TOKENS) {
        slots[TOKENS - 1] = slots[0];
        return NRG_ERR_OVERLAP;
    }
    slots[n / 4] = wrong[n % 4];
    return NRG_ERR_POSITION;
}

/* Without a norm it is the next description's call. */
static nrg_status has_norm(void *const *part) { return part[NRG_QKV_NORM] ? NRG_OK : NRG_ERR_NULL; }

#define QKV_U32(field, value, status) WRONG_U32(NRG_QKV_ARGS, nrg_qkv_args, field, value, status)
#define QKV_U64(field, value, status) WRONG_U64(NRG_QKV_ARGS, nrg_qkv_args, field, value, status)
#define QKV_WITH(field, value) WITH_U64(NRG_QKV_ARGS, nrg_qkv_args, field, value)

/* What nrg_qkv_workspace says as well. */
#define WRONG_QKV_ARGS                                                                                                           \
    QKV_U32(v_o_format, NRG_QUANT_INT8_128, NRG_ERR_ENUM), QKV_U64(rotate_from, DIM - N_DIMS, NRG_OK),                           \
        QKV_U64(rotate_from, DIM - N_DIMS + 1, NRG_ERR_DIM), QKV_U64(tokens, (uint64_t)1 << 40, NRG_ERR_POSITION),               \
        QKV_U64(tokens, (uint64_t)1 << 30, NRG_ERR_OVERFLOW), QKV_U32(first_position, INT32_MAX - TOKENS + 2, NRG_ERR_POSITION), \
        QKV_U32(first_position, INT32_MAX - TOKENS + 1, NRG_OK)

#define WRONG_QKV                                                                                                                \
    WRONG_ANGLES, WRONG_TURNS, WRONG_QKV_ARGS, QKV_U32(keep, 1, NRG_OK),                                                         \
        WITH_U32(NRG_QKV_ARGS, nrg_qkv_args, k_o_format, NRG_QUANT_Q8_0), QKV_U32(k_o_dtype, NRG_F16, NRG_ERR_COMBINATION),      \
        QKV_WITH(q_heads, 0), QKV_WITH(q, 0), QKV_WITH(q_o, 0), QKV_U64(q_o_strides.row, 1, NRG_OK), QKV_WITH(q_heads, 0),       \
        QKV_WITH(q, 0), QKV_U64(q_o, 64, NRG_ERR_COMBINATION), QKV_WITH(tokens, 0), QKV_U64(workspace, 0, NRG_OK),               \
        QKV_WITH(v, 64), QKV_U64(v_o, 64, NRG_ERR_COMBINATION), QKV_U64(slot_count, SLOTS, NRG_ERR_COMBINATION)
#define WRONG_WEIGHTS                                                                                                            \
    QKV_U64(q_w, 64, NRG_ERR_COMBINATION), QKV_U64(k_w, 64, NRG_ERR_COMBINATION), QKV_U64(q_b, 64, NRG_ERR_COMBINATION),         \
        QKV_U64(k_b, 64, NRG_ERR_COMBINATION)

static const sound_wrong wrong_qkv[] = {
    WRONG_QKV,
    WRONG_VARIANT(1),
    WRONG_NORM_SPEC(NRG_QKV_NORM),
    NORM_U64(NRG_QKV_NORM, dim, DIM + 1, NRG_ERR_DIM),
    WITH_U64(NRG_QKV_NORM, nrg_norm_spec, groups, 2),
    NORM_U32(NRG_QKV_NORM, weights, NRG_WEIGHTS_GROUP, NRG_ERR_COMBINATION),
    QKV_U64(slot_count, 3, NRG_ERR_POSITION),
    QKV_U64(slot_count, 0, NRG_ERR_POSITION),
    WITH_OFFSET(NRG_QKV_NORM),
    QKV_U64(q_w, 0, NRG_ERR_COMBINATION),
    WITH_OFFSET(NRG_QKV_NORM),
    QKV_U64(k_w, 0, NRG_ERR_COMBINATION),
    WRONG_VARIANT(3),
    QKV_U64(q_w, 64, NRG_ERR_COMBINATION),
    QKV_U64(k_b, 64, NRG_ERR_COMBINATION),
};
static const sound_wrong wrong_bare[] = {WRONG_QKV, WRONG_WEIGHTS, WRONG_VARIANT(1), QKV_U64(slot_count, 3, NRG_ERR_POSITION)};
static const sound_wrong wrong_qkv_backward[] = {WRONG_QKV, WRONG_WEIGHTS, QKV_U64(slots, 64, NRG_ERR_COMBINATION)};

static uint32_t set_up_qkv_workspace(void *const *part, int variant)
{
    set_up_bare(part, variant);
    return 0;
}

static const sound_wrong wrong_qkv_workspace[] = {WRONG_ANGLES, WRONG_QKV_ARGS};

/* ---- sinusoids ---- */

static uint32_t set_up_sines(void *const *part, int variant)
{
    nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_SPEC];
    *spec = variant == 2 ? nrg_sinusoidal_spec_tensor2tensor(8) : nrg_sinusoidal_spec_vaswani(variant ? 7 : 8);
    return 0;
}

#define SINES_F64(field, value, status) WRONG_F64(NRG_SINUSOIDAL_SPEC, nrg_sinusoidal_spec, field, value, status)
#define SINES_U32(field, value, status) WRONG_U32(NRG_SINUSOIDAL_SPEC, nrg_sinusoidal_spec, field, value, status)
#define SINES_U64(field, value, status) WRONG_U64(NRG_SINUSOIDAL_SPEC, nrg_sinusoidal_spec, field, value, status)

static const sound_wrong wrong_sines[] = {SINES_U64(dim, ((uint64_t)1 << 31) + 1, NRG_ERR_DIM),
                                          SINES_F64(base, 0x1.fffffffffffffp-401, NRG_ERR_CONSTANT),
                                          SINES_F64(base, 0x1.0000000000001p400, NRG_ERR_CONSTANT),
                                          SINES_F64(base, 0x1p-40, NRG_ERR_CONSTANT),
                                          SINES_F64(base, 0x1p-24, NRG_OK),
                                          WRONG_VARIANT(2),
                                          SINES_U64(dim, 6, NRG_OK),
                                          SINES_U64(dim, 2, NRG_OK),
                                          SINES_F64(base, 0x1p-24, NRG_ERR_CONSTANT),
                                          /* which the last pair is turned by whole */};

static uint32_t set_up_sine_table(void *const *part, int variant)
{
    *(nrg_sinusoidal_spec *)part[NRG_SINUSOIDAL_SPEC] = nrg_sinusoidal_spec_vaswani(variant ? 7 : 8);
    *(nrg_sinusoidal_args *)part[NRG_SINUSOIDAL_ARGS] = nrg_sinusoidal_args_init(variant ? NRG_F16 : NRG_F32, TOKENS, NULL, NULL);
    return variant ? NRG_BIT(NRG_SINUSOIDAL_TABLE_POSITIONS) : 0;
}

#define SINE_U32(field, value, status) WRONG_U32(NRG_SINUSOIDAL_ARGS, nrg_sinusoidal_args, field, value, status)

static const sound_wrong wrong_sine_table[] = {
    SINES_F64(base, NAN, NRG_OK),
    SINES_U32(spread, NRG_SINUSOIDAL_TO_BASE + 1, NRG_OK),
    SINE_U32(first_position, INT32_MAX - TOKENS + 2, NRG_ERR_POSITION),
    SINE_U32(first_position, INT32_MAX - TOKENS + 1, NRG_OK),
    SINE_U32(first_position, INT32_MIN, NRG_OK),
    WITH_U64(NRG_SINUSOIDAL_ARGS, nrg_sinusoidal_args, rows, 0),
    SINES_U64(dim, 0, NRG_ERR_DIM),
};

static const sound_call calls[] = {
    {&pairs, 2, set_up_pairs, WRONG(wrong_pairs)},
    {&invoke_rope_frequencies, 2, set_up_frequencies, WRONG(wrong_frequencies), .spoil = spoil_frequencies, NO_KERNEL},
    {&invoke_rope_table, 3, set_up_table, WRONG(wrong_table)},
    {&invoke_rope_forward, 4, set_up_rope, WRONG(wrong_rope), .fill = fill_rope, .spoil = spoil_rope,
     .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_rope_backward, 4, set_up_rope, WRONG(wrong_rope), .fill = fill_rope, .spoil = spoil_rope,
     .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_norm_rope_forward, 4, set_up_norm_rope, WRONG(wrong_norm_rope), .fill = fill_norm_rope, .spoil = spoil_norm_rope,
     .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_norm_rope_backward, 4, set_up_norm_rope_backward, WRONG(wrong_norm_rope_backward), .fill = fill_norm_rope,
     .spoil = spoil_norm_rope, .spares = spared_by_rows,
     .own = NRG_BIT(NRG_ROPE_POSITIONS) | SUMS | OPERAND(Q_WORKSPACE) | OPERAND(K_WORKSPACE)},
    {&invoke_norm_rope_backward_reduce, 4, set_up_norm_rope_backward, WRONG(wrong_norm_rope_backward), .fill = fill_norm_rope,
     .spoil = spoil_norm_rope, .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_rope_positions_forward, 3, set_up_positions, WRONG(wrong_positions), .fill = fill_rope_positions,
     .spoil = spoil_rope_positions, .workspace = &invoke_rope_positions_workspace, .own = UINT32_MAX},
    {&invoke_rope_positions_backward, 3, set_up_positions, WRONG(wrong_positions), .fill = fill_rope_positions,
     .spoil = spoil_rope_positions, .workspace = &invoke_rope_positions_workspace, .own = UINT32_MAX},
    {&invoke_rope_positions_workspace, 3, set_up_positions_workspace, WRONG(wrong_positions_workspace)},
    {&invoke_qkv_forward, 4, set_up_qkv, WRONG(wrong_qkv), .fill = fill_qkv, .spoil = spoil_qkv, .settle = settle_qkv,
     .bind = has_norm, .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_bare, 4, set_up_bare, WRONG(wrong_bare), .fill = fill_qkv, .spoil = spoil_qkv, .is_part = 1,
     .settle = settle_qkv, .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_backward, 3, set_up_qkv_backward, WRONG(wrong_qkv_backward), .fill = fill_qkv, .spoil = spoil_qkv,
     .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_workspace, 3, set_up_qkv_workspace, WRONG(wrong_qkv_workspace)},
    {&invoke_sinusoidal_frequencies, 3, set_up_sines, WRONG(wrong_sines), NO_KERNEL},
    {&invoke_sinusoidal_table, 2, set_up_sine_table, WRONG(wrong_sine_table)},
};

const sound_family sound_rope = {"rope", calls, NRG_COUNT(calls)};
