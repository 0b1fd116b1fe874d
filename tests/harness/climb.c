/* SPDX-License-Identifier: MIT */
#include "climb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "truth.h"

const char *const climb_start_names[CLIMB_STARTS] = {"random", "alike", "far apart", "one lane", "runs"};

static unsigned long times(void)
{
    const char *asked = getenv("NRG_TEST_CLIMB");
    const unsigned long n = asked ? strtoul(asked, NULL, 10) : 1;
    return n ? n : 1;
}

nrg_isa climb_path(void)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    for (size_t i = 1; i < count; i++)
        if (paths[i] != NRG_ISA_GENERIC)
            return paths[i];
    return paths[count - 1];
}

double climb_ulp(double value)
{
    enum { EXPONENT_AT = 52 };
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits >> EXPONENT_AT & 0x7ff) << EXPONENT_AT;
    memcpy(&value, &bits, sizeof value);
    return fmax(value * 0x1p-23, 0x1p-149);
}

size_t climb_steps(size_t usual) { return test_small() ? usual / 8 + 1 : usual * times(); }

uint64_t climb_seed(uint64_t seed) { return test_mix(seed * 1024 + times()); }

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Another value for an element. */
static float changed(float value, const climb_operand *a, uint64_t *state)
{
    enum { MANTISSA = 23 };
    const uint32_t bits = to_bits(value), mantissa = (1u << MANTISSA) - 1;
    switch (test_draw(state, 9)) {
    case 0:
    case 1: /* a few steps of its grid */
        return from_bits(bits + (uint32_t)test_draw(state, 17) - 8);
    case 2:
    case 3: /* a bit */
        return from_bits(bits ^ (1u << test_draw(state, MANTISSA)));
    case 4: /* another number of its size */
        return from_bits((bits & ~mantissa) | (uint32_t)test_draw(state, mantissa + 1));
    case 5: /* just above or just below a power of two, where a rounding is largest and smallest */
        return from_bits((bits & ~mantissa) | (((uint32_t)test_draw(state, 64) - 32) & mantissa));
    case 6: /* larger or smaller */
        return ldexpf(value, (int)test_draw(state, 9) - 4);
    case 7:
        return -value;
    default: /* as another, but for a power of two; and now and then 0 */
        if (test_draw(state, 8) == 0)
            return 0;
        const int power = (int)test_draw(state, 5) - 2; /* first: arguments are drawn in an order that compilers choose */
        return ldexpf(a->values[test_draw(state, a->count)], power);
    }
}

static int is_allowed(float value, const climb_operand *a)
{
    return value == 0 || (fabsf(value) >= ldexpf(1, a->least) && fabsf(value) <= ldexpf(1, a->most));
}

/* What a step changes, and how it was before. */
typedef struct climb_step {
    float **at, *before;
    size_t count;
} climb_step;

static void change(climb_step *s, float *at, float value, const climb_operand *a)
{
    s->at[s->count] = at;
    s->before[s->count++] = *at;
    value = element_round(value, a->dtype);
    if (is_allowed(value, a))
        *at = value;
}

/* The operand of element *i of all, and *i in it. */
static const climb_operand *find_operand(const climb *c, size_t *i)
{
    const climb_operand *a = c->operands;
    for (; *i >= a->count; a++)
        *i -= a->count;
    return a;
}

static void change_some(const climb *c, climb_step *s, size_t all, uint64_t *state)
{
    enum { MOST_AT_ONCE = 3 };
    for (size_t left = test_draw(state, 3) ? 1 : 1 + test_draw(state, MOST_AT_ONCE); left > 0; left--) {
        size_t i = test_draw(state, all);
        const climb_operand *a = find_operand(c, &i);
        change(s, &a->values[i], changed(a->values[i], a, state), a);
    }
}

/* All elements of a lane, whose numbers are the same modulo a power of two; or of a run, whose numbers are when divided by it.
 * They are changed alike, or become alike. */
static void change_many(const climb *c, climb_step *s, size_t all, uint64_t *state)
{
    enum { LOG2_MOST = 8 };
    size_t i = test_draw(state, all);
    const climb_operand *a = find_operand(c, &i);
    const size_t power = (size_t)1 << test_draw(state, LOG2_MOST), of_lane = test_draw(state, 2), alike = test_draw(state, 2);
    const size_t first = of_lane ? i % power : i - i % power, step = of_lane ? power : 1,
                 end = of_lane || a->count - first < power ? a->count : first + power;
    const float value = changed(a->values[i], a, state);
    if (value == 0)
        return; /* where all are 0 a climb has no way on */
    const uint64_t same = *state;
    for (size_t k = first; k < end; k += step) {
        *state = same;
        change(s, &a->values[k], alike ? value : changed(a->values[k], a, state), a);
    }
    *state = test_mix(same);
}

double climb_run(const climb *c, uint64_t seed, size_t steps)
{
    double (*const error_of)(void *) = c->guide ? c->guide : c->error;
    uint64_t state = seed;
    size_t all = 0, most = 3;
    for (size_t i = 0; i < c->count; i++) {
        all += c->operands[i].count;
        most = c->operands[i].count > most ? c->operands[i].count : most;
    }
    climb_step s = {test_allocate(most, sizeof *s.at), test_allocate(most, sizeof *s.before), 0};
    double highest = error_of(c->of);
    for (size_t step = 0; step < steps && !isnan(highest); step++) {
        s.count = 0;
        (test_draw(&state, 2) ? change_many : change_some)(c, &s, all, &state);
        const double error = error_of(c->of);
        if (!(error < highest)) /* a NaN is the end */
            highest = error;
        else
            while (s.count-- > 0)
                *s.at[s.count] = s.before[s.count];
    }
    free(s.at);
    free(s.before);
    return c->guide ? c->error(c->of) : highest;
}

float *climb_add(climb *c, const char *name, size_t rows, size_t dim, enum climb_start start, uint64_t *state)
{
    const size_t count = rows * dim;
    float *values = test_allocate(count, sizeof *values);
    float one = (float)test_uniform(state);
    for (size_t i = 0; i < count; i++) {
        if (start == CLIMB_RUNS && i % dim && i % dim % 64 == 0)
            one = ldexpf((float)test_uniform(state), -(int)test_draw(state, 14));
        values[i] = start == CLIMB_ALIKE || start == CLIMB_RUNS ? one : (float)test_uniform(state);
        if (start == CLIMB_FAR_APART)
            values[i] = ldexpf(values[i], (int)test_draw(state, 41) - 20);
        if (start == CLIMB_ONE_LANE && i % dim % 32 != 0)
            values[i] = 0;
    }
    c->operands[c->count++] = (climb_operand){name, values, count, NRG_F32, -30, 30};
    return values;
}

const char *climb_judge(const climb *c, const char *name, enum climb_start start, double error, const climb_bounds *bounds)
{
    const int is_wrong = !(error <= bounds->limit);
    if (is_wrong || (truth_reporting() && error > bounds->promise)) {
        printf("%s, from %s: %.3f\n", name, climb_start_names[start], error);
        for (size_t i = 0; i < c->count; i++) {
            printf("%s = {", c->operands[i].name);
            for (size_t k = 0; k < c->operands[i].count; k++)
                printf("%s%a", k ? ", " : "", (double)c->operands[i].values[k]);
            printf("}\n");
        }
        fflush(stdout);
    }
    if (is_wrong)
        return truth_wrong("%s, from %s: an error of %.3f, and no input should pass %.3f; its operands are above", name,
                           climb_start_names[start], error, bounds->limit);
    if (error < bounds->least)
        return truth_wrong("%s, from %s: the climb came to %.3f only, less than %.3f", name, climb_start_names[start], error,
                           bounds->least);
    return NULL;
}

/* ---- a program of climbs ---- */

static const climb_program *running;
static double *worst; /* [goals][starts]; the tests' processes share it */

static void climb_from_all(int goal)
{
    for (int start = 0; start < running->starts; start++)
        running->climb(goal, (enum climb_start)start, &worst[goal * running->starts + start]);
}

static void print_table(void)
{
    const truth_table table = {running->unit, running->goals, running->starts, running->goal_name, climb_start_names, worst};
    truth_print(&table);
}

START_TEST(climbs) { climb_from_all(_i); }
END_TEST

START_TEST(worst_cases) { print_table(); }
END_TEST

static void report(void)
{
    for (int goal = 0; goal < running->goals; goal++)
        climb_from_all(goal);
    print_table();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create(running->name);
    if (running->add_known)
        running->add_known(suite);
    tcase_add_loop_test(test_case(suite, "climbs"), climbs, 0, running->goals);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int climb_main(int argc, char **argv, const climb_program *program)
{
    running = program;
    worst = test_shared((size_t)(program->goals * program->starts) * sizeof *worst);
    return truth_main(argc, argv, report, make_suite);
}
