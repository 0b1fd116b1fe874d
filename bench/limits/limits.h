/* The limits: bare one-pass loops that read and write the bytes a kernel reads and writes, and do nothing else of use.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_LIMITS_LIMITS_H
#define NRG_BENCH_LIMITS_LIMITS_H

#include <stddef.h>

#include "nrg/isa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most operands of a kind that there are loops for. */
enum { LIMIT_INS = 4, LIMIT_OUTS = 2, LIMIT_ROW_INS = 2, LIMIT_ROW_OUTS = 2 };

/* The most tensors that are read twice. */
enum { LIMIT_FIRST_INS = 2 };

/* The most tensors that are read and written where rows become bytes. */
enum { LIMIT_BYTES_INS = 2, LIMIT_BYTES_OUTS = 1 };

/* Tensors are dense; row_bytes is a multiple of LIMIT_ROW_STEP, tensors start at multiples of 64. */
typedef struct limit_job {
    const char *in[LIMIT_INS];         /* tensors that are read; at least one */
    char *out[LIMIT_OUTS];             /* tensors that are written; at least one */
    const char *row_in[LIMIT_ROW_INS]; /* one row each, read beside every row of the tensors */
    char *row_out[LIMIT_ROW_OUTS];     /* row_out_bytes each, written once */
    size_t rows, row_bytes, row_out_bytes;
    char *bytes_out;      /* rows that are written as bytes with scales, beside the tensors or without one; */
    const char *bytes_in; /* or read, instead of tensors */
    size_t bytes;         /* of all rows; a vector at least */
} limit_job;

enum { LIMIT_ROW_STEP = 128 };

typedef void limit_run(const limit_job *job);

/* Instances of a loop, by how many tensors are read, tensors are written and rows are read: the last counts fastest. Those to
 * bytes write LIMIT_BYTES_OUTS tensors, or none. */
enum {
    LIMIT_RUNS = LIMIT_INS * LIMIT_OUTS * (1 + LIMIT_ROW_INS),
    LIMIT_BYTES_RUNS = LIMIT_BYTES_INS * (1 + LIMIT_BYTES_OUTS) * (1 + LIMIT_ROW_INS)
};
static inline size_t limit_run_index(int ins, int outs, int row_ins)
{
    return (size_t)(((ins - 1) * LIMIT_OUTS + outs) * (1 + LIMIT_ROW_INS) + row_ins);
}

/* The last tensor written gets the sum of all that is read, the one before it the sum of the tensors; on integers: an addition of
 * whatever bits there are costs a cycle, where floating-point ones would stumble over subnormals. */
typedef struct limit_loop {
    const char *name;
    limit_run *run[LIMIT_RUNS]; /* limit_run_index(ins, outs - 1, row_ins) */
    /* reads in[], [tensors - 1], and leaves their sum in the first LIMIT_ROW_STEP bytes of out[0], which run writes afterwards */
    limit_run *read[LIMIT_FIRST_INS];
    limit_run
        *to_bytes[LIMIT_BYTES_RUNS]; /* with bytes_out: limit_run_index(ins, outs, row_ins); and with bytes_in; NULL: none */
    limit_run *from_bytes;
} limit_loop;

/* A path's loops, written with its vectors; the last has no name. */
extern const limit_loop limit_loops_scalar[], limit_loops_avx2[], limit_loops_avx512[], limit_loops_neon[], limit_loops_generic[];

/* Those of a path; NULL where the build has none. */
const limit_loop *limit_loops_of(nrg_isa isa);

#ifdef __cplusplus
}
#endif
#endif
