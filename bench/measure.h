/* Interleaved measurement: contenders take turns in short batches, so that whatever else the machine does in between meets them
 * all, and each gets the median of its turns.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MEASURE_H
#define NRG_BENCH_MEASURE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_ROUNDS_MAX = 255 };

typedef struct bench_contender {
    void (*before)(void *ctx); /* before a batch, not timed; may be NULL */
    void (*run)(void *ctx, unsigned placement, size_t calls);
    void *ctx;
    int wall;  /* by the wall's clock: where the work of other threads is waited for */
    int limit; /* not 0: one of those of this number, of which only the fastest counts; dropped early when it is clearly not that
                */

    double ns; /* result: median ns a call */
    size_t rounds;
    size_t calls; /* in a batch */
    double sample[BENCH_ROUNDS_MAX];
} bench_contender;

/* Fills in the results. About `seconds` long, where a few rounds do not take longer; bytes: what a call moves. */
void bench_measure(bench_contender *contenders, size_t n, double seconds, size_t bytes);

/* The same with so many rounds at least; 0: a round for every placement, or, where rounds are long, three. */
void bench_measure_rounds(bench_contender *contenders, size_t n, double seconds, size_t bytes, size_t least);

double bench_median(const double *values, size_t n);

/* The median over rounds of a's time divided by b's in the same round. */
double bench_ratio(const bench_contender *a, const bench_contender *b);

#ifdef __cplusplus
}
#endif
#endif
