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
        const uint64_t infinity = infinity_of(out->type), magnitude = ((uint64_t)1 << (8 * size - 1)) - 1;
        hash = add(hash, out->rows * out->length);
        for (size_t row = 0; row < out->rows; row++)
            for (size_t i = 0; i < out->length; i++) {
                uint64_t bits = 0;
                memcpy(&bits, memory + sweep_row(out, row) + i * size, size); /* little-endian, as every host of nrg is */
                hash = add(hash, infinity < UINT64_MAX && (bits & magnitude) > infinity ? UINT64_MAX : bits);
            }
    }
    return hash;
}
