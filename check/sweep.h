/* check/sweep.h: the cases nrg check runs: what is asked for, where the operands lie, and what is in them.
 *
 * Cases and data are made with integers and exact floating-point operations only, so they are the same on every machine.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_SWEEP_H
#define NRG_CHECK_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

typedef enum sweep_level { SWEEP_QUICK, SWEEP_DEFAULT, SWEEP_FULL } sweep_level;

/* Inputs, then outputs, then scratch: memory that is lent to a call, whose contents afterwards are nobody's business.
 *
 * The names are the norms'. A family with other operands has SWEEP_IN, SWEEP_IN + 1, …, SWEEP_OUT, …, SWEEP_SCRATCH, … and names
 * of its own for them. */
enum {
    SWEEP_X,
    SWEEP_Y,
    SWEEP_Z,
    SWEEP_W,
    SWEEP_B,
    SWEEP_R_IN,
    SWEEP_D_O,
    SWEEP_DR_IN,
    SWEEP_RUNNING_MEAN,
    SWEEP_RUNNING_VAR,
    SWEEP_LAST_INPUT = SWEEP_RUNNING_VAR + 4,
    SWEEP_O,
    SWEEP_R,
    SWEEP_MEAN,
    SWEEP_RSTD,
    SWEEP_STATISTICS,
    SWEEP_SUMS,
    SWEEP_NEW_MEAN, /* running statistics, copied and then updated */
    SWEEP_NEW_VAR,
    SWEEP_SCALE,
    SWEEP_SHIFT,
    SWEEP_DX,
    SWEEP_DY,
    SWEEP_DZ,
    SWEEP_DW,
    SWEEP_DB,
    SWEEP_WORKSPACE,
    SWEEP_LAST_SCRATCH = SWEEP_WORKSPACE + 2,
    SWEEP_OPERANDS,
    SWEEP_FIRST_OUTPUT = SWEEP_O,
    SWEEP_FIRST_SCRATCH = SWEEP_WORKSPACE,
    SWEEP_IN = SWEEP_X,
    SWEEP_OUT = SWEEP_FIRST_OUTPUT,
    SWEEP_SCRATCH = SWEEP_FIRST_SCRATCH
};

/* What an operand is made of: an nrg_dtype, or one of these. */
enum { SWEEP_F64 = 0x100, SWEEP_I64, SWEEP_I32 };
size_t sweep_type_size(int type);
const char *sweep_type_name(int type);

/* Where an operand lies in the case's memory. Absent: no rows. */
typedef struct sweep_operand {
    int type;
    size_t offset, length, stride, rows; /* length in elements, the others in bytes and rows */
    size_t run, run_stride;              /* rows lie in runs of so many, as heads of a token do; bytes from run to run */
    int has_stride, has_run_stride;      /* the call is told them, so that they may be any */
    int may_stay;                        /* an output that need not change */
    int is_read;                         /* an output that is added to: it is filled as inputs are */
} sweep_operand;

/* Where a row begins. */
size_t sweep_row(const sweep_operand *operand, size_t row);

typedef struct sweep_case {
    uint64_t number; /* from 0 */
    int kernel;      /* of an op and a dtype */
    sweep_level level;
    uint64_t n; /* number among the cases of that line */
    nrg_norm_spec spec;
    nrg_channel_norm_spec channel; /* instead of spec, whose dtype it has, where rows are samples with channels */
    size_t rows, positions;
    int shares, reduce_shares; /* nth, of the second phase too; the reference always takes one */
    int accumulate;
    int saved;       /* statistics (in norm_backward also r) come from another call, but not in the reference */
    int recompute;   /* the reference: statistics are computed, nothing is fused */
    int fused;       /* one call does what several do in the reference */
    int parts;       /* into which the tensor is cut where that call is one for each part */
    int every_value; /* x goes through all bit patterns of its dtype, in as many steps as it has elements */
    sweep_operand operands[SWEEP_OPERANDS];
    size_t bytes; /* of memory, all operands and the gaps around them */
} sweep_case;

/* The lines of kernels.def, three kernels each. */
extern const int sweep_kernels;
const char *sweep_kernel_op(int kernel);
const char *sweep_operand_name(const sweep_case *c, int operand);
nrg_dtype sweep_kernel_dtype(int kernel);

/* Makes the case of this number; 0 when there are no more. */
int sweep_make(sweep_level level, uint64_t number, sweep_case *c);

/* Fills c->bytes of memory, aligned to 64 bytes: inputs as the case has them, NaNs in every gap, so that what is read from there
 * shows; something finite in outputs, so that what is not written shows. */
void sweep_fill(const sweep_case *c, unsigned char *memory);

/* Runs a case on the active path, in place of its block of memory. */
nrg_status sweep_run(const sweep_case *c, unsigned char *memory);

/* One line about a case. */
enum { SWEEP_TEXT_ROOM = 1024 };
void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);

#endif
