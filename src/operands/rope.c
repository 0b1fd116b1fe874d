/* Rotary position embedding: frequencies, tables, the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "rope.h"

#include <float.h>
#include <math.h>

#include "../job/rope.h"

static int is_mode(nrg_rope_mode mode) { return mode == NRG_ROPE_NORMAL || mode == NRG_ROPE_NEOX || nrg_rope_has_sections(mode); }

/* What all calls look at of a spec. */
static nrg_status measure_pairs(const nrg_rope_spec *s, size_t *pairs)
{
    if (!is_mode(s->mode))
        return NRG_ERR_ENUM;
    if (s->n_dims == 0 || s->n_dims % 2 || s->n_dims > NRG_ROPE_DIMS_MOST)
        return NRG_ERR_DIM;
    *pairs = nrg_rope_pairs_of(s);
    return NRG_OK;
}

static nrg_status check_sections(const nrg_rope_spec *s)
{
    if (!nrg_rope_has_sections(s->mode))
        return NRG_OK;
    int some = 0;
    for (int i = 0; i < 4; i++) {
        if (s->sections[i] < 0)
            return NRG_ERR_DIM;
        some |= s->sections[i];
    }
    return some ? NRG_OK : NRG_ERR_DIM;
}

#define SPEC_RANGES NRG_ROPE_YARN_RANGE(NRG_ROPE_SPEC)

/* ---- pairs ---- */

static nrg_status measure_spec(const void *const *part, nrg_sizes *s)
{
    return measure_pairs(part[NRG_ROPE_SPEC], &s->n[NRG_ROPE_PAIRS]);
}

static const nrg_part spec_parts[] = {NRG_ROPE_SPEC_PART};
static const nrg_range spec_ranges[] = {SPEC_RANGES};

const nrg_call nrg_call_rope_pairs = {
    .parts = spec_parts,
    .part_count = NRG_COUNT(spec_parts),
    .ranges = spec_ranges,
    .range_count = NRG_COUNT(spec_ranges),
    .measure = measure_spec,
};

/* ---- frequencies ---- */

enum { FACTORS = NRG_ROPE_PAIRS, FREQUENCIES };

/* The numbers of a spec; those of freq_factors are looked at where they are used. */
static int constants_are_sound(const nrg_rope_spec *s)
{
    const int yarn = s->ext_factor != 0, llama = s->scaling == NRG_ROPE_SCALING_LLAMA3;
    if (!nrg_rope_in_range(s->freq_base) || !nrg_rope_in_range(s->freq_scale) || !(fabs(s->attn_factor) <= 0x1p400) ||
        s->attn_factor == 0)
        return 0;
    if (!yarn && s->scaling == NRG_ROPE_SCALING_NONE)
        return 1;
    if (!(fabs(s->ext_factor) <= 0x1p400))
        return 0;
    if ((yarn | llama) && s->n_ctx_orig <= 0)
        return 0;
    if (yarn && (s->freq_base == 1 || !nrg_rope_in_range(s->beta_fast) || !nrg_rope_in_range(s->beta_slow)))
        return 0;
    if (s->scaling != NRG_ROPE_SCALING_NONE && !nrg_rope_in_range(s->factor))
        return 0;
    return !llama || (s->low_freq_factor >= 0 && s->high_freq_factor > s->low_freq_factor && s->high_freq_factor <= 0x1p400);
}

/* Numbers as bits: the compiler compares numbers one by one, for NaNs. */
static uint64_t bits_of(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

/* Whether an option is set that the others do not use. What ggml's call passes in any case may be anything: n_ctx_orig and the
 * two beta. */
static int has_unused(const nrg_rope_spec *s)
{
    const uint64_t one = UINT64_C(0x3ff0000000000000), four = UINT64_C(0x4010000000000000);
    if (s->scaling != NRG_ROPE_SCALING_LLAMA3 && (((bits_of(s->low_freq_factor) ^ one) | (bits_of(s->high_freq_factor) ^ four)) ||
                                                  (s->scaling == NRG_ROPE_SCALING_NONE && bits_of(s->factor) != one)))
        return 1;
    return (s->yarn && s->ext_factor == 0) ||
           (!nrg_rope_has_sections(s->mode) && (s->sections[0] | s->sections[1] | s->sections[2] | s->sections[3]));
}

/* What angles are made of: pairs, sections and constants. */
nrg_status nrg_rope_measure_angles(const nrg_rope_spec *spec, size_t *pairs)
{
    nrg_status status = measure_pairs(spec, pairs);
    if (status != NRG_OK)
        return status;
    if (spec->scaling == NRG_ROPE_SCALING_NTK && spec->n_dims < 4)
        return NRG_ERR_DIM;
    if ((status = check_sections(spec)) != NRG_OK)
        return status;
    return !constants_are_sound(spec) ? NRG_ERR_CONSTANT : has_unused(spec) ? NRG_ERR_COMBINATION : NRG_OK;
}

static nrg_status measure_frequencies(const void *const *part, nrg_sizes *s)
{
    const nrg_status status = nrg_rope_measure_angles(part[NRG_ROPE_SPEC], &s->n[FACTORS]);
    if (status == NRG_OK)
        s->n[FREQUENCIES] = 2 * s->n[FACTORS];
    return status;
}

static const nrg_part frequencies_parts[] = {NRG_ROPE_SPEC_PART, {.size = sizeof(nrg_rope_frequencies_args)}};

static const nrg_operand frequencies_operands[NRG_ROPE_FREQUENCIES_OPERANDS] = {
    [NRG_ROPE_FREQUENCIES_FACTORS] = {"freq_factors", NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1, .part = NRG_ROPE_SPEC,
                                      .at = NRG_AT(nrg_rope_spec, freq_factors), .dim = FACTORS},
    [NRG_ROPE_FREQUENCIES_FREQUENCIES] = {"frequencies", NRG_OUT, NRG_ELEMENT_F64, .part = NRG_ROPE_ARGS,
                                          .at = NRG_AT(nrg_rope_frequencies_args, frequencies), .dim = FREQUENCIES},
    [NRG_ROPE_FREQUENCIES_MAGNITUDE] = {"magnitude", NRG_OUT, NRG_ELEMENT_F64, .part = NRG_ROPE_ARGS,
                                        .at = NRG_AT(nrg_rope_frequencies_args, magnitude), .dim = NRG_ONE},
};

static const nrg_range frequencies_ranges[] = {SPEC_RANGES, NRG_ROPE_SCALING_RANGE(NRG_ROPE_SPEC)};

const nrg_call nrg_call_rope_frequencies = {
    .parts = frequencies_parts,
    .part_count = NRG_COUNT(frequencies_parts),
    .operands = frequencies_operands,
    .operand_count = NRG_ROPE_FREQUENCIES_OPERANDS,
    .ranges = frequencies_ranges,
    .range_count = NRG_COUNT(frequencies_ranges),
    .measure = measure_frequencies,
};

/* ---- the table ---- */

enum { TABLE_TOKENS = 1, TABLE_AXES, TABLE_FREQUENCIES, TABLE_DIM };

size_t nrg_rope_axes(const nrg_rope_spec *spec)
{
    size_t axes = 1;
    for (size_t i = 1; nrg_rope_has_sections(spec->mode) && i < (spec->mode == NRG_ROPE_IMROPE_TIME ? 3 : 4); i++)
        if (spec->sections[i] || spec->mode == NRG_ROPE_IMROPE)
            axes = i + 1;
    return axes;
}

static nrg_status measure_table(const void *const *part, nrg_sizes *s)
{
    const nrg_rope_spec *spec = part[NRG_ROPE_SPEC];
    const nrg_rope_table_args *args = part[NRG_ROPE_ARGS];
    const size_t tokens = args->tokens;
    size_t pairs;
    nrg_status status = measure_pairs(spec, &pairs);
    if (status != NRG_OK || (status = check_sections(spec)) != NRG_OK)
        return status;
    if (!(fabs(args->magnitude) <= DBL_MAX) || args->magnitude == 0)
        return NRG_ERR_CONSTANT;
    if (args->positions && args->first_position)
        return NRG_ERR_COMBINATION;
    if (!args->positions && !nrg_rope_can_count(args->first_position, tokens))
        return NRG_ERR_POSITION;
    s->n[TABLE_TOKENS] = tokens;
    s->n[TABLE_AXES] = nrg_rope_axes(spec);
    s->n[TABLE_FREQUENCIES] = tokens ? 2 * pairs : 0;
    s->n[TABLE_DIM] = 2 * pairs;
    return NRG_OK;
}

static const nrg_part table_parts[] = {NRG_ROPE_SPEC_PART,
                                       {.size = sizeof(nrg_rope_table_args), .least = sizeof(nrg_rope_table_args)}};

#define TABLE_OPERAND(field) .part = NRG_ROPE_ARGS, .at = NRG_AT(nrg_rope_table_args, field)

static const nrg_operand table_operands[NRG_ROPE_TABLE_OPERANDS] = {
    [NRG_ROPE_TABLE_POSITIONS] = {"positions", NRG_IN, NRG_ELEMENT_I32, .may_be_absent = 1, TABLE_OPERAND(positions),
                                  .dim = TABLE_TOKENS,
                                  .level = {{.stride = NRG_AT(nrg_rope_table_args, positions_stride), .count = TABLE_AXES}}},
    [NRG_ROPE_TABLE_FREQUENCIES] = {"frequencies", NRG_IN, NRG_ELEMENT_F64, TABLE_OPERAND(frequencies), .dim = TABLE_FREQUENCIES},
    [NRG_ROPE_TABLE_TABLE] = {"table", NRG_OUT, NRG_ELEMENT_F32, TABLE_OPERAND(table), .dim = TABLE_DIM,
                              .level = {{.stride = NRG_AT(nrg_rope_table_args, table_stride), .count = TABLE_TOKENS}}},
};

static const nrg_range table_ranges[] = {SPEC_RANGES, NRG_RESERVED_RANGE(NRG_ROPE_ARGS, nrg_rope_table_args, reserved)};

const nrg_call nrg_call_rope_table = {
    .parts = table_parts,
    .part_count = NRG_COUNT(table_parts),
    .operands = table_operands,
    .operand_count = NRG_ROPE_TABLE_OPERANDS,
    .ranges = table_ranges,
    .range_count = NRG_COUNT(table_ranges),
    .measure = measure_table,
};

/* ---- the rotation ---- */

nrg_status nrg_rope_measure(const nrg_rope_spec *spec, const nrg_rope_args *args, unsigned q_o, nrg_sizes *s)
{
    const size_t tokens = args->tokens;
    size_t pairs;
    const nrg_status status = measure_pairs(spec, &pairs);
    if (status != NRG_OK)
        return status;
    if (!nrg_rope_fits(pairs, args->rotate_from, args->dim))
        return NRG_ERR_DIM;
    if (args->shared_table_ids && !args->table_ids)
        return NRG_ERR_COMBINATION;
    const int is_used = args->batch && tokens && (args->q_heads | args->k_heads);
    s->type[0] = args->dtype;
    s->n[NRG_ROPE_N_TOKENS] = tokens;
    s->n[NRG_ROPE_N_Q_HEADS] = args->q_heads;
    s->n[NRG_ROPE_N_K_HEADS] = args->k_heads;
    s->n[NRG_ROPE_N_DIM] = args->dim;
    s->n[NRG_ROPE_N_TABLE_DIM] = 2 * pairs;
    s->n[NRG_ROPE_N_TABLE_ROWS] = is_used ? args->table_rows : 0;
    s->n[NRG_ROPE_N_BATCH] = args->batch;
    s->n[NRG_ROPE_N_POSITION_ROWS] = args->shared_table_ids ? 1 : args->batch;
    nrg_rope_measure_heads(s, NRG_BIT(NRG_ROPE_Q), NRG_BIT(q_o), args->q_heads, args->q_o);
    nrg_rope_measure_heads(s, NRG_BIT(NRG_ROPE_K), NRG_BIT(q_o + 1), args->k_heads, args->k_o);
    if (!is_used)
        s->ignored |= NRG_BIT(NRG_ROPE_TABLE) | NRG_BIT(NRG_ROPE_POSITIONS);
    /* no id is below 0 rows */
    return is_used && args->table_rows < (args->table_ids ? 1 : tokens) ? NRG_ERR_POSITION : NRG_OK;
}

static nrg_status measure_rope(const void *const *part, nrg_sizes *s)
{
    return nrg_rope_measure(part[NRG_ROPE_SPEC], part[NRG_ROPE_ARGS], NRG_ROPE_Q_O, s);
}

static const nrg_part rope_parts[] = {NRG_ROPE_SPEC_PART, NRG_ROPE_ARGS_PART};

static const nrg_operand rope_operands[NRG_ROPE_OPERANDS] = {NRG_ROPE_INPUTS(NRG_ROPE_ARGS),
                                                             NRG_ROPE_OUTPUTS(NRG_ROPE_ARGS, NRG_ROPE_Q_O)};

static const nrg_range rope_ranges[] = {NRG_ROPE_RANGES(NRG_ROPE_SPEC, NRG_ROPE_ARGS)};

const nrg_call nrg_call_rope = {
    .parts = rope_parts,
    .part_count = NRG_COUNT(rope_parts),
    .operands = rope_operands,
    .operand_count = NRG_ROPE_OPERANDS,
    .ranges = rope_ranges,
    .range_count = NRG_COUNT(rope_ranges),
    .measure = measure_rope,
};

/* ---- from positions on ---- */

static size_t lines(size_t bytes) { return (bytes + NRG_ROPE_LINE - 1) / NRG_ROPE_LINE * NRG_ROPE_LINE; }

/* Bytes of a token in a slice: its row of the table and its positions. */
static size_t token_bytes(const nrg_rope_space *s) { return 2 * s->pairs * sizeof(float) + s->axes * sizeof(int32_t); }

/* The fixed part, and where the arrays of tokens begin. */
static nrg_rope_slice begin_slice(const nrg_rope_space *s)
{
    nrg_rope_slice slice;
    slice.frequencies = lines(sizeof(nrg_rope_kept));
    slice.factors = slice.frequencies + 2 * s->pairs * sizeof(double);
    slice.block = lines(slice.factors + s->pairs * sizeof(float));
    slice.positions = lines(slice.block + s->block);
    return slice;
}

nrg_rope_slice nrg_rope_slice_of(const nrg_rope_space *s, size_t workspace_size)
{
    nrg_rope_slice slice = begin_slice(s);
    slice.bytes = (workspace_size - 2 * NRG_ROPE_LINE) / s->slices / NRG_ROPE_LINE * NRG_ROPE_LINE;
    slice.rows = (slice.bytes - slice.positions - NRG_ROPE_LINE) / token_bytes(s);
    slice.table = lines(slice.positions + s->axes * slice.rows * sizeof(int32_t));
    return slice;
}

nrg_status nrg_rope_measure_space(const nrg_rope_space *s, size_t *doubles)
{
    const size_t each = s->tokens / s->slices + (s->tokens % s->slices != 0), rows = each < s->tokens ? each + 1 : s->tokens;
    size_t all;
    if (rows > NRG_ROPE_SPACE_MOST)
        return NRG_ERR_OVERFLOW;
    const size_t fixed = begin_slice(s).positions, of_rows = rows * token_bytes(s);
    if (!nrg_product(s->slices, lines(fixed + of_rows + NRG_ROPE_LINE), &all) || all > SIZE_MAX - 3 * NRG_ROPE_LINE)
        return NRG_ERR_OVERFLOW;
    *doubles = (all + 2 * NRG_ROPE_LINE) / sizeof(double);
    return NRG_OK;
}

nrg_status nrg_rope_measure_positions(const nrg_rope_spec *spec, size_t dim, size_t rotate_from, const int32_t *positions,
                                      int32_t first_position, nrg_rope_space *space)
{
    const nrg_status status = nrg_rope_measure_angles(spec, &space->pairs);
    if (status != NRG_OK)
        return status;
    if (!nrg_rope_fits(space->pairs, rotate_from, dim))
        return NRG_ERR_DIM;
    if (positions ? first_position != 0 : !nrg_rope_can_count(first_position, space->tokens))
        return positions ? NRG_ERR_COMBINATION : NRG_ERR_POSITION;
    space->axes = nrg_rope_axes(spec);
    return NRG_OK;
}

static nrg_status measure_positions_space(const void *const *part, nrg_sizes *s)
{
    const nrg_rope_positions_args *args = part[NRG_ROPE_ARGS];
    const nrg_rope_shares *shares = part[NRG_ROPE_SHARES];
    nrg_rope_space space = {.slices = (size_t)shares->nth, .tokens = args->tokens};
    const nrg_status status = nrg_rope_measure_positions(part[NRG_ROPE_SPEC], args->dim, args->rotate_from, args->positions,
                                                         args->first_position, &space);
    s->n[NRG_ROPE_POSITIONS_N_AXES] = space.axes;
    s->n[NRG_ROPE_POSITIONS_N_FACTORS] = space.pairs;
    return status == NRG_OK ? nrg_rope_measure_space(&space, &s->n[NRG_ROPE_POSITIONS_SPACE]) : status;
}

static nrg_status measure_positions(const void *const *part, nrg_sizes *s)
{
    const nrg_rope_positions_args *args = part[NRG_ROPE_ARGS];
    const nrg_status status = measure_positions_space(part, s);
    if (status != NRG_OK)
        return status;
    s->type[0] = args->dtype;
    s->n[NRG_ROPE_POSITIONS_N_TOKENS] = args->tokens;
    s->n[NRG_ROPE_POSITIONS_N_BATCH] = args->batch;
    s->n[NRG_ROPE_POSITIONS_N_Q_HEADS] = args->q_heads;
    s->n[NRG_ROPE_POSITIONS_N_K_HEADS] = args->k_heads;
    s->n[NRG_ROPE_POSITIONS_N_DIM] = args->dim;
    nrg_rope_measure_heads(s, NRG_BIT(NRG_ROPE_POSITIONS_Q), NRG_BIT(NRG_ROPE_POSITIONS_Q_O), args->q_heads, args->q_o);
    nrg_rope_measure_heads(s, NRG_BIT(NRG_ROPE_POSITIONS_K), NRG_BIT(NRG_ROPE_POSITIONS_K_O), args->k_heads, args->k_o);
    if (!args->batch || !args->tokens || !(args->q_heads | args->k_heads))
        s->ignored |= NRG_BIT(NRG_ROPE_POSITIONS_POSITIONS) | NRG_BIT(NRG_ROPE_POSITIONS_WORKSPACE);
    return NRG_OK;
}

static const nrg_part positions_parts[] = {NRG_ROPE_SPEC_PART,
                                           {.size = sizeof(nrg_rope_positions_args), .least = sizeof(nrg_rope_positions_args)},
                                           {.size = sizeof(nrg_rope_shares)}};

#define POSITIONS_LINE(field, number) .part = NRG_ROPE_ARGS, .at = NRG_AT(nrg_rope_positions_args, field), .dim = (number)
#define POSITIONS_HEADS(field, heads)                                                                                            \
    NRG_ELEMENT_CHOSEN, .may_be_absent = 1, POSITIONS_LINE(field, NRG_ROPE_POSITIONS_N_DIM),                                     \
                        .level = NRG_HEADS_TOGETHER(nrg_rope_positions_args, field##_strides, NRG_ROPE_POSITIONS_N_BATCH, heads, \
                                                    NRG_ROPE_POSITIONS_N_TOKENS)

static const nrg_operand positions_operands[NRG_ROPE_POSITIONS_OPERANDS] = {
    [NRG_ROPE_POSITIONS_Q] = {"q", NRG_IN, POSITIONS_HEADS(q, NRG_ROPE_POSITIONS_N_Q_HEADS)},
    [NRG_ROPE_POSITIONS_K] = {"k", NRG_IN, POSITIONS_HEADS(k, NRG_ROPE_POSITIONS_N_K_HEADS)},
    [NRG_ROPE_POSITIONS_POSITIONS] = {"positions", NRG_IN, NRG_ELEMENT_I32, .may_be_absent = 1,
                                      POSITIONS_LINE(positions, NRG_ROPE_POSITIONS_N_TOKENS),
                                      .level = {{.stride = NRG_AT(nrg_rope_positions_args, positions_stride),
                                                 .count = NRG_ROPE_POSITIONS_N_AXES}}},
    [NRG_ROPE_POSITIONS_FACTORS] = {"freq_factors", NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1, .part = NRG_ROPE_SPEC,
                                    .at = NRG_AT(nrg_rope_spec, freq_factors), .dim = NRG_ROPE_POSITIONS_N_FACTORS},
    [NRG_ROPE_POSITIONS_Q_O] = {"q_o", NRG_OUT, POSITIONS_HEADS(q_o, NRG_ROPE_POSITIONS_N_Q_HEADS),
                                .over = NRG_BIT(NRG_ROPE_POSITIONS_Q)},
    [NRG_ROPE_POSITIONS_K_O] = {"k_o", NRG_OUT, POSITIONS_HEADS(k_o, NRG_ROPE_POSITIONS_N_K_HEADS),
                                .over = NRG_BIT(NRG_ROPE_POSITIONS_K)},
    [NRG_ROPE_POSITIONS_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64,
                                      POSITIONS_LINE(workspace, NRG_ROPE_POSITIONS_SPACE),
                                      .room = NRG_AT(nrg_rope_positions_args, workspace_size)},
};

#define POSITIONS_RANGES                                                                                                         \
    SPEC_RANGES, NRG_ROPE_SCALING_RANGE(NRG_ROPE_SPEC), NRG_DTYPE_RANGE(NRG_ROPE_ARGS, nrg_rope_positions_args, dtype),          \
        NRG_ENUM_RANGE(NRG_ROPE_ARGS, nrg_rope_positions_args, store, NRG_STORE_STREAM)
static const nrg_range positions_ranges[] = {POSITIONS_RANGES};
static const nrg_range positions_workspace_ranges[] = {NRG_ROPE_SHARES_RANGE(NRG_ROPE_SHARES), POSITIONS_RANGES};

const nrg_call nrg_call_rope_positions = {
    .parts = positions_parts,
    .part_count = NRG_COUNT(positions_parts),
    .operands = positions_operands,
    .operand_count = NRG_ROPE_POSITIONS_OPERANDS,
    .ranges = positions_ranges,
    .range_count = NRG_COUNT(positions_ranges),
    .measure = measure_positions,
};

const nrg_call nrg_call_rope_positions_workspace = {
    .parts = positions_parts,
    .part_count = NRG_COUNT(positions_parts),
    .ranges = positions_workspace_ranges,
    .range_count = NRG_COUNT(positions_workspace_ranges),
    .measure = measure_positions_space,
};
