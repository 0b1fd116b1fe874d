/* A case of nrg check, run in a thread whose arithmetic is set otherwise, between fences.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_ENVIRONMENT_TRIAL_H
#define NRG_TESTS_ENVIRONMENT_TRIAL_H

#include "../../check/hash.h"
#include "../../check/sweep.h"
#include "../harness/fence.h"

typedef struct environment {
    const char *name;
    unsigned control; /* bits that are set */
    int flushes_results, flushes_operands, rounds;
} environment;

/* Those that this CPU has, the usual one not among them. Returns how many. */
enum { ENVIRONMENTS_MOST = 10 };
int environments(environment all[ENVIRONMENTS_MOST]);

/* What a case's operands hold. The last two are of numbers alone from 1/2 to 2, with the signs that nrg check has there; and of
 * those every fourth in f32 and bf16 is a subnormal of f32, or a 0 in its place. Halves have no subnormals of f32. */
typedef enum trial_data { TRIAL_ANY, TRIAL_ORDINARY, TRIAL_SUBNORMALS, TRIAL_ZEROS } trial_data;

/* The memory of a case: as it was filled, and as three kinds of calls leave it. */
typedef enum trial_copy { TRIAL_FILLED, TRIAL_USUAL, TRIAL_USUAL_ZEROS, TRIAL_SCALAR, TRIAL_RESULT, TRIAL_COPIES } trial_copy;

typedef struct trial {
    sweep_case c, plain;        /* plain: as the reference is called */
    char text[SWEEP_TEXT_ROOM]; /* what it is */
    unsigned char *memory[TRIAL_COPIES];
    unsigned char *is_own; /* by the byte: what a call may write */
    size_t room;
    fence pages;   /* where calls run */
    unsigned side; /* of its fences: they take turns */
} trial;

/* A case; 0 where it has more bytes than that. */
int trial_make(trial *t, uint64_t number, size_t most);
void trial_free(trial *t);

/* Fills TRIAL_FILLED. */
void trial_fill(trial *t, trial_data data);

/* Runs the case, or its plain one, from what is filled, and keeps what it leaves. Ends the test where the call is refused, writes
 * what is not its own, or changes how the thread computes. */
void trial_run(trial *t, const sweep_case *c, nrg_isa isa, const environment *in, trial_copy to);

/* Elements that are numbers, and what they are. */
int trial_is_number(int type);
double trial_number(int type, uint64_t bits);

/* body with `at` the offset of each element of an operand, in row row_ and column i_. */
#define TRIAL_EACH(operand, at)                                                                                                  \
    for (size_t row_ = 0; row_ < (operand)->rows; row_++)                                                                        \
        for (size_t i_ = 0, at = sweep_row(operand, row_); i_ < (operand)->length; i_++, at += sweep_type_size((operand)->type))

#endif
