/* Calls the two phases of the backward pass on fenced buffers and holds the results against others, as norm_harness.h does for
 * the forward pass. harness_backward_test.c proves with kernels that are wrong that it notices.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_BACKWARD_HARNESS_H
#define NRG_TESTS_NORM_NORM_BACKWARD_HARNESS_H

#include "norm_backward_case.h"
#include "../harness/operands.h"

/* nrg_norm_backward and nrg_norm_backward_reduce, or what claims to be as good. */
typedef nrg_status norm_backward_phase(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth);

typedef struct norm_backward_kernel {
    norm_backward_phase *rows, *reduce;
} norm_backward_kernel;

extern const norm_backward_kernel norm_backward_library;

enum norm_backward_operand {
    BOP_D_O,
    BOP_DR_IN,
    BOP_X,
    BOP_Y,
    BOP_R,
    BOP_Z,
    BOP_W,
    BOP_B,
    BOP_MEAN,
    BOP_DX,
    BOP_DY,
    BOP_DZ,
    BOP_DW,
    BOP_DB,
    BOP_WORKSPACE,
    BOPERANDS
};

enum { BACKWARD_OUTPUTS = 5 }; /* dx, dy, dz, dw, db */

/* Everything about a call that must not change a bit of its results. */
typedef struct norm_backward_layout {
    int want[BACKWARD_OUTPUTS];
    int use_r;                          /* r is given, and x and y are not read */
    int unread;                         /* what is not read is given all the same */
    enum norm_backward_operand over[3]; /* what dx, dy and dz are in the place of; themselves where apart */
    int want_mean;                      /* the mean of the forward pass is given */
    nrg_store store;
    int interleaved; /* the rows of all tensors are slices of one buffer */
    int read_only;   /* inputs cannot be written during the call, not even with what they hold */
    int nth, nth_reduce;
    int backwards; /* the last share first */
    size_t spare;  /* bytes of workspace beyond what is needed */
    operand_place place[BOPERANDS];
} norm_backward_layout;

/* Dense, apart, everything asked for, r not given, one call, flush with the fence behind. */
norm_backward_layout norm_backward_layout_plain(const norm_backward_problem *problem);

/* Some layout the problem allows; over many seeds, all of them. */
norm_backward_layout norm_backward_layout_vary(const norm_backward_problem *problem, uint64_t seed);

/* Whether the header's matrix, and the dtypes, let `output` (BOP_DX, BOP_DY, BOP_DZ) lie over `host` in this layout. */
int norm_backward_may_lie_over(const norm_backward_problem *problem, const norm_backward_layout *layout,
                               enum norm_backward_operand output, enum norm_backward_operand host);

const char *norm_backward_operand_name(enum norm_backward_operand which);

/* Calls the kernel for every share, and the reduction where there is one. NULL, or what it did wrong: a status, or bytes that are
 * not its own changed. */
const char *norm_backward_run(const norm_backward_kernel *kernel, const norm_backward_problem *problem,
                              const norm_backward_layout *layout, norm_backward_result *result);

/* NULL, or the first element of an output the layout asks for that differs. */
const char *norm_backward_compare(const norm_backward_problem *problem, const norm_backward_layout *layout,
                                  const norm_backward_result *expected, const norm_backward_result *got);

/* Both in static storage. */
const char *norm_backward_layout_text(const norm_backward_layout *layout);

#endif
