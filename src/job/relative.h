/* Jobs of nrg/relative.h and nrg/relative_shift.h. Everything in them has been checked; strides are the real ones, in bytes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_RELATIVE_H
#define NRG_JOB_RELATIVE_H

#include "../../include/nrg/relative.h"
#include "../../include/nrg/relative_shift.h"

enum {
    /* A piece of relative_backward. */
    NRG_RELATIVE_SLOTS = 8,
    NRG_RELATIVE_COLUMNS = 64,
    /* Columns that stay with one thread in head_bias_pair_backward: at least 64 bytes of every operand. */
    NRG_BIAS_COLUMNS = 32
};

/* A share of rows for relative_scores and relative_values, of pieces for relative_backward.
 *
 * Classes are counted in slots: slot 0 is the one of distance p_max, slot classes - 1 that of p_min, so that slots ascend with
 * the keys. The key in slot s of query i, where nothing is clipped, is zero + i + s. */
typedef struct nrg_relative_job {
    const char *q, *a;  /* NULL where the operation has none */
    const char *table;  /* of slot 0: the last row */
    char *out;          /* scores or o */
    float *d_table;     /* of slot 0 */
    const double *ends; /* given, or NULL */
    double *ends_out;   /* to be stored, or NULL */
    nrg_head_strides q_strides, a_strides, out_strides;
    size_t table_stride, table_head_stride;     /* from slot to slot: downwards; head stride 0: shared */
    size_t d_table_stride, d_table_head_stride; /* in bytes, likewise */
    size_t batch, heads, queries, keys, dim, slots;
    int64_t zero;
    /* Rows (b·heads + h)·queries + i; or every step-th piece: piece (chunk·tables + table)·blocks + block of columns of a table's
     * slots. */
    size_t begin, end, step;
    size_t tables; /* of relative_backward: heads or 1 */
    int table_f32; /* 1: table is f32 beside a 16-bit dtype (f32: always 1) */
    int accumulate;
} nrg_relative_job;

/* A share of rows (b·heads + h)·rows + i for relative_shift, forward or backward: out[i][t] (+)= in[i][t + first + slope·i]. */
typedef struct nrg_relative_shift_job {
    const char *in;
    char *out;
    nrg_head_strides in_strides, out_strides;
    size_t heads, rows, in_dim, out_dim;
    int64_t first;
    int slope; /* 1 or -1 */
    size_t begin, end;
    int accumulate, stream, prefetch;
} nrg_relative_shift_job;

/* A share for head_bias_pair: rows (b·rows + i)·heads + h. Heads that lie together in every operand are one. */
typedef struct nrg_head_bias_job {
    const char *q, *u, *v;
    char *o_u, *o_v; /* NULL where not asked for, likewise u, v */
    nrg_head_strides q_strides, o_u_strides, o_v_strides;
    size_t heads, rows, dim;
    size_t begin, end;
    int bias_f32, stream, prefetch;
    int out_far; /* the outputs are not in L1, and written with ordinary stores */
} nrg_head_bias_job;

/* A share for head_bias_pair_backward: columns begin to end of heads·dim. */
typedef struct nrg_head_bias_backward_job {
    const char *d_o_u, *d_o_v; /* NULL: 0 */
    char *dq;                  /* NULL where not asked for */
    float *du, *dv;            /* NULL where not asked for */
    nrg_head_strides d_o_u_strides, d_o_v_strides, dq_strides;
    size_t batch, heads, rows, dim;
    size_t begin, end;
    int accumulate, stream, prefetch;
} nrg_head_bias_backward_job;

#endif
