/* What tensors with channels hold in nrg check.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"
#include "../data.h"
#include "../family.h"

/* Which elements are of one kind. A set whose parts are of different kinds is ruled by the largest; one that is all of a kind is
 * not. */
enum alike { TENSOR, CHANNEL, SAMPLE, PLANE, ALIKE };

/* The positions of a channel in a sample: where the first is, and how far it is to the next. */
static unsigned char *plane(const sweep_case *c, const sweep_operand *o, size_t n, size_t channel, unsigned char *memory,
                            size_t *step)
{
    size_t element = sweep_type_size(o->type);
    if (c->channel.layout == NRG_LAYOUT_NHWC) {
        *step = o->stride;
        return memory + o->offset + n * c->positions * o->stride + channel * element;
    }
    *step = element;
    return memory + o->offset + n * o->stride + channel * c->positions * element;
}

/* A kind for each channel needs no memory when it is drawn from the channel's own numbers. */
static sweep_kind kind_of(enum alike alike, uint64_t seed, size_t n, size_t channel)
{
    uint64_t random =
        seed + (alike == CHANNEL || alike == PLANE ? channel * 0x10001 : 0) + (alike == SAMPLE || alike == PLANE ? n + 1 : 0);
    return sweep_draw_kind(0, &random);
}

static void fill_tensor(const sweep_case *c, const sweep_operand *o, unsigned char *memory, uint64_t *random)
{
    enum alike alike = (enum alike)sweep_draw(random, ALIKE);
    uint64_t seed = sweep_random(random);
    size_t step;
    for (size_t n = 0; n < c->rows; n++)
        for (size_t channel = 0; channel < c->channel.channels; channel++) {
            unsigned char *first = plane(c, o, n, channel, memory, &step);
            sweep_fill_line(first, step, (nrg_dtype)o->type, c->positions, kind_of(alike, seed, n, channel), random);
        }
    /* few elements, so that most sets stay whole */
    for (unsigned i = sweep_draw(random, 6); i > 3; i--) {
        size_t n = (size_t)(sweep_random(random) % c->rows), channel = (size_t)(sweep_random(random) % c->channel.channels);
        unsigned char *first = plane(c, o, n, channel, memory, &step);
        first += sweep_random(random) % c->positions * step;
        sweep_fill_line(first, step, (nrg_dtype)o->type, 1, sweep_draw_poison(random), random);
    }
}

/* A variance is mostly no negative number. */
static void fill_running_var(const sweep_operand *o, unsigned char *memory, uint64_t *random)
{
    sweep_fill_row(memory + o->offset, NRG_F32, o->length, sweep_draw(random, 2) != 0, random);
    if (sweep_draw(random, 8))
        for (size_t i = 0; i < o->length; i++)
            memory[o->offset + 4 * i + 3] &= 0x7f; /* the sign */
}

void sweep_channel_fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    if (operand == SWEEP_X || operand == SWEEP_Y || operand == SWEEP_D_O)
        fill_tensor(c, o, memory, random);
    else if (operand == SWEEP_RUNNING_VAR)
        fill_running_var(o, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}
