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

/* SWEEP_LOOPS: for tests, in addition to one of the others, and without a hash: shapes and options that have their own loops. */
typedef enum sweep_level { SWEEP_QUICK, SWEEP_DEFAULT, SWEEP_FULL, SWEEP_LOOPS } sweep_level;

/* Inputs, then outputs, then scratch: memory that is lent to a call, whose contents afterwards are nobody's business.
 *
 * The names are the norms'. A family with other operands has SWEEP_IN, SWEEP_IN + 1, …, SWEEP_OUT, …, SWEEP_SCRATCH, … */
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
    SWEEP_SCRATCH = SWEEP_FIRST_SCRATCH,
    SWEEP_NOWHERE = SWEEP_OPERANDS /* of a call's operand that is none of the case's */
};

/* What an operand is made of: an nrg_dtype, or one of these. */
enum { SWEEP_F64 = 0x100, SWEEP_I64, SWEEP_I32, SWEEP_BYTE };
size_t sweep_type_size(int type);
const char *sweep_type_name(int type);

/* Where an operand lies in the case's memory. Absent: no rows. */
typedef struct sweep_operand {
    const char *name;
    int type;
    size_t offset, length, stride, rows; /* length in elements, the others in bytes and rows */
    size_t run, run_stride;              /* rows lie in runs of so many, as heads of a token do; bytes from run to run */
    int has_stride, has_run_stride;      /* the call is told them, so that they may be any */
    int may_stay;                        /* an output that need not change */
    int is_read;                         /* an output that is added to: it is filled as inputs are */
    int is_told_zero;                    /* rows lie together, and the call is told 0 for their stride */
    int run_is_told_zero;                /* likewise runs */
    int is_transposed;                   /* the second level of its strides lies inside the first */
    size_t outermost;                    /* steps of the third level */
    int is_kept;                         /* scratch that the call looks at: what is there is its own, or nothing */
    int is_alone;                        /* no other operand may lie between its rows */
    int is_optional;                     /* an output that need not be asked for, whatever the others are */
    uint32_t over;                       /* an output: bits of the operands in whose place it may be */
    unsigned char *at;                   /* where it is; NULL: in the case's memory, at offset */
} sweep_operand;

/* Where a row begins. */
size_t sweep_row(const sweep_operand *operand, size_t row);

enum { SWEEP_CALLS = 6, SWEEP_STRUCTS = 4096 };

/* A call of a case: also in the reference, not there, or only there. */
typedef enum sweep_when { SWEEP_ALWAYS, SWEEP_FUSED, SWEEP_PLAIN } sweep_when;

typedef struct sweep_case {
    uint64_t number; /* from 0 */
    uint64_t seed;   /* what is drawn is drawn from: other ops may come and go without changing it */
    int kernel;      /* of an op and a dtype */
    sweep_level level;
    uint64_t n;    /* number among the cases of that line */
    uint64_t way;  /* what the family makes of it: one of its ways, */
    size_t length; /* and a length; */
    size_t large;  /* 0, or the number, from 1, of one of its large shapes */
    nrg_norm_spec spec;
    nrg_store store;
    nrg_channel_norm_spec channel; /* instead of spec, whose dtype it has, where rows are samples with channels */
    int may_run;                   /* channel: it may have running statistics: sets are channels, less their mean */
    size_t rows, positions;
    size_t planes;             /* a norm: that its rows lie in */
    int shares, reduce_shares; /* nth, of the second phase too; the reference always takes one */
    uint64_t order;            /* of shares: 0, from the first to the last */
    int accumulate;            /* to gradients, or whatever else a call reads and writes */
    uint32_t weights;          /* bits of operands that hold weights */
    int saved;                 /* statistics (in norm_backward also r) come from another call, but not in the reference */
    int recompute;             /* the reference: statistics are computed, nothing is fused */
    int fused;                 /* one call does what several do in the reference */
    int parts;                 /* into which the tensor is cut where that call is one for each part */
    int every_value;           /* x goes through all bit patterns of its dtype, in as many steps as it has elements */
    sweep_operand operands[SWEEP_OPERANDS];
    size_t bytes;                                /* of memory, all operands and the gaps around them */
    const struct sweep_call *calls[SWEEP_CALLS]; /* in turn */
    sweep_when when[SWEEP_CALLS];
    int call_count;
    _Alignas(16) unsigned char structs[SWEEP_STRUCTS]; /* that the calls take, but for pointers and strides */
} sweep_case;

/* The lines of kernels.def, three kernels each; and after them the f32 kernels of ops with a choice of accuracy, at the other
 * grade, whose names end in -exact. */
enum { SWEEP_EXACT_KERNELS = 6 };
extern const int sweep_kernels;
const char *sweep_kernel_op(int kernel);
const char *sweep_kernel_grade(int kernel); /* "" or "-exact" */
const char *sweep_operand_name(const sweep_case *c, int operand);
nrg_dtype sweep_kernel_dtype(int kernel);

/* The number of a kernel's first case; the cases up to that of the next one are its own. */
uint64_t sweep_first(sweep_level level, int kernel);

/* Makes the case of this number; 0 when there are no more. */
int sweep_make(sweep_level level, uint64_t number, sweep_case *c);

/* Fills c->bytes of memory, aligned to 64 bytes: inputs as the case has them, NaNs in every gap, so that what is read from there
 * shows; something finite in outputs, so that what is not written shows. */
void sweep_fill(const sweep_case *c, unsigned char *memory);

/* Runs a case on the active path, in place of its block of memory. */
nrg_status sweep_run(const sweep_case *c, unsigned char *memory);

/* What scalar makes of it by itself is right for every other way to run it: in one share, with ordinary stores, without what a
 * forward pass saved, one step at a time. */
sweep_case sweep_plain(const sweep_case *c);

/* Which share of so many is called i-th: the case's order. */
int sweep_share(const sweep_case *c, int i, int shares);

/* One line about a case. */
enum { SWEEP_TEXT_ROOM = 2048 };
void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);

#endif
