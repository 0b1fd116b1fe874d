/* Parts of a tensor with channels, as those who share the work of a sum have them.
 *
 * SPDX-License-Identifier: MIT */
#include "channel.h"
#include "../layout.h"

/* How a tensor is cut: `tensors` of them in turn, each into `length` of something, at multiples of `unit`, where segments end. */
typedef struct grid {
    size_t tensors, length, unit;
} grid;

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t at_least_one(size_t n) { return n ? n : 1; }

static grid grid_of(const sweep_case *c)
{
    const nrg_channel_norm_spec *s = &c->channel;
    size_t segment = s->segment, groups = s->groups, group_channels = s->channels / groups;
    grid samples = {1, c->rows, at_least_one(segment / c->positions)};
    grid channels = {1, s->channels, segment / greatest_common_divisor(segment, c->positions)};
    grid positions = {c->rows, c->positions, segment / (group_channels < 64 ? group_channels : 64)};
    /* one position alone is summed as where there is no more than one */
    if (positions.unit < 2)
        positions.unit = 2;
    if (s->over == NRG_CHANNEL_OVER_BATCH)
        return samples;
    if (s->layout == NRG_LAYOUT_NHWC)
        return positions;
    if (groups > 1) /* of the channels of one group only */
        channels.unit = channels.length;
    return channels;
}

/* A last one that is too short to be a part is added to the one before. */
static size_t units_of(const sweep_case *c, const grid *g)
{
    size_t units = (g->length + g->unit - 1) / g->unit;
    int is_alone = c->channel.over == NRG_CHANNEL_OVER_GROUP && c->channel.layout == NRG_LAYOUT_NHWC && g->length % g->unit == 1;
    return units > 1 && is_alone ? units - 1 : units;
}

/* Of one tensor. No samples are a part, too; no channels or positions are none. */
static size_t parts_of(const sweep_case *c, const grid *g)
{
    size_t units = units_of(c, g), parts = (size_t)c->parts;
    return c->channel.over == NRG_CHANNEL_OVER_BATCH || parts < units ? parts : units;
}

size_t sweep_channel_parts(const sweep_case *c)
{
    grid g = grid_of(c);
    return g.tensors * parts_of(c, &g);
}

size_t sweep_channel_sets(const sweep_case *c)
{
    const nrg_channel_norm_spec *s = &c->channel;
    return s->over == NRG_CHANNEL_OVER_BATCH ? s->channels : c->rows * s->groups;
}

sweep_part sweep_channel_whole(const sweep_case *c)
{
    sweep_part whole = {c->channel, c->rows, c->positions, 0, 0, 0, sweep_channel_sets(c)};
    return whole;
}

sweep_part sweep_channel_part(const sweep_case *c, size_t number)
{
    grid g = grid_of(c);
    size_t parts = parts_of(c, &g), units = units_of(c, &g), tensor = number / parts, at = number % parts;
    size_t begin = units * at / parts * g.unit, end = at + 1 < parts ? units * (at + 1) / parts * g.unit : g.length;
    sweep_part part = sweep_channel_whole(c);
    if (c->channel.over == NRG_CHANNEL_OVER_BATCH) {
        part.n = end - begin;
        part.first_row = c->channel.layout == NRG_LAYOUT_NHWC ? begin * c->positions : begin;
    } else if (c->channel.layout == NRG_LAYOUT_NHWC) {
        part.n = 1;
        part.s = end - begin;
        part.first_row = tensor * c->positions + begin;
        part.sets = c->channel.groups;
        part.first_set = tensor * part.sets;
    } else {
        part.first_channel = begin;
        if (end - begin < c->channel.channels)
            part.spec.channels = end - begin;
    }
    return part;
}

/* Bytes from an operand's begin to that of a part of it. */
static size_t offset_of(const sweep_part *part, const nrg_operand *o, const sweep_operand *whole, size_t positions)
{
    const size_t element = sweep_type_size(whole->type);
    switch (o->dim) {
    case NRG_CHANNEL_N_DIM:
        return part->first_row * whole->stride + part->first_channel * positions * element;
    case NRG_CHANNEL_N_CHANNELS:
    case NRG_CHANNEL_N_USED_CHANNELS:
        return part->first_channel * element;
    case NRG_CHANNEL_N_SETS:
        return part->first_set * element;
    case NRG_CHANNEL_N_STATISTIC:
        return part->first_set * sizeof(nrg_channel_statistics);
    default:
        return 0;
    }
}

void sweep_channel_bind(const sweep_case *c, const sweep_part *part, const nrg_call *call, void *const *structs,
                        const unsigned char *slots, unsigned char *memory)
{
    sweep_case moved = *c;
    for (unsigned i = 0; i < call->operand_count; i++) {
        sweep_operand *o = &moved.operands[slots[i]];
        if (slots[i] == SWEEP_NOWHERE || !o->rows)
            continue;
        o->at = (unsigned char *)sweep_place(c, slots[i], memory) +
                offset_of(part, &call->operands[i], &c->operands[slots[i]], c->positions);
        /* what is dense in a part need not be in the whole */
        o->is_told_zero &= part->spec.channels == c->channel.channels;
    }
    sweep_bind_call(&moved, call, structs, slots, memory);
}
