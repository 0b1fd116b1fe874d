/* What the calls of nrg/score_bias.h check alike.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_SCORE_BIAS_CHECKS_H
#define NRG_CALLS_SCORE_BIAS_CHECKS_H

#include "checks.h"

static inline nrg_status count_diagonals(size_t queries, size_t keys, size_t *diagonals)
{
    if (queries > SIZE_MAX - keys)
        return NRG_ERR_OVERFLOW;
    *diagonals = nrg_score_diagonals(queries, keys);
    return NRG_OK;
}

/* Adds rows of doubles, as add_operand adds rows of floats. */
static inline nrg_status add_doubles(extents *all, unsigned name, unsigned in_place, const void *pointer, size_t count,
                                     size_t rows, size_t *stride)
{
    size_t floats;
    if (!product(count, 2, &floats))
        return NRG_ERR_OVERFLOW;
    if (pointer && rows && ((uintptr_t)pointer | *stride) % sizeof(double))
        return NRG_ERR_ALIGNMENT;
    return add_operand(all, name, in_place, pointer, NRG_F32, floats, rows, stride);
}

/* Distances that a table may have: the product of such a number and a float is exact in double. */
enum { DISTANCE_MAX = 1 << 29 };

/* A table of diagonals that a spec describes. */
typedef struct bias_table {
    size_t heads, diagonals; /* 0: nothing to make; both then */
    int64_t lowest;          /* the distance of entry 0 */
} bias_table;

enum { BIAS_SPEC_SIZE_MIN = offsetof(nrg_bias_spec, reserved) + sizeof(uint32_t) };

/* Reads a spec of any version, and what does not depend on T5's rule. */
static inline nrg_status read_bias_spec(const nrg_bias_spec **spec, nrg_bias_spec *copy, bias_table *t, int ith, int nth)
{
    if (!*spec)
        return NRG_ERR_NULL;
    const nrg_bias_spec *s = read_struct(*spec, copy, sizeof *copy, BIAS_SPEC_SIZE_MIN);
    if (!s || s->reserved)
        return NRG_ERR_STRUCT_SIZE;
    *spec = s;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    nrg_status status = count_diagonals(s->queries, s->keys, &t->diagonals);
    if (status != NRG_OK)
        return status;
    t->heads = t->diagonals ? s->heads : 0;
    t->diagonals = s->heads ? t->diagonals : 0;
    t->lowest = 0;
    if (!t->diagonals)
        return NRG_OK;
    if (s->queries > DISTANCE_MAX || s->keys > DISTANCE_MAX || s->query_offset > DISTANCE_MAX || s->query_offset < -DISTANCE_MAX)
        return NRG_ERR_POSITION;
    t->lowest = -(int64_t)(s->queries - 1) - s->query_offset;
    const int64_t highest = (int64_t)(s->keys - 1) - s->query_offset;
    return t->lowest >= -DISTANCE_MAX && highest <= DISTANCE_MAX ? NRG_OK : NRG_ERR_POSITION;
}

#endif
