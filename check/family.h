/* check/family.h: how the cases of one operation are made and run.
 *
 * Every op of src/kernels.def needs a sweep_family_<op>; nrg does not link without it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_FAMILY_H
#define NRG_CHECK_FAMILY_H

#include "../tools/printf_like.h"
#include "sweep.h"

enum { SWEEP_LEVELS = SWEEP_LOOPS + 1 };

typedef struct sweep_family {
    /* The cases of each dtype: every length from 1 to small, and large shapes, in so many ways; and all that in so many rounds,
     * for 0 of which there is one. SWEEP_LOOPS has no large shapes, and no cases where ways is 0. */
    uint64_t ways[SWEEP_LEVELS], small[SWEEP_LEVELS], large, rounds[SWEEP_LEVELS];
    const struct sweep_call *call; /* for draw, where it is that of several ops */
    /* Draws the structs of a case and adds its calls. It is empty but for its number, kernel, level, n, what this is divided
     * into, spec.size and spec.dtype. */
    void (*draw)(sweep_case *c, uint64_t *random);
    /* Gives an operand that the case has its data; NULL: sweep_fill_rows. */
    void (*fill)(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random);
    /* NULL: sweep_run_calls. */
    nrg_status (*run)(const sweep_case *c, unsigned char *memory);
    /* Appends options that neither the calls nor their operands show; may be NULL. */
    void (*describe)(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);
} sweep_family;

/* As many ways on all levels; the lengths of each. */
#define SWEEP_LENGTHS(ways_, quick, middle, full, large_)                                                                        \
    .ways = {ways_, ways_, ways_}, .small = {quick, middle, full}, .large = (large_)

/* The activations that cases of norms draw from; activation and glu have every one. A fused one is a call of the same functions.
 */
enum { SWEEP_NORM_ACTIVATIONS = NRG_ACT_SOFTPLUS + 1 };

const sweep_family *sweep_family_of(const sweep_case *c);

/* Each row of another kind. */
void sweep_fill_rows(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random);

/* Positions from least to most, the ends among them. */
void sweep_fill_positions(const sweep_case *c, int operand, int32_t least, int32_t most, unsigned char *memory, uint64_t *random);

/* Sets numbers to those of the case's large shape, if it has one: a row of the family's shapes, of so many columns. */
void sweep_take_large(const sweep_case *c, const size_t *shapes, size_t columns, size_t *const *numbers);

/* Batch, heads, rows and what the case's length is of: up to most of the first three, now and then no batch; or a large shape. */
void sweep_draw_shape(const sweep_case *c, const unsigned most[3], const size_t (*large)[4], size_t shape[4], uint64_t *random);

/* For messages; and a norm's options. */
void sweep_describe_norm(const nrg_norm_spec *spec, char text[SWEEP_TEXT_ROOM]);
PRINTF_LIKE(2, 3) void sweep_append(char text[SWEEP_TEXT_ROOM], const char *format, ...);

#define NRG_KERNEL(family, op, job) extern const sweep_family sweep_family_##op;
#include "../src/kernels.def"
#undef NRG_KERNEL

#endif
