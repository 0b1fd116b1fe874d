/* Sinusoidal positions.
 *
 * SPDX-License-Identifier: MIT */
#include "sinusoidal.h"

#include "rope.h"

enum { ROWS = 1, DIM, FREQUENCIES };

#define SPEC_PART                                                                                                                \
    {                                                                                                                            \
        .size = sizeof(nrg_sinusoidal_spec), .least = sizeof(nrg_sinusoidal_spec)                                                \
    }
#define LAYOUT_RANGE NRG_ENUM_RANGE(NRG_SINUSOIDAL_SPEC, nrg_sinusoidal_spec, layout, NRG_SINUSOIDAL_COSINES_FIRST)

/* ---- frequencies ---- */

static nrg_status measure_frequencies(const void *const *part, nrg_sizes *s)
{
    const nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_SPEC];
    if (spec->dim == 0 || spec->dim > NRG_ROPE_DIMS_MOST || (spec->dim % 2 && (spec->spread || spec->layout)))
        return NRG_ERR_DIM;
    s->n[FREQUENCIES] = 2 * nrg_sinusoidal_pairs(spec->dim);
    return nrg_rope_in_range(spec->base) ? NRG_OK : NRG_ERR_CONSTANT;
}

static const nrg_part frequencies_parts[] = {
    SPEC_PART,
    {.size = sizeof(nrg_sinusoidal_frequencies_args)},
};

static const nrg_range frequencies_ranges[] = {
    NRG_ENUM_RANGE(NRG_SINUSOIDAL_SPEC, nrg_sinusoidal_spec, spread, NRG_SINUSOIDAL_TO_BASE),
    LAYOUT_RANGE,
};

static const nrg_operand frequencies_operands[NRG_SINUSOIDAL_FREQUENCIES_OPERANDS] = {
    [NRG_SINUSOIDAL_FREQUENCIES_FREQUENCIES] = {"frequencies", NRG_OUT, NRG_ELEMENT_F64, .part = NRG_SINUSOIDAL_ARGS,
                                                .at = NRG_AT(nrg_sinusoidal_frequencies_args, frequencies), .dim = FREQUENCIES},
};

const nrg_call nrg_call_sinusoidal_frequencies = {
    .parts = frequencies_parts,
    .part_count = NRG_COUNT(frequencies_parts),
    .operands = frequencies_operands,
    .operand_count = NRG_SINUSOIDAL_FREQUENCIES_OPERANDS,
    .ranges = frequencies_ranges,
    .range_count = NRG_COUNT(frequencies_ranges),
    .measure = measure_frequencies,
};

/* ---- the table ---- */

static nrg_status measure_table(const void *const *part, nrg_sizes *s)
{
    const nrg_sinusoidal_spec *spec = part[NRG_SINUSOIDAL_SPEC];
    const nrg_sinusoidal_args *args = part[NRG_SINUSOIDAL_ARGS];
    const size_t rows = args->rows, pairs = nrg_sinusoidal_pairs(spec->dim);
    if (spec->dim == 0 || (spec->layout != NRG_SINUSOIDAL_INTERLEAVED && spec->dim % 2))
        return NRG_ERR_DIM;
    if (args->positions && args->first_position)
        return NRG_ERR_COMBINATION;
    if (!args->positions && !nrg_rope_can_count(args->first_position, rows))
        return NRG_ERR_POSITION;
    if (pairs > SIZE_MAX / 2)
        return NRG_ERR_OVERFLOW;
    s->type[0] = args->dtype;
    s->n[ROWS] = rows;
    s->n[DIM] = spec->dim;
    s->n[FREQUENCIES] = rows ? 2 * pairs : 0;
    return NRG_OK;
}

static const nrg_part table_parts[] = {SPEC_PART, {.size = sizeof(nrg_sinusoidal_args), .least = sizeof(nrg_sinusoidal_args)}};

#define OPERAND(field) .part = NRG_SINUSOIDAL_ARGS, .at = NRG_AT(nrg_sinusoidal_args, field)

static const nrg_operand table_operands[NRG_SINUSOIDAL_TABLE_OPERANDS] = {
    [NRG_SINUSOIDAL_TABLE_POSITIONS] = {"positions", NRG_IN, NRG_ELEMENT_I32, .may_be_absent = 1, OPERAND(positions),
                                        .dim = ROWS},
    [NRG_SINUSOIDAL_TABLE_FREQUENCIES] = {"frequencies", NRG_IN, NRG_ELEMENT_F64, OPERAND(frequencies), .dim = FREQUENCIES},
    [NRG_SINUSOIDAL_TABLE_TABLE] = {"table", NRG_OUT, NRG_ELEMENT_CHOSEN, OPERAND(table), .dim = DIM,
                                    .level = {{.stride = NRG_AT(nrg_sinusoidal_args, table_stride), .count = ROWS}}},
};

static const nrg_range table_ranges[] = {
    NRG_DTYPE_RANGE(NRG_SINUSOIDAL_ARGS, nrg_sinusoidal_args, dtype),
    LAYOUT_RANGE,
};

const nrg_call nrg_call_sinusoidal_table = {
    .parts = table_parts,
    .part_count = NRG_COUNT(table_parts),
    .operands = table_operands,
    .operand_count = NRG_SINUSOIDAL_TABLE_OPERANDS,
    .ranges = table_ranges,
    .range_count = NRG_COUNT(table_ranges),
    .measure = measure_table,
};
