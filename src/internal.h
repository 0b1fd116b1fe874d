/* What the public layer and the paths share: jobs (checked arguments) and the kernel table.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_INTERNAL_H
#define NRG_INTERNAL_H

#include <float.h>

#include "../include/nrg/nrg.h"

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

/* The three forms the divisor takes once sum, mean and none are folded into one eps (set_divisor in norm.c). */
enum nrg_divisor {
    NRG_DIV_ROOT,  /* s = √(σ² + eps) */
    NRG_DIV_SIGMA, /* s = σ + eps */
    NRG_DIV_MAX    /* s = max(σ, eps) */
};

/* A share of rows for norm_forward. Everything in it has been checked; strides are the real ones, in bytes. */
typedef struct nrg_norm_job {
    const char *x, *y; /* y: NULL where absent */
    const char *w, *b; /* NULL where absent */
    char *o, *r;       /* r: NULL where not asked for */
    float *mean, *rstd;
    size_t x_stride, y_stride, o_stride, r_stride;
    size_t dim;
    size_t row_begin, row_end; /* the share */
    int y_f32, r_f32, w_f32;   /* 1: that operand is f32 beside 16-bit x (for f32 x: always 1) */
    int centred, after;        /* after: y is added to the output, not before the norm */
    int stream;                /* 1: non-temporal stores where the alignment allows them */
    enum nrg_divisor divisor;
    double eps;        /* of the divisor form above */
    double d, inv_dim; /* dim as a double, and 1/d */
    double k;          /* c/√d */
    float w_offset;
} nrg_norm_job;

/* The kernels of one path: one function pointer per line of kernels.def. Tables are const and have no holes. */
typedef struct nrg_table {
    nrg_isa isa;
#define NRG_KERNEL(op, dtype, job) void (*op##_##dtype)(const struct nrg_##job##_job *);
#include "kernels.def"
#undef NRG_KERNEL
} nrg_table;

/* The kernels themselves; a path that is not in the build is declared and never called. */
#define NRG_KERNEL(op, dtype, job)                                                                                               \
    void nrg_scalar_##op##_##dtype(const struct nrg_##job##_job *);                                                              \
    void nrg_avx2_##op##_##dtype(const struct nrg_##job##_job *);                                                                \
    void nrg_avx512_##op##_##dtype(const struct nrg_##job##_job *);                                                              \
    void nrg_neon_##op##_##dtype(const struct nrg_##job##_job *);
#include "kernels.def"
#undef NRG_KERNEL

extern const nrg_table nrg_table_scalar, nrg_table_avx2, nrg_table_avx512, nrg_table_neon;

/* dispatch.c: the table calls go through. Never NULL, at any time of the process's life. */
const nrg_table *nrg_active_table(void);

/* dispatch.c, for the tests: the best built path for a set of feature bits; what a start with this NRG_ISA and these
 * features would choose; the state before the constructor ran. */
nrg_isa nrg_best_isa(unsigned features);
nrg_isa nrg_choose_isa(const char *env, unsigned features, const char **reason);
void nrg_dispatch_forget(void);

/* dispatch.c: L2 size in bytes as the CPU reports it, or a cautious 1 MiB: the scale of the streaming rule. */
size_t nrg_l2_bytes(void);

#endif
