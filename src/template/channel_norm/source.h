/* What the kernels of channel norms read: rows of elements, and the factors that these are normalized with.
 *
 * A tensor is read in one of two ways. *Planes* (NCHW): a row holds positions of one channel, and has one set of factors.
 * *Columns* (NHWC, and NCHW with few positions): each column of a row has factors of its own, which all rows share. The loops
 * over elements accept both.
 *
 * The forward and the backward pass both compute o1, so its loops are compiled once a path, in channel_elements.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_SOURCE_H
#define NRG_TEMPLATE_CHANNEL_SOURCE_H

#include <math.h>

#include "../../job/channel_norm.h"
#include "../step.h"

enum {
    CHANNEL_STAGE = 512, /* floats of the staging buffer: full steps of the activations, and in L1 */
    CHANNEL_WIDE = 256,  /* columns that are normalized together: long pieces of a row, which memory requires */
    CHANNEL_FACTORS = 4 * CHANNEL_WIDE + VN, /* their factors; a vector may start with the last of them */
    /* Rows that are streamed side by side. Planes whose sums are not computed at the same time: 32x64x112x112 with given
     * statistics takes 9.3 ms with AVX-512 and 10.7 with AVX2, and plane by plane 11.4 and 13.2. Rows of columns: a speedup of
     * 1.03 (256 channels) to 1.19 (64) forward, and 0.97 to 1.22 backward; a prefetch of x gains nothing in addition. */
    CHANNEL_TURNS = 4,
    /* Rows that a backward pass prefetches ahead: the hardware does not see where short pieces of rows lead. */
    CHANNEL_GRADIENT_ROWS = 16
};

/* What happens to o1 + y. */
typedef enum channel_finish {
    CHANNEL_STORE,      /* it is o */
    CHANNEL_STORE_RELU, /* o = max(0, it) */
    CHANNEL_STORE_SILU, /* o = SiLU(it): f32, the fast grade, without y */
    CHANNEL_TO_STAGE    /* it goes, in f32, to a staging buffer for an activation */
} channel_finish;

/* The factors of some channels, or of some columns: arrays of the caller, of `room` floats each, a multiple of VN;
 * docs/ops/channel_norm.md, "Elements". */
typedef struct channel_column_factors {
    float *hi, *lo, *shift, *shift_lo; /* lo: in the fast grade the mean as f32, folded 0; shift_lo: unused there */
    int plain;                         /* f32 is accurate enough for all of them */
} channel_column_factors;

/* store: 4 · room floats, aligned to 64 bytes: a vector across two lines takes twice as long to load. */
static inline channel_column_factors factors_in(float *store, size_t room)
{
    return (channel_column_factors){store, store + room, store + 2 * room, store + 3 * room, 1};
}

/* Those from number k on. */
static inline channel_column_factors factors_from(const channel_column_factors *f, size_t k)
{
    return (channel_column_factors){f->hi + k, f->lo + k, f->shift + k, f->shift_lo + k, f->plain};
}

/* Rows of elements. */
typedef struct channel_run {
    const char *x, *y;                   /* y: NULL if absent */
    char *o;                             /* or a staging buffer */
    size_t x_stride, y_stride, o_stride; /* bytes from row to row */
    size_t rows, width;
    channel_column_factors f; /* planes: of each row; otherwise of each column */
    int planes, folded, fast, stream;
    channel_finish finish;
    size_t turns;      /* places that rows are done from in turn, 1 or CHANNEL_TURNS; planes then are full steps of full lines */
    const char *ahead; /* SiLU: as many elements that are read next, or NULL */
} channel_run;

/* `rows` rows from number `first` on. */
static inline channel_run some_rows(const channel_run *all, size_t first, size_t rows)
{
    channel_run run = *all;
    run.x += first * run.x_stride;
    run.y = run.y ? run.y + first * run.y_stride : NULL;
    run.o += first * run.o_stride;
    run.rows = rows;
    run.f = factors_from(&all->f, run.planes ? first : 0);
    return run;
}

static inline size_t channel_turns(int stream, size_t rows) { return stream && rows >= 16 * CHANNEL_TURNS ? CHANNEL_TURNS : 1; }

/* Channels with their statistics and parameters: `per` columns each, `group` of them with the same statistics; `into` channels of
 * the first group come before the block. */
typedef struct channel_block {
    const nrg_channel_statistics *stat; /* of the first group of the block; NULL: folded */
    size_t stat_stride;                 /* bytes to those of the next group */
    size_t group, into, c, channels, per;
    const char *w, *b;
    int w_f32, fast;   /* fast: the grade of its elements */
    int plain_weights; /* all of them */
} channel_block;

static inline const nrg_channel_statistics *block_stat(const channel_block *block, size_t group)
{
    return (const nrg_channel_statistics *)((const char *)block->stat + group * block->stat_stride);
}

/* The group of the block that one of its channels belongs to. */
static inline size_t block_group(const channel_block *block, size_t channel) { return (channel + block->into) / block->group; }

/* `channels` channels of a block from number `first` on. */
static inline channel_block some_channels(const channel_block *all, size_t first, size_t channels)
{
    channel_block block = *all;
    block.c += first;
    block.channels = channels;
    block.into = (first + all->into) % all->group;
    if (all->stat)
        block.stat = block_stat(all, block_group(all, first));
    return block;
}

/* o1 of a vector in the fast grade. */
NRG_INLINE vf normalized_fast(vf x, vf mean, vf factor, vf shift) { return v_fma(v_sub(x, mean), factor, shift); }

/* A vector of factors of columns. What is behind the last column may be subnormal, which is slow: it counts as 0. */
NRG_INLINE vf load_factors(const float *f, int G, size_t n) { return is_part(G, n) ? load_lanes(f, n) : v_ld_f32(f); }

/* Whether a vector from element i on is stored without a mask. A streamed one must be full lines: if part of a line is streamed
 * and the rest is stored, the line is read first. */
NRG_INLINE int vector_is_whole(size_t i, size_t end, int stream, nrg_dtype D)
{
    return i + VN <= end && (!stream || bytes_of(VN, D, 0) % 64 == 0);
}

/* Element c of 16-bit w or b, in all lanes: a load of a vector with one element waits for the stores that have made it. */
static __attribute__((noinline)) float half_parameter(const char *p, size_t c, nrg_dtype D)
{
    uint16_t halves[VN];
    float floats[VN];
    for (size_t i = 0; i < VN; i++)
        halves[i] = ((const uint16_t *)p)[c];
    v_st_f32(floats, from_half(v_ld_half(halves), D));
    return floats[0];
}

/* Element c of w or b. */
static inline float channel_parameter(const char *p, size_t c, int is_f32, nrg_dtype D, float absent)
{
    if (!p)
        return absent;
    return D == NRG_F32 || is_f32 ? ((const float *)p)[c] : half_parameter(p, c, D);
}

static inline int channel_between(double magnitude, double least, double most)
{
    return (magnitude == 0) | ((magnitude >= least) & (magnitude <= most));
}

/* Whether f32 is accurate enough for the channels of a set, whatever their weights. */
static inline int channel_set_is_plain(const nrg_channel_statistics *stat, int fast)
{
    const double mean = fabs(stat->mean + stat->mean_low);
    return (mean * stat->rstd <= (fast ? 0x1p20 : 1024)) & (!fast | (mean <= 0x1p100)) &
           channel_between(stat->rstd, 0x1p-40, 0x1p40);
}

/* ---- channel_elements.c: scalars.h, apply.h and fallback.h ---- */

/* Whether f32 is accurate enough for all channels as far as weights are concerned: once a call, since sets share weights. */
#define weights_are_plain NRG_PATH_NAME(weights_are_plain)
int weights_are_plain(const char *w, int w_f32, size_t channels, nrg_dtype D);

/* The factors of all columns of a block; and those of sets that are plain, from arrays of full vectors, in the fast grade. */
#define fill_factors NRG_PATH_NAME(fill_factors)
#define fill_side_by_side NRG_PATH_NAME(fill_side_by_side)
void fill_factors(channel_column_factors *f, const channel_block *block, nrg_dtype D);
void fill_side_by_side(const channel_column_factors *f, const channel_block *block, const double *mean, const double *rstd,
                       nrg_dtype D);

/* Rows whose factors are plain; and rows of a block with factors that are not, which are computed in double. The latter have no
 * CHANNEL_STORE_SILU. */
#define apply_run NRG_PATH_NAME(apply_run)
#define apply_run_fallback NRG_PATH_NAME(apply_run_fallback)
void apply_run(const channel_run *run, nrg_dtype D);
void apply_run_fallback(const channel_run *run, const channel_block *block, nrg_dtype D);

/* do1 = d ⊙ g′(o1 + y) of plain rows to o, in the fast grade: f32, ReLU or SiLU. Planes are of one channel. stream: rows of x and
 * d are prefetched. */
#define do1_run NRG_PATH_NAME(do1_run)
void do1_run(const channel_run *run, const char *d, size_t d_stride, nrg_activation g);

/* n floats to elements of a tensor. */
#define store_stage NRG_PATH_NAME(store_stage)
void store_stage(const float *stage, char *o, size_t n, int stream, nrg_dtype D);

/* ---- channel_norm.c ---- */

/* Statistics of the sets of a share whose o is NULL, for the backward pass. */
#define find_channel_statistics NRG_PATH_NAME(channel_statistics)
void find_channel_statistics(const nrg_channel_norm_job *job, nrg_dtype D);

#endif
