/* What the calls of nrg/embed.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_EMBED_H
#define NRG_OPERANDS_EMBED_H

#include "../../include/nrg/embed.h"
#include "norm.h"

/* What both forward passes add up. Table k of args is NRG_EMBED_TABLE + k, its ids NRG_EMBED_IDS + k. */
enum {
    NRG_EMBED_X,
    NRG_EMBED_TABLE,
    NRG_EMBED_IDS = NRG_EMBED_TABLE + NRG_EMBED_TABLES,
    NRG_EMBED_INPUTS = NRG_EMBED_IDS + NRG_EMBED_TABLES
};

/* Parts: the tables, which args point to, are one of them. */
enum { NRG_EMBED_ARGS, NRG_EMBED_TERMS_PART, NRG_EMBED_NORM_SPEC, NRG_EMBED_NORM_ARGS };

/* The tables of a call as this version's structs, absent ones behind the last; of size 0 where that is none of a version. */
typedef struct nrg_embed_terms {
    nrg_embed_table table[NRG_EMBED_TABLES];
} nrg_embed_terms;
typedef struct nrg_embed_gradients {
    nrg_embed_gradient table[NRG_EMBED_TABLES];
} nrg_embed_gradients;

/* Of args of any size, or NULL: what is wrong with these is checked later. */
nrg_embed_terms nrg_embed_terms_of(const nrg_embed_args *args);
nrg_embed_gradients nrg_embed_gradients_of(const nrg_embed_backward_args *args);

/* The ids of so many tokens: those of one period, where there is more than one. */
static inline size_t nrg_embed_ids_count(size_t tokens, size_t period) { return period < tokens ? period : tokens; }

/* nrg_embed_forward */
enum { NRG_EMBED_O = NRG_EMBED_INPUTS, NRG_EMBED_OPERANDS };
extern const nrg_call nrg_call_embed_forward;

/* nrg_embed_norm_forward. The last four have no place in it. */
enum {
    NRG_EMBED_NORM_W = NRG_EMBED_INPUTS,
    NRG_EMBED_NORM_B,
    NRG_EMBED_NORM_O,
    NRG_EMBED_NORM_R,
    NRG_EMBED_NORM_MEAN,
    NRG_EMBED_NORM_RSTD,
    NRG_EMBED_NORM_X,
    NRG_EMBED_NORM_Y,
    NRG_EMBED_NORM_Z,
    NRG_EMBED_NORM_SUM,
    NRG_EMBED_NORM_OPERANDS
};
extern const nrg_call nrg_call_embed_norm_forward;

/* Beside those of the norm; NRG_NORM_TYPE_X is that of x and o in both. */
enum { NRG_EMBED_TYPE_TABLE = NRG_NORM_TYPE_W + 1 };

/* nrg_embed_backward_order and nrg_embed_backward. Table k of args is NRG_EMBED_BACKWARD_D_TABLE + k, its ids
 * NRG_EMBED_BACKWARD_IDS + k. */
enum {
    NRG_EMBED_BACKWARD_D_O,
    NRG_EMBED_BACKWARD_IDS,
    NRG_EMBED_BACKWARD_D_TABLE = NRG_EMBED_BACKWARD_IDS + NRG_EMBED_TABLES,
    NRG_EMBED_BACKWARD_WORKSPACE = NRG_EMBED_BACKWARD_D_TABLE + NRG_EMBED_TABLES,
    NRG_EMBED_BACKWARD_OPERANDS
};
enum { NRG_EMBED_BACKWARD_TYPE_X, NRG_EMBED_BACKWARD_TYPE_TABLE };
extern const nrg_call nrg_call_embed_backward;

/* nrg_embed_backward_workspace, which looks at little of args. NRG_EMBED_BACKWARD_SPACE, the number of the workspace's doubles,
 * is the answer. */
extern const nrg_call nrg_call_embed_backward_workspace;
enum { NRG_EMBED_BACKWARD_SPACE = 1 };

/* The workspace has a part for each table with ids, one after the other. Doubles at the beginning of a part, before the order
 * itself; and of the whole part. In 32 bits each the order says where the tokens of each row begin, where the last one's end, and
 * the tokens. */
enum { NRG_EMBED_BACKWARD_HEADING = 2 };
static inline uint64_t nrg_embed_order_doubles(size_t tokens, size_t table_rows)
{
    return NRG_EMBED_BACKWARD_HEADING + ((uint64_t)tokens + table_rows + 2) / 2;
}

#endif
