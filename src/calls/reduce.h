/* The second phase of a backward pass: the sums that blocks of rows, or of samples, have left in the workspace.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_REDUCE_H
#define NRG_CALLS_REDUCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Phase 1 on one thread reduces its sums itself, and then leaves this in the place of the first of them: a NaN with low bits that
 * no sum of floats has. Phase 2 returns at once where it finds it, so that a call of it does no harm. Any other phase 1 has
 * written a sum there. */
#define REDUCE_DONE UINT64_C(0x7ff8fedcba987654)
static inline void reduce_mark_done(void *partial)
{
    const uint64_t done = REDUCE_DONE;
    memcpy(partial, &done, sizeof done);
}

static inline int reduce_is_done(const void *partial)
{
    uint64_t first;
    memcpy(&first, partial, sizeof first);
    return first == REDUCE_DONE;
}

/* Eight at a time, a number that compilers know: at -O2 gcc makes vectors of no other loop, and a backward pass of one row took
 * 1.5 times as long. */
static inline void reduce_add(double *sums, const double *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[i + j] += from[i + j];
    for (; i < n; i++)
        sums[i] += from[i];
}

/* Of a single block, sums are what is in the workspace: -0 counts as 0, which every sum begins with. */
static inline void reduce_store(float *out, const double *sums, double k, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            out[i + j] = (float)(k * (0 + sums[i + j]));
    for (; i < n; i++)
        out[i] = (float)(k * (0 + sums[i]));
}

/* Columns begin to end: blocks in order of their rows, in double, rounded once. The sums of a few hundred columns stay in L1
 * while the blocks pass by. Plain C: 64 blocks are a hundredth of the backward pass over the rows they come from. */
static inline void reduce(const double *partial, size_t dim, size_t blocks, size_t begin, size_t end, float *out, double k,
                          int accumulate)
{
    enum { CHUNK = 256 };
    double sums[CHUNK];
    for (size_t at = begin; at < end; at += CHUNK) {
        const size_t n = end - at < CHUNK ? end - at : CHUNK;
        const double *from = blocks == 1 ? partial + at : sums;
        if (from == sums) {
            for (size_t i = 0; i < n; i++)
                sums[i] = 0;
            for (size_t block = 0; block < blocks; block++)
                reduce_add(sums, partial + block * dim + at, n);
        }
        if (accumulate)
            for (size_t i = 0; i < n; i++)
                out[at + i] = (float)((double)out[at + i] + k * (0 + from[i]));
        else
            reduce_store(out + at, from, k, n);
    }
}

#endif
