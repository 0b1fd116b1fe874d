/* Sound calls of every public function with a description: where all that is wrong begins.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_H
#define NRG_TESTS_CALLS_SOUND_H

#include <nrg/nrg.h>

#include "../../check/invoke.h"
#include "../../check/own_memory.h"

enum { SOUND_PART_BYTES = 512, SOUND_SHARES = 2 /* a part that is no argument, of calls whose workspace depends on it */ };

/* Elements of an operand that are ids below `limit`, or this other one. */
typedef struct sound_ids {
    int operand;
    size_t limit;
    int32_t other;
} sound_ids;

enum { SOUND_NO_MORE = -1 };

typedef struct sound_call {
    const invoke_function *function;
    const char *structs[NRG_PARTS]; /* the types of the parts */
    const char *unread;             /* options that the call does not look at, whatever they are: "struct.field"; or NULL */
    int variants;

    /* Options and numbers of variant n, in parts that are zero; pointers and strides may stay. Returns the bits of the operands
     * that are there beside those that may not be absent: each that may is in some variant's. */
    uint32_t (*set_up)(void *const *part, int variant);

    /* Changes options of a variant in the n-th way, and returns the status; NRG_OK where they are right at the edge of what is
     * wrong. SOUND_NO_MORE: there are no such. May be NULL. */
    int (*wrong)(void *const *part, int variant, int n);

    /* The n-th operand of ids; 0: there are no more. May be NULL. */
    int (*ids)(void *const *part, int n, sound_ids *ids);

    /* Operands have their places and hold small numbers, and ids: whatever else has to be in them. May be NULL. */
    void (*fill)(void *const *part);

    /* Makes the contents of operands wrong in the n-th way, and returns the status; NRG_OK: this variant has no such. NULL: ids
     * alone can be wrong. */
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
    int counts_shares; /* what it writes depends on the number of its shares, as it does with a workspace */
    int repeats;       /* as often as its numbers say, so that changed ones are not tried */
} sound_call;

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

/* Whether a call reads what is in operands; makes that what it has to be; and wrong, as sound_call.spoil does. */
static inline int sound_has_contents(const sound_call *s) { return s->fill != NULL || s->ids != NULL; }
void sound_fill(const sound_call *s, void *const *part);
nrg_status sound_spoil(const sound_call *s, void *const *part, int n);

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

enum { SOUND_FAMILIES = 10 };
extern const sound_family sound_families[]; /* sound.py makes them of sound.txt; the one behind the last has no name */

#endif
