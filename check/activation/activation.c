/* The cases of activation and activation_backward: every activation with every short length and some long ones, and with all
 * values a 16-bit number has, or as many of the f32 ones.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../src/operands/activation.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "series.h"

static const size_t large[] = {255, 256, 257, 1000, 4097, 70001};
enum { LARGE = sizeof large / sizeof large[0] };

/* Lengths from 1 in steps, so many of them; and f32 values. */
static const struct {
    size_t small, step, values;
} levels[] = {[SWEEP_QUICK] = {23, 3, 1 << 14},
              [SWEEP_DEFAULT] = {130, 1, 1 << 19}, /* which is memory enough to be streamed */
              [SWEEP_FULL] = {600, 1, 1 << 24}};

/* After the lengths of a level, the longer ones; after them, as the only large shape, every value. */
enum { QUICK = 23 + LARGE - 1, MIDDLE = 130 + LARGE, FULL = 600 + LARGE };
static const size_t lengths[] = {[SWEEP_QUICK] = QUICK, [SWEEP_DEFAULT] = MIDDLE, [SWEEP_FULL] = FULL};
#define LENGTHS SERIES_LENGTHS(QUICK, MIDDLE, FULL, 1)

static void draw(sweep_case *c, uint64_t *random)
{
    (void)random;
    const size_t small = levels[c->level].small, step = levels[c->level].step;
    nrg_activation_flat *a = sweep_structs(c);
    series_begin(c, lengths[c->level], 1);
    c->rows = 1;
    c->every_value = c->large != 0;
    if (c->every_value)
        a->count = c->spec.dtype == NRG_F32 ? levels[c->level].values : 1 << 16;
    else if (c->length > small)
        a->count = large[c->length - small - 1];
    else /* with steps, each activation has lengths of its own */
        a->count = (c->length - 1) * step + 1 + (size_t)c->way % step;
    a->dtype = c->spec.dtype;
    a->g = (nrg_activation)c->way;
    sweep_add(c, SWEEP_ALWAYS, sweep_family_of(c)->call, 0, 0);
}

/* The bit patterns of a dtype, in even steps; the lower bits, where there are any between two steps, are drawn. */
static void fill_every_value(const sweep_operand *operand, unsigned char *row, uint64_t *random)
{
    size_t size = sweep_type_size(operand->type);
    uint64_t patterns = (uint64_t)1 << (8 * size), step = patterns / operand->length;
    for (size_t i = 0; i < operand->length; i++) {
        uint64_t bits = i * step + (step > 1 ? sweep_random(random) % step : 0);
        memcpy(row + i * size, &bits, size); /* little-endian, as every host of nrg is */
    }
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (c->every_value && operand == SWEEP_X)
        fill_every_value(&c->operands[SWEEP_X], memory + c->operands[SWEEP_X].offset, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_activation_flat *a = sweep_const_structs(c);
    sweep_append(text, ", %s", nrg_activation_name(a->g));
}

#define CASES LENGTHS, .draw = draw, .fill = fill, .describe = describe

static const sweep_call forward = {&invoke_activation_forward, .part = {SWEEP_STRUCTS_AT}};
const sweep_family sweep_family_activation = {CASES, .call = &forward};

#ifndef NRG_NO_BACKWARD
static const sweep_call backward = {&invoke_activation_backward, .part = {SWEEP_STRUCTS_AT}};
const sweep_family sweep_family_activation_backward = {CASES, .call = &backward};
#endif
