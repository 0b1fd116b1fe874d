/* A search for the inputs a kernel is worst at. A step changes single elements, or all elements of a lane or a run: their last
 * bits, their exponent, their sign. A change that makes the error no smaller is kept. Deterministic: the steps are counted, not
 * timed.
 *
 * In CI a climb takes seconds. By hand NRG_TEST_CLIMB=n takes n times the steps and other seeds than n = 1:
 *
 *     NRG_TEST_CLIMB=100 build/tests/norm_backward_climb_test --report
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CLIMB_H
#define NRG_TESTS_HARNESS_CLIMB_H

#include "support.h"

enum { CLIMB_OPERANDS = 6 };

/* Floats that may be changed. They stay values of dtype, and 0 or from 2^least to 2^most. */
typedef struct climb_operand {
    const char *name;
    float *values;
    size_t count;
    nrg_dtype dtype;
    int least, most;
} climb_operand;

typedef struct climb {
    climb_operand operands[CLIMB_OPERANDS];
    size_t count;
    double (*error)(void *of); /* at what the operands hold now; negative where that is no case; NaN where a result is */
    double (*guide)(void *of); /* the same in double, which is faster: steps follow it. NULL: they follow error */
    void *of;
} climb;

/* What a climb begins with. One lane: all but every 32nd element is 0. Runs: 64 elements are alike, and the runs far apart. */
enum climb_start { CLIMB_RANDOM, CLIMB_ALIKE, CLIMB_FAR_APART, CLIMB_ONE_LANE, CLIMB_RUNS, CLIMB_STARTS };
extern const char *const climb_start_names[CLIMB_STARTS];

/* Adds an operand of rows of dim floats, from 2^-30 to 2^30, and returns them: the caller's to free. */
float *climb_add(climb *c, const char *name, size_t rows, size_t dim, enum climb_start start, uint64_t *state);

/* What a guide measures with: the fastest path, which has scalar's bits, and the distance of floats at a normal number. */
nrg_isa climb_path(void);
double climb_ulp(double value);

/* The steps of a climb: `usual`, or a part of it at small scale, or as many times as the environment asks for. */
size_t climb_steps(size_t usual);

/* A seed of its own for each number of times that the environment asks for. */
uint64_t climb_seed(uint64_t seed);

/* Climbs. Leaves the worst inputs in the operands, and returns the error there. */
double climb_run(const climb *c, uint64_t seed, size_t steps);

/* Where a climb that works comes to (least), what errors on the stress set do not pass, and what none does. */
typedef struct climb_bounds {
    double least, promise, limit;
} climb_bounds;

/* What a climb came to. Prints the operands where the error is beyond the limit, and, in a report, where it is beyond the
 * promise. NULL, or what is wrong. */
const char *climb_judge(const climb *c, const char *name, enum climb_start start, double error, const climb_bounds *bounds);

/* A program that climbs to the worst of some goals from every start: a test for each goal, and a table of what they came to.
 * climb: puts the error it came to in *error, and judges it. add_known: adds tests of inputs that are known, or NULL. */
typedef struct climb_program {
    const char *name, *unit;
    int goals, starts; /* starts: the first so many */
    const char *(*goal_name)(int goal);
    void (*climb)(int goal, enum climb_start start, double *error);
    void (*add_known)(Suite *suite);
} climb_program;

int climb_main(int argc, char **argv, const climb_program *program);

#endif
