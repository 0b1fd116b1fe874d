/* The limits: bare one-pass loops that read and write the bytes a kernel reads and writes, and do nothing else of use.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_LIMITS_H
#define NRG_BENCH_LIMITS_H

#include <stddef.h>

#include "nrg/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors are dense; row_bytes is a multiple of LIMIT_ROW_STEP, tensors start at multiples of 64. */
typedef struct limit_job {
    const char *x, *y; /* y and r: both there or both NULL */
    const char *w, *b; /* one row each; b may be NULL */
    char *r, *o;
    size_t rows, row_bytes;
} limit_job;

enum { LIMIT_ROW_STEP = 128 };

/* r = x + y, o = r + w + b, on integers: an addition of whatever bits there are costs a cycle, where floating-point ones would
 * stumble over subnormals. */
typedef struct limit_loop {
    const char *name;
    void (*run)(const limit_job *job);
} limit_loop;

enum { LIMIT_LOOPS_MAX = 12 };

/* A path's loops, written with its vectors; the last has no name. */
extern const limit_loop limit_loops_scalar[], limit_loops_avx2[], limit_loops_avx512[], limit_loops_neon[];

/* Those of a path that is in this build. */
const limit_loop *limit_loops_of(nrg_isa isa);

#ifdef __cplusplus
}
#endif
#endif
