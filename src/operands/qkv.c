/* A norm of every head of q and k, their rotation, and a cache.
 *
 * SPDX-License-Identifier: MIT */
#include "qkv.h"

#include "norm.h"
#include "rope.h"

static nrg_status measure_norm(const nrg_norm_spec *norm, const nrg_qkv_args *args)
{
    nrg_dtype types[NRG_TYPES];
    if (norm->dtype == NRG_DTYPE_SAME)
        return NRG_ERR_ENUM;
    const nrg_status status = nrg_norm_measure_spec(norm, types);
    if (status != NRG_OK)
        return status;
    if (norm->dim != args->dim)
        return NRG_ERR_DIM;
    if (norm->dtype != NRG_F32)
        return NRG_ERR_DTYPE;
    const int offset_fits =
        (!args->q_heads || nrg_norm_offset_fits(norm, args->q_w)) && (!args->k_heads || nrg_norm_offset_fits(norm, args->k_w));
    return norm->gate || norm->residual_mode || norm->format || nrg_norm_alike(norm) > 1 || !offset_fits ? NRG_ERR_COMBINATION
                                                                                                         : NRG_OK;
}

/* The dtype and the length of a head in a cache. */
static nrg_status measure_cache(nrg_quant_format format, nrg_dtype own, nrg_dtype dtype, size_t dim, nrg_dtype *type,
                                size_t *o_dim)
{
    *type = own == NRG_DTYPE_SAME ? dtype : own;
    *o_dim = dim;
    if (format == NRG_QUANT_NONE)
        return NRG_OK;
#ifdef NRG_NO_QUANTIZE
    return NRG_ERR_ENUM;
#else
    if (own != NRG_DTYPE_SAME)
        return NRG_ERR_COMBINATION;
    *type = NRG_F16; /* as large and as aligned as a half of the scale */
    *o_dim = nrg_qkv_halves(dim);
    return dim % 32 ? NRG_ERR_DIM : NRG_OK;
#endif
}

static nrg_dtype beside(nrg_dtype other, nrg_dtype dtype) { return other == NRG_DTYPE_SAME ? dtype : other; }

nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, int nth, nrg_rope_space *space,
                                size_t *doubles)
{
    space->slices = (size_t)nth;
    space->tokens = args->tokens;
    const nrg_status status =
        nrg_rope_measure_positions(rope, args->dim, args->rotate_from, args->positions, args->first_position, space);
    if (status != NRG_OK)
        return status;
    if (args->v_heads && !args->v_dim)
        return NRG_ERR_DIM;
    if (args->dim > NRG_ROPE_SPACE_MOST)
        return NRG_ERR_OVERFLOW;
    space->block = nrg_qkv_block_rows(args) * args->dim * sizeof(float);
    return nrg_rope_measure_space(space, doubles);
}

static nrg_status measure_args(const void *const *part, nrg_sizes *s)
{
    const nrg_rope_shares *shares = part[NRG_QKV_SHARES];
    nrg_rope_space space;
    const nrg_status status =
        nrg_qkv_measure_args(part[NRG_QKV_ROPE], part[NRG_QKV_ARGS], shares->nth, &space, &s->n[NRG_QKV_SPACE]);
    s->n[NRG_QKV_N_FACTORS] = space.pairs;
    s->n[NRG_QKV_N_AXES] = space.axes;
    return status;
}

/* Pointers without heads are refused. */
static void measure_heads(nrg_sizes *s, size_t heads, uint32_t required, uint32_t optional)
{
    *(heads ? &s->needed : &s->refused) |= heads ? required : required | optional;
}

static nrg_status measure_with(const nrg_norm_spec *norm, const void *const *part, nrg_sizes *s)
{
    const nrg_qkv_args *args = part[NRG_QKV_ARGS];
    const nrg_rope_shares *shares = part[NRG_QKV_SHARES];
    nrg_status status = measure_args(part, s);
    if (status != NRG_OK || (norm && (status = measure_norm(norm, args)) != NRG_OK))
        return status;
    if ((shares->backward && args->v_heads) || (args->slot_count && !args->slots))
        return NRG_ERR_COMBINATION;
    s->type[NRG_QKV_TYPE_X] = args->dtype;
    s->type[NRG_QKV_TYPE_Q_O] = beside(args->q_o_dtype, args->dtype);
    if ((status = measure_cache(args->k_o_format, args->k_o_dtype, args->dtype, args->dim, &s->type[NRG_QKV_TYPE_K_O],
                                &s->n[NRG_QKV_N_K_O_DIM])) != NRG_OK ||
        (status = measure_cache(args->v_o_format, args->v_o_dtype, args->dtype, args->v_dim, &s->type[NRG_QKV_TYPE_V_O],
                                &s->n[NRG_QKV_N_V_O_DIM])) != NRG_OK)
        return status;
    s->n[NRG_QKV_N_TOKENS] = args->tokens;
    s->n[NRG_QKV_N_Q_HEADS] = args->q_heads;
    s->n[NRG_QKV_N_K_HEADS] = args->k_heads;
    s->n[NRG_QKV_N_V_HEADS] = args->v_heads;
    s->n[NRG_QKV_N_DIM] = args->dim;
    s->n[NRG_QKV_N_V_DIM] = args->v_dim;
    s->n[NRG_QKV_N_CACHE] = args->slots ? args->slot_count : args->tokens;
    measure_heads(s, args->q_heads, NRG_BIT(NRG_QKV_Q) | NRG_BIT(NRG_QKV_Q_O), NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_Q_B));
    measure_heads(s, args->k_heads, NRG_BIT(NRG_QKV_K) | NRG_BIT(NRG_QKV_K_O), NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_K_B));
    measure_heads(s, args->v_heads, NRG_BIT(NRG_QKV_V) | NRG_BIT(NRG_QKV_V_O), 0);
    if (!args->tokens || !(args->q_heads | args->k_heads | args->v_heads)) {
        s->ignored |= NRG_BIT(NRG_QKV_POSITIONS) | NRG_BIT(NRG_QKV_SLOTS) | NRG_BIT(NRG_QKV_WORKSPACE);
        s->n[NRG_QKV_SPACE] = s->n[NRG_QKV_N_CACHE] = 0;
    }
    if (!norm)
        s->refused |= NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_Q_B) | NRG_BIT(NRG_QKV_K_B);
    if (shares->backward)
        s->refused |= NRG_BIT(NRG_QKV_SLOTS);
    return NRG_OK;
}

static nrg_status measure(const void *const *part, nrg_sizes *s) { return measure_with(part[NRG_QKV_NORM], part, s); }
static nrg_status measure_bare(const void *const *part, nrg_sizes *s) { return measure_with(NULL, part, s); }

static const nrg_part parts[] = {
    [NRG_QKV_ROPE] = NRG_ROPE_SPEC_PART,
    [NRG_QKV_ARGS] = {.size = sizeof(nrg_qkv_args), .least = sizeof(nrg_qkv_args)},
    [NRG_QKV_SHARES] = {.size = sizeof(nrg_rope_shares)},
    [NRG_QKV_NORM] = {.size = sizeof(nrg_norm_spec), .least = sizeof(nrg_norm_spec)},
};

#define AT(field) .part = NRG_QKV_ARGS, .at = NRG_AT(nrg_qkv_args, field)
#define LINE(field, number) AT(field), .dim = (number), .may_be_absent = 1
#define HEADS(field, number, heads, rows)                                                                                        \
    LINE(field, number), .level = NRG_HEADS_TOGETHER(nrg_qkv_args, field##_strides, NRG_ONE, heads, rows)
#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define OF_X NRG_IN, CHOSEN(NRG_QKV_TYPE_X)
#define WEIGHTS(field, number) NRG_IN, NRG_ELEMENT_F32, LINE(field, number)

static const nrg_operand operands[NRG_QKV_OPERANDS] = {
    [NRG_QKV_Q] = {"q", OF_X, HEADS(q, NRG_QKV_N_DIM, NRG_QKV_N_Q_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_K] = {"k", OF_X, HEADS(k, NRG_QKV_N_DIM, NRG_QKV_N_K_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_V] = {"v", OF_X, HEADS(v, NRG_QKV_N_V_DIM, NRG_QKV_N_V_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_Q_W] = {"q_w", WEIGHTS(q_w, NRG_QKV_N_DIM)},
    [NRG_QKV_K_W] = {"k_w", WEIGHTS(k_w, NRG_QKV_N_DIM)},
    [NRG_QKV_Q_B] = {"q_b", WEIGHTS(q_b, NRG_QKV_N_DIM)},
    [NRG_QKV_K_B] = {"k_b", WEIGHTS(k_b, NRG_QKV_N_DIM)},
    [NRG_QKV_POSITIONS] = {"positions", NRG_IN, NRG_ELEMENT_I32, LINE(positions, NRG_QKV_N_TOKENS),
                           .level = {{.stride = NRG_AT(nrg_qkv_args, positions_stride), .count = NRG_QKV_N_AXES}}},
    [NRG_QKV_SLOTS] = {"slots", NRG_IN, NRG_ELEMENT_I64, LINE(slots, NRG_QKV_N_TOKENS)},
    [NRG_QKV_FACTORS] = {"freq_factors", NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1, .part = NRG_QKV_ROPE,
                         .at = NRG_AT(nrg_rope_spec, freq_factors), .dim = NRG_QKV_N_FACTORS},
    [NRG_QKV_Q_O] = {"q_o", NRG_OUT, CHOSEN(NRG_QKV_TYPE_Q_O), HEADS(q_o, NRG_QKV_N_DIM, NRG_QKV_N_Q_HEADS, NRG_QKV_N_TOKENS),
                     .over = NRG_BIT(NRG_QKV_Q)},
    /* slots that no token has keep what they hold */
    [NRG_QKV_K_O] = {"k_o", NRG_INOUT, CHOSEN(NRG_QKV_TYPE_K_O),
                     HEADS(k_o, NRG_QKV_N_K_O_DIM, NRG_QKV_N_K_HEADS, NRG_QKV_N_CACHE)},
    [NRG_QKV_V_O] = {"v_o", NRG_INOUT, CHOSEN(NRG_QKV_TYPE_V_O),
                     HEADS(v_o, NRG_QKV_N_V_O_DIM, NRG_QKV_N_V_HEADS, NRG_QKV_N_CACHE)},
    [NRG_QKV_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64, AT(workspace), .dim = NRG_QKV_SPACE,
                           .room = NRG_AT(nrg_qkv_args, workspace_size)},
};

#define RANGES                                                                                                                   \
    NRG_ROPE_YARN_RANGE(NRG_QKV_ROPE), NRG_ROPE_SCALING_RANGE(NRG_QKV_ROPE), NRG_DTYPE_RANGE(NRG_QKV_ARGS, nrg_qkv_args, dtype), \
        NRG_OTHER_DTYPE_RANGE(NRG_QKV_ARGS, nrg_qkv_args, q_o_dtype),                                                            \
        NRG_OTHER_DTYPE_RANGE(NRG_QKV_ARGS, nrg_qkv_args, k_o_dtype),                                                            \
        NRG_OTHER_DTYPE_RANGE(NRG_QKV_ARGS, nrg_qkv_args, v_o_dtype),                                                            \
        NRG_ENUM_RANGE(NRG_QKV_ARGS, nrg_qkv_args, store, NRG_STORE_STREAM),                                                     \
        NRG_RESERVED_RANGE(NRG_QKV_ARGS, nrg_qkv_args, reserved),                                                                \
        NRG_ENUM_RANGE(NRG_QKV_ARGS, nrg_qkv_args, k_o_format, NRG_QUANT_Q8_0),                                                  \
        NRG_ENUM_RANGE(NRG_QKV_ARGS, nrg_qkv_args, v_o_format, NRG_QUANT_Q8_0)

static const nrg_range ranges[] = {RANGES, NRG_NORM_OTHER_RANGES(NRG_QKV_NORM),
                                   NRG_OTHER_DTYPE_RANGE(NRG_QKV_NORM, nrg_norm_spec, dtype)};
static const nrg_range bare_ranges[] = {RANGES};
static const nrg_range workspace_ranges[] = {NRG_ROPE_SHARES_RANGE(NRG_QKV_SHARES), RANGES};

const nrg_call nrg_call_qkv = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = operands,
    .operand_count = NRG_QKV_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure,
};

const nrg_call nrg_call_qkv_bare = {
    .parts = parts,
    .part_count = NRG_QKV_NORM,
    .operands = operands,
    .operand_count = NRG_QKV_OPERANDS,
    .ranges = bare_ranges,
    .range_count = NRG_COUNT(bare_ranges),
    .measure = measure_bare,
};

const nrg_call nrg_call_qkv_workspace = {
    .parts = parts,
    .part_count = NRG_QKV_NORM,
    .ranges = workspace_ranges,
    .range_count = NRG_COUNT(workspace_ranges),
    .measure = measure_args,
};
