/* What the structs of a call point to is const for the library, and for tests and benchmarks memory of their own.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_OWN_MEMORY_H
#define NRG_CHECK_OWN_MEMORY_H

static inline void *own_memory(const void *operand)
{
    const union {
        const void *from;
        void *to;
    } own = {operand};
    return own.to;
}

#endif
