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
static inline uint64_t add(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* Elements of a size that compilers know; what is above infinity but for its sign is a NaN. Calls for each element took longer
 * than the kernels. */
static inline uint64_t add_elements(uint64_t hash, const unsigned char *first, size_t length, size_t size, uint64_t infinity)
{
    const uint64_t magnitude = ((uint64_t)1 << (8 * size - 1)) - 1;
    for (size_t i = 0; i < length; i++) {
        uint64_t bits = 0;
        memcpy(&bits, first + i * size, size);
        hash = add(hash, (bits & magnitude) > infinity ? UINT64_MAX : bits);
    }
    return hash;
}

static uint64_t add_row(uint64_t hash, const unsigned char *row, size_t length, int type)
{
    switch (sweep_type_size(type)) {
    case 1:
        return add_elements(hash, row, length, 1, UINT64_MAX);
    case 2:
        return add_elements(hash, row, length, 2, infinity_of(type));
    case 4:
        return add_elements(hash, row, length, 4, infinity_of(type));
    default:
        return add_elements(hash, row, length, 8, infinity_of(type));
    }
}

uint64_t sweep_hash(const sweep_case *c, const unsigned char *memory, uint64_t hash)
{
    for (int which = SWEEP_FIRST_OUTPUT; which < SWEEP_FIRST_SCRATCH; which++) {
        const sweep_operand *out = &c->operands[which];
        if (!out->rows)
            continue;
        hash = add(hash, out->rows * out->length);
        for (size_t row = 0; row < out->rows; row++)
            hash = add_row(hash, memory + sweep_row(out, row), out->length, out->type);
    }
    return hash;
}

/* Likewise */
static inline void unify(unsigned char *first, size_t length, size_t size, uint64_t infinity)
{
    const uint64_t magnitude = ((uint64_t)1 << (8 * size - 1)) - 1;
    for (size_t i = 0; i < length; i++) {
        uint64_t bits = 0;
        memcpy(&bits, first + i * size, size);
        if ((bits & magnitude) > infinity)
            memset(first + i * size, 0xff, size);
    }
}

void sweep_unify_nans(const sweep_operand *operand, unsigned char *memory)
{
    const uint64_t infinity = infinity_of(operand->type);
    for (size_t row = 0; infinity < UINT64_MAX && row < operand->rows; row++) {
        unsigned char *first = memory + sweep_row(operand, row);
        switch (sweep_type_size(operand->type)) {
        case 2:
            unify(first, operand->length, 2, infinity);
            break;
        case 4:
            unify(first, operand->length, 4, infinity);
            break;
        default:
            unify(first, operand->length, 8, infinity);
        }
    }
}
