/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/norm_rope.h"
#include "../../src/operands/qkv.h"
#include "../../src/operands/sinusoidal.h"
#include "../harness/support.h"
#include "sound_norm_spec.h"

enum { TOKENS = 3, Q_HEADS = 2, K_HEADS = 1, DIM = 12, N_DIMS = 8 };

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

/* ---- frequencies and tables ---- */

/* No pair turns more than 2^18 radians from one position to the next: the last one, with a base below 1. */
#define WRONG_TURNS                                                                                                              \
    WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, freq_base, 0x1p-40, NRG_ERR_CONSTANT),                                               \
        WRONG_F64(NRG_ROPE_SPEC, nrg_rope_spec, freq_base, 0x1p-24, NRG_OK)
static const sound_wrong wrong_turns[] = {WRONG_TURNS};

/* Scaled: one variant for each scaling; the last one has axes. */
enum { FACTORS = 1, NTK, LLAMA3, YARN, AXES, FREQUENCIES_VARIANTS };

static uint32_t set_up_frequencies(void *const *part, int variant)
{
    nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    *spec = nrg_rope_spec_init(N_DIMS, variant == AXES ? NRG_ROPE_MROPE : NRG_ROPE_NEOX, 10000);
    spec->scaling = variant == NTK ? NRG_ROPE_SCALING_NTK : variant == LLAMA3 ? NRG_ROPE_SCALING_LLAMA3 : NRG_ROPE_SCALING_NONE;
    spec->ext_factor = variant == YARN;
    spec->n_ctx_orig = variant == LLAMA3 ? 8192 : variant == YARN ? 4096 : 0;
    spec->sections[0] = spec->sections[3] = variant == AXES;
    return variant == FACTORS ? NRG_BIT(NRG_ROPE_FREQUENCIES_FACTORS) : 0;
}

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

static uint32_t set_up_table(void *const *part, int variant)
{
    nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    *spec = nrg_rope_spec_init(N_DIMS, variant == 2 ? NRG_ROPE_MROPE : NRG_ROPE_NORMAL, 10000);
    spec->sections[0] = variant == 2;
    spec->sections[2] = variant == 2 ? 3 : 0;
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
    if (variant == 3)
        sound_constants(norm);
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

/* Without heads of q, or of k, whose norm then has no rows. */
#define WITHOUT(name, part, type)                                                                                                \
    WITH_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, name##_heads, 0), WITH_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, name, 0),          \
        WITH_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, name##_o, 0), WITH_U64(NRG_NORM_ROPE_##part##_ARGS, type, rows, 0)
#define WRONG_HEADS(type)                                                                                                        \
    WITHOUT(q, Q, type), WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, q_strides.row, 1, NRG_OK), WITHOUT(k, K, type),            \
        WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, k_o_strides.head, 1, NRG_OK), WITHOUT(q, Q, type), WITHOUT(k, K, type),     \
        WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, table, 0, NRG_OK), WITHOUT(q, Q, type),                                     \
        WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, q, 64, NRG_ERR_COMBINATION), WITHOUT(k, K, type),                           \
        WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, k_o, 64, NRG_ERR_COMBINATION)

static const sound_wrong wrong_norm_rope[] = {WRONG_HEADS(nrg_norm_args)};

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

#define K_O_BATCH(value, status) WRONG_U64(NRG_NORM_ROPE_ARGS, nrg_rope_args, k_o_strides.batch, value, status)
static const sound_wrong wrong_norm_rope_backward[] = {
    WRONG_HEADS(nrg_norm_backward_args),
    WITH_U64(NRG_NORM_ROPE_Q_ARGS, nrg_norm_backward_args, workspace_size, SIZE_MAX),
    WRONG_U64(NRG_NORM_ROPE_K_ARGS, nrg_norm_backward_args, workspace_size, SIZE_MAX, NRG_OK),
    WRONG_VARIANT(3),
    K_O_BATCH(TOKENS *K_HEADS *DIM * 4 + 4, NRG_OK),
    K_O_BATCH(TOKENS *K_HEADS *DIM * 4 - 4, NRG_ERR_STRIDE),
    K_O_BATCH(TOKENS *K_HEADS *DIM * 4, NRG_OK),
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
    rope->scaling = variant == 2 ? NRG_ROPE_SCALING_NTK : NRG_ROPE_SCALING_NONE;
    ((nrg_rope_shares *)part[NRG_ROPE_POSITIONS_SHARES])->nth = 1;
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
    rope->scaling = variant == 1 ? NRG_ROPE_SCALING_NTK : NRG_ROPE_SCALING_NONE;
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
    if (variant == 1) {
        sound_constants(part[NRG_QKV_NORM]);
        ((nrg_norm_spec *)part[NRG_QKV_NORM])->groups = 2;
    }
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

/* Slots are below their number. */
static const sound_wrong wrong_qkv[] = {WRONG_TURNS, WRONG_VARIANT(1),
                                        WRONG_U64(NRG_QKV_ARGS, nrg_qkv_args, slot_count, 3, NRG_ERR_POSITION),
                                        WRONG_U64(NRG_QKV_ARGS, nrg_qkv_args, slot_count, 0, NRG_ERR_POSITION)};

/* ---- sinusoids ---- */

static uint32_t set_up_sines(void *const *part, int variant)
{
    nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_TABLE_SPEC];
    *spec = variant == 2 ? nrg_sinusoidal_spec_tensor2tensor(8) : nrg_sinusoidal_spec_vaswani(variant ? 7 : 8);
    return 0;
}

#define SINES_BASE(value, status) WRONG_F64(NRG_SINUSOIDAL_TABLE_SPEC, nrg_sinusoidal_spec, base, value, status)
static const sound_wrong wrong_sines[] = {SINES_BASE(0x1p-40, NRG_ERR_CONSTANT), SINES_BASE(0x1p-24, NRG_OK), WRONG_VARIANT(2),
                                          SINES_BASE(0x1p-24, NRG_ERR_CONSTANT),
                                          /* which the last pair is turned by whole */};

static uint32_t set_up_sine_table(void *const *part, int variant)
{
    *(nrg_sinusoidal_spec *)part[NRG_SINUSOIDAL_TABLE_SPEC] = nrg_sinusoidal_spec_vaswani(variant ? 7 : 8);
    *(nrg_sinusoidal_args *)part[NRG_SINUSOIDAL_TABLE_ARGS] =
        nrg_sinusoidal_args_init(variant ? NRG_F16 : NRG_F32, TOKENS, NULL, NULL);
    return variant ? NRG_BIT(NRG_SINUSOIDAL_TABLE_POSITIONS) : 0;
}

static const sound_call calls[] = {
    {&pairs, 2, .set_up = set_up_pairs},
    {&invoke_rope_frequencies, FREQUENCIES_VARIANTS, set_up_frequencies, WRONG(wrong_turns), .spoil = spoil_frequencies,
     NO_KERNEL},
    {&invoke_rope_table, 3, .set_up = set_up_table},
    {&invoke_rope_forward, 4, set_up_rope, .fill = fill_rope, .spoil = spoil_rope, .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_rope_backward, 4, set_up_rope, .fill = fill_rope, .spoil = spoil_rope, .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_norm_rope_forward, 4, set_up_norm_rope, WRONG(wrong_norm_rope), .fill = fill_norm_rope, .spoil = spoil_norm_rope,
     .own = NRG_BIT(NRG_ROPE_POSITIONS)},
    {&invoke_norm_rope_backward, 4, set_up_norm_rope_backward, WRONG(wrong_norm_rope_backward), .fill = fill_norm_rope,
     .spoil = spoil_norm_rope, .spares = spared_by_rows,
     .own = NRG_BIT(NRG_ROPE_POSITIONS) | SUMS | OPERAND(Q_WORKSPACE) | OPERAND(K_WORKSPACE)},
    {&invoke_norm_rope_backward_reduce, 4, set_up_norm_rope_backward, WRONG(wrong_norm_rope_backward), .fill = fill_norm_rope,
     .spoil = spoil_norm_rope, .spares = spared_by_reduce, NO_KERNEL},
    {&invoke_rope_positions_forward, 3, set_up_positions, WRONG(wrong_turns), .fill = fill_rope_positions,
     .spoil = spoil_rope_positions, .workspace = &invoke_rope_positions_workspace, .own = UINT32_MAX},
    {&invoke_rope_positions_backward, 3, set_up_positions, WRONG(wrong_turns), .fill = fill_rope_positions,
     .spoil = spoil_rope_positions, .workspace = &invoke_rope_positions_workspace, .own = UINT32_MAX},
    {&invoke_rope_positions_workspace, 3, .set_up = set_up_positions},
    {&invoke_qkv_forward, 4, set_up_qkv, WRONG(wrong_qkv), .fill = fill_qkv, .spoil = spoil_qkv, .settle = settle_qkv,
     .bind = has_norm, .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_bare, 4, set_up_bare, WRONG(wrong_qkv), .fill = fill_qkv, .spoil = spoil_qkv, .is_part = 1, .settle = settle_qkv,
     .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_backward, 3, set_up_qkv_backward, WRONG(wrong_turns), .fill = fill_qkv, .spoil = spoil_qkv,
     .workspace = &invoke_qkv_workspace, .own = UINT32_MAX},
    {&invoke_qkv_workspace, 3, .set_up = set_up_bare},
    {&invoke_sinusoidal_frequencies, 3, set_up_sines, WRONG(wrong_sines), NO_KERNEL},
    {&invoke_sinusoidal_table, 2, .set_up = set_up_sine_table},
};

const sound_family sound_rope = {"rope", calls, NRG_COUNT(calls)};
