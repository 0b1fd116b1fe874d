/* nrg/embed.h: the embedding layer: rows gathered from tables and added up, alone or with the norm that follows; and its
 * backward pass.
 *
 * For every one of `rows` tokens t:
 *
 *     o[t] = x[t] + A[a[t]] + B[b[t]] + C[c[t]]
 *
 * x is a tensor; A, B and C are tables, of which a row is picked by an id for each token, or counted up. All terms are optional,
 * but there is at least one:
 *
 *     a lookup of tokens                                       A
 *     learned absolute positions added to something            x + A                A the table of positions
 *         (Gehring et al., arXiv:1705.03122; Vaswani et al., arXiv:1706.03762, section 3.5)
 *     sinusoidal positions                                     x + A                A made by nrg/sinusoidal.h
 *     the embedding of BERT (Devlin et al., arXiv:1810.04805)  A + B + C            tokens, positions, segments; then LayerNorm
 *
 * A batch of sequences of one length has the same positions in each of them. They are told once, by a period of that length:
 * token t takes ids[t % period], and there are no more ids than that; or without ids the row first_position + t % period. The
 * last sequence may be cut short, and a period of all tokens or more changes nothing. The bits are those of ids for every token.
 *
 * A table may have a scale, which multiplies what is picked: the √d of the Transformer's token embeddings (section 3.4), of T5X
 * and Gemma.
 *
 * What holds for every call:
 *
 * - Every path gives the same bits, and so does any (ith, nth), alignment and stride, in place or not.
 * - The sum is taken in f32, from left to right, x first: every product with a scale and every addition rounds once. A 16-bit o
 *   is that sum rounded once more. So one term without a scale is a copy. Two terms are what a lookup and an addition give in
 *   turn, to the last bit, in 16 bits too (where tables have the dtype of o). Of three terms that is so in f32; in 16 bits o has
 *   one rounding where calls in turn have two.
 * - A NaN or an infinity shows in its element and nowhere else.
 *
 * docs/ops/embed.md has the definition to the last bit, the measured errors, and the reasons.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EMBED_H
#define NRG_EMBED_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most tables of a call. */
enum { NRG_EMBED_TABLES = 3 };

/* One term of the sum. Make one with a constructor below, then set other fields. */
typedef struct nrg_embed_table {
    size_t size;            /* sizeof(nrg_embed_table) */
    size_t rows;            /* of the table */
    const void *table;      /* [rows, dim] of table_dtype; NULL: no such term */
    size_t stride;          /* bytes from row to row; 0: dense */
    const int32_t *ids;     /* [tokens] the row for each token, each at least 0 and less than rows; NULL: first_position and on */
    size_t period;          /* tokens after which the ids, or the count, begin again, at least 1. Default: SIZE_MAX. */
    int32_t first_position; /* the row for token 0 without ids; with ids 0 */
    float scale;            /* finite. Default: 1. */
} nrg_embed_table;

/* Rows of a table by their ids. */
static inline nrg_embed_table nrg_embed_table_init(const void *table, size_t rows, const int32_t *ids)
{
    nrg_embed_table t;
    t.size = sizeof t;
    t.rows = rows;
    t.table = table;
    t.stride = 0;
    t.ids = ids;
    t.period = SIZE_MAX;
    t.first_position = 0;
    t.scale = 1;
    return t;
}

/* Rows of a table one after the other: positions. Of several sequences of one length, set period to it. */
static inline nrg_embed_table nrg_embed_table_counted(const void *table, size_t rows, int32_t first_position)
{
    nrg_embed_table t = nrg_embed_table_init(table, rows, NULL);
    t.first_position = first_position;
    return t;
}

/* Make one with nrg_embed_args_init, then set other fields. Strides, alignment and hints as in nrg_norm_args.
 *
 * Aliasing: inputs may overlap each other. o shares no byte with a table or with ids; it may be x, the whole of it: same first
 * byte, same stride.
 *
 *               x     o
 *         o     yes */
typedef struct nrg_embed_args {
    size_t size;                   /* sizeof(nrg_embed_args) */
    size_t rows;                   /* tokens; may be 0 */
    size_t dim;                    /* elements of a row, at least 1 */
    nrg_dtype dtype;               /* of x and o */
    nrg_dtype table_dtype;         /* of all tables: SAME, dtype, or NRG_F32 */
    nrg_store store;               /* of o; a hint */
    uint32_t reserved;             /* 0 */
    const void *x;                 /* [rows, dim], or NULL */
    size_t x_stride;               /* bytes; 0: dense */
    const nrg_embed_table *tables; /* [table_count] added in this order */
    size_t table_count;            /* at most NRG_EMBED_TABLES */
    void *o;                       /* [rows, dim] output */
    size_t o_stride;
} nrg_embed_args;

/* No term yet. */
static inline nrg_embed_args nrg_embed_args_init(nrg_dtype dtype, size_t rows, size_t dim, void *o)
{
    nrg_embed_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.table_dtype = NRG_DTYPE_SAME;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.x = NULL;
    args.tables = NULL;
    args.table_count = 0;
    args.o = o;
    args.x_stride = args.o_stride = 0;
    return args;
}

/* The tokens of share ith of nth, in contiguous shares as in nrg_norm_forward. Every share looks at all ids before it writes.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         args, or (with rows > 0) o, or x and all tables; tables with table_count > 0; ids without a table
 *   NRG_ERR_STRUCT_SIZE  a size that is none of this struct's, also of a table, or reserved not 0; tables of two sizes
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than a row
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of its element's size (4 for ids)
 *   NRG_ERR_OVERLAP      o overlaps an input in another way than said above
 *   NRG_ERR_ENUM         dtype, table_dtype or store unknown
 *   NRG_ERR_DTYPE        table_dtype neither dtype nor f32
 *   NRG_ERR_CONSTANT     a scale that is NaN or infinite; a period of 0
 *   NRG_ERR_COMBINATION  first_position with ids
 *   NRG_ERR_COUNT        more than NRG_EMBED_TABLES tables
 *   NRG_ERR_POSITION     an id that is negative, or not less than the table's rows; without ids the same of the
 *                        rows from first_position on, one for each token or, where that is less, for each of a period
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_embed_forward(const nrg_embed_args *args, int ith, int nth);

/* Validates the arguments of nrg_embed_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_forward_check(const nrg_embed_args *args);

/* nrg_embed_forward, and nrg_norm_forward over what comes out of it, with the bits of the two in turn: a few tokens at a time, so
 * that the sums are normalized while they are in the nearest cache.
 *
 * args: what is added up. Its o is NULL, and its store is not looked at.
 *
 * spec: any norm of nrg/norm.h without a residual, a gate or a format: spec.dim and spec.dtype are those of args, gate is
 * NRG_GATE_NONE and residual_mode NRG_RESIDUAL_BEFORE. Activation, groups, eps modes and weights are as there.
 *
 * norm: rows are those of args; x, y and z are NULL. o is the output; w, b, mean and rstd are as there. r, where it is there, is
 * the sum as nrg_embed_forward stores it, in r_dtype: what the backward pass takes as its r.
 *
 * Aliasing: norm.o or norm.r may be args.x, the whole of it; otherwise an output shares no byte with another operand.
 *
 *               x     o     r
 *         o     yes         no
 *         r     yes   no
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_embed_forward, nrg_norm_forward, and
 *   NRG_ERR_NULL         (with rows > 0) norm.o
 *   NRG_ERR_COMBINATION  dim, dtype or rows differ between the structs; args.o, norm.x, norm.y or norm.z is there; a gate; a
 *                        format; NRG_RESIDUAL_AFTER; planes in norm; NRG_WEIGHTS_GROUP with groups
 *
 * At most 16 KB of stack in an optimized build, as all calls. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_norm_forward(const nrg_norm_spec *spec, const nrg_embed_args *args,
                                                        const nrg_norm_args *norm, int ith, int nth);

/* Validates the arguments of nrg_embed_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_norm_forward_check(const nrg_norm_spec *spec, const nrg_embed_args *args,
                                                              const nrg_norm_args *norm);

/* The backward pass. The gradient of x is d_o itself: nothing has to be called. That of a table, for every row k of it:
 *
 *     dT[k] = scale · Σ d_o[t]    over the tokens t with ids[t] = k,    or with `accumulate` that plus what dT[k] was
 *
 * The sum is taken in double, in the order of t; the product, and with `accumulate` the addition to the old value, are one fma in
 * double; then the result is rounded to f32, and, where the gradient has 16 bits, once more. So the error is half an ulp of the
 * result, however many tokens there are, and 2^-53 · Σ|scale · d_o[t]| for each of them, which shows only where they cancel. The
 * bits depend on no number of threads, and on no other table of the call. A row without a token becomes 0, or is not touched with
 * `accumulate`.
 *
 * All tables of a forward pass take three calls:
 *
 *     1. nrg_embed_backward_workspace(&args, &bytes), as soon as rows and ids are in args
 *     2. nrg_embed_backward_order(&args) on one thread: the tokens in the order of their ids, into the workspace
 *        the host's barrier
 *     3. nrg_embed_backward(&args, ith, nth) on every thread: its share of every table, without a barrier between them
 *
 * One order serves any number of calls of the last. Where no table has ids the first two do nothing, and may be left out. Shares
 * are of equal work in each table: a row that has most of the tokens is divided between threads by columns, so that a table of
 * two rows keeps all threads busy.
 *
 * A table that is not trained is left out, and one that was added up twice gets its gradient by two calls, the second of which
 * accumulates. */

/* The gradient of one table. Make one with nrg_embed_gradient_init, then set other fields. */
typedef struct nrg_embed_gradient {
    size_t size; /* sizeof(nrg_embed_gradient) */
    size_t rows; /* of the table; with 0 nothing is written */
    const int32_t
        *ids;      /* ids, first_position, scale and period as in the forward pass. Only nrg_embed_backward_order reads ids */
    size_t period; /* at least 1. Default: SIZE_MAX. */
    int32_t first_position;
    float scale;       /* Default: 1. */
    int accumulate;    /* not 0: added to the old value; 0: overwritten */
    uint32_t reserved; /* 0 */
    void *d_table;     /* [rows, dim] output of table_dtype; NULL: no such table */
    size_t stride;     /* bytes from row to row; 0: dense */
} nrg_embed_gradient;

/* Of a table of the forward pass; dense, and overwritten. */
static inline nrg_embed_gradient nrg_embed_gradient_init(nrg_embed_table table, void *d_table)
{
    nrg_embed_gradient g;
    g.size = sizeof g;
    g.rows = table.rows;
    g.ids = table.ids;
    g.period = table.period;
    g.first_position = table.first_position;
    g.scale = table.scale;
    g.accumulate = 0;
    g.reserved = 0;
    g.d_table = d_table;
    g.stride = 0;
    return g;
}

typedef struct nrg_embed_backward_args {
    size_t size;                      /* sizeof(nrg_embed_backward_args) */
    size_t rows;                      /* tokens; with 0 gradients are 0, or keep their values with accumulate */
    size_t dim;                       /* elements of a row, at least 1 */
    nrg_dtype dtype;                  /* of d_o */
    nrg_dtype table_dtype;            /* of all gradients: SAME, dtype, or NRG_F32 */
    nrg_store store;                  /* of gradients; a hint */
    uint32_t reserved;                /* 0 */
    const void *d_o;                  /* [rows, dim] gradient of o */
    size_t d_o_stride;                /* bytes; 0: dense */
    const nrg_embed_gradient *tables; /* [table_count] */
    size_t table_count;               /* at most NRG_EMBED_TABLES */
    void *workspace;                  /* multiple of 8 bytes; NULL where there are no ids */
    size_t workspace_size;            /* bytes, at least what nrg_embed_backward_workspace returns */
} nrg_embed_backward_args;

static inline nrg_embed_backward_args nrg_embed_backward_args_init(nrg_dtype dtype, size_t rows, size_t dim, const void *d_o)
{
    nrg_embed_backward_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.table_dtype = NRG_DTYPE_SAME;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.d_o = d_o;
    args.d_o_stride = 0;
    args.tables = NULL;
    args.table_count = 0;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Bytes of workspace for these args: for every table with ids 4 for every token and for every row, and a few more; 0 where none
 * has ids. Reads only rows, and rows and ids of the tables. Returns NRG_OK, or writes nothing: NRG_ERR_NULL,
 * NRG_ERR_STRUCT_SIZE, NRG_ERR_COUNT, NRG_ERR_OVERFLOW. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_workspace(const nrg_embed_backward_args *args, size_t *bytes);

/* The order of the tokens, on one thread. Returns NRG_OK, or says what is wrong as nrg_embed_backward does and writes nothing:
 * NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP,
 * NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_COUNT, NRG_ERR_WORKSPACE, and
 *   NRG_ERR_POSITION     an id that is negative, or not less than its table's rows
 * It does not read d_o and the gradients, nor write these. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_order(const nrg_embed_backward_args *args);

/* The sums, share ith of nth. Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_embed_forward, and
 *   NRG_ERR_NULL         args; with rows > 0, d_o; no d_table at all, where the first has rows; ids without a d_table;
 *                        with ids, workspace
 *   NRG_ERR_OVERFLOW     more than 2^32 - 2 tokens or rows of a table with ids
 *   NRG_ERR_OVERLAP      any overlap of a gradient or of the workspace with another operand, gradients with each other too
 *   NRG_ERR_POSITION     without ids: as in the forward pass
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed, or there is no order of these numbers of rows in it */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward(const nrg_embed_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_embed_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_check(const nrg_embed_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
