/* The jobs of positional tables and of the rotation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_ROPE_H
#define NRG_JOB_ROPE_H

#include "../../include/nrg/norm_rope.h"
#include "../../include/nrg/sinusoidal.h"
#include "norm.h"

/* How a row of a table lies. */
typedef enum nrg_table_order {
    NRG_TABLE_COS_SIN,    /* all cosines, then all sines: nrg/rope.h */
    NRG_TABLE_SIN_COS,    /* all sines, then all cosines */
    NRG_TABLE_INTERLEAVED /* sin, cos, sin, cos, …; the last cosine is left out of a row of an odd length */
} nrg_table_order;

/* Rows begin to end of a table. */
typedef struct nrg_position_table_job {
    const double *high, *low; /* [pairs] turns from one position to the next */
    double magnitude;
    const int32_t *positions; /* NULL: row t is at first + t */
    size_t positions_stride;  /* bytes from axis to axis */
    int32_t first;
    nrg_rope_mode mode;
    int sections[4];
    nrg_table_order order;
    size_t pairs, dim; /* dim: of a row */
    char *table;
    size_t table_stride;
    size_t begin, end;
} nrg_position_table_job;

/* Rows begin to end of one tensor: row n is head n mod heads of token n / heads. Pointers alternate with strides: gcc fills
 * adjacent fields of one type by vectors, whose loads wait for narrower stores before them. */
typedef struct nrg_rope_job {
    const char *x;
    size_t x_token_stride;
    char *o;
    size_t o_token_stride;
    const char *table;
    size_t x_head_stride;
    const int32_t *positions; /* NULL: token t has row t */
    size_t o_head_stride, heads, table_stride, dim, offset, pairs;
    size_t begin, end;
    int interleaved, backward, stream;
    int far; /* x is not in the core's own caches */
} nrg_rope_job;

/* A norm of every row, whose x, o and strides are those of the rotation. Rows of the norm: one for each row of the rotation, or
 * one for each of its groups. */
typedef struct nrg_norm_rope_job {
    nrg_norm_job norm;
    nrg_rope_job rope;
} nrg_norm_rope_job;

/* Rows of q, of k or of v, on their way to another dtype and to slots: rows begin to end of turn.rope, whose o is slot 0 where
 * there are slots. The kernel is that of the dtype of x, and leaves in turn.rope what it likes where that says what is turned,
 * and not how: x, o, table and their strides, heads, begin, end, stream, far. */
typedef struct nrg_qkv_job {
    nrg_norm_rope_job turn; /* in f32; its norm is used with has_norm only */
    int has_norm, is_copy;  /* is_copy: v, which is not turned */
    nrg_dtype o_dtype;
    int is_quantized;     /* o: q8_0, and o_dtype is none */
    const int64_t *slots; /* by tokens, none of which is -1 from begin to end; or NULL: token t has row t */
    float *block;         /* room for block_rows heads, at least one */
    size_t block_rows;
} nrg_qkv_job;

/* Whether a token has several positions, one of which turns a pair. */
static inline int nrg_rope_has_sections(nrg_rope_mode mode)
{
    return mode == NRG_ROPE_MROPE || mode == NRG_ROPE_VISION || mode == NRG_ROPE_IMROPE || mode == NRG_ROPE_IMROPE_TIME;
}

#endif
