/* The memory a case works on, and its calls.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_WORKLOAD_H
#define NRG_BENCH_WORKLOAD_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How often the operands move, relative to each other, between repetitions. Odd, so that it does not go in step with the
 * alternating order of contenders. */
enum { BENCH_PLACEMENTS = 5 };

typedef struct bench_memory {
    char *slab[BENCH_OPERANDS];            /* by operands of the case */
    bench_operand operand[BENCH_OPERANDS]; /* what fills them */
} bench_memory;

/* Allocates and fills what n cases of one family, dtype and shape need, every page touched. 0: no memory. */
int bench_memory_make(bench_memory *m, const bench_case *c, size_t n);
void bench_memory_free(bench_memory *m);

/* Fills an operand again, which an output in its place has overwritten. */
void bench_memory_refill(const bench_memory *m, int operand);

/* Where an operand begins in a placement; NULL where there is no such operand. */
char *bench_memory_at(const bench_memory *m, int operand, unsigned placement);

/* The same in pieces, for memory that is made elsewhere: bytes of a slab, with a page of room for the placements; its contents;
 * where in its slab the nth operand that is present begins. */
size_t bench_slab_bytes(size_t bytes);
void bench_slab_fill(char *slab, size_t bytes, nrg_dtype dtype, bench_fill fill, unsigned seed);
size_t bench_offset(size_t nth, unsigned placement);

/* Makes one call, all its phases. NULL, or what the library has against it. */
const char *bench_try(const bench_function *function, void *const *part);

/* A case bound to memory: a contender's context for bench_call_run. */
typedef struct bench_call {
    const bench_function *function;
    nrg_isa isa;
    bench_parts *parts; /* one for each placement */
} bench_call;

/* Binds, and tries the call once in every placement, or of a case with a layout in one. NULL, or what went wrong; to be freed
 * either way. */
const char *bench_call_bind(bench_call *call, const bench_case *c, const bench_memory *m);
void bench_call_free(bench_call *call);

/* Sends calls through the case's path; apart from the run, since asking what a CPU can do traps to the hypervisor in a guest. */
void bench_call_before(void *call);
void bench_call_run(void *call, unsigned placement, size_t calls);

#ifdef __cplusplus
}
#endif

#endif
