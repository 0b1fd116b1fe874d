/* Sound calls of every public function with a description: where all that is wrong begins.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_H
#define NRG_TESTS_CALLS_SOUND_H

#include <nrg/nrg.h>

#include "../../check/invoke.h"
#include "../../check/own_memory.h"

enum { SOUND_PART_BYTES = 512, SOUND_SHARES = 2 /* a part that is no argument, of calls whose workspace depends on it */ };

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
#define SOUND_FIELD(index, type, field_, ...)                                                                                    \
    {                                                                                                                            \
        .part = (index), .bytes = sizeof((type *)0)->field_, .at = NRG_AT(type, field_), __VA_ARGS__                             \
    }
#define WITH_U32(index, type, field, number) SOUND_FIELD(index, type, field, .is_more = 1, .value.u32 = (uint32_t)(number))
#define WITH_U64(index, type, field, number) SOUND_FIELD(index, type, field, .is_more = 1, .value.u64 = (uint64_t)(number))
#define WRONG_F64(index, type, field, number, status_) SOUND_FIELD(index, type, field, .status = (status_), .value.f64 = (number))
#define WRONG_F32(index, type, field, number, status_) SOUND_FIELD(index, type, field, .status = (status_), .value.f32 = (number))
#define WRONG_U32(index, type, field, number, status_)                                                                           \
    SOUND_FIELD(index, type, field, .status = (status_), .value.u32 = (uint32_t)(number))
#define WRONG_U64(index, type, field, number, status_)                                                                           \
    SOUND_FIELD(index, type, field, .status = (status_), .value.u64 = (uint64_t)(number))

/* A stride that a description may not forget; where there is more than one step. */
#define WRONG_STRIDE(index, type, field) WRONG_U64(index, type, field, 1, NRG_ERR_STRIDE)

typedef struct sound_call {
    const invoke_function *function;
    int variants;

    /* Options and numbers of variant n, in parts that are zero; pointers and strides may stay. Returns the bits of the operands
     * that are there beside those that may not be absent: each that may is in some variant's. */
    uint32_t (*set_up)(void *const *part, int variant);

    const sound_wrong *wrong; /* of variant 0, up to the first WRONG_VARIANT */
    int wrong_count;

    /* Operands have their places and hold small numbers: whatever else has to be in them, ids above all. May be NULL. */
    void (*fill)(void *const *part);

    /* Makes the contents of operands wrong in the n-th way, and returns the status; NRG_OK: this variant has no such. May be
     * NULL. */
    nrg_status (*spoil)(void *const *part, int n);

    /* Bits of outputs that are another phase's: always, and those that depend on the call. May be NULL: none. */
    uint32_t spared;
    uint32_t (*spares)(void *const *part);

    /* Fits numbers to the operands that are there, where others would be refused. May be NULL. */
    void (*settle)(void *const *part);

    /* Before each call: what one part has of another. A status ends it. May be NULL. */
    nrg_status (*bind)(void *const *part);

    /* After each call, with its status. May be NULL. */
    void (*after)(nrg_status status);

    const nrg_call *like;             /* of a workspace query: the call that it serves, whose set_up sets the pointers */
    const invoke_function *workspace; /* its bytes depend on the number of shares, which is one in SOUND_SHARES */
    int is_part;                      /* another description has the statuses of the function that this one has not */

    uint32_t own;      /* bits of operands that the call itself reads or writes, without a kernel */
    int has_no_kernel; /* does all of its work */
    int always;        /* a kernel is reached even where no output is asked for */
    int repeats;       /* as often as its numbers say, so that changed ones are not tried */
} sound_call;

/* For the table of a family. */
#define WRONG(list) .wrong = list, .wrong_count = NRG_COUNT(list)
#define NO_KERNEL .own = UINT32_MAX, .has_no_kernel = 1

static inline const char *sound_name(const sound_call *s) { return s->function->name; }
static inline int sound_has_shares(const sound_call *s) { return s->function->ask != NULL; }

/* Bits of outputs that are another phase's. */
static inline uint32_t sound_spared(const sound_call *s, void *const *part)
{
    return s->spared | (s->spares ? s->spares(part) : 0);
}

/* A variant in parts of SOUND_PART_BYTES: options and numbers, and some address for each operand that is there, of which it
 * returns the bits. */
uint32_t sound_set_up(const sound_call *s, int variant, void *const *part);

/* Makes the call, or a share of it. */
nrg_status sound_run(const sound_call *s, void *const *part, int ith, int nth);

/* What sound_run would return; of a function with shares. */
nrg_status sound_ask(const sound_call *s, void *const *part);

/* A number of elements in a struct. */
typedef struct sound_size {
    unsigned char part;
    uint16_t at;
} sound_size;

enum { SOUND_SIZES = 32 };

/* The fields that lengths and numbers of rows depend on, in some variant; of a call without operands, all that may be larger.
 * Returns how many there are. */
int sound_sizes(const sound_call *s, sound_size sizes[SOUND_SIZES]);

/* The calls of a family. */
typedef struct sound_family {
    const char *name;
    const sound_call *calls;
    int count;
} sound_family;

enum { SOUND_FAMILIES = 11 };
extern const sound_family *const sound_families[SOUND_FAMILIES];

#endif
