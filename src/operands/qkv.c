/* A norm of every head of q and k, their rotation, and a cache.
 *
 * SPDX-License-Identifier: MIT */
#include "qkv.h"

#include "norm.h"
#include "rope.h"

/* Rows of so many elements, and so many rows: their bytes fit. */
#define MOST ((size_t)1 << (sizeof(size_t) * 4 - 4))

static size_t lines(size_t bytes) { return (bytes + NRG_QKV_LINE - 1) / NRG_QKV_LINE * NRG_QKV_LINE; }

/* Bytes of a token in a slice: its row of the table and its positions. */
static size_t token_bytes(size_t pairs, size_t axes) { return 2 * pairs * sizeof(float) + axes * sizeof(int32_t); }

/* What does not depend on tokens; where the arrays that do begin. */
static nrg_qkv_slice begin_slice(const nrg_qkv_args *args, size_t pairs)
{
    const size_t heads = args->q_heads > args->k_heads ? args->q_heads : args->k_heads;
    nrg_qkv_slice s;
    s.block_rows = args->dim < NRG_QKV_BLOCK ? NRG_QKV_BLOCK / args->dim : 1;
    if (s.block_rows > heads)
        s.block_rows = nrg_or_one(heads);
    s.frequencies = lines(sizeof(nrg_qkv_kept));
    s.factors = s.frequencies + 2 * pairs * sizeof(double);
    s.block = lines(s.factors + pairs * sizeof(float));
    s.positions = lines(s.block + s.block_rows * args->dim * sizeof(float));
    return s;
}

nrg_qkv_slice nrg_qkv_slice_of(const nrg_qkv_args *args, size_t pairs, size_t axes)
{
    nrg_qkv_slice s = begin_slice(args, pairs);
    s.bytes = (args->workspace_size - NRG_QKV_LINE) / nrg_or_one(args->slices) / NRG_QKV_LINE * NRG_QKV_LINE;
    s.rows = (s.bytes - s.positions - NRG_QKV_LINE) / token_bytes(pairs, axes);
    s.table = lines(s.positions + axes * s.rows * sizeof(int32_t));
    return s;
}

/* The workspace: slices with room for the tokens of a share, which begins and ends within a token; and room to begin at a line.
 */
static nrg_status measure_space(const nrg_qkv_args *args, size_t pairs, size_t axes, size_t *doubles)
{
    const size_t slices = nrg_or_one(args->slices), each = args->tokens / slices + (args->tokens % slices != 0);
    const size_t rows = each < args->tokens ? each + 1 : args->tokens;
    size_t all;
    if (args->dim > MOST || rows > MOST)
        return NRG_ERR_OVERFLOW;
    const size_t fixed = begin_slice(args, pairs).positions, of_rows = rows * token_bytes(pairs, axes);
    if (!nrg_product(slices, lines(fixed + of_rows + NRG_QKV_LINE), &all) || all > SIZE_MAX - 2 * NRG_QKV_LINE)
        return NRG_ERR_OVERFLOW;
    *doubles = (all + NRG_QKV_LINE) / sizeof(double);
    return NRG_OK;
}

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
    const int offset_fits = nrg_norm_offset_fits(norm, args->q_w ? args->q_w : args->k_w);
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

/* What can be said without a norm, whose spec nrg_qkv_workspace does not take. */
nrg_status nrg_qkv_measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, size_t *factors, size_t *axes,
                                size_t *doubles)
{
    size_t pairs;
    nrg_status status = nrg_rope_measure_angles(rope, &pairs);
    if (status != NRG_OK)
        return status;
    if (!nrg_rope_fits(pairs, args->offset, args->dim))
        return NRG_ERR_DIM;
    if (!args->positions && !nrg_rope_can_count(args->first, args->tokens))
        return NRG_ERR_POSITION;
    if (args->backward && (args->slots || args->v_heads))
        return NRG_ERR_COMBINATION;
    *axes = nrg_rope_axes(rope);
    *factors = pairs;
    return measure_space(args, pairs, *axes, doubles);
}

static nrg_status measure_args(const nrg_rope_spec *rope, const nrg_qkv_args *args, nrg_sizes *s)
{
    return nrg_qkv_measure_args(rope, args, &s->n[NRG_QKV_N_FACTORS], &s->n[NRG_QKV_N_AXES], &s->n[NRG_QKV_SPACE]);
}

static nrg_status measure_workspace(const void *const *part, nrg_sizes *s) { return measure_args(part[0], part[1], s); }

static nrg_status measure(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *norm = part[NRG_QKV_NORM];
    const nrg_qkv_args *args = part[NRG_QKV_ARGS];
    const int has_norm = nrg_qkv_has_norm(norm);
    nrg_status status = measure_args(part[NRG_QKV_ROPE], args, s);
    if (status != NRG_OK || (has_norm && (status = measure_norm(norm, args)) != NRG_OK))
        return status;
    if (args->backward && has_norm)
        return NRG_ERR_COMBINATION;
    const size_t tokens = args->tokens, q_heads = tokens ? args->q_heads : 0, k_heads = tokens ? args->k_heads : 0,
                 v_heads = tokens ? args->v_heads : 0;
    s->type[NRG_QKV_TYPE_X] = args->dtype;
    s->type[NRG_QKV_TYPE_Q_O] = beside(args->q_o_dtype, args->dtype);
    const size_t v_dim = args->v_dim ? args->v_dim : args->dim;
    if ((status = measure_cache(args->k_o_format, args->k_o_dtype, args->dtype, args->dim, &s->type[NRG_QKV_TYPE_K_O],
                                &s->n[NRG_QKV_N_K_O_DIM])) != NRG_OK ||
        (status = measure_cache(args->v_o_format, args->v_o_dtype, args->dtype, v_dim, &s->type[NRG_QKV_TYPE_V_O],
                                &s->n[NRG_QKV_N_V_O_DIM])) != NRG_OK)
        return status;
    s->n[NRG_QKV_N_TOKENS] = tokens;
    s->n[NRG_QKV_N_Q_HEADS] = q_heads;
    s->n[NRG_QKV_N_K_HEADS] = k_heads;
    s->n[NRG_QKV_N_V_HEADS] = v_heads;
    s->n[NRG_QKV_N_DIM] = args->dim;
    s->n[NRG_QKV_N_V_DIM] = v_dim;
    s->n[NRG_QKV_N_CACHE] = args->slots ? args->slot_count : tokens;
    s->n[NRG_QKV_N_Q_W] = q_heads ? args->dim : 0;
    s->n[NRG_QKV_N_K_W] = k_heads ? args->dim : 0;
    if (!q_heads)
        s->ignored |= NRG_BIT(NRG_QKV_Q) | NRG_BIT(NRG_QKV_Q_O);
    if (!k_heads)
        s->ignored |= NRG_BIT(NRG_QKV_K) | NRG_BIT(NRG_QKV_K_O);
    if (!v_heads)
        s->ignored |= NRG_BIT(NRG_QKV_V) | NRG_BIT(NRG_QKV_V_O);
    if (!(q_heads | k_heads | v_heads)) {
        s->ignored |= NRG_BIT(NRG_QKV_POSITIONS) | NRG_BIT(NRG_QKV_SLOTS) | NRG_BIT(NRG_QKV_WORKSPACE);
        s->n[NRG_QKV_SPACE] = 0;
    }
    if (!has_norm)
        s->refused |= NRG_BIT(NRG_QKV_Q_W) | NRG_BIT(NRG_QKV_K_W) | NRG_BIT(NRG_QKV_Q_B) | NRG_BIT(NRG_QKV_K_B);
    return NRG_OK;
}

#define ARGS_PART                                                                                                                \
    {                                                                                                                            \
        .size = sizeof(nrg_qkv_args), .least = sizeof(nrg_qkv_args)                                                              \
    }

static const nrg_part parts[] = {
    [NRG_QKV_ROPE] = NRG_ROPE_SPEC_PART,
    [NRG_QKV_NORM] = {.size = sizeof(nrg_norm_spec), .least = sizeof(nrg_norm_spec), .may_be_absent = 1},
    [NRG_QKV_ARGS] = ARGS_PART,
};
static const nrg_part workspace_parts[] = {NRG_ROPE_SPEC_PART, ARGS_PART};

#define AT(field) .part = NRG_QKV_ARGS, .at = NRG_AT(nrg_qkv_args, field)
#define LINE(field, number) AT(field), .dim = (number)
#define HEADS(field, number, heads, rows)                                                                                        \
    LINE(field, number), .level = {{.stride = NRG_AT(nrg_qkv_args, field##_head_stride), .count = (heads)},                      \
                                   {.stride = NRG_AT(nrg_qkv_args, field##_token_stride), .count = (rows)}}
#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define OF_X NRG_IN, CHOSEN(NRG_QKV_TYPE_X)
#define WEIGHTS(field, number) NRG_IN, NRG_ELEMENT_F32, LINE(field, number), .may_be_absent = 1

static const nrg_operand operands[NRG_QKV_OPERANDS] = {
    [NRG_QKV_Q] = {"q", OF_X, HEADS(q, NRG_QKV_N_DIM, NRG_QKV_N_Q_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_K] = {"k", OF_X, HEADS(k, NRG_QKV_N_DIM, NRG_QKV_N_K_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_V] = {"v", OF_X, HEADS(v, NRG_QKV_N_V_DIM, NRG_QKV_N_V_HEADS, NRG_QKV_N_TOKENS)},
    [NRG_QKV_Q_W] = {"q_w", WEIGHTS(q_w, NRG_QKV_N_Q_W)},
    [NRG_QKV_K_W] = {"k_w", WEIGHTS(k_w, NRG_QKV_N_K_W)},
    [NRG_QKV_Q_B] = {"q_b", WEIGHTS(q_b, NRG_QKV_N_Q_W)},
    [NRG_QKV_K_B] = {"k_b", WEIGHTS(k_b, NRG_QKV_N_K_W)},
    [NRG_QKV_POSITIONS] = {"positions", NRG_IN, NRG_ELEMENT_I32, LINE(positions, NRG_QKV_N_TOKENS), .may_be_absent = 1,
                           .level = {{.stride = NRG_AT(nrg_qkv_args, positions_stride), .count = NRG_QKV_N_AXES}}},
    [NRG_QKV_SLOTS] = {"slots", NRG_IN, NRG_ELEMENT_I64, LINE(slots, NRG_QKV_N_TOKENS), .may_be_absent = 1},
    [NRG_QKV_FACTORS] = {"freq_factors", NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1, .part = NRG_QKV_ROPE,
                         .at = NRG_AT(nrg_rope_spec, freq_factors), .dim = NRG_QKV_N_FACTORS},
    [NRG_QKV_Q_O] = {"q_o", NRG_OUT, CHOSEN(NRG_QKV_TYPE_Q_O), HEADS(q_o, NRG_QKV_N_DIM, NRG_QKV_N_Q_HEADS, NRG_QKV_N_TOKENS),
                     .over = NRG_BIT(NRG_QKV_Q)},
    /* slots that no token has keep what they hold */
    [NRG_QKV_K_O] = {"k_o", NRG_INOUT, CHOSEN(NRG_QKV_TYPE_K_O),
                     HEADS(k_o, NRG_QKV_N_K_O_DIM, NRG_QKV_N_K_HEADS, NRG_QKV_N_CACHE)},
    [NRG_QKV_V_O] = {"v_o", NRG_INOUT, CHOSEN(NRG_QKV_TYPE_V_O),
                     HEADS(v_o, NRG_QKV_N_V_O_DIM, NRG_QKV_N_V_HEADS, NRG_QKV_N_CACHE)},
    [NRG_QKV_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64, LINE(workspace, NRG_QKV_SPACE),
                           .room = NRG_AT(nrg_qkv_args, workspace_size)},
};

#define SPEC_RANGES NRG_ROPE_YARN_RANGE(NRG_QKV_ROPE), NRG_ROPE_SCALING_RANGE(NRG_QKV_ROPE)
#define ARGS_RANGES(args)                                                                                                        \
    NRG_DTYPE_RANGE(args, nrg_qkv_args, dtype), NRG_OTHER_DTYPE_RANGE(args, nrg_qkv_args, q_o_dtype),                            \
        NRG_OTHER_DTYPE_RANGE(args, nrg_qkv_args, k_o_dtype), NRG_OTHER_DTYPE_RANGE(args, nrg_qkv_args, v_o_dtype),              \
        NRG_ENUM_RANGE(args, nrg_qkv_args, store, NRG_STORE_STREAM), NRG_RESERVED_RANGE(args, nrg_qkv_args, reserved),           \
        NRG_ENUM_RANGE(args, nrg_qkv_args, k_o_format, NRG_QUANT_Q8_0),                                                          \
        NRG_ENUM_RANGE(args, nrg_qkv_args, v_o_format, NRG_QUANT_Q8_0), NRG_RESERVED_RANGE(args, nrg_qkv_args, reserved2)

static const nrg_range ranges[] = {SPEC_RANGES, NRG_NORM_OTHER_RANGES(NRG_QKV_NORM),
                                   NRG_OTHER_DTYPE_RANGE(NRG_QKV_NORM, nrg_norm_spec, dtype), ARGS_RANGES(NRG_QKV_ARGS)};
static const nrg_range workspace_ranges[] = {SPEC_RANGES, ARGS_RANGES(1)};

const nrg_call nrg_call_qkv = {
    .parts = parts,
    .part_count = NRG_COUNT(parts),
    .operands = operands,
    .operand_count = NRG_QKV_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure,
};

const nrg_call nrg_call_qkv_workspace = {
    .parts = workspace_parts,
    .part_count = NRG_COUNT(workspace_parts),
    .ranges = workspace_ranges,
    .range_count = NRG_COUNT(workspace_ranges),
    .measure = measure_workspace,
};
