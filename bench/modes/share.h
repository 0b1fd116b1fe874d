/* A case beside its limit.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_SHARE_H
#define NRG_BENCH_MODES_SHARE_H

#include "../cases.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_share {
    double ns;        /* a call of the kernel */
    double limit_ns;  /* the fastest bare loop; 0 where there is none for such operands */
    const char *loop; /* its name, or why there is none */
    double twice_ns;  /* the fastest with two reads and one write; 0 where one read may do (bench_case_read_twice) */
    double elements;  /* of a call */
    double bytes;
} bench_share;

/* Measures both in about `seconds`. NULL, or what went wrong. */
const char *bench_measure_share(const bench_case *c, double seconds, bench_share *share);

#ifdef __cplusplus
}
#endif
#endif
