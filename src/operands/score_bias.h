/* What the calls of nrg/score_bias.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_SCORE_BIAS_H
#define NRG_OPERANDS_SCORE_BIAS_H

#include "../../include/nrg/score_bias.h"
#include "operand.h"

/* ---- making the table ---- */

enum { NRG_BIAS_SPEC, NRG_BIAS_ARGS };

/* Numbers: heads and diagonals of a table that a spec describes, both 0 where there is nothing to make. */
enum { NRG_BIAS_HEADS = 1, NRG_BIAS_DIAGONALS, NRG_BIAS_NUMBERS };

/* The distance of entry 0. */
static inline int64_t nrg_bias_lowest(const nrg_score_bias_spec *s) { return -((int64_t)s->queries - 1) - s->first_position; }

/* nrg_t5_diagonals_forward */
typedef struct nrg_t5_args {
    const void *table;
    float *diagonals;
    size_t table_stride, diagonals_stride;
    nrg_dtype dtype;
} nrg_t5_args;
enum { NRG_T5_TABLE, NRG_T5_DIAGONALS, NRG_T5_OPERANDS };
extern const nrg_call nrg_call_t5_diagonals_forward;

/* nrg_t5_diagonals_backward */
typedef struct nrg_t5_backward_args {
    const double *d_diagonals;
    float *d_table;
    size_t d_diagonals_stride, d_table_stride;
} nrg_t5_backward_args;
enum { NRG_T5_BACKWARD_D_DIAGONALS, NRG_T5_BACKWARD_D_TABLE, NRG_T5_BACKWARD_OPERANDS };
extern const nrg_call nrg_call_t5_diagonals_backward;

/* nrg_alibi_slopes, which has one part */
typedef struct nrg_alibi_slopes_args {
    float *slopes;
    size_t heads;
    double max_bias;
} nrg_alibi_slopes_args;
enum { NRG_ALIBI_SLOPES_ARGS };
enum { NRG_ALIBI_SLOPES_SLOPES, NRG_ALIBI_SLOPES_OPERANDS };
extern const nrg_call nrg_call_alibi_slopes;

/* nrg_alibi_diagonals */
typedef struct nrg_alibi_args {
    const float *slopes;
    float *diagonals;
    size_t diagonals_stride;
} nrg_alibi_args;
enum { NRG_ALIBI_SLOPES, NRG_ALIBI_DIAGONALS, NRG_ALIBI_OPERANDS };
extern const nrg_call nrg_call_alibi_diagonals;

/* ---- adding it ---- */

enum { NRG_SCORE_BIAS_ARGS };

enum { NRG_SCORE_BIAS_SCORES, NRG_SCORE_BIAS_DIAGONALS, NRG_SCORE_BIAS_O, NRG_SCORE_BIAS_OPERANDS };
extern const nrg_call nrg_call_score_bias_forward;

enum { NRG_SCORE_BIAS_BACKWARD_D_O, NRG_SCORE_BIAS_BACKWARD_D_DIAGONALS, NRG_SCORE_BIAS_BACKWARD_OPERANDS };
extern const nrg_call nrg_call_score_bias_backward;

#endif
