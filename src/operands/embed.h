/* What the calls of nrg/embed.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_EMBED_H
#define NRG_OPERANDS_EMBED_H

#include <float.h>
#include <math.h>

#include "../../include/nrg/embed.h"
#include "norm.h"

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

/* The workspace has a part for each table with ids, one after the other. Doubles at the beginning of a part, before the order
 * itself; and of the whole part. In 32 bits each the order says where the tokens of each row begin, where the last one's end, and
 * the tokens. */
enum { NRG_EMBED_BACKWARD_HEADING = 2 };
static inline uint64_t nrg_embed_order_doubles(size_t tokens, size_t table_rows)
{
    return NRG_EMBED_BACKWARD_HEADING + ((uint64_t)tokens + table_rows + 2) / 2;
}

/* Doubles of the workspace. SIZE_MAX: its bytes, or numbers of rows, do not fit. */
size_t nrg_embed_space(const nrg_embed_backward_args *a, const nrg_embed_gradients *gradients);

/* Returns what is wrong with the number of tables, or with their sizes. */
nrg_status nrg_embed_check_tables(const void *tables, size_t count, const void *copies, size_t size);
/* Returns what is wrong with terms and their gradients. */
nrg_status nrg_embed_check_terms_of(const nrg_embed_gradients *gradients);

/* Whether a term has numbers that it may have. */
static inline int nrg_embed_is_term(float scale, size_t period) { return fabsf(scale) <= FLT_MAX && period; }

static inline enum nrg_there nrg_embed_there(const int32_t *ids, size_t rows)
{
    return ids ? NRG_ALWAYS : rows ? NRG_NEED : NRG_MAY;
}
_Static_assert(NRG_EMBED_TABLES == 3, "the descriptions have them all");

#include "embed_calls.def"
#include "embed_backward_calls.def"

#endif
