/* What the families of nrg/relative.h share: their shapes, and the operands that are no tensors of queries and keys.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_RELATIVE_RELATIVE_H
#define NRG_BENCH_RELATIVE_RELATIVE_H

#include "../family.h"

/* Rows are the queries of all heads, and elements of a row keys. Scores are added to in place: what is read and what is written
 * are two tensors to the bare loop, and one to the call. Operations that only read such a tensor write something smaller into the
 * beginning of the second; to them the limit is no more than a unit. What has as many elements as a query, or is a table, is
 * scratch. */
enum { RELATIVE_IN, RELATIVE_OUT, RELATIVE_SCRATCH };

extern const bench_shape relative_shapes[2];

/* Queries and keys of every case stand at the same positions, 64 elements a head; "clip": distances up to 16 count, "all": every
 * one does. */
#define RELATIVE_OP(name_)                                                                                                       \
    {                                                                                                                            \
        name_, 1 << RELATIVE_IN | 1 << RELATIVE_OUT | 1 << RELATIVE_SCRATCH, .shapes = relative_shapes, .shape_count = 2         \
    }

size_t relative_scratch(const bench_case *c);

/* A call, with q, table, d_table and ends in scratch. */
void relative_bind(nrg_relative_args *args, const bench_case *c, char *const operand[BENCH_OPERANDS]);

#endif
