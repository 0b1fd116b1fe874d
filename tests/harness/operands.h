/* The operands of a call as fenced memory: each in pages of its own, or in the place of another, or side by side in the rows of
 * one buffer. Everything a call does to memory that is not its own is noticed here; call_harness.h says which operands there are.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_OPERANDS_H
#define NRG_TESTS_HARNESS_OPERANDS_H

#include <nrg/nrg.h>

#include "fence.h"

enum { OPERANDS_MOST = 24, OPERAND_MESSAGE = 768 };

/* No NaN in any dtype, so that an element nobody wrote differs even from an expected NaN. */
enum { OPERAND_CANARY = 0xa5 };

/* Where an operand stands in its pages. */
typedef struct operand_place {
    enum fence_side side;
    size_t gap;       /* elements between the buffer and its fence */
    size_t pad;       /* elements between rows */
    size_t group_pad; /* more of them between groups of rows */
    int transposed;   /* the groups' first rows beside each other, then their second ones, … */
} operand_place;

typedef struct operand {
    const char *name;
    nrg_dtype dtype;
    int is_bytes; /* and of no dtype */
    size_t dim, rows;
    size_t group;       /* rows of a group (the heads of a token), which have a stride of their own; 0: no groups */
    int wanted;         /* gets memory of its own */
    int tensor;         /* its rows may be apart, and interleave with those of others */
    int alone;          /* never interleaves */
    int output;         /* may change; anything else may not */
    size_t unit;        /* bytes of a step of gaps and pads; 0: an element */
    unsigned char fill; /* what is there before the call; 0: the canary */
    /* what placing it finds */
    unsigned char *at;   /* NULL where absent */
    size_t stride;       /* between rows, of a group where there are groups */
    size_t group_stride; /* between groups */
    int host;            /* the operand whose pages it stands in */
} operand;

/* Gives all wanted operands memory. interleaved: the wanted tensors share the pages of operand `first`. */
void operands_place(operand *all, int count, const operand_place *places, int interleaved, int first);

/* Puts an operand in the place of another. */
void operand_over(operand *all, int which, int host);

/* Where a row of it is. */
unsigned char *operand_row(const operand *o, size_t row);

void operand_copy_in(const operand *o, const void *dense);

/* After everything has been copied in: remembers the memory's state. */
void operands_keep(const operand *all, int count);

/* Its rows count as never written, for MemorySanitizer and valgrind; or as written, whatever was done to them. */
void operand_forget(const operand *o);
void operand_accept(const operand *o);

/* Makes memory without outputs in it read-only, or writable again. */
void operands_protect(const operand *all, int count, int read_only);

/* Takes an output's rows out, and allows them to have changed. to: NULL only allows it. */
void operand_copy_out(const operand *o, void *to);

/* NULL, or the first byte that changed and may not. In static storage. */
const char *operands_changed(const operand *all, int count);

/* NULL, or the first element of two dense tensors that differs. In static storage. */
const char *operand_compare(const char *name, size_t rows, size_t dim, nrg_dtype dtype, const void *expected, const void *got);

/* The stride to hand to a call: 0 where dense, now and then. */
size_t operand_stride(const operand *o, int say_zero);

#endif
