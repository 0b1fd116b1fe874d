/* Rotary position embedding: frequencies, tables, the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "rope.h"

#include "../job/rope.h"

static int is_mode(nrg_rope_mode mode) { return mode == NRG_ROPE_NORMAL || mode == NRG_ROPE_NEOX || nrg_rope_has_sections(mode); }

nrg_status nrg_rope_check_pairs(const nrg_rope_spec *s)
{
    if (!is_mode(s->mode))
        return NRG_ERR_ENUM;
    if (s->n_dims == 0 || s->n_dims % 2 || s->n_dims > NRG_ROPE_DIMS_MOST)
        return NRG_ERR_DIM;
    return NRG_OK;
}

nrg_status nrg_rope_check_sections(const nrg_rope_spec *s)
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

nrg_status nrg_rope_check_angles(const nrg_rope_spec *spec)
{
    nrg_status status = nrg_rope_check_pairs(spec);
    if (status != NRG_OK)
        return status;
    if (spec->scaling == NRG_ROPE_SCALING_NTK && spec->n_dims < 4)
        return NRG_ERR_DIM;
    if ((status = nrg_rope_check_sections(spec)) != NRG_OK)
        return status;
    return !constants_are_sound(spec) ? NRG_ERR_CONSTANT : has_unused(spec) ? NRG_ERR_COMBINATION : NRG_OK;
}

size_t nrg_rope_axes(const nrg_rope_spec *spec)
{
    size_t axes = 1;
    for (size_t i = 1; nrg_rope_has_sections(spec->mode) && i < (spec->mode == NRG_ROPE_IMROPE_TIME ? 3 : 4); i++)
        if (spec->sections[i] || spec->mode == NRG_ROPE_IMROPE)
            axes = i + 1;
    return axes;
}

/* ---- from positions on ---- */

static size_t lines(size_t bytes) { return (bytes + NRG_ROPE_LINE - 1) / NRG_ROPE_LINE * NRG_ROPE_LINE; }

/* Bytes of a token in a slice: its row of the table and its positions. */
static size_t token_bytes(const nrg_rope_space *s) { return 2 * s->pairs * sizeof(float) + s->axes * sizeof(int32_t); }

/* Where the arrays of a slice begin, in bytes, up to those of tokens. */
static size_t frequencies_at(void) { return lines(sizeof(nrg_rope_kept)); }
static size_t factors_at(const nrg_rope_space *s) { return frequencies_at() + 2 * s->pairs * sizeof(double); }
static size_t block_at(const nrg_rope_space *s) { return lines(factors_at(s) + s->pairs * sizeof(float)); }
static size_t positions_at(const nrg_rope_space *s) { return lines(block_at(s) + s->block); }

/* The first line of the workspace is all slices'; they follow. */
nrg_rope_slice nrg_rope_slice_at(const nrg_rope_space *s, void *workspace, size_t workspace_size, size_t i)
{
    const size_t bytes = (workspace_size - 2 * NRG_ROPE_LINE) / s->slices / NRG_ROPE_LINE * NRG_ROPE_LINE;
    const size_t positions = positions_at(s), rows = (bytes - positions - NRG_ROPE_LINE) / token_bytes(s);
    char *const line = (char *)(((uintptr_t)workspace + NRG_ROPE_LINE - 1) / NRG_ROPE_LINE * NRG_ROPE_LINE);
    char *const first = line + NRG_ROPE_LINE + i * bytes;
    return (nrg_rope_slice){
        .kept = (nrg_rope_kept *)(void *)first,
        .frequencies = (double *)(void *)(first + frequencies_at()),
        .factors = (float *)(void *)(first + factors_at(s)),
        .positions = (int32_t *)(void *)(first + positions),
        .table = (float *)(void *)(first + lines(positions + s->axes * rows * sizeof(int32_t))),
        .block = (float *)(void *)(first + block_at(s)),
        .rows = rows,
        .layout = (size_t *)(void *)line,
    };
}

nrg_status nrg_rope_measure_space(const nrg_rope_space *s, size_t *doubles)
{
    const size_t each = s->tokens / s->slices + (s->tokens % s->slices != 0), rows = each < s->tokens ? each + 1 : s->tokens;
    size_t all;
    if (rows > NRG_ROPE_SPACE_MOST)
        return NRG_ERR_OVERFLOW;
    const size_t fixed = positions_at(s), of_rows = rows * token_bytes(s);
    if (!nrg_product(s->slices, lines(fixed + of_rows + NRG_ROPE_LINE), &all) || all > SIZE_MAX - 3 * NRG_ROPE_LINE)
        return NRG_ERR_OVERFLOW;
    *doubles = (all + 2 * NRG_ROPE_LINE) / sizeof(double);
    return NRG_OK;
}

nrg_status nrg_rope_measure_positions(const nrg_rope_spec *spec, size_t dim, size_t rotate_from, const int32_t *positions,
                                      int32_t first_position, nrg_rope_space *space)
{
    const nrg_status status = nrg_rope_check_angles(spec);
    space->pairs = nrg_rope_pairs_of(spec);
    if (status != NRG_OK)
        return status;
    if (!nrg_rope_fits(space->pairs, rotate_from, dim))
        return NRG_ERR_DIM;
    if (positions ? first_position != 0 : !nrg_rope_can_count(first_position, space->tokens))
        return positions ? NRG_ERR_COMBINATION : NRG_ERR_POSITION;
    space->axes = nrg_rope_axes(spec);
    return NRG_OK;
}

nrg_status nrg_rope_positions_space(const nrg_rope_spec *spec, const nrg_rope_positions_args *a, int nth, size_t *doubles)
{
    nrg_rope_space space = {.slices = (size_t)nth, .tokens = a->tokens};
    const nrg_status status = nrg_rope_measure_positions(spec, a->dim, a->rotate_from, a->positions, a->first_position, &space);
    return status == NRG_OK ? nrg_rope_measure_space(&space, doubles) : status;
}
