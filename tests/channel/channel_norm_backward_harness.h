/* Calls the backward pass over channels, in all its phases, on fenced buffers and holds the results against others, as
 * norm_backward_harness.h does for rows. harness_channel_backward_test.c proves with kernels that are wrong that it notices.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_HARNESS_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_BACKWARD_HARNESS_H

#include "channel_norm_backward_case.h"
#include "../harness/operands.h"

/* nrg_channel_norm_backward, its reduction and its sums, or what claims to be as good. */
typedef nrg_status channel_backward_phase(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith,
                                          int nth);
typedef nrg_status channel_backward_sums_phase(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                               int64_t *sums, int ith, int nth);

typedef struct channel_backward_kernel {
    channel_backward_phase *backward, *reduce;
    channel_backward_sums_phase *sums;
} channel_backward_kernel;

extern const channel_backward_kernel channel_backward_library;

enum channel_backward_operand {
    CBOP_D_O,
    CBOP_X,
    CBOP_Y,
    CBOP_W,
    CBOP_B,
    CBOP_STATISTICS,
    CBOP_RUNNING_MEAN,
    CBOP_RUNNING_VAR,
    CBOP_DX,
    CBOP_DY,
    CBOP_DW,
    CBOP_DB,
    CBOP_SUMS,
    CBOP_WORKSPACE,
    CBOPERANDS
};

enum { CHANNEL_BACKWARD_OUTPUTS = 4 }; /* dx, dy, dw, db */

/* Everything about a call that must not change a bit of its results. */
typedef struct channel_backward_layout {
    int want[CHANNEL_BACKWARD_OUTPUTS];
    enum channel_backward_operand over[2]; /* what dx and dy are in the place of; themselves where apart */
    int saved;                             /* the statistics of the forward pass are given where they need not be */
    int in_phases;                         /* sums with dw and db first, then dx and dy from them; implies saved */
    int unread;                            /* y and b are given even where nothing reads them */
    nrg_store store;
    int interleaved; /* the rows of all tensors are slices of one buffer */
    int read_only;   /* inputs cannot be written during the call, not even with what they hold */
    int nth, nth_reduce;
    int backwards; /* the last share first */
    size_t spare;  /* bytes of workspace beyond what is needed */
    operand_place place[CBOPERANDS];
} channel_backward_layout;

/* Dense, apart, everything asked for, nothing saved, one call, flush with the fence behind. */
channel_backward_layout channel_backward_layout_plain(const channel_backward_problem *problem);

/* Some layout the problem allows; over many seeds, all of them. */
channel_backward_layout channel_backward_layout_vary(const channel_backward_problem *problem, uint64_t seed);

/* Whether the header lets `output` (CBOP_DX, CBOP_DY) lie over `host` in this layout. */
int channel_backward_may_lie_over(const channel_backward_problem *problem, const channel_backward_layout *layout,
                                  enum channel_backward_operand output, enum channel_backward_operand host);

/* Whether the problem's sums can be had in phases. */
int channel_backward_has_phases(const channel_backward_problem *problem);

/* The most shares that have work. */
size_t channel_backward_work(const channel_backward_problem *problem);

const char *channel_backward_operand_name(enum channel_backward_operand which);

/* Calls the kernel for every share of every phase. NULL, or what it did wrong: a status, or bytes that are not its own changed.
 */
const char *channel_backward_run(const channel_backward_kernel *kernel, const channel_backward_problem *problem,
                                 const channel_backward_layout *layout, channel_backward_result *result);

/* NULL, or the first element of an output the layout asks for that differs. */
const char *channel_backward_compare(const channel_backward_problem *problem, const channel_backward_layout *layout,
                                     const channel_backward_result *expected, const channel_backward_result *got);

/* Both in static storage. */
const char *channel_backward_layout_text(const channel_backward_layout *layout);

#endif
