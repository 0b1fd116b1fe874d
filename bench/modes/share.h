/* A case beside its limit and its rivals.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_SHARE_H
#define NRG_BENCH_MODES_SHARE_H

#include "../cases.h"
#include "../rival.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_share {
    double ns;                     /* a call of the kernel */
    double limit_ns;               /* the fastest bare loop; 0 where there is none for such operands */
    const char *loop;              /* its name, or why there is none */
    double twice_ns;               /* the fastest with two reads and one write; 0 where one read may do (bench_case_read_twice) */
    double rival_ns[BENCH_RIVALS]; /* of its rivals; 0 where it has none */
    double elements;               /* of a call */
    double bytes;
} bench_share;

/* Measures all in about `seconds`. NULL, or what went wrong. */
const char *bench_measure_share(const bench_case *c, double seconds, bench_share *share);

/* Bare loops of a path, bit i: the i-th; of the limit, and of that with two reads. 0: all. */
typedef struct bench_loops {
    unsigned once, twice;
} bench_loops;

enum { BENCH_SHARES_MAX = NRG_ISA_COUNT };

/* The same of one case on n paths at once, on the same memory. rounds: how many at least, 0 for as many as
 * bench_measure takes for right; loops, of each: which to try, and afterwards those that were near
 * the fastest, so that what is alike does not have to try the others again. */
const char *bench_measure_shares(const bench_case *c, size_t n, double seconds, size_t rounds, bench_loops *loops,
                                 bench_share *share);

/* 1 where a case has such a rival, in this build or in another. */
int bench_has_rival(const bench_case *c, bench_rival rival);

/* The largest error of a case's rival, or (BENCH_RIVALS) of the case itself, in ulps. 0 where that is no figure. */
double bench_ulp(const bench_case *c, bench_rival rival);

#ifdef __cplusplus
}
#endif
#endif
