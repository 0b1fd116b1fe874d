/* What prechecks are made of: operands that plainly lie well. Says yes only where nrg_check would; where it does not say yes,
 * nrg_check decides. Numbers below NRG_PLACE_MOST and strides below NRG_PLACE_STRIDE leave every span below 2^62, and pointers
 * are below 2^63, so that no sum wraps around.
 *
 * Branches that are never taken cost less than one sum of all conditions: 343 instructions of nrg_rope_forward, and not 438.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_PLACE_H
#define NRG_OPERANDS_PLACE_H

#include "check.h"
#include "describe.h"

#if SIZE_MAX > UINT32_MAX
#define NRG_PLACE_MOST ((size_t)1 << 24)
#define NRG_PLACE_STRIDE ((size_t)1 << 36)
#else
#define NRG_PLACE_MOST ((size_t)1 << 12)
#define NRG_PLACE_STRIDE ((size_t)1 << 18)
#endif

/* Before a loop over operands, at most NRG_OPERANDS. */
#if defined(__GNUC__) || defined(__clang__)
#define NRG_UNROLL_OPERANDS _Pragma("GCC unroll 24")
#else
#define NRG_UNROLL_OPERANDS
#endif

/* The levels of an operand, from the innermost outwards; constants but for counts, strides and repeats. */
typedef struct nrg_steps {
    unsigned levels;
    int nests;
    uint32_t repeat;
    struct {
        size_t given, count;
    } level[NRG_LEVELS];
    size_t room;
} nrg_steps;

typedef struct nrg_placed {
    uintptr_t first, end;
    size_t stride; /* of the innermost level, which tells apart what lies in the same place and has the same shape */
} nrg_placed;

/* Operands in their order, absent ones without bytes; nrg_sizes' bits. An operand's number and role are constants, so that each
 * has a place of its own and nothing is compared that need not be: GLU of 1x64 takes 48 ns, and 52 with a list of those that are
 * there (Zen 4, gcc 12.2). */
typedef struct nrg_precheck {
    size_t bytes;
    uint32_t written, ignored, always, apart, outputs;
    uintptr_t low, high; /* between which all of them lie */
    nrg_placed at[NRG_OPERANDS];
} nrg_precheck;

/* Places operand `index`, whose strides are then in *l, one for each level; 0: nrg_check has to be asked. All but pointers,
 * numbers and strides are constants, so that little is left of this. */
NRG_INLINE int nrg_place(nrg_precheck *c, nrg_laid *l, unsigned index, const void *pointer, nrg_role role, size_t element,
                         size_t dim, nrg_steps v, enum nrg_there there, uint32_t over)
{
    size_t *const stride = l->stride[index];
    const uint32_t bit = NRG_BIT(index);
    c->outputs |= role != NRG_IN ? bit : c->written & bit;
    if (!pointer) {
        c->at[index] = (nrg_placed){0, 0, 0};
        NRG_UNROLL_3
        for (unsigned k = 0; k < v.levels; k++)
            stride[k] = 0;
        return !(c->always & bit) && there != NRG_ALWAYS && (dim == 0 || (there != NRG_MUST && there != NRG_NEED));
    }
    const uintptr_t first = (uintptr_t)pointer;
    const size_t row = dim * element;
    size_t span = row, rows = 1, unit = first, inner = 0;
    int has_gaps = 0; /* then outer strides may differ where both ends are the same */
    if (there == NRG_NOT || there == NRG_SKIP || (c->ignored & bit) || first > UINTPTR_MAX / 2 || dim - 1 >= NRG_PLACE_MOST)
        return 0;
    if (v.levels) {
        const int is_matrix = v.levels == 1 || ((v.level[1].count == 1) & (v.levels == 2 || v.level[2].count == 1));
        if ((v.repeat & (is_matrix ? NRG_REPEAT_ROWS : NRG_REPEAT_ALL)) ||
            (!is_matrix && !v.nests && (v.level[0].given | v.level[1].given | v.level[2].given)))
            return 0;
        size_t inside = row;
        /* A level with one step takes no stride that is given. Not unrolled, the loop costs 3 ns. */
        NRG_UNROLL_3
        for (unsigned k = 0; k < v.levels; k++) {
            const size_t count = v.level[k].count;
            stride[k] = inside;
            if (k && is_matrix)
                continue;
            stride[k] = v.level[k].given && count != 1 ? v.level[k].given : inside;
            if (count - 1 >= NRG_PLACE_MOST || stride[k] < inside || stride[k] >= NRG_PLACE_STRIDE)
                return 0;
            unit |= stride[k];
            span += (count - 1) * stride[k];
            inside = stride[k] * count;
            rows *= count;
        }
        has_gaps = !is_matrix && (v.level[1].given | v.level[2].given);
        inner = stride[0];
    }
    if ((unit & (element - 1)) || (role == NRG_SCRATCH && v.room < row))
        return 0;
    const uintptr_t end = first + span;
    /* inputs may share bytes; after a few operands it pays to look first whether there is anything near */
    if (index < 5 || (first < c->high && end > c->low)) {
        NRG_UNROLL_OPERANDS
        for (unsigned i = 0; i < index; i++) {
            const nrg_placed *const other = &c->at[i];
            if (!((c->outputs & bit) | (c->outputs >> i & 1)) || other->end <= first || end <= other->first)
                continue;
            if (!(c->outputs & bit) || !(over >> i & 1) || (c->apart & bit) ||
                ((first ^ other->first) | (end ^ other->end) | (inner ^ other->stride)) || has_gaps)
                return 0;
        }
    }
    c->low = first < c->low ? first : c->low;
    c->high = end > c->high ? end : c->high;
    c->at[index] = (nrg_placed){first, end, inner};
    c->bytes += (rows * row) << (role == NRG_IN && (c->written & bit));
    return 1;
}

#endif
