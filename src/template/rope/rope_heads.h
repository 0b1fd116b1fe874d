/* The heads of one token, which share its cosines and sines.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_ROPE_HEADS_H
#define NRG_TEMPLATE_ROPE_ROPE_HEADS_H

#include "../../job/rope.h"
#include "../step.h"

/* Heads of one token. */
typedef struct rope_heads {
    const char *x;
    char *o;
    size_t x_stride, o_stride, count;
    size_t pairs;
    float sign;      /* -1 backward */
    int far, stream; /* far: head by head */
    int ahead;       /* x is prefetched, of bf16 wherever it is far */
} rope_heads;

NRG_INLINE vf rope_alternate(void)
{
    static const float alternate[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    return v_ld_f32(alternate);
}

/* Elements of a block: its cosines and sines lie side by side in L1, and all heads of a token go by. */
enum { ROPE_BLOCK = 512 };

/* Streamed tensors come from memory, and the hardware stops asking at the end of a page. */
enum { ROPE_PREFETCH = 4096 };

NRG_INLINE void rope_prefetch(const char *x, size_t i, size_t n, nrg_dtype D)
{
    const char *from = x + bytes_of(i, D, 0) + ROPE_PREFETCH;
    for (size_t line = 0; line < bytes_of(n, D, 0); line += 64)
        __builtin_prefetch(from + line);
}

#endif
