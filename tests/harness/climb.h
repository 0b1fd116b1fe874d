/* A search for the inputs a kernel is worst at: single elements are changed, in their last bits, their exponent, their sign, and
 * a change that makes the error no smaller is kept. Deterministic: the steps are counted, not timed.
 *
 * In CI a climb takes seconds. By hand NRG_TEST_CLIMB=n takes n times the steps and other seeds than n = 1:
 *
 *     NRG_TEST_CLIMB=100 build/tests/norm_backward_climb_test --report
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CLIMB_H
#define NRG_TESTS_HARNESS_CLIMB_H

#include "support.h"

enum { CLIMB_ARRAYS = 6 };

/* Floats that may be changed. They stay values of dtype, and 0 or from 2^least to 2^most. */
typedef struct climb_array {
    float *values;
    size_t count;
    nrg_dtype dtype;
    int least, most;
} climb_array;

typedef struct climb {
    climb_array arrays[CLIMB_ARRAYS];
    size_t count;
    double (*error)(void *of); /* at what the arrays hold now; negative where that is no case */
    void *of;
} climb;

/* The steps of a climb: `usual`, or a part of it at small scale, or as many times as the environment asks for. */
size_t climb_steps(size_t usual);

/* A seed of its own for each of the climbs that the environment asks for. */
uint64_t climb_seed(uint64_t seed);

/* Climbs. Leaves the worst inputs in the arrays, and returns the error there. */
double climb_run(const climb *c, uint64_t seed, size_t steps);

/* Prints the inputs, a line of hexadecimal floats an array. */
void climb_print(const climb *c, const char *const names[]);

#endif
