/* What the families of nrg/relative.h share: their shapes, and the operands that are no tensors of queries and keys.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_RELATIVE_H
#define NRG_BENCH_RELATIVE_H

#include "family.h"

/* Rows are the queries of all heads, and elements of a row keys. What has as many elements as a query, or is a table, is small
 * beside that, and scratch: the bytes that a case moves are those of its scores or weights. */
enum { RELATIVE_PAIRS, RELATIVE_SCRATCH };

extern const bench_shape relative_shapes[2];

/* Queries and keys of every case stand at the same positions, 64 elements a head; "clip": distances up to 16 count, "all": every
 * one does. */
#define RELATIVE_OP(name_)                                                                                                       \
    {                                                                                                                            \
        name_, 1 << RELATIVE_PAIRS | 1 << RELATIVE_SCRATCH, .shapes = relative_shapes, .shape_count = 2                          \
    }

size_t relative_scratch(const bench_case *c);

/* A call of nrg_relative_args, with q, o, table, d_table and ends in scratch, and the pairs for a or scores. */
void relative_bind(nrg_relative_args *args, const bench_case *c, char *pairs, char *scratch);

#endif
