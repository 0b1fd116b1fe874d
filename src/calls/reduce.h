/* The second phase of a backward pass: the sums that blocks of rows, or of samples, have left in the workspace.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_REDUCE_H
#define NRG_CALLS_REDUCE_H

#include <stddef.h>

/* Columns begin to end: blocks in order of their rows, in double, rounded once. The sums of a few hundred columns stay in L1
 * while the blocks pass by. Plain C: 64 blocks are a hundredth of the backward pass over the rows they come from. */
static inline void reduce(const double *partial, size_t dim, size_t blocks, size_t begin, size_t end, float *out, double k,
                          int accumulate)
{
    enum { CHUNK = 256 };
    double sums[CHUNK];
    for (size_t at = begin; at < end; at += CHUNK) {
        const size_t n = end - at < CHUNK ? end - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            sums[i] = 0;
        for (size_t block = 0; block < blocks; block++) {
            const double *from = partial + block * dim + at;
            for (size_t i = 0; i < n; i++)
                sums[i] += from[i];
        }
        for (size_t i = 0; i < n; i++)
            out[at + i] = (float)(accumulate ? (double)out[at + i] + k * sums[i] : k * sums[i]);
    }
}

#endif
