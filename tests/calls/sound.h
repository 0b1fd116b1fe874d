/* Sound calls of every public function with a description: where all that is wrong begins.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_H
#define NRG_TESTS_CALLS_SOUND_H

#include <nrg/nrg.h>

#include "../../check/own_memory.h"
#include "../../src/operands/operand.h"

enum { SOUND_PART_BYTES = 512 };

/* An option, and what it makes of the call: the field's bytes and the status; NRG_OK where it is right at the edge of what is
 * wrong. Where is_more is set, those after it are options of the same call. Without bytes: those after it are for this variant.
 */
typedef struct sound_wrong {
    unsigned char part, bytes, variant, is_more;
    uint16_t at;
    nrg_status status;
    union {
        double f64;
        float f32;
        uint32_t u32;
        uint64_t u64;
    } value;
} sound_wrong;

#define WRONG_VARIANT(n)                                                                                                         \
    {                                                                                                                            \
        .variant = (n)                                                                                                           \
    }
#define WITH_F64(index, type, field, number)                                                                                     \
    {                                                                                                                            \
        .part = (index), .bytes = 8, .is_more = 1, .at = NRG_AT(type, field), .value.f64 = (number)                              \
    }
#define WITH_U32(index, type, field, number)                                                                                     \
    {                                                                                                                            \
        .part = (index), .bytes = 4, .is_more = 1, .at = NRG_AT(type, field), .value.u32 = (uint32_t)(number)                    \
    }
#define WITH_U64(index, type, field, number)                                                                                     \
    {                                                                                                                            \
        .part = (index), .bytes = sizeof((type *)0)->field, .is_more = 1, .at = NRG_AT(type, field),                             \
        .value.u64 = (uint64_t)(number)                                                                                          \
    }
#define WRONG_F64(index, type, field, number, status_)                                                                           \
    {                                                                                                                            \
        .part = (index), .bytes = 8, .at = NRG_AT(type, field), .status = (status_), .value.f64 = (number)                       \
    }
#define WRONG_F32(index, type, field, number, status_)                                                                           \
    {                                                                                                                            \
        .part = (index), .bytes = 4, .at = NRG_AT(type, field), .status = (status_), .value.f32 = (number)                       \
    }
#define WRONG_U32(index, type, field, number, status_)                                                                           \
    {                                                                                                                            \
        .part = (index), .bytes = 4, .at = NRG_AT(type, field), .status = (status_), .value.u32 = (uint32_t)(number)             \
    }
#define WRONG_U64(index, type, field, number, status_)                                                                           \
    {                                                                                                                            \
        .part = (index), .bytes = sizeof((type *)0)->field, .at = NRG_AT(type, field), .status = (status_),                      \
        .value.u64 = (uint64_t)(number)                                                                                          \
    }

/* A stride that a description may not forget; where there is more than one step. */
#define WRONG_STRIDE(index, type, field) WRONG_U64(index, type, field, 1, NRG_ERR_STRIDE)

/* A pointer that options make necessary. */
#define WRONG_NULL(index, type, field)                                                                                           \
    {                                                                                                                            \
        .part = (index), .bytes = sizeof(void *), .at = NRG_AT(type, field), .status = NRG_ERR_NULL                              \
    }

/* A number of elements in a struct: too many of them must be refused. */
typedef struct sound_size {
    unsigned char part;
    uint16_t at;
} sound_size;

typedef struct sound_call {
    const nrg_call *call;
    const char *header, *function; /* whose comment lists the statuses, and the name it stands before */
    int has_shares;                /* the function takes (ith, nth) */
    int variants;

    /* Options and numbers of variant n, in parts that are zero; pointers and strides may stay. Returns the bits of the operands
     * that are there beside those that may not be absent: each that may is in some variant's. */
    uint32_t (*set_up)(void *const *part, int variant);

    /* Operands have their places and hold small numbers: whatever else has to be in them, ids above all. May be NULL. */
    void (*fill)(void *const *part);

    nrg_status (*run)(void *const *part, int ith, int nth);
    nrg_status (*ask)(void *const *part); /* what run would say; NULL where has_shares is 0 */

    /* Makes the contents of operands wrong in the n-th way, and returns the status; NRG_OK: this variant has no such. May be
     * NULL. */
    nrg_status (*spoil)(void *const *part, int n);

    /* Bits of outputs that are another phase's. May be NULL: none. */
    uint32_t (*spares)(void *const *part);

    const sound_wrong *wrong; /* of variant 0, up to the first WRONG_VARIANT */
    int wrong_count;
    const sound_size *sizes;
    int size_count;
    unsigned fixed_part; /* which is no argument of the caller's, and stays as set_up() makes it; 0: none */
    int is_part;         /* another description has the statuses of the function that this one has not */

    /* Fits numbers to the operands that are there, where others would be refused. May be NULL. */
    void (*settle)(void *const *part);
} sound_call;

/* The calls of a family. */
typedef struct sound_family {
    const char *name;
    const sound_call *calls;
    int count;
} sound_family;

extern const sound_family sound_activation, sound_score_bias, sound_channel_norm, sound_embed, sound_norm, sound_norm_sandwich,
    sound_quantize, sound_recurrent, sound_relative, sound_rope, sound_softmax;

#endif
