/* Bare loops over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_BARE_H
#define NRG_BENCH_BARE_H

#include "limits/limits.h"
#include "workload.h"

typedef struct bench_bare {
    const limit_loop *loop;
    void (*run)(const limit_job *job); /* the loop's instance for the operands of the case */
    limit_job job[BENCH_PLACEMENTS];

    /* Two reads and one write: a piece of what is read twice, then the same piece of everything; and so on. */
    void (*read)(const limit_job *job);
    limit_job first[BENCH_PLACEMENTS];
    size_t bytes, piece; /* of a tensor */
} bench_bare;

/* The loop that moves what the case moves; run is NULL where it has no such instance. NULL, or what went wrong. */
const char *bench_bare_bind(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m);
void bench_bare_run(void *bare, unsigned placement, size_t calls);

/* The same where bench_case_read_twice(c) is not 0, with so many bytes read before they are read again and the output is written.
 */
const char *bench_bare_bind_twice(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m);
void bench_bare_run_twice(void *bare, unsigned placement, size_t calls);

#endif
