/* A call of norm_backward, and what its gradients are off by, in the unit of docs/numerics.md: 2^-24 · Σ|terms| of their formula.
 *
 * Terms are those that stand in nrg/norm_backward.h: of dx |dh|/s, |h|·a·Σ|dh⊙h|/(d·s), centred Σ|dh|/(d·s), and |dr_in|; of dw
 * |do1·k·h|. A centred h counts as |h| + 2^-22·(1 + |m|/s), since its mean was a float; a float on the way that is below the
 * normal ones as 2^-126, since it is rounded as that is. Where an activation is in do1, its error is not the backward pass's: do1
 * may be off by 3 ulp of g, or 4 of the largest term of g', by half an ulp of its own, and what g' changes by within 3 ulp of o1;
 * this is followed through the formulas and comes beside.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_NORM_NORM_BACKWARD_MEASURE_H
#define NRG_TESTS_NORM_NORM_BACKWARD_MEASURE_H

#include "../harness/rows.h"

/* What nrg/norm_backward.h promises of every gradient, in the unit; and of a 16-bit one on top, in ulps of its type. */
#define BACKWARD_LIMIT 4.0
#define BACKWARD_ROUNDING_16 0.51

enum backward_column { COLUMN_DX_RMS, COLUMN_DX_LAYER, COLUMN_DX_GATED, COLUMN_DZ, COLUMN_DW, COLUMN_DB, BACKWARD_COLUMNS };

typedef struct backward_case {
    nrg_norm_spec spec; /* of floats */
    enum row_kind kind;
    size_t rows;
    float *x, *z, *w, *b, *d_o, *dr_in; /* NULL where absent */
    float *dx, *dz, *dw, *db;           /* of scalar */
    double limit;                       /* BACKWARD_LIMIT; a climb looks beyond it */
    int once;                           /* rows are done in double, and their dx rounded once: half an ulp of it */
    double (*worst)[BACKWARD_COLUMNS];  /* by the kind of row: grows; NULL where nobody asks */
    unsigned long *measured;            /* and how many figures these are of */
    char text[320];
} backward_case;

/* A case with one row of w and b, and results to be made; `kind` of x. */
float *backward_rows(size_t rows, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed);
void backward_results(backward_case *t);
void backward_free(backward_case *t);

/* Scalar's results into t. NULL, or what is wrong, as of all below. */
const char *backward_run(backward_case *t);
const char *backward_run_on(nrg_isa isa, backward_case *t);

/* Every other path against them, bit by bit. */
const char *backward_compare_paths(const backward_case *t);

/* They against the exact ones. */
const char *backward_measure(const backward_case *t);

/* The same case in a dtype of 16 bits, whose values it has: results are those of floats, rounded once, and within the promise. */
const char *backward_measure_16(const backward_case *t, nrg_dtype dtype);

#endif
