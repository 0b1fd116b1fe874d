/* What the calls of nrg/rope.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_ROPE_H
#define NRG_OPERANDS_ROPE_H

#include "../../include/nrg/rope.h"
#include "heads.h"

enum { NRG_ROPE_SPEC, NRG_ROPE_ARGS };

/* nrg_rope_pairs, which has no operands: how many there are is this number. */
enum { NRG_ROPE_PAIRS = 1 };
extern const nrg_call nrg_call_rope_pairs;

/* nrg_rope_frequencies */
typedef struct nrg_rope_frequencies_args {
    double *frequencies, *magnitude;
} nrg_rope_frequencies_args;
enum {
    NRG_ROPE_FREQUENCIES_FACTORS,
    NRG_ROPE_FREQUENCIES_FREQUENCIES,
    NRG_ROPE_FREQUENCIES_MAGNITUDE,
    NRG_ROPE_FREQUENCIES_OPERANDS
};
extern const nrg_call nrg_call_rope_frequencies;

/* nrg_rope_table */
enum { NRG_ROPE_TABLE_POSITIONS, NRG_ROPE_TABLE_FREQUENCIES, NRG_ROPE_TABLE_TABLE, NRG_ROPE_TABLE_OPERANDS };
extern const nrg_call nrg_call_rope_table;

/* nrg_rope_forward and nrg_rope_backward */
enum { NRG_ROPE_TABLE, NRG_ROPE_POSITIONS, NRG_ROPE_Q, NRG_ROPE_K, NRG_ROPE_Q_O, NRG_ROPE_K_O, NRG_ROPE_OPERANDS };
extern const nrg_call nrg_call_rope;

/* nrg_rope_positions_forward and _backward, and nrg_rope_positions_workspace, which has no operands. */
enum { NRG_ROPE_SHARES = NRG_ROPE_ARGS + 1 };
enum {
    NRG_ROPE_POSITIONS_Q,
    NRG_ROPE_POSITIONS_K,
    NRG_ROPE_POSITIONS_POSITIONS,
    NRG_ROPE_POSITIONS_FACTORS,
    NRG_ROPE_POSITIONS_Q_O,
    NRG_ROPE_POSITIONS_K_O,
    NRG_ROPE_POSITIONS_WORKSPACE,
    NRG_ROPE_POSITIONS_OPERANDS
};
extern const nrg_call nrg_call_rope_positions, nrg_call_rope_positions_workspace;

/* The numbers that a call needs of what was measured. */
enum {
    NRG_ROPE_POSITIONS_N_TOKENS = 1,
    NRG_ROPE_POSITIONS_N_BATCH,
    NRG_ROPE_POSITIONS_N_Q_HEADS,
    NRG_ROPE_POSITIONS_N_K_HEADS,
    NRG_ROPE_POSITIONS_N_DIM,
    NRG_ROPE_POSITIONS_N_AXES,
    NRG_ROPE_POSITIONS_N_FACTORS,
    NRG_ROPE_POSITIONS_SPACE /* of the workspace, in doubles */
};

/* The shares of a call with a workspace, which has a slice for each; and its pass. */
typedef struct nrg_rope_shares {
    int nth, backward;
} nrg_rope_shares;

/* A slice of the workspace: where its arrays begin, in bytes, and how many rows of the table fit. */
typedef struct nrg_rope_slice {
    size_t frequencies, factors, block, positions, table, bytes, rows;
} nrg_rope_slice;

/* What a slice begins with: what its arrays hold. */
typedef struct nrg_rope_kept {
    uint64_t mark;      /* NRG_ROPE_MARK where the rest means something */
    nrg_rope_spec spec; /* of the frequencies, without the pointer */
    int32_t has_factors;
    int32_t has_positions; /* of the table; otherwise it counts from first_position */
    double magnitude;
    size_t layout;          /* of the workspace: see rope_layout */
    size_t rows;            /* of the table; 0: none */
    int64_t first_position; /* of its first row */
} nrg_rope_kept;
#define NRG_ROPE_MARK UINT64_C(0x6e72672071202620)

enum { NRG_ROPE_LINE = 64 };
/* Elements of a block, and rows of a table: their bytes fit. */
#define NRG_ROPE_SPACE_MOST ((size_t)1 << (sizeof(size_t) * 4 - 4))
#define NRG_ROPE_SHARES_RANGE(shares)                                                                                            \
    {                                                                                                                            \
        .part = (shares), .status = NRG_ERR_THREAD, .at = NRG_AT(nrg_rope_shares, nth), .low = 1, .span = INT32_MAX - 1          \
    }

/* What slices are made of. block: bytes that a caller stages heads in. */
typedef struct nrg_rope_space {
    size_t slices, tokens, block, pairs, axes;
} nrg_rope_space;

/* The slices of a workspace that is large enough. A slice is the same for any number of tokens, so that a prompt leaves to the
 * tokens after it what it has made: all but its fixed part is the table's. */
nrg_rope_slice nrg_rope_slice_of(const nrg_rope_space *s, size_t workspace_size);

/* Doubles of a workspace: slices with room for the tokens of a share, which begins and ends within a token. */
nrg_status nrg_rope_measure_space(const nrg_rope_space *s, size_t *doubles);

/* Numbers between 2^-400 and 2^400: bases, scales and factors. */
static inline int nrg_rope_in_range(double a) { return a >= 0x1p-400 && a <= 0x1p400; }

#define NRG_ROPE_DIMS_MOST ((size_t)1 << 31)

static inline size_t nrg_rope_pairs_of(const nrg_rope_spec *s) { return s->mode == NRG_ROPE_VISION ? s->n_dims : s->n_dims / 2; }

/* For tables of other calls that turn q and k: the parts, the operands and ranges of the rotation, its numbers. The first four
 * operands of such a call are the rotation's; q_o: the number of its fifth one, after which k_o comes. */
#define NRG_ROPE_SPEC_PART                                                                                                       \
    {                                                                                                                            \
        .size = sizeof(nrg_rope_spec), .least = sizeof(nrg_rope_spec)                                                            \
    }
#define NRG_ROPE_ARGS_PART                                                                                                       \
    {                                                                                                                            \
        .size = sizeof(nrg_rope_args), .least = sizeof(nrg_rope_args)                                                            \
    }
#define NRG_ROPE_RANGES(spec, args)                                                                                              \
    NRG_DTYPE_RANGE(args, nrg_rope_args, dtype), NRG_ENUM_RANGE(args, nrg_rope_args, store, NRG_STORE_STREAM),                   \
        NRG_RESERVED_RANGE(args, nrg_rope_args, reserved), NRG_ROPE_YARN_RANGE(spec)

/* All bits of nrg_rope_yarn are the lowest. */
enum { NRG_ROPE_YARN_MOST = NRG_ROPE_YARN_NO_TRUNCATE | NRG_ROPE_YARN_NO_MSCALE };
#define NRG_ROPE_YARN_RANGE(spec) NRG_ENUM_RANGE(spec, nrg_rope_spec, yarn, NRG_ROPE_YARN_MOST)
#define NRG_ROPE_SCALING_RANGE(spec) NRG_ENUM_RANGE(spec, nrg_rope_spec, scaling, NRG_ROPE_SCALING_LLAMA3)

/* Whether there is a position first + t for each of so many tokens. */
static inline int nrg_rope_can_count(int32_t first, size_t tokens)
{
    return !tokens || tokens - 1 <= (size_t)((int64_t)INT32_MAX - first);
}

/* Whether a head has the elements that are rotated. */
static inline int nrg_rope_fits(size_t pairs, size_t rotate_from, size_t dim)
{
    return 2 * pairs <= dim && rotate_from <= dim - 2 * pairs;
}

/* A tensor and its output, as bits: refused without heads; needed with them, and written if there is no output. */
static inline void nrg_rope_measure_heads(nrg_sizes *s, uint32_t x, uint32_t o, size_t heads, const void *output)
{
    *(heads ? &s->needed : &s->refused) |= heads ? x : x | o;
    s->written |= heads && !output ? x : 0;
}

/* The fields that a call from positions on has of its args; their spec's options are checked. */
nrg_status nrg_rope_measure_positions(const nrg_rope_spec *spec, size_t dim, size_t rotate_from, const int32_t *positions,
                                      int32_t first_position, nrg_rope_space *space);

/* What frequencies are made of; and positions of a token. */
nrg_status nrg_rope_measure_angles(const nrg_rope_spec *spec, size_t *pairs);
size_t nrg_rope_axes(const nrg_rope_spec *spec);

enum {
    NRG_ROPE_N_TOKENS = 1,
    NRG_ROPE_N_Q_HEADS,
    NRG_ROPE_N_K_HEADS,
    NRG_ROPE_N_DIM,
    NRG_ROPE_N_TABLE_DIM,
    NRG_ROPE_N_TABLE_ROWS,
    NRG_ROPE_N_BATCH,
    NRG_ROPE_N_POSITION_ROWS, /* one for each batch, or one for all */
    NRG_ROPE_NUMBERS
};
nrg_status nrg_rope_measure(const nrg_rope_spec *spec, const nrg_rope_args *args, unsigned q_o, nrg_sizes *s);

#define NRG_ROPE_HEADS(field, args, heads)                                                                                       \
    .part = (args), .at = NRG_AT(nrg_rope_args, field), .dim = NRG_ROPE_N_DIM, .may_be_absent = 1,                               \
    .level = NRG_HEADS_TOGETHER(nrg_rope_args, field##_strides, NRG_ROPE_N_BATCH, heads, NRG_ROPE_N_TOKENS)
#define NRG_ROPE_INPUTS(args)                                                                                                    \
    [NRG_ROPE_TABLE] = {"table",                                                                                                 \
                        NRG_IN,                                                                                                  \
                        NRG_ELEMENT_F32,                                                                                         \
                        .part = (args),                                                                                          \
                        .at = NRG_AT(nrg_rope_args, table),                                                                      \
                        .dim = NRG_ROPE_N_TABLE_DIM,                                                                             \
                        .level = {{.stride = NRG_AT(nrg_rope_args, table_stride), .count = NRG_ROPE_N_TABLE_ROWS}}},             \
    [NRG_ROPE_POSITIONS] = {"table_ids",                                                                                         \
                            NRG_IN,                                                                                              \
                            NRG_ELEMENT_I32,                                                                                     \
                            .may_be_absent = 1,                                                                                  \
                            .part = (args),                                                                                      \
                            .at = NRG_AT(nrg_rope_args, table_ids),                                                              \
                            .dim = NRG_ROPE_N_TOKENS,                                                                            \
                            .level = {{.stride = NRG_AT(nrg_rope_args, table_ids_batch_stride),                                  \
                                       .count = NRG_ROPE_N_POSITION_ROWS}}},                                                     \
    [NRG_ROPE_Q] = {"q", NRG_IN, NRG_ELEMENT_CHOSEN, NRG_ROPE_HEADS(q, args, NRG_ROPE_N_Q_HEADS)},                               \
    [NRG_ROPE_K] = {"k", NRG_IN, NRG_ELEMENT_CHOSEN, NRG_ROPE_HEADS(k, args, NRG_ROPE_N_K_HEADS)}
#define NRG_ROPE_OUTPUTS(args, first)                                                                                            \
    [(first)] = {"q_o", NRG_OUT, NRG_ELEMENT_CHOSEN, NRG_ROPE_HEADS(q_o, args, NRG_ROPE_N_Q_HEADS),                              \
                 .over = NRG_BIT(NRG_ROPE_Q)},                                                                                   \
    [(first) + 1] = {"k_o", NRG_OUT, NRG_ELEMENT_CHOSEN, NRG_ROPE_HEADS(k_o, args, NRG_ROPE_N_K_HEADS),                          \
                     .over = NRG_BIT(NRG_ROPE_K)}

#endif
