/* What the calls of nrg/norm.h, nrg/norm_backward.h and nrg/norm_sandwich.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_H
#define NRG_OPERANDS_NORM_H

#include "../../include/nrg/norm_backward.h"
#include "../../include/nrg/norm_parts.h"
#include "../../include/nrg/norm_sandwich.h"
#include "activation.h"
#include "describe.h"
#include "quantize.h"

/* What nrg_norm_statistics and nrg_norm_elements take beside spec and args. */
typedef struct nrg_norm_more {
    const nrg_row_statistics *statistics;
} nrg_norm_more;

/* Words of descriptions: the fields of part p, which is the spec of a norm, and those but for its dtype; its dtypes, and whether
 * it is sound. */
#define NRG_OPTIONS_OF_NORM(p)                                                                                                   \
    FIELD(p, y_dtype, NRG_DTYPE_SAME, NRG_BF16, ENUM)                                                                            \
    FIELD(p, r_dtype, NRG_DTYPE_SAME, NRG_BF16, ENUM)                                                                            \
    FIELD(p, w_dtype, NRG_DTYPE_SAME, NRG_BF16, ENUM)                                                                            \
    FIELD(p, eps_mode, 0, NRG_EPS_NONE, ENUM)                                                                                    \
    FIELD(p, residual_mode, 0, NRG_RESIDUAL_AFTER, ENUM)                                                                         \
    FIELD(p, gate, 0, NRG_GATE_POST, ENUM)                                                                                       \
    FIELD(p, activation, 0, NRG_ACTIVATION_COUNT - 1, ENUM)                                                                      \
    FIELD(p, c_mode, 0, NRG_C_GIVEN, ENUM)                                                                                       \
    FIELD(p, weights, 0, NRG_WEIGHTS_GROUP, ENUM)                                                                                \
    FIELD(p, accuracy, 0, NRG_ACCURACY_EXACT, ENUM)                                                                              \
    FIELD(p, format, 0, NRG_QUANT_INT8_128, ENUM)                                                                                \
    FIELD(p, rounding, 0, NRG_QUANT_ROUND_AWAY, ENUM)                                                                            \
    FIELD(p, reserved, 0, 0, STRUCT_SIZE)
#define NRG_FIELDS_OF_NORM(p) FIELD(p, dtype, NRG_F32, NRG_BF16, ENUM) NRG_OPTIONS_OF_NORM(p)
#define NRG_TYPES_OF_NORM(p)                                                                                                     \
    TYPE(X, p->dtype)                                                                                                            \
    TYPE(Y, nrg_own_dtype(p->y_dtype, p->dtype))                                                                                 \
    TYPE(R, nrg_own_dtype(p->r_dtype, p->dtype))                                                                                 \
    TYPE(W, nrg_own_dtype(p->w_dtype, p->dtype))                                                                                 \
    CHECK(nrg_norm_check_spec(p))

/* Whether eps is what it mostly is, or a number is +0: by their bits, since a comparison of floats takes four instructions. */
static inline int nrg_norm_is_eps(double eps)
{
    uint64_t bits;
    memcpy(&bits, &eps, sizeof bits);
    return bits <= UINT64_C(0x7fefffffffffffff);
}
static inline int nrg_norm_has_numbers(const nrg_norm_spec *spec)
{
    uint64_t c;
    uint32_t offset;
    memcpy(&c, &spec->c, sizeof c);
    memcpy(&offset, &spec->weight_offset, sizeof offset);
    return (c | offset) != 0;
}

/* What is wrong with a spec. */
__attribute__((pure)) nrg_status nrg_norm_check_spec(const nrg_norm_spec *spec);

static inline int nrg_norm_is_after(const nrg_norm_spec *spec) { return spec->residual_mode == NRG_RESIDUAL_AFTER; }

/* Without w there is nothing that an offset could be added to. */
static inline int nrg_norm_offset_fits(const nrg_norm_spec *spec, const void *w) { return w || spec->weight_offset == 0; }

/* Groups that share one w and b, and so are rows of their own; those that have parts of them; and elements of w and b. */
static inline size_t nrg_norm_alike(const nrg_norm_spec *spec) { return spec->weights == NRG_WEIGHTS_GROUP ? spec->groups : 1; }
static inline size_t nrg_norm_groups(const nrg_norm_spec *spec) { return spec->weights == NRG_WEIGHTS_ROW ? spec->groups : 1; }
static inline size_t nrg_norm_w_dim(const nrg_norm_spec *spec)
{
    const size_t alike = nrg_norm_alike(spec);
    return alike > 1 ? spec->dim / alike : spec->dim; /* gcc makes a division for all of "== 1" */
}

/* Whether the rows of the kernel are those of a matrix. */
static inline int nrg_norm_is_matrix(const nrg_norm_spec *spec, size_t rows2, size_t rows3)
{
    return (rows2 == 1) & (rows3 == 1) & (nrg_norm_alike(spec) == 1);
}

/* Whether the number of all rows fits, for the kernel. Where it does not, neither do tensors that repeat nowhere, which there
 * always are. With a short way for a matrix: a third of a call of one short row is what is checked of it. */
static inline int nrg_norm_rows_fit(const nrg_norm_spec *spec, size_t rows, size_t rows2, size_t rows3)
{
    size_t all;
    return nrg_norm_is_matrix(spec, rows2, rows3) ||
           (nrg_product(rows2, rows3, &all) && nrg_product(all, rows, &all) && nrg_product(all, nrg_norm_alike(spec), &all));
}

/* Rows of a block, whose partial sums of dw and db are kept apart until the end: of the number of rows alone, so that dw and db
 * do not depend on threads. Few enough blocks for a small workspace, enough for the threads of a large machine. */
enum { NRG_NORM_BLOCKS_MOST = 64, NRG_NORM_BLOCK_ROWS_LEAST = 32, NRG_NORM_ROW_BATCH = 4 };
static inline size_t nrg_norm_block_rows(size_t rows)
{
    size_t each = rows / NRG_NORM_BLOCKS_MOST + (rows % NRG_NORM_BLOCKS_MOST != 0);
    each = (each + NRG_NORM_ROW_BATCH - 1) / NRG_NORM_ROW_BATCH * NRG_NORM_ROW_BATCH;
    return each > NRG_NORM_BLOCK_ROWS_LEAST ? each : NRG_NORM_BLOCK_ROWS_LEAST;
}
static inline size_t nrg_norm_block_count(size_t rows)
{
    if (rows <= NRG_NORM_BLOCK_ROWS_LEAST) /* without a division, which a call of one row would make three times */
        return rows != 0;
    const size_t each = nrg_norm_block_rows(rows);
    return rows / each + (rows % each != 0);
}

/* The doubles of a backward pass's workspace: a sum for each column, block and gradient. SIZE_MAX: its bytes do not fit. rows: of
 * the kernel. */
static inline size_t nrg_norm_space(const nrg_norm_spec *spec, size_t rows, int gradients)
{
    const size_t sums = (size_t)gradients * nrg_norm_block_count(rows), columns = nrg_norm_w_dim(spec);
    size_t bytes;
    return nrg_product(columns, sums * sizeof(double), &bytes) ? columns * sums : SIZE_MAX;
}

/* Whether a norm is one that a sandwich can have. */
static inline int nrg_sandwich_is_plain(const nrg_norm_spec *s)
{
    return !s->gate && !s->activation && !s->residual_mode && nrg_norm_alike(s) == 1;
}

#include "norm_calls.def"
#include "norm_backward_calls.def"
#include "norm_sandwich_calls.def"

#endif
