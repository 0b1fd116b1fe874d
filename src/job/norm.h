/* The jobs of the norms of rows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_NORM_H
#define NRG_JOB_NORM_H

#include "../../include/nrg/norm_backward.h"
#include "../../include/nrg/norm_parts.h"
#include "planes.h"

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
    int exact; /* NRG_ACCURACY_EXACT */
} nrg_norm_formula;

/* Whether nothing that is done to a row changes its h, so that the gradient is 0: it has no more elements than the norm takes
 * away, the mean and, where s is σ itself, the length. */
static inline int nrg_norm_has_no_gradient(const nrg_norm_formula *f, double sigma)
{
    const int is_length = f->eps == 0 || (f->divisor == NRG_DIV_MAX && sigma > f->eps);
    return f->d <= (double)(f->centred + is_length);
}

/* Whether rows of this dtype are done the exact way: results of 16 bits have nothing of it. */
static inline int nrg_norm_is_exact(const nrg_norm_formula *f, nrg_dtype dtype) { return f->exact && dtype == NRG_F32; }

/* What of a forward pass a job is: all of it; from x to statistics (and r); from r or x and given statistics to o. */
enum nrg_norm_part { NRG_NORM_WHOLE, NRG_NORM_SUMS, NRG_NORM_APPLY };

/* How the elements of a row are done: nrg_row_statistics.opaque. */
enum nrg_norm_way {
    NRG_NORM_UNKNOWN, /* statistics from elsewhere */
    NRG_NORM_FAST,    /* the fast grade, in floats */
    NRG_NORM_EXACT,   /* the exact grade, in floats that carry what they lose */
    NRG_NORM_DOUBLE   /* in double */
};

/* Where norm_quantized puts rows, so many of which lie together (nrg_format_rows); bytes from group to group, from row to row. */
typedef struct nrg_norm_quant {
    char *q, *scales; /* scales: NULL where blocks have theirs */
    size_t q_stride, scales_stride;
    nrg_quant_format format;
    nrg_quant_rounding rounding;
} nrg_norm_quant;

/* A share of rows for norm_forward, norm_gated or norm_quantized. Everything in it has been checked; strides are the real ones,
 * in bytes.
 *
 * With groups > 1 a row of the job is one group of a row of the tensor: row n is group n mod groups of row n / groups. */
typedef struct nrg_norm_job {
    const char *x, *y;           /* y: NULL where absent */
    const char *z;               /* NULL without a gate */
    const char *w, *b;           /* NULL where absent */
    char *o, *r;                 /* r: NULL where not asked for */
    const nrg_norm_quant *quant; /* of norm_quantized, which has no o; the others do not look at it */
    float *mean, *rstd;
    nrg_row_statistics *statistics; /* output of NRG_NORM_SUMS, or NULL; input of NRG_NORM_APPLY; else NULL */
    size_t x_stride, y_stride, z_stride, o_stride, r_stride;
    size_t dim, groups;        /* dim: of a group */
    size_t row_begin, row_end; /* the share */
    int y_f32, r_f32, w_f32;   /* 1: that operand is f32 beside 16-bit x (for f32 x: always 1) */
    int after;                 /* y is added to the output, not before the norm */
    int stream; /* 1: non-temporal stores where the alignment allows them; 2: only reads are from beyond the caches */
    nrg_gate gate;
    nrg_activation activation;
    enum nrg_norm_part part; /* NRG_NORM_SUMS: o is NULL */
    int from_r;              /* r is read, and x and y are not; x says where it is, too */
    int o_f32;               /* o is f32 beside a 16-bit x; without a gate */
    int alike;               /* groups share w and b, as the heads of a token in a view do */
    nrg_norm_formula formula;
} nrg_norm_job;

/* Whether a job is for norm_gated, and not for norm_forward. */
static inline int nrg_norm_is_gated(const nrg_norm_job *job)
{
    return ((unsigned)job->gate | (unsigned)job->activation | (unsigned)job->part | (unsigned)job->from_r |
            (unsigned)job->o_f32) != 0;
}

/* A norm whose output, with a residual added, is normalized again: rows of the tensors, whose groups are each norm's own. What
 * the first one writes the second one reads; bytes it makes in norm_sandwich_quantized, which has a second.quant. */
typedef struct nrg_norm_sandwich_job {
    nrg_norm_job first, second;
    size_t row_begin, row_end;
    size_t turn; /* rows that go through the first norm before they go through the second */
} nrg_norm_sandwich_job;

/* Rows that norm_backward takes together: they add up in f32 before one addition to the partial sum in double. */
enum { NRG_ROW_BATCH = 4 };

/* The tensors of a norm_backward in planes. */
enum { NRG_PLANES_D_O, NRG_PLANES_DR_IN, NRG_PLANES_X, NRG_PLANES_Y, NRG_PLANES_Z, NRG_PLANES_DX, NRG_PLANES_DY, NRG_PLANES_DZ };

/* A share for norm_backward: blocks of rows (the last block ends at `rows`). Without partial sums a share is one block. */
typedef struct nrg_norm_backward_job {
    const char *d_o, *dr_in, *x, *y, *z, *w, *b; /* NULL where absent. x: r itself where that is given; then y is NULL */
    char *dx, *dy, *dz;                          /* NULL where not asked for. dy: nor where it is dx */
    const float *mean;                           /* [rows, groups]; NULL: to be recomputed, or not centred */
    double *dw, *db;                             /* partial sums, [blocks][groups · dim]; NULL where not asked for */
    float *dw_out, *db_out;                      /* of a single block: where its last rows put its sums; NULL otherwise */
    size_t d_o_stride, dr_in_stride, x_stride, y_stride, z_stride, dx_stride, dy_stride, dz_stride;
    const nrg_planes *planes;  /* NULL: all rows lie at those strides; otherwise those of a plane do */
    size_t dim, groups;        /* dim: of a group */
    size_t row_begin, row_end; /* the share, in rows of the tensor: whole blocks where there are partial sums */
    size_t block_rows;
    int x_f32, y_f32, r_f32, w_f32; /* 1: that operand is f32 beside a 16-bit dtype (f32: always 1). dr_in is as r */
    int after, accumulate;          /* accumulate: sums are added to what is in dw_out and db_out */
    int stream, far;                /* far: with stream, tensors so large that rows come from memory */
    nrg_gate gate;
    nrg_activation activation;
    nrg_norm_formula formula;
} nrg_norm_backward_job;

#endif
