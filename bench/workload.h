/* The memory a case works on, and its calls.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_WORKLOAD_H
#define NRG_BENCH_WORKLOAD_H

#include "cases.h"
#include "limits.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How often the operands move, relative to each other, between repetitions. Odd, so that it does not go in step with the
 * alternating order of contenders. */
enum { BENCH_PLACEMENTS = 5, BENCH_OPERANDS = 6 };

typedef struct bench_memory {
    char *slab[BENCH_OPERANDS]; /* x, y, w, b, r, o */
    size_t tensor_bytes, row_bytes;
} bench_memory;

/* Allocates and fills the operands of the shape and dtype (y, b and r only if asked for), every page touched. 0: no memory. */
int bench_memory_make(bench_memory *m, bench_shape shape, nrg_dtype dtype, int add, int bias);
void bench_memory_free(bench_memory *m);

/* A case bound to memory: a contender's context for bench_call_run. */
typedef struct bench_call {
    nrg_isa isa;
    nrg_norm_spec spec;
    nrg_norm_args args[BENCH_PLACEMENTS];
} bench_call;

void bench_call_bind(bench_call *call, const bench_case *c, const bench_memory *m);

/* Sends calls through the case's path; apart from the run, since asking what a CPU can do traps to the hypervisor in a guest. */
void bench_call_before(void *call);
void bench_call_run(void *call, unsigned placement, size_t calls);

/* A bare loop bound to the same memory. */
typedef struct bench_bare {
    const limit_loop *loop;
    limit_job job[BENCH_PLACEMENTS];
} bench_bare;

void bench_bare_bind(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m);
void bench_bare_run(void *bare, unsigned placement, size_t calls);

#ifdef __cplusplus
}
#endif
#endif
