/* Calls a norm kernel on fenced buffers and holds the result against another one. Everything that can go wrong in a kernel's
 * use of memory is noticed here, and harness_test.c proves it with kernels that are wrong.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_HARNESS_H
#define NRG_TESTS_NORM_NORM_HARNESS_H

#include "norm_case.h"
#include "../harness/operands.h"

/* nrg_norm_forward, or something that claims to be as good. */
typedef nrg_status norm_kernel(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth);

enum norm_operand { OP_X, OP_Y, OP_Z, OP_W, OP_B, OP_O, OP_R, OP_MEAN, OP_RSTD, OPERANDS };

enum norm_alias {
    APART,
    O_IS_X,
    O_IS_Y,
    O_IS_Z,
    R_IS_X,
    R_IS_Y,
    O_IS_X_R_IS_Y,
    O_IS_Y_R_IS_X,
    O_IS_Z_R_IS_X,
    O_IS_Z_R_IS_Y,
    ALIASES
};

/* The operand that o, or r, is in the place of; OP_O, OP_R themselves where apart. */
enum norm_operand norm_alias_of_o(enum norm_alias alias);
enum norm_operand norm_alias_of_r(enum norm_alias alias);

/* Everything about a call that must not change a bit of its results. */
typedef struct norm_layout {
    int want_r, want_mean, want_rstd;
    nrg_store store;
    enum norm_alias alias;
    int interleaved; /* the rows of x, y, z, o and r are slices of one buffer */
    int read_only;   /* inputs cannot be written during the call, not even with what they hold */
    int nth;
    int backwards; /* the last share first */
    operand_place place[OPERANDS];
} norm_layout;

/* Dense, apart, everything asked for, one call, flush with the fence behind. */
norm_layout norm_layout_plain(const norm_problem *problem);

/* Some layout the problem allows; over many seeds, all of them. */
norm_layout norm_layout_vary(const norm_problem *problem, uint64_t seed);

/* The same for gaps, pads and sides, of any call's operands. */
void norm_places_vary(operand_place *places, int count, uint64_t seed);

int norm_alias_allowed(const norm_problem *problem, const norm_layout *layout, enum norm_alias alias);
const char *norm_alias_name(enum norm_alias alias);

/* Calls the kernel for every share. NULL, or what it did wrong: a status, or bytes that are not its own changed. */
const char *norm_run(norm_kernel *kernel, const norm_problem *problem, const norm_layout *layout, norm_result *result);

/* NULL, or the first element of an output the layout asks for that differs. */
const char *norm_compare(const norm_problem *problem, const norm_layout *layout, const norm_result *expected,
                         const norm_result *got);

/* Both in static storage. */
const char *norm_layout_text(const norm_layout *layout);

#endif
