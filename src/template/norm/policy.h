/* Policies: the constant options that an instance of the row norm is compiled for.
 *
 * Options in `must` are constants in the loops. Options in `may` are tested while the loops run. All others are constant zeros.
 * The predicate of an instance follows from its policy, so it cannot disagree with its code.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_POLICY_H
#define NRG_TEMPLATE_NORM_POLICY_H

#include "../../job/norm.h"
#include "../lane_sum.h"

/* Whether the general instances are the only ones. */
#ifdef NRG_SMALL
#define NORM_IS_SMALL 1
#else
#define NORM_IS_SMALL V_SMALL
#endif

enum norm_option {
    OPT_CENTRED = 1 << 0,
    OPT_EXACT = 1 << 1, /* the exact grade */
    /* source: x, or r = x + y rounded to the dtype of r */
    OPT_ADD_Y = 1 << 2,
    OPT_STORE_R = 1 << 3, /* r may alias x or y */
    OPT_READ_R = 1 << 4,  /* apply reads r instead of x and y */
    OPT_KEEP_R = 1 << 5,  /* chosen by a schedule: apply reads 16-bit r from a staging buffer */
    OPT_Y_F32 = 1 << 6,   /* beside 16-bit x, like the next five */
    OPT_R_F32 = 1 << 7,
    OPT_W_F32 = 1 << 8,
    OPT_X_F32 = 1 << 9, /* x or o is a staging buffer, or o has another dtype */
    OPT_O_F32 = 1 << 10,
    /* apply */
    OPT_WEIGHT = 1 << 11,
    OPT_BIAS = 1 << 12,
    OPT_W_OFFSET = 1 << 13,
    OPT_AFTER = 1 << 14, /* y is added to the output */
    /* memory */
    OPT_STREAM_R = 1 << 15,
    OPT_STREAM_O = 1 << 16,
    OPT_LINES_O =
        1 << 17, /* STREAM_LINES of o (step.h). f32 rms 8192x1004: 3.0 ms, as STREAM_ROWS 3.8 (Emerald Rapids, AVX-512) */
    OPT_PREFETCH = 1 << 18,
    /* what few jobs have */
    OPT_STATISTICS = 1 << 19, /* mean or rstd is an output */
    OPT_DIVISOR = 1 << 20,    /* another divisor than √(σ² + ε) */
    OPT_GROUPS = 1 << 21,
    OPT_HEADS = 1 << 22, /* groups that share w and b */
    OPT_GATE = 1 << 23,  /* outputs are multiplied by g(z), which is in a staging buffer */
    OPT_READY = 1 << 24, /* chosen by a schedule: w and b are f32, in the order of steps, and the offset is in w */

    ROW_KINDS = OPT_CENTRED | OPT_EXACT,
    OPT_CACHED_R = OPT_ADD_Y | OPT_STORE_R | OPT_READ_R,
    OPT_RESIDUAL = OPT_CACHED_R | OPT_STREAM_R,
    OPT_ALL = (OPT_READY - 1) & ~(ROW_KINDS | OPT_KEEP_R)
};

enum { OUTPUT_CHUNK = 1024 }; /* elements that are applied before the next ones, or rows, are summed */

typedef struct norm_policy {
    nrg_dtype dtype;
    unsigned must, may;
    size_t least, most, multiple; /* elements of a row; least == most: a constant */
    size_t ahead;                 /* bytes between a load and the line that it prefetches */
    int interleaved;              /* schedule long_rows: one loop sums a row and applies the row before it */
    int rare_tail;                /* a tail goes through memory, which is less code */
    int recomputes;               /* apply adds y again where it cannot read r */
    int absent;                   /* 1: not on this path */
    int rows;                     /* schedule full_tiles: the rows of a tile, a constant */
} norm_policy;

/* The options that a step tests, in one register. Without NRG_IN_REGISTER the compiler makes a variable of each option before a
 * loop, which takes longer than a short row and more registers than there are. */
NRG_INLINE unsigned options_in(unsigned options, norm_policy P)
{
    if (P.may == 0)
        return P.must;
    NRG_IN_REGISTER(options);
    return (options & P.may) | P.must;
}

NRG_INLINE int policy_accepts(norm_policy P, unsigned options, size_t dim)
{
    return !P.absent && (options & ~P.may) == P.must && dim - P.least <= P.most - P.least && dim % P.multiple == 0 &&
           (!(P.may & OPT_ADD_Y) || P.recomputes || (options & (OPT_ADD_Y | OPT_READ_R)) != OPT_ADD_Y);
}

NRG_INLINE int may_have(norm_policy P, unsigned option) { return ((P.must | P.may) & option) != 0; }
NRG_INLINE int is_centred(norm_policy P) { return (P.must & OPT_CENTRED) != 0; }
NRG_INLINE int is_exact(norm_policy P) { return (P.must & OPT_EXACT) != 0; }

/* A constant where the policy has one. */
NRG_INLINE size_t dim_of(const nrg_norm_job *job, norm_policy P) { return P.least == P.most ? P.least : job->dim; }

/* Steps of bf16 are pairs of vectors (step.h). */
NRG_INLINE int is_paired(int G, nrg_dtype D) { return !V_SMALL && D == NRG_BF16 && G > 1; }

/* ---- the options of a job ---- */

enum { LINES_FROM = 256 }; /* elements: shorter rows go by tiles, which have no STREAM_LINES */

/* Streaming needs 16-byte alignment of every row and group. It gains nothing for a row in place, whose lines are in cache. */
NRG_INLINE int can_be_streamed(const nrg_norm_job *job, const char *out, size_t stride, size_t group_bytes)
{
    return job->stream == 1 && (job->groups == 1 || group_bytes % 16 == 0) &&
           rows_stream(out, stride, job->groups * group_bytes, 0) && out != job->x && out != job->y && out != job->z;
}

static __attribute__((noinline)) unsigned memory_options(const nrg_norm_job *job, nrg_dtype D)
{
    const size_t bytes = bytes_of(job->dim, D, 0);
    const int r = job->r && can_be_streamed(job, job->r, job->r_stride, bytes_of(job->dim, D, job->r_f32));
    const int has_lines = D == NRG_F32 && job->o && job->stream == 1 && job->dim > LINES_FROM && job->groups == 1 &&
                          job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY && job->o != job->x &&
                          job->o != job->y;
    const int lines = has_lines && rows_stream(job->o, job->o_stride, bytes, 1) == STREAM_LINES;
    const int o = !lines && can_be_streamed(job, job->o, job->o_stride, bytes);
    return OPT_PREFETCH | (r ? OPT_STREAM_R : 0) | (o ? OPT_STREAM_O : 0) | (lines ? OPT_LINES_O : 0);
}

NRG_INLINE unsigned residual_options(const nrg_norm_job *job)
{
    return (job->y ? OPT_ADD_Y : 0) | (job->r ? OPT_STORE_R | OPT_READ_R : 0);
}

static __attribute__((noinline)) unsigned rare_options(const nrg_norm_job *job, nrg_dtype D)
{
    const nrg_norm_formula *f = &job->formula;
    const unsigned memory = job->stream ? memory_options(job, D) : 0, residual = residual_options(job);
    return (residual & ~(unsigned)((job->after ? OPT_ADD_Y : 0) | (memory & OPT_STREAM_R ? OPT_READ_R : 0))) | memory |
           (nrg_norm_is_exact(f, D) ? OPT_EXACT : 0) | (f->w_offset != 0 ? OPT_W_OFFSET : 0) |
           (job->mean || job->rstd ? OPT_STATISTICS : 0) | (f->divisor != NRG_DIV_ROOT ? OPT_DIVISOR : 0) |
           (job->groups == 1 ? 0
            : job->alike     ? OPT_HEADS
                             : OPT_GROUPS) |
           (job->w ? OPT_WEIGHT : 0) | (job->after && job->y ? OPT_AFTER : 0);
}

/* One test for all rare options: a call of 1x64 takes 40 ns with a test for each, 35 with one (Emerald Rapids, AVX2). */
NRG_INLINE int has_no_rare_option(const nrg_norm_job *job)
{
    const nrg_norm_formula *f = &job->formula;
    const unsigned rare = (unsigned)f->exact | (unsigned)f->divisor | (unsigned)job->stream | (unsigned)job->after;
    return (rare | (job->groups - 1) | (uintptr_t)job->mean | (uintptr_t)job->rstd) == 0 && job->w && f->w_offset == 0;
}

NRG_INLINE unsigned options_of_job(const nrg_norm_job *job, nrg_dtype D)
{
    unsigned options = NRG_RARELY(!has_no_rare_option(job)) ? rare_options(job, D) : OPT_WEIGHT | residual_options(job);
    options |= (unsigned)job->formula.centred * OPT_CENTRED | (job->b ? OPT_BIAS : 0);
    if (D != NRG_F32)
        options |= (unsigned)job->y_f32 * OPT_Y_F32 | (unsigned)job->r_f32 * OPT_R_F32 | (unsigned)job->w_f32 * OPT_W_F32;
    return options;
}

#endif
