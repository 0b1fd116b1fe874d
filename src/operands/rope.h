/* What the calls of nrg/rope.h and nrg/sinusoidal.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_ROPE_H
#define NRG_OPERANDS_ROPE_H

#include <float.h>
#include <math.h>

#include "../../include/nrg/rope.h"
#include "../../include/nrg/sinusoidal.h"
#include "heads.h"

/* What nrg_rope_frequencies takes beside a spec. */
typedef struct nrg_rope_frequencies_args {
    double *frequencies, *magnitude;
} nrg_rope_frequencies_args;

/* The shares of a call with a workspace, which has a slice for each; and its pass. */
typedef struct nrg_rope_shares {
    int nth, backward;
} nrg_rope_shares;

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
/* What slices are made of. block: bytes that a caller stages heads in. */
typedef struct nrg_rope_space {
    size_t slices, tokens, block, pairs, axes;
} nrg_rope_space;

/* A slice in its place. */
typedef struct nrg_rope_slice {
    nrg_rope_kept *kept;
    double *frequencies;
    float *factors;
    int32_t *positions;
    float *table, *block;
    size_t rows;    /* of the table, for which there is room */
    size_t *layout; /* the workspace's first word */
} nrg_rope_slice;

/* Slice i of a workspace that is large enough. A slice is the same for any number of tokens, so that a prompt leaves to the
 * tokens after it what it has made: all but its fixed part is the table's. */
nrg_rope_slice nrg_rope_slice_at(const nrg_rope_space *s, void *workspace, size_t workspace_size, size_t i);

/* Doubles of a workspace: slices with room for the tokens of a share, which begins and ends within a token. */
nrg_status nrg_rope_measure_space(const nrg_rope_space *s, size_t *doubles);

/* Numbers between 2^-400 and 2^400: bases, scales and factors. */
static inline int nrg_rope_in_range(double a) { return a >= 0x1p-400 && a <= 0x1p400; }

#define NRG_ROPE_DIMS_MOST ((size_t)1 << 31)

static inline size_t nrg_rope_pairs_of(const nrg_rope_spec *s) { return s->mode == NRG_ROPE_VISION ? s->n_dims : s->n_dims / 2; }

/* All bits of nrg_rope_yarn are the lowest. */
enum { NRG_ROPE_YARN_MOST = NRG_ROPE_YARN_NO_TRUNCATE | NRG_ROPE_YARN_NO_MSCALE };

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

/* Whether there is anything to turn. */
static inline int nrg_rope_is_used(const nrg_rope_args *a) { return a->batch && a->tokens && (a->q_heads | a->k_heads); }

/* The fields that a call from positions on has of its args; their spec's options are checked. */
nrg_status nrg_rope_measure_positions(const nrg_rope_spec *spec, size_t dim, size_t rotate_from, const int32_t *positions,
                                      int32_t first_position, nrg_rope_space *space);

/* What all calls look at of a spec; sections; what angles are made of: pairs, sections and constants. */
__attribute__((pure)) nrg_status nrg_rope_check_pairs(const nrg_rope_spec *spec);
__attribute__((pure)) nrg_status nrg_rope_check_sections(const nrg_rope_spec *spec);
__attribute__((pure)) nrg_status nrg_rope_check_angles(const nrg_rope_spec *spec);

/* Positions of a token. */
size_t nrg_rope_axes(const nrg_rope_spec *spec);

/* Doubles of the workspace of nrg_rope_positions_forward with so many shares. */
nrg_status nrg_rope_positions_space(const nrg_rope_spec *spec, const nrg_rope_positions_args *a, int nth, size_t *doubles);

/* What nrg_sinusoidal_frequencies takes beside a spec. */
typedef struct nrg_sinusoidal_frequencies_args {
    double *frequencies;
} nrg_sinusoidal_frequencies_args;

/* Of a row of dim elements. The last of an odd dim is a sine without a cosine. */
static inline size_t nrg_sinusoidal_pairs(size_t dim) { return dim / 2 + dim % 2; }

#include "rope_calls.def"
#include "sinusoidal_calls.def"

#endif
