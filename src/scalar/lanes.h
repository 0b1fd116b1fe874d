/* Sums in lanes, for the reference kernels: how they fold, and what keeps what their additions lose.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_LANES_H
#define NRG_SCALAR_LANES_H

/* Lanes folded by halves, from so many to so many: lanes[l] += lanes[l + from/2], and so on. Returns the first. */
static inline float fold_floats(float *lanes, int from, int to)
{
    for (int half = from / 2; half >= to; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static inline double fold_doubles(double *lanes, int from, int to)
{
    for (int half = from / 2; half >= to; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* A sum of segments, with what its additions have lost: so that no bound depends on how many there are. */
typedef struct compensated {
    double sum, lost;
} compensated;

static inline void add_compensated(compensated *total, double segment)
{
    double sum = total->sum + segment, part = sum - total->sum;
    total->lost += (total->sum - (sum - part)) + (segment - part);
    total->sum = sum;
}

/* The sum of a segment's blocks in the fast grade. Element i belongs to lane i mod 64. A block of 256 elements is added up
 * plainly; its lanes fold to 16, and those are joined to the blocks before them by compensated addition. */
enum { BLOCK_LANES = 64, BLOCK_FOLDED = 16, BLOCK_ELEMENTS = 256 };

typedef struct block_sums {
    float sum[BLOCK_FOLDED], lost[BLOCK_FOLDED];
} block_sums;

static inline void add_block(block_sums *total, float lanes[BLOCK_LANES])
{
    fold_floats(lanes, BLOCK_LANES, BLOCK_FOLDED);
    for (int l = 0; l < BLOCK_FOLDED; l++) {
        float sum = total->sum[l] + lanes[l], part = sum - total->sum[l];
        total->lost[l] += (total->sum[l] - (sum - part)) + (lanes[l] - part);
        total->sum[l] = sum;
    }
}

static inline double fold_blocks(const block_sums *total)
{
    double lanes[BLOCK_FOLDED];
    for (int l = 0; l < BLOCK_FOLDED; l++)
        lanes[l] = (double)total->sum[l] + (double)total->lost[l];
    return fold_doubles(lanes, BLOCK_FOLDED, 1);
}

#endif
