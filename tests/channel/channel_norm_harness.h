/* Calls the forward pass over channels on fenced buffers and holds the results against others, as norm_harness.h does for rows:
 * one call, or the three phases of statistics in parts. harness_channel_test.c proves with kernels that are wrong that it
 * notices.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CHANNEL_CHANNEL_NORM_HARNESS_H
#define NRG_TESTS_CHANNEL_CHANNEL_NORM_HARNESS_H

#include "channel_norm_case.h"
#include "../harness/operands.h"

/* nrg_channel_norm_forward and the functions for statistics in parts, or what claims to be as good. */
typedef nrg_status channel_forward_call(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth);
typedef nrg_status channel_sums_call(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                                     int nth);
typedef nrg_status channel_statistics_call(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args,
                                           const int64_t *sums, int ith, int nth);

typedef struct channel_kernel {
    channel_forward_call *forward;
    channel_sums_call *sums;
    channel_statistics_call *statistics;
} channel_kernel;

extern const channel_kernel channel_library;

enum channel_operand {
    COP_X,
    COP_Y,
    COP_W,
    COP_B,
    COP_O,
    COP_MEAN,
    COP_RSTD,
    COP_STATISTICS,
    COP_RUNNING_MEAN,
    COP_RUNNING_VAR,
    COP_SUMS,
    COPERANDS
};

/* Everything about a call that must not change a bit of its results. */
typedef struct channel_layout {
    int want_mean, want_rstd, want_statistics;
    int in_phases; /* sums, statistics from them, and the forward pass with these */
    int late;      /* in phases: mean and rstd are asked of the forward pass, which has them from statistics */
    nrg_store store;
    enum channel_operand over; /* what o is in the place of: COP_X, COP_Y, or COP_O where apart */
    int interleaved;           /* the rows of x, y and o are slices of one buffer */
    int read_only;             /* inputs cannot be written during the call, not even with what they hold */
    int nth;
    int backwards; /* the last share first */
    operand_place place[COPERANDS];
} channel_layout;

/* Dense, apart, everything asked for, one call, flush with the fence behind. */
channel_layout channel_layout_plain(const channel_problem *problem);

/* Some layout the problem allows; over many seeds, all of them. */
channel_layout channel_layout_vary(const channel_problem *problem, uint64_t seed);

/* What the shares of a forward call are made of. */
size_t channel_work(const channel_problem *problem);

/* Whether the problem's statistics can be had in phases. */
int channel_has_phases(const channel_problem *problem);

const char *channel_operand_name(enum channel_operand which);

/* Calls the kernel for every share. NULL, or what it did wrong: a status, or bytes that are not its own changed. */
const char *channel_run(const channel_kernel *kernel, const channel_problem *problem, const channel_layout *layout,
                        channel_result *result);

/* NULL, or the first element of an output the layout asks for that differs. */
const char *channel_compare(const channel_problem *problem, const channel_layout *layout, const channel_result *expected,
                            const channel_result *got);

/* Both in static storage. */
const char *channel_layout_text(const channel_layout *layout);

#endif
