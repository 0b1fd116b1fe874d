/* Functions that the MPI examples share: they divide a tensor into one part for each rank, add sums over the ranks, and compare
 * the result with that of one process.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXAMPLES_MPI_PARTS_H
#define NRG_EXAMPLES_MPI_PARTS_H

#include <nrg/nrg.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The ranks that a tensor is split over. */
typedef struct team {
    int rank, ranks;
} team;

/* Ends the program on every rank. */
static inline void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static inline void must(nrg_status status)
{
    if (status != NRG_OK)
        fail(nrg_status_string(status));
}

static inline void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("no memory");
    return memory;
}

static inline team join(int *argc, char ***argv)
{
    team t;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
    /* One rank has nobody to add with, and would compare a result with itself. */
    if (t.ranks < 2)
        fail("start this with at least two ranks: mpirun -n 2 PROGRAM");
    return t;
}

/* --- the parts --- */

typedef enum cut { EVEN, UNEVEN } cut;

/* The first of `total` units that is rank's. The last rank's part ends where that of a further rank would begin. Uneven parts
 * grow like 1, 2, 3, … */
static inline size_t part_begin(const team *t, size_t total, cut how, int rank)
{
    const size_t r = (size_t)rank, ranks = (size_t)t->ranks;
    return how == EVEN ? total * r / ranks : total * r * (r + 1) / (ranks * (ranks + 1));
}

/* The largest spec.segment that no part's end cuts: as many units as divide all parts. A unit is a number of elements, and goes
 * whole into a segment; the default, 4096, where it does not, because then the end of a unit ends a segment anyway. All
 * ranks have to come to the same segment, so each of them looks at all parts.
 *
 * Other parts make it another segment, and so other bits. A segment of one unit fits any parts: whoever wants the same bits from
 * 2 ranks and from 4 takes that. */
static inline size_t common_segment(const team *t, size_t total, cut how, size_t unit)
{
    enum { LONGEST = 4096 };
    size_t common = 0;
    for (int rank = 0; rank < t->ranks; rank++)
        for (size_t part = part_begin(t, total, how, rank + 1) - part_begin(t, total, how, rank); part;) {
            size_t rest = common % part; /* Euclid; an empty part divides nothing */
            common = part;
            part = rest;
        }
    if (unit > LONGEST || common == 0)
        return LONGEST;
    size_t units = common;
    while (common % units || units > LONGEST / unit)
        units--;
    return units * unit;
}

/* The sums of all parts, on every rank. They are integers, so that neither the order in which MPI adds nor the number of ranks
 * can change a bit. */
static inline void add_over_ranks(int64_t *sums, size_t sets)
{
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)(sets * NRG_CHANNEL_NORM_SUMS_WORDS), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

/* --- data, and the comparison --- */

/* From -4 to 4, the same on every rank: so each can compute alone what all compute together. */
static inline float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 8) - (1 << 23)) * 0x1p-21f;
}

static inline size_t element_size(nrg_dtype dtype) { return dtype == NRG_F32 ? sizeof(float) : sizeof(uint16_t); }

static inline void fill(void *tensor, nrg_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = draw() * draw(); /* of many magnitudes, so that sums round */
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16); /* bf16, cut off */
        if (dtype == NRG_F32)
            memcpy((char *)tensor + i * sizeof value, &value, sizeof value);
        else
            memcpy((char *)tensor + i * sizeof half, &half, sizeof half);
    }
}

/* memcmp, and where the first difference is. */
static inline int same(const team *t, const char *what, const void *together, const void *alone, size_t bytes)
{
    const unsigned char *left = together, *right = alone;
    for (size_t i = 0; i < bytes; i++)
        if (left[i] != right[i]) {
            fprintf(stderr, "rank %d of %d: %s differs from that of one process at byte %zu of %zu\n", t->rank, t->ranks, what, i,
                    bytes);
            return 0;
        }
    return 1;
}

/* Zeros, infinities and NaNs would be equal, too. */
static inline int is_alive(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sum > 0 && sum < 1e30;
}

/* "16 + 16": the parts in units. */
static inline void print_parts(const team *t, size_t total, cut how)
{
    for (int rank = 0; rank < t->ranks; rank++)
        printf("%s%zu", rank ? " + " : "", part_begin(t, total, how, rank + 1) - part_begin(t, total, how, rank));
}

/* Whether all is well on every rank. */
static inline int on_all_ranks(int well)
{
    MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return well;
}

#endif
