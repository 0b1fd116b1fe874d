/* nrg/embed.h: the embedding layer: a sum of rows of tables, optionally with the norm that follows; and its backward pass.
 *
 * For each of `rows` tokens t:
 *
 *     o[t] = x[t] + A[a[t]] + B[b[t]] + C[c[t]]
 *
 * x is a tensor. A, B and C are tables; the row of each token is given by an id, or counted up. Every term is optional, but at
 * least one must be set:
 *
 *     a lookup of tokens                                       A
 *     learned absolute positions added to something            x + A                A the table of positions
 *         (Gehring et al., arXiv:1705.03122; Vaswani et al., arXiv:1706.03762, section 3.5)
 *     sinusoidal positions                                     x + A                A the table of nrg/sinusoidal.h
 *     the embedding of BERT (Devlin et al., arXiv:1810.04805)  A + B + C            tokens, positions, segments; then LayerNorm
 *
 * In a batch of sequences of equal length, all sequences have the same positions. Set `period` to that length, and give the
 * positions once:
 * - With ids, token t has the id ids[t % period]. There are only that many ids.
 * - Without ids, it takes the row first_position + t % period.
 *
 * The last sequence may be shorter. A period of at least the number of tokens has no effect. Results are bit-identical to ids for
 * every token.
 *
 * A table may have a scale that multiplies its rows: the √d of the Transformer's token embeddings (section 3.4), of T5X and
 * Gemma.
 *
 * For every call:
 * - Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not.
 * - The sum is in f32, from left to right, with x first. Each product with a scale and each addition rounds once. A 16-bit o is
 *   that sum rounded once more.
 * - One term without a scale is a copy. Two terms are bit-identical to a lookup and then an addition, in 16 bits too if tables
 *   have the dtype of o. So are three terms in f32. In 16 bits, three terms round once where separate calls round twice.
 * - A NaN or an infinity affects only its own element.
 *
 * docs/ops/embed.md has the definition of every bit, the measured errors, and the reasons.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EMBED_H
#define NRG_EMBED_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The maximal number of tables of a call. */
enum { NRG_EMBED_TABLES = 3 };

/* One term of the sum. Make one with a constructor below, then change fields. */
typedef struct nrg_embed_table {
    size_t size;            /* sizeof(nrg_embed_table) */
    size_t rows;            /* rows of the table */
    const void *table;      /* [rows, dim] input of table_dtype; NULL only if rows is 0: no such term */
    size_t table_stride;    /* bytes from one row to the next; 0 is dense */
    const int32_t *ids;     /* [min(period, tokens)] input: rows, from 0 to rows - 1; NULL: counted from first_position */
    size_t period;          /* tokens after which ids or count restart, at least 1. Default: SIZE_MAX. */
    int32_t first_position; /* the row of token 0 without ids; 0 with ids */
    float scale;            /* multiplies the rows; finite. Default: 1. */
} nrg_embed_table;

/* Returns a term for the rows of a dense table with these ids.
 *
 * Parameters:
 * - rows, table, ids: the fields of the same names. */
static inline nrg_embed_table nrg_embed_table_init(size_t rows, const void *table, const int32_t *ids)
{
    nrg_embed_table t;
    t.size = sizeof t;
    t.rows = rows;
    t.table = table;
    t.table_stride = 0;
    t.ids = ids;
    t.period = SIZE_MAX;
    t.first_position = 0;
    t.scale = 1;
    return t;
}

/* Returns a term for consecutive rows of a dense table, such as positions. For several sequences of equal length, set period to
 * that length.
 *
 * Parameters:
 * - rows, table, first_position: the fields of the same names. */
static inline nrg_embed_table nrg_embed_table_counted(size_t rows, const void *table, int32_t first_position)
{
    nrg_embed_table t = nrg_embed_table_init(rows, table, NULL);
    t.first_position = first_position;
    return t;
}

/* Operands of nrg_embed_forward. Make one with nrg_embed_args_init, then change fields.
 *
 * Aliasing: o may be x, with the same first byte and the same stride. It shares no byte with a table or with ids.
 *
 *               x     o
 *         o     yes */
typedef struct nrg_embed_args {
    size_t size;                   /* sizeof(nrg_embed_args) */
    size_t rows;                   /* tokens; may be 0 */
    size_t dim;                    /* elements of a row, at least 1 */
    nrg_dtype dtype;               /* of x and o */
    nrg_dtype table_dtype;         /* of all tables: SAME, dtype or NRG_F32 */
    const void *x;                 /* [rows, dim] input, or NULL */
    size_t x_stride;               /* bytes from one row to the next; 0 is dense */
    const nrg_embed_table *tables; /* [table_count] input: terms, added in this order */
    size_t table_count;            /* at most NRG_EMBED_TABLES */
    nrg_store store;               /* how o is stored; never changes a bit */
    uint32_t reserved;             /* 0 */
    void *o;                       /* [rows, dim] output */
    size_t o_stride;
} nrg_embed_args;

/* Returns args without terms. Set x, or tables and table_count, or both.
 *
 * Parameters:
 * - dtype, rows, dim, o: the fields of the same names. */
static inline nrg_embed_args nrg_embed_args_init(nrg_dtype dtype, size_t rows, size_t dim, void *o)
{
    nrg_embed_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.table_dtype = NRG_DTYPE_SAME;
    args.x = NULL;
    args.x_stride = 0;
    args.tables = NULL;
    args.table_count = 0;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.o = o;
    args.o_stride = 0;
    return args;
}

/* Computes the sum of the terms for each token.
 *
 * Parameters:
 * - args: operands, described at their fields. Unless rows is 0, o and at least one term must be set.
 * - ith, nth: the share, a contiguous range of tokens, as in nrg_norm_forward. Each share validates all ids before it writes.
 *
 * Aliasing: as the matrix at nrg_embed_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL. Or rows is not 0, and o is NULL, or x and all tables are. Or table_count is not 0, and tables is
 *   NULL. Or a table is NULL that has rows or ids.
 * - NRG_ERR_STRUCT_SIZE: the size of args or of a table is wrong, the tables have two sizes, or a reserved or unknown field is
 *   not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than a row.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of its element size (4 for ids).
 * - NRG_ERR_OVERLAP: o overlaps an input in a way that the matrix does not allow.
 * - NRG_ERR_ENUM: dtype, table_dtype or store has an unknown value.
 * - NRG_ERR_DTYPE: table_dtype is neither dtype nor f32.
 * - NRG_ERR_CONSTANT: a scale is NaN or infinite, or a period is 0.
 * - NRG_ERR_COMBINATION: first_position is set with ids.
 * - NRG_ERR_COUNT: there are more than NRG_EMBED_TABLES tables.
 * - NRG_ERR_POSITION: an id is negative, or not below the table's rows. Without ids, the same holds for the counted rows, one per
 *   token or, if that is less, one per token of a period.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_forward(const nrg_embed_args *args, int ith, int nth);

/* Validates the arguments of nrg_embed_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_forward_check(const nrg_embed_args *args);

/* Computes nrg_embed_forward, and nrg_norm_forward of its sums. Results are bit-identical to the two calls. The call processes a
 * few tokens at a time, so it normalizes the sums while they are in the nearest cache.
 *
 * Parameters:
 * - spec: any norm of nrg/norm.h without residual, gate or format. Its dim and dtype are those of args, gate is NRG_GATE_NONE,
 *   and residual_mode is NRG_RESIDUAL_BEFORE. It may have an activation, groups, eps modes and weights.
 * - args: the terms. Its o must be NULL, and its store NRG_STORE_AUTO.
 * - norm_args: operands of the norm. Its rows are those of args, and x, y, z and r_in must be NULL. The output o, w, b, mean,
 *   rstd and store are as in nrg_norm_forward. If r is not NULL, it becomes the sum as nrg_embed_forward stores it, in r_dtype.
 *   It is the r of the norm's backward pass.
 * - ith, nth: the share, as in nrg_embed_forward.
 *
 * The call uses at most 16 KB of stack in an optimized build, like all calls.
 *
 * Aliasing: norm_args->o or norm_args->r may be args->x, with the same first byte and the same stride. Otherwise no output shares
 * a byte with another operand.
 *
 *               x     o     r
 *         o     yes         no
 *         r     yes   no
 *
 * Returns the statuses of nrg_embed_forward, nrg_norm_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: also if rows is not 0, and norm_args->o is NULL.
 * - NRG_ERR_DIM: also if spec and args have different dims.
 * - NRG_ERR_DTYPE: also if spec and args have different dtypes.
 * - NRG_ERR_COMBINATION: also one of these:
 *   - args and norm_args have different rows.
 *   - args->o, args->store, norm_args->x, y, z or r_in is set.
 *   - The norm has a gate, a format, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups.
 *   - norm_args has several planes or volumes. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_norm_forward(const nrg_norm_spec *spec, const nrg_embed_args *args,
                                                        const nrg_norm_args *norm_args, int ith, int nth);

/* Validates the arguments of nrg_embed_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_norm_forward_check(const nrg_norm_spec *spec, const nrg_embed_args *args,
                                                              const nrg_norm_args *norm_args);

/* ---- backward ----
 *
 * The gradient of x is d_o itself and needs no call. The gradient of a table, for every row k of it:
 *
 *     dT[k] = scale · Σ d_o[t]    over the tokens t with ids[t] = k,    or with `accumulate` that plus what dT[k] was
 *
 * The sum is in double, in the order of t. The product and, with `accumulate`, the addition of the previous value are one fma in
 * double. The result is rounded to f32 and, if the gradient has 16 bits, once more.
 *
 * So the error bound is half an ulp of the result for any number of tokens, plus 2^-53 · Σ|scale · d_o[t]| for each of them. The
 * second part matters only if they cancel. Bits do not depend on the number of threads, or on other tables of the call. A row
 * without a token becomes 0; with `accumulate` it is not changed.
 *
 * Three calls compute the gradients of all tables of a forward pass:
 *
 *     1. nrg_embed_backward_workspace(&args, &bytes), as soon as rows and ids are in args
 *     2. nrg_embed_backward_order(&args) on one thread: the tokens in the order of their ids, into the workspace
 *        the host's barrier
 *     3. nrg_embed_backward(&args, ith, nth) on every thread: its share of every table, without a barrier between them
 *
 * One order is enough for any number of the last calls. If no table has ids, the first two do nothing, and you may omit them.
 * Shares have equal work in each table. A row with most of the tokens is divided between threads by columns, so a table of two
 * rows keeps all threads busy.
 *
 * Leave out a table that is not trained. For a table that was added twice, make two calls, and let the second accumulate. */

/* The gradient of one table. Make one with nrg_embed_gradient_init, then change fields. ids, first_position, scale and period are
 * those of the forward pass. */
typedef struct nrg_embed_gradient {
    size_t size;            /* sizeof(nrg_embed_gradient) */
    size_t rows;            /* rows of the table; if 0, the call writes nothing */
    const int32_t *ids;     /* [min(period, tokens)] input, or NULL; only nrg_embed_backward_order reads the ids */
    size_t period;          /* at least 1. Default: SIZE_MAX. */
    int32_t first_position; /* the row of token 0 without ids; 0 with ids */
    float scale;            /* finite. Default: 1. */
    int accumulate;         /* not 0: added to d_table; 0: overwrites it */
    uint32_t reserved;      /* 0 */
    void *d_table;          /* [rows, dim] output of table_dtype; NULL only if rows is 0 */
    size_t d_table_stride;  /* bytes from one row to the next; 0 is dense */
} nrg_embed_gradient;

/* Returns the dense gradient of a table of the forward pass, which overwrites d_table.
 *
 * Parameters:
 * - table: the table of the forward pass; the call reads rows, ids, period, first_position and scale.
 * - d_table: the field of the same name. */
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
    g.d_table_stride = 0;
    return g;
}

/* Operands of the backward pass. Make one with nrg_embed_backward_args_init, then change fields.
 *
 * Aliasing: no gradient shares a byte with another operand or another gradient, nor does the workspace. */
typedef struct nrg_embed_backward_args {
    size_t size;                      /* sizeof(nrg_embed_backward_args) */
    size_t rows;                      /* tokens; if 0, gradients become 0, or keep their values with accumulate */
    size_t dim;                       /* elements of a row, at least 1 */
    nrg_dtype dtype;                  /* of d_o */
    nrg_dtype table_dtype;            /* of all gradients: SAME, dtype or NRG_F32 */
    const void *d_o;                  /* [rows, dim] input: gradient of o */
    size_t d_o_stride;                /* bytes from one row to the next; 0 is dense */
    const nrg_embed_gradient *tables; /* [table_count] input: the gradients */
    size_t table_count;               /* at most NRG_EMBED_TABLES */
    nrg_store store;                  /* how gradients are stored; never changes a bit */
    uint32_t reserved;                /* 0 */
    void *workspace;                  /* aligned to 8 bytes; unused if no table has ids */
    size_t workspace_size;            /* bytes; nrg_embed_backward_workspace computes the minimum */
} nrg_embed_backward_args;

/* Returns args without gradients. Set tables and table_count, and with ids the workspace.
 *
 * Parameters:
 * - dtype, rows, dim, d_o: the fields of the same names. */
static inline nrg_embed_backward_args nrg_embed_backward_args_init(nrg_dtype dtype, size_t rows, size_t dim, const void *d_o)
{
    nrg_embed_backward_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.table_dtype = NRG_DTYPE_SAME;
    args.d_o = d_o;
    args.d_o_stride = 0;
    args.tables = NULL;
    args.table_count = 0;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Computes the bytes of the workspace. For every table with ids, they are 4 for every token and for every row, and a few more.
 * Without ids, they are 0.
 *
 * Parameters:
 * - args: the call reads only rows, and rows and ids of the tables. It does not read the ids themselves.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args or bytes is NULL, or table_count is not 0, and tables is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of args or of a table is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_COUNT: there are more than NRG_EMBED_TABLES tables.
 * - NRG_ERR_OVERFLOW: the workspace has more bytes than a size_t can count; or a table with ids has more than 2^32 - 2 tokens or
 *   rows. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_workspace(const nrg_embed_backward_args *args, size_t *bytes);

/* Sorts the tokens by their ids into the workspace, on one thread.
 *
 * Parameters:
 * - args: as in nrg_embed_backward. The call does not read d_o, and neither reads nor writes the gradients.
 *
 * It has no _check. One thread calls it, and it validates all arguments and ids before it writes.
 *
 * Aliasing: as in nrg_embed_backward.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_POSITION: an id is negative, or not below its table's rows.
 * - NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP,
 *   NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_COUNT, NRG_ERR_WORKSPACE: as in
 *   nrg_embed_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_order(const nrg_embed_backward_args *args);

/* Computes the gradients of the tables, by the formula above.
 *
 * Parameters:
 * - args: operands, described at their fields. With ids, nrg_embed_backward_order has filled the workspace.
 * - ith, nth: the share, of every table.
 *
 * Aliasing: no gradient shares a byte with another operand or another gradient, nor does the workspace.
 *
 * Returns the statuses of nrg_embed_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: args is NULL, or one of these:
 *   - rows is not 0, and d_o is NULL.
 *   - A d_table is NULL, and its gradient has rows or ids.
 *   - ids are set without a workspace.
 * - NRG_ERR_OVERFLOW: also if there are more than 2^32 - 2 tokens, or rows of a table with ids.
 * - NRG_ERR_OVERLAP: a gradient or the workspace overlaps another operand, or gradients overlap each other.
 * - NRG_ERR_POSITION: without ids, as in the forward pass.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than needed, or the workspace holds no order for these numbers of rows. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward(const nrg_embed_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_embed_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_embed_backward_check(const nrg_embed_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
