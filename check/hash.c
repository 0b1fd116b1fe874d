/* SPDX-License-Identifier: MIT */
#include "hash.h"

#include <string.h>

/* The bits of infinity; of integers, which have none, no bits are more. */
static uint64_t infinity_of(int type)
{
    switch (type) {
    case NRG_F32:
        return 0x7f800000;
    case NRG_F16:
        return 0x7c00;
    case NRG_BF16:
        return 0x7f80;
    case SWEEP_F64:
        return 0x7ff0000000000000;
    default:
        return UINT64_MAX;
    }
}

uint64_t sweep_load(int type, const unsigned char *element)
{
    uint64_t bits = 0;
    memcpy(&bits, element, sweep_type_size(type));
    return bits;
}

int sweep_is_nan(int type, const unsigned char *element)
{
    const uint64_t infinity = infinity_of(type), magnitude = ((uint64_t)1 << (8 * sweep_type_size(type) - 1)) - 1;
    return infinity < UINT64_MAX && (sweep_load(type, element) & magnitude) > infinity;
}

/* FNV-1a over elements, with the high bits folded down, which its product never does. */
static uint64_t add(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

uint64_t sweep_hash(const sweep_case *c, const unsigned char *memory, uint64_t hash)
{
    for (int which = SWEEP_FIRST_OUTPUT; which < SWEEP_FIRST_SCRATCH; which++) {
        const sweep_operand *out = &c->operands[which];
        if (!out->rows)
            continue;
        const size_t size = sweep_type_size(out->type);
        hash = add(hash, out->rows * out->length);
        for (size_t row = 0; row < out->rows; row++)
            for (size_t i = 0; i < out->length; i++) {
                const unsigned char *element = memory + sweep_row(out, row) + i * size;
                hash = add(hash, sweep_is_nan(out->type, element) ? UINT64_MAX : sweep_load(out->type, element));
            }
    }
    return hash;
}
