/* What a public call takes, as data, said once. From a call's description its arguments are checked, tests lay its operands out
 * and try everything that is wrong, nrg check makes its cases, and the benchmark knows what bytes it moves.
 *
 * A call is told in parts: the caller's structs, in the order of the function's parameters; pointers and numbers that a function
 * takes without a struct are a part as well, a struct of the library's own. An operand is a tensor that a pointer in one of the
 * parts leads to: rows of `dim` adjacent elements, on up to three levels with a stride each, from the innermost level of a dense
 * tensor to its outermost.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_OPERAND_H
#define NRG_OPERANDS_OPERAND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../include/nrg/base.h"

enum { NRG_OPERANDS = 24, NRG_LEVELS = 3, NRG_PARTS = 5, NRG_NUMBERS = 24, NRG_TYPES = 5, NRG_ONE = 0 };

typedef enum nrg_role {
    NRG_IN,     /* read */
    NRG_OUT,    /* every element is written, whatever was there */
    NRG_INOUT,  /* read and written, all of it or parts */
    NRG_SCRATCH /* a workspace: its contents after the call are nobody's business but the next phase's */
} nrg_role;

/* An operand's elements: of one type, or of a dtype that the call's options choose. The first of those is the call's own dtype.
 */
typedef enum nrg_element {
    NRG_ELEMENT_F32,
    NRG_ELEMENT_F64,
    NRG_ELEMENT_I32,
    NRG_ELEMENT_I64,
    NRG_ELEMENT_BYTE,
    NRG_ELEMENT_CHOSEN /* + k: nrg_sizes.type[k] */
} nrg_element;

typedef struct nrg_operand {
    const char *name; /* as in the header */
    unsigned char role, element, part;
    unsigned char may_be_absent; /* NULL is no mistake, unless nrg_sizes.needed says so */
    unsigned char dim;           /* the number (nrg_sizes.n) of a row's elements */
    uint16_t at;                 /* where in the part the pointer is */
    uint16_t room;               /* a workspace: where its size in bytes is */
    uint16_t repeat;             /* where the levels that repeat are said, bit by bit (nrg_repeat); 0: none does */
    unsigned char levels, nests; /* nests: a precheck takes strides of several levels, each around what is inside of it */
    struct {
        uint16_t stride; /* where in the part; 0: none, the level is dense */
        uint16_t count;  /* the number of steps; NRG_ONE: no level, and none after it */
    } level[NRG_LEVELS];
    uint32_t over; /* an output: operands in whose place it may be, bit by bit. Same first byte, strides and element size */
} nrg_operand;

/* A field of four bytes that may have the values low to low + span: an enum, a dtype, a reserved field. */
typedef struct nrg_range {
    unsigned char part, status;
    uint16_t at;
    uint32_t low, span;
} nrg_range;

/* Whether an operand is there: has to be where it has elements, may be, has to be where the options say so, even where it has no
 * elements, must be absent (NRG_ERR_COMBINATION), is not looked at. */
enum nrg_there { NRG_MUST, NRG_MAY, NRG_NEED, NRG_ALWAYS, NRG_NOT, NRG_SKIP };

/* What a call's options and numbers make of its operands. */
typedef struct nrg_sizes {
    size_t n[NRG_NUMBERS]; /* the numbers that shapes are told in; n[NRG_ONE] is 1 */
    nrg_dtype type[NRG_TYPES];
    uint32_t needed;  /* bits of operands that may not be absent where they have elements */
    uint32_t always;  /* bits of operands that may not be absent even where they have none */
    uint32_t refused; /* bits of operands that must be absent: NRG_ERR_COMBINATION */
    uint32_t ignored; /* bits of operands that are not looked at */
    uint32_t apart;   /* bits of outputs that may not be in another output's place, whatever nrg_operand.over says */
    uint32_t written; /* bits of inputs that are outputs here: their output is absent, and they take its place */
} nrg_sizes;

typedef struct nrg_part {
    uint16_t size, least; /* of this version's struct, and of the first version's; least 0: a struct of the library's own */
    unsigned char may_be_absent; /* NULL stands for a struct of zeros with this size */
} nrg_part;

typedef struct nrg_call {
    const nrg_part *parts;
    const nrg_operand *operands;
    const nrg_range *ranges;
    unsigned char part_count, operand_count, range_count;
    /* Fills *s, in which n[NRG_ONE] is 1 and no bit of an operand is set, from parts whose ranges hold; or says what is wrong
     * with them. */
    nrg_status (*measure)(const void *const *part, nrg_sizes *s);
} nrg_call;

/* Bit of an operand of a call's enum. */
#define NRG_BIT(operand) ((uint32_t)1 << (operand))

/* For tables: an operand's or range's place in a struct. */
#define NRG_AT(type, field) (uint16_t) offsetof(type, field)
#define NRG_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* a·b, or 0 where it does not fit. Divides only for numbers a tensor seldom has: a division for every operand and level would
 * cost a small call more than its row. */
static inline int nrg_product(size_t a, size_t b, size_t *result)
{
    const size_t half = (size_t)1 << (sizeof(size_t) * 4);
    if ((a | b) >= half && b && a > SIZE_MAX / b)
        return 0;
    *result = a * b;
    return 1;
}

static inline int nrg_product3_fits(size_t a, size_t b, size_t c)
{
    size_t n;
    return nrg_product(a, b, &n) && nrg_product(n, c, &n);
}

/* Whether a call writes operand i. */
static inline int nrg_is_output(const nrg_operand *o, const nrg_sizes *s, unsigned i)
{
    return o->role != NRG_IN || s->written >> i & 1;
}

/* Bytes of an element. */
static inline size_t nrg_element_bytes(unsigned element, const nrg_sizes *s)
{
    if (element >= NRG_ELEMENT_CHOSEN)
        return s->type[element - NRG_ELEMENT_CHOSEN] == NRG_F32 ? 4 : 2;
    return element == NRG_ELEMENT_BYTE ? 1 : element == NRG_ELEMENT_F64 || element == NRG_ELEMENT_I64 ? 8 : 4;
}

/* The levels of an operand that repeat: they take no step. */
static inline uint32_t nrg_repeated(const nrg_operand *o, const void *part)
{
    uint32_t bits = 0;
    if (o->repeat)
        memcpy(&bits, (const unsigned char *)part + o->repeat, sizeof bits);
    return bits;
}

/* Pointers have other types in the structs, so that they are copied and not looked at. */
static inline const void *nrg_pointer_at(const void *part, size_t at)
{
    const void *pointer;
    memcpy(&pointer, (const unsigned char *)part + at, sizeof pointer);
    return pointer;
}

static inline size_t nrg_size_at(const void *part, size_t at)
{
    size_t size;
    memcpy(&size, (const unsigned char *)part + at, sizeof size);
    return size;
}

#endif
