/* The jobs of the embedding layer.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_EMBED_H
#define NRG_JOB_EMBED_H

#include "../../include/nrg/embed.h"

/* x, and the tables. */
enum { NRG_EMBED_TERMS = 1 + NRG_EMBED_TABLES };

typedef struct nrg_embed_term {
    const char *from;   /* with ids row 0 of the table, otherwise the row of token 0 */
    const int32_t *ids; /* NULL: a token's row is the one after that of the token before */
    size_t period;      /* token t takes what token t % period does; more than there are tokens: each its own */
    size_t stride;
    float scale; /* 1 where there is none */
    int f32;     /* 1: f32 beside a 16-bit dtype (f32: always 1) */
} nrg_embed_term;

/* A share of tokens for embed. Everything in it has been checked, ids too; strides are the real ones, in bytes. */
typedef struct nrg_embed_job {
    nrg_embed_term term[NRG_EMBED_TERMS]; /* those that are there, in the order of the sum */
    int terms;                            /* at least 1 */
    int scaled;                           /* 0: every scale is 1 */
    int is_copy;                          /* 1: there is one term, of o's dtype and without a scale */
    int far;                              /* the term whose rows are unlikely to be in cache, or -1 */
    int stream;                           /* 1: non-temporal stores where the alignment allows them */
    char *o;
    size_t o_stride, dim;
    size_t row_begin, row_end;     /* the share: tokens */
    size_t prefetch, prefetch_end; /* of so many tokens later the row is prefetched, where that is before prefetch_end */
} nrg_embed_job;

/* A share for embed_backward: from column_begin of row row_begin to column_end (not included) of row row_end of the table, by
 * rows, like the words of a page. */
typedef struct nrg_embed_backward_job {
    const char *d_o;
    char *d_table;
    const uint32_t *start, *order; /* the tokens of row k: order[start[k]] up to order[start[k + 1]]; NULL: there are no ids */
    /* no ids: row first + t % period has token t; a period of more than there are tokens: one token a row */
    size_t first, tokens, period;
    size_t d_o_stride, d_table_stride, dim;
    size_t prefetch; /* of so many tokens after those that are read, in their order, the row is prefetched */
    size_t row_begin, column_begin, row_end, column_end;
    double scale;
    int accumulate;
    int table_f32; /* 1: d_table is f32 beside a 16-bit dtype (f32: always 1) */
    int stream;
} nrg_embed_backward_job;

#endif
