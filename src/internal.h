/* What the public layer and the paths share: jobs (checked arguments) and the kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_INTERNAL_H
#define NRG_INTERNAL_H

#include <float.h>

#include "../include/nrg/nrg.h"
#include "paths.h"

/* The results are defined to the last bit, and these options change bits. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                                   \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error "nrg must not be compiled with -ffast-math or a part of it"
#endif
#if FLT_EVAL_METHOD != 0
#error "nrg needs float arithmetic in float: on 32-bit x86, -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* The three forms the divisor takes once sum, mean and none are folded into one eps (set_formula in norm_formula.h). */
enum nrg_divisor {
    NRG_DIV_ROOT,  /* s = √(σ² + eps) */
    NRG_DIV_SIGMA, /* s = σ + eps */
    NRG_DIV_MAX    /* s = max(σ, eps) */
};

/* What a norm computes, beside its operands. */
typedef struct nrg_norm_formula {
    int centred;
    enum nrg_divisor divisor;
    double eps;        /* of the divisor form above */
    double d, inv_dim; /* elements of a row or group as a double, and 1/d */
    double k;          /* c/√d */
    float w_offset;
} nrg_norm_formula;

/* A share of rows for norm_forward. Everything in it has been checked; strides are the real ones, in bytes.
 *
 * With groups > 1 a row of the job is one group of a row of the tensor: row n is group n mod groups of row n / groups. */
typedef struct nrg_norm_job {
    const char *x, *y; /* y: NULL where absent */
    const char *z;     /* NULL without a gate */
    const char *w, *b; /* NULL where absent */
    char *o, *r;       /* r: NULL where not asked for */
    float *mean, *rstd;
    size_t x_stride, y_stride, z_stride, o_stride, r_stride;
    size_t dim, groups;        /* dim: of a group */
    size_t row_begin, row_end; /* the share */
    int y_f32, r_f32, w_f32;   /* 1: that operand is f32 beside 16-bit x (for f32 x: always 1) */
    int after;                 /* y is added to the output, not before the norm */
    int stream;                /* 1: non-temporal stores where the alignment allows them */
    nrg_gate gate;
    nrg_activation activation;
    nrg_norm_formula formula;
} nrg_norm_job;

/* Rows that norm_backward takes together: they add up in f32 before one addition to the partial sum in double. */
enum { NRG_ROW_BATCH = 4 };

/* A share for norm_backward: blocks of rows (the last block ends at `rows`). Without partial sums a share is one block. */
typedef struct nrg_norm_backward_job {
    const char *d_o, *dr_in, *x, *y, *z, *w, *b; /* NULL where absent. x: r itself where that is given; then y is NULL */
    char *dx, *dy, *dz;                          /* NULL where not asked for */
    const float *mean;                           /* [rows, groups]; NULL: to be recomputed, or not centred */
    double *dw, *db;                             /* partial sums, [blocks][groups · dim]; NULL where not asked for */
    size_t d_o_stride, dr_in_stride, x_stride, y_stride, z_stride, dx_stride, dy_stride, dz_stride;
    size_t dim, groups;        /* dim: of a group */
    size_t row_begin, row_end; /* the share, in rows of the tensor: whole blocks where there are partial sums */
    size_t block_rows;
    int x_f32, y_f32, r_f32, w_f32; /* 1: that operand is f32 beside a 16-bit dtype (f32: always 1). dr_in is as r */
    int after, stream;
    nrg_gate gate;
    nrg_activation activation;
    nrg_norm_formula formula;
} nrg_norm_backward_job;

/* Elements begin to end for activation (o = g(x)) and activation_backward (o = d_o · g'(x)). */
typedef struct nrg_activation_job {
    const char *x, *d_o; /* d_o: NULL for activation */
    char *o;
    size_t begin, end;
    int stream;
    nrg_activation activation;
} nrg_activation_job;

/* A share of sets for channel_norm_forward. Everything in it has been checked; strides are the real ones, in bytes. */
typedef struct nrg_channel_norm_job {
    const char *x, *y, *w, *b;              /* NULL where absent */
    char *o;                                /* NULL: the statistics are all that is wanted */
    float *mean, *rstd;                     /* [sets], NULL where not asked for */
    nrg_channel_statistics *statistics;     /* [sets] to fill, NULL where not asked for */
    const nrg_channel_statistics *given;    /* [sets], NULL: not given */
    const float *fixed_mean, *fixed_var;    /* [c] NRG_STATISTICS_RUNNING, NULL: not running */
    float *running_mean, *running_var;      /* [c] to be updated, or NULL */
    int64_t *sums;                          /* [sets][NRG_SUMS_WORDS]: the sums are all that is wanted; otherwise NULL */
    size_t n, c, s, groups, group_channels; /* groups: 0 with NRG_OVER_BATCH; group_channels: of a set's group */
    size_t x_stride, y_stride, o_stride;    /* NCHW: of samples; NHWC: of positions */
    size_t segment;
    /* The share. Where the statistics are there already (given, fixed or folded): planes n·c + channel with NCHW, positions n·s +
     * position with NHWC. Otherwise channels where by_channel, or else sets n·groups + group. */
    size_t begin, end;
    size_t out_begin, out_end; /* fixed: the sets whose mean, rstd and statistics this share writes */
    int by_channel;            /* NRG_OVER_BATCH, and instance norm with running statistics to update */
    int nhwc, folded, centred, w_f32, stream;
    nrg_activation activation;
    double eps, momentum;
} nrg_channel_norm_job;

/* A share for channel_norm_backward. */
typedef struct nrg_channel_norm_backward_job {
    const char *d_o, *x, *y, *w, *b;
    char *dx, *dy;                       /* NULL where not asked for */
    float *dw, *db;                      /* [c] NRG_OVER_BATCH; NULL where not asked for */
    double *block_dw, *block_db;         /* [blocks][c] NRG_OVER_GROUP: sums over a block of samples; NULL where not asked for */
    const nrg_channel_statistics *given; /* [sets], NULL: to be computed */
    const float *fixed_mean, *fixed_var; /* [c] NRG_STATISTICS_RUNNING, NULL: not running */
    const int64_t *given_sums;           /* [c][NRG_SUMS_WORDS], NULL: to be computed */
    int64_t *sums;                       /* [c][NRG_SUMS_WORDS]: these, and dw and db, are all that is wanted; otherwise NULL */
    size_t n, c, s, groups, group_channels;
    size_t d_o_stride, x_stride, y_stride, dx_stride, dy_stride;
    size_t segment;
    size_t begin, end; /* channels with NRG_OVER_BATCH; otherwise block·groups + group, of block_samples each */
    size_t block_samples;
    int by_channel; /* NRG_OVER_BATCH */
    int nhwc, centred, w_f32, stream, accumulate;
    nrg_activation activation;
    double eps;
} nrg_channel_norm_backward_job;

#include "job/rope.h"

/* g of n floats; in may be out. g and its slope g' likewise; none of the outputs may overlap the other. Each path has its own,
 * called once a few hundred elements by the kernels that fuse an activation. */
#define NRG_ACTIVATE(path, isa, unused)                                                                                          \
    void nrg_##path##_activate(nrg_activation g, const float *in, float *out, size_t n);                                         \
    void nrg_##path##_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n);
NRG_EACH_PATH(NRG_ACTIVATE, )
#undef NRG_ACTIVATE

/* norm_backward.c, for the call that rotates what arrives first: how many shares cut the rows into blocks, or (without dw and db)
 * into pieces of `rows`; and the rows of share ith of nth. */
size_t nrg_norm_backward_pieces(const nrg_norm_backward_args *args, size_t rows);
void nrg_norm_backward_rows(const nrg_norm_backward_args *args, int ith, int nth, size_t *begin, size_t *end);

#include "job/recurrent.h"
#include "job/embed.h"
#include "job/relative.h"
#include "job/score_bias.h"

#include "kernels.h"

/* dispatch.c, for the tests: the best built path for a set of feature bits; what a start with this NRG_ISA and these
 * features would choose; the state before the constructor ran. */
nrg_isa nrg_best_isa(unsigned features);
nrg_isa nrg_choose_isa(const char *env, unsigned features, const char **reason);
void nrg_dispatch_forget(void);

/* cpu.c: L2 size in bytes as the CPU reports it, or a cautious 1 MiB: the scale of the streaming rule. */
size_t nrg_l2_bytes(void);

#endif
