/* The bare loops of the generic path, without non-temporal stores: GNU C has none.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <string.h>

typedef uint32_t vec __attribute__((vector_size(16)));
enum { VEC_BYTES = 16 };

static inline __attribute__((always_inline)) vec load(const char *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) void store_two(char *p, vec a, vec b)
{
    memcpy(p, &a, sizeof a);
    memcpy(p + VEC_BYTES, &b, sizeof b);
}

#define v_load(p) load(p)
#define v_add(a, b) ((a) + (b))
#define v_store2(p, a, b) store_two(p, a, b)
#define v_prefetch(p) __builtin_prefetch(p)

#define LIMIT_LOOPS limit_loops_generic
#include "limit_template.h"
