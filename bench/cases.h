/* The cases: kernels.def × paths of this machine × ops × shapes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_CASES_H
#define NRG_BENCH_CASES_H

#include <stddef.h>

#include "nrg/nrg.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An op is a call of a kernel with a certain set of operands: x and w are always there, o always comes out. */
typedef struct bench_op {
    const char *name;
    int centred;
    int add;  /* y comes in and r goes out */
    int bias; /* b comes in */
} bench_op;

typedef struct bench_shape {
    size_t rows, dim;
} bench_shape;

typedef struct bench_case {
    const char *kernel; /* as in kernels.def */
    nrg_dtype dtype;    /* of all operands, w and b included: what a model saved in 16 bits has */
    nrg_isa isa;
    const bench_op *op;
    bench_shape shape;
    nrg_store store;
} bench_case;

enum { BENCH_NAME_MAX = 96 };

/* "norm_forward/f32/avx512/add+rms/512x4096" */
void bench_case_name(const bench_case *c, char name[BENCH_NAME_MAX]);

/* Calls visit for every case of every path this machine can run. */
void bench_each_case(void (*visit)(const bench_case *c, void *ctx), void *ctx);

/* By name; NULL if there is none. */
const bench_op *bench_find_op(const char *name);

/* What a call moves: bytes of each tensor read once and written once, w and b counted once. */
size_t bench_case_bytes(const bench_case *c);

#ifdef __cplusplus
}
#endif
#endif
