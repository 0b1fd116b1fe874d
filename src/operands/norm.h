/* What the calls of nrg/norm.h and nrg/norm_backward.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_NORM_H
#define NRG_OPERANDS_NORM_H

#include "../../include/nrg/norm_backward.h"
#include "../../include/nrg/norm_parts.h"
#include "activation.h"
#include "operand.h"

enum { NRG_NORM_SPEC, NRG_NORM_ARGS };

/* nrg_norm_forward */
enum {
    NRG_NORM_X,
    NRG_NORM_Y,
    NRG_NORM_Z,
    NRG_NORM_W,
    NRG_NORM_B,
    NRG_NORM_O,
    NRG_NORM_R,
    NRG_NORM_MEAN,
    NRG_NORM_RSTD,
    NRG_NORM_PACKED,
    NRG_NORM_SCALES,
    NRG_NORM_OPERANDS
};
extern const nrg_call nrg_call_norm_forward;

/* nrg_norm_statistics and nrg_norm_elements; what they take beside spec and args */
enum { NRG_NORM_MORE = 2 };
typedef struct nrg_norm_more {
    const nrg_row_statistics *statistics;
} nrg_norm_more;
enum {
    NRG_NORM_STATISTICS_X,
    NRG_NORM_STATISTICS_Y,
    NRG_NORM_STATISTICS_Z,
    NRG_NORM_STATISTICS_R,
    NRG_NORM_STATISTICS_MEAN,
    NRG_NORM_STATISTICS_RSTD,
    NRG_NORM_STATISTICS_STATISTICS,
    NRG_NORM_STATISTICS_OPERANDS
};
extern const nrg_call nrg_call_norm_statistics;
enum {
    NRG_NORM_ELEMENTS_X,
    NRG_NORM_ELEMENTS_Y,
    NRG_NORM_ELEMENTS_Z,
    NRG_NORM_ELEMENTS_W,
    NRG_NORM_ELEMENTS_B,
    NRG_NORM_ELEMENTS_R,
    NRG_NORM_ELEMENTS_O,
    NRG_NORM_ELEMENTS_STATISTICS,
    NRG_NORM_ELEMENTS_OPERANDS
};
extern const nrg_call nrg_call_norm_elements;

/* nrg_norm_backward and nrg_norm_backward_reduce */
enum {
    NRG_NORM_BACKWARD_X,
    NRG_NORM_BACKWARD_Y,
    NRG_NORM_BACKWARD_Z,
    NRG_NORM_BACKWARD_W,
    NRG_NORM_BACKWARD_B,
    NRG_NORM_BACKWARD_R,
    NRG_NORM_BACKWARD_D_O,
    NRG_NORM_BACKWARD_DR_IN,
    NRG_NORM_BACKWARD_MEAN,
    NRG_NORM_BACKWARD_DX,
    NRG_NORM_BACKWARD_DY,
    NRG_NORM_BACKWARD_DZ,
    NRG_NORM_BACKWARD_DW,
    NRG_NORM_BACKWARD_DB,
    NRG_NORM_BACKWARD_WORKSPACE,
    NRG_NORM_BACKWARD_OPERANDS
};
extern const nrg_call nrg_call_norm_backward;

/* nrg_norm_backward_workspace: options only. NRG_NORM_BACKWARD_SPACE is the answer. */
extern const nrg_call nrg_call_norm_backward_workspace;

/* What both take of a spec: its ranges and its struct, for tables of other calls that take one; and its dtypes (x, y, r, w), or
 * what is wrong with it. */
#define NRG_NORM_SPEC_PART                                                                                                       \
    {                                                                                                                            \
        .size = sizeof(nrg_norm_spec), .least = sizeof(nrg_norm_spec)                                                            \
    }
#define NRG_NORM_SPEC_RANGES(part) NRG_DTYPE_RANGE(part, nrg_norm_spec, dtype), NRG_NORM_OTHER_RANGES(part)
#define NRG_NORM_OTHER_RANGES(part)                                                                                              \
    NRG_OTHER_DTYPE_RANGE(part, nrg_norm_spec, y_dtype), NRG_OTHER_DTYPE_RANGE(part, nrg_norm_spec, r_dtype),                    \
        NRG_OTHER_DTYPE_RANGE(part, nrg_norm_spec, w_dtype), NRG_ENUM_RANGE(part, nrg_norm_spec, eps_mode, NRG_EPS_NONE),        \
        NRG_ENUM_RANGE(part, nrg_norm_spec, residual_mode, NRG_RESIDUAL_AFTER),                                                  \
        NRG_ENUM_RANGE(part, nrg_norm_spec, gate, NRG_GATE_POST),                                                                \
        NRG_ENUM_RANGE(part, nrg_norm_spec, activation, NRG_ACTIVATION_COUNT - 1),                                               \
        NRG_ENUM_RANGE(part, nrg_norm_spec, c_mode, NRG_C_GIVEN),                                                                \
        NRG_ENUM_RANGE(part, nrg_norm_spec, weights, NRG_WEIGHTS_GROUP),                                                         \
        NRG_ENUM_RANGE(part, nrg_norm_spec, accuracy, NRG_ACCURACY_EXACT),                                                       \
        NRG_ENUM_RANGE(part, nrg_norm_spec, format, NRG_QUANT_INT8_128),                                                         \
        NRG_ENUM_RANGE(part, nrg_norm_spec, rounding, NRG_QUANT_ROUND_AWAY), NRG_RESERVED_RANGE(part, nrg_norm_spec, reserved)
enum { NRG_NORM_TYPE_X, NRG_NORM_TYPE_Y, NRG_NORM_TYPE_R, NRG_NORM_TYPE_W };
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

nrg_status nrg_norm_measure_spec(const nrg_norm_spec *spec, nrg_dtype type[NRG_TYPES]);

/* Which operands of a call o and the bytes instead of it are, and which numbers theirs. */
typedef struct nrg_quant_operands {
    unsigned char o, packed, scales, bytes, rows, scale_count;
} nrg_quant_operands;

/* Bytes instead of o, or none. Rows are quantized whole: a group's part of one would have to be whole blocks. */
nrg_status nrg_norm_measure_quant(nrg_sizes *s, const nrg_norm_spec *spec, size_t rows, const nrg_quant_operands *of);

/* Without w there is nothing that an offset could be added to. */
static inline int nrg_norm_offset_fits(const nrg_norm_spec *spec, const void *w) { return w || spec->weight_offset == 0; }

/* Groups that share one w and b, and so are rows of their own; those that have parts of them; and elements of w and b. */
static inline size_t nrg_norm_alike(const nrg_norm_spec *spec) { return spec->weights == NRG_WEIGHTS_GROUP ? spec->groups : 1; }
static inline size_t nrg_norm_groups(const nrg_norm_spec *spec) { return spec->weights == NRG_WEIGHTS_ROW ? spec->groups : 1; }
static inline size_t nrg_norm_w_dim(const nrg_norm_spec *spec)
{
    const size_t alike = nrg_norm_alike(spec);
    return alike == 1 ? spec->dim : spec->dim / alike;
}

#define NRG_NORM_ARGS_PART                                                                                                       \
    {                                                                                                                            \
        .size = sizeof(nrg_norm_args), .least = sizeof(nrg_norm_args)                                                            \
    }
#define NRG_NORM_BACKWARD_ARGS_PART                                                                                              \
    {                                                                                                                            \
        .size = sizeof(nrg_norm_backward_args), .least = sizeof(nrg_norm_backward_args)                                          \
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
    const size_t each = nrg_norm_block_rows(rows);
    return rows / each + (rows % each != 0);
}

/* The number that holds the doubles of a backward pass's workspace: a sum for each column, block and gradient. rows: of the
 * tensor. */
enum { NRG_NORM_BACKWARD_SPACE = 8 };
nrg_status nrg_norm_measure_space(const nrg_norm_spec *spec, size_t rows, const nrg_norm_backward_args *args, size_t *doubles);

#endif
