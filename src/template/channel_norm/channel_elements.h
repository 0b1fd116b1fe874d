/* What a channel's elements are normalized with, and from x to o1, + y, and what an activation makes of that: elements that lie
 * together and have the factors of one channel, and rows of columns with factors of their own.
 *
 * The forward and the backward pass both want o1: its loops are compiled once a path, in channel_elements.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_ELEMENTS_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_ELEMENTS_H

#include <math.h>

#include "../../job/channel_norm.h"
#include "../step.h"

enum {
    CHANNEL_STAGE = 512, /* floats: whole steps of the activations, and in L1 */
    CHANNEL_WIDE = 256,  /* columns that are normalized at once: long pieces of a row, for the sake of the memory */
    CHANNEL_FACTORS = 4 * CHANNEL_WIDE + VN /* their factors; a vector that begins with the last of them ends in it, too */
};

/* What becomes of o1 + y. */
typedef enum channel_finish {
    CHANNEL_STORE,      /* it is o */
    CHANNEL_STORE_RELU, /* o = max(0, it), which takes no time of its own */
    CHANNEL_STORE_SILU, /* o = SiLU(it), in the activation's own loop: of plain floats of the fast grade without y */
    CHANNEL_TO_STAGE    /* it goes, in f32, to where an activation takes it from */
} channel_finish;

/* What a channel's elements are normalized with; docs/ops/channel_norm.md, "Elements". */
typedef struct channel_factors {
    int plain;
    float hi, lo, shift, shift_lo; /* lo: in the fast grade the mean as f32, folded 0; shift_lo: there nothing */
    double mean, mean_low, a, b;   /* where not plain */
} channel_factors;

/* Element c of 16-bit w or b. */
static __attribute__((noinline)) float half_parameter(const char *p, size_t c, nrg_dtype D)
{
    float floats[VN];
    v_st_f32(floats, from_half(v_ldn_half((const uint16_t *)p + c, 1), D));
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

/* Whether a weight leaves its channel plain. */
static inline int channel_weight_is_plain(float w) { return channel_between(fabs((double)w), 0x1p-40, 0x1p40); }

/* Of the set alone: whether the plain way serves its channels, as far as they are concerned. */
static inline int channel_set_is_plain(const nrg_channel_statistics *stat, int fast)
{
    const double mean = fabs(stat->mean + stat->mean_low);
    return (mean * stat->rstd <= (fast ? 0x1p20 : 1024)) & (!fast | (mean <= 0x1p100)) &
           channel_between(stat->rstd, 0x1p-40, 0x1p40);
}

/* The factors of some columns: arrays of the caller's, of `room` floats each, a multiple of VN. */
typedef struct channel_column_factors {
    float *hi, *lo, *shift, *shift_lo;
    int plain; /* all columns are */
} channel_column_factors;

/* store: 4 · room floats, aligned to 64 bytes: a vector across two lines takes twice as long to load. */
static inline channel_column_factors factors_in(float *store, size_t room)
{
    return (channel_column_factors){store, store + room, store + 2 * room, store + 3 * room, 1};
}

/* Those of the columns from k on. */
static inline channel_column_factors factors_from(const channel_column_factors *f, size_t k)
{
    return (channel_column_factors){f->hi + k, f->lo + k, f->shift + k, f->shift_lo + k, 1};
}

/* Those of the columns past the first n. */
#define NOBODYS_FACTORS(f, n)                                                                                                    \
    NRG_NOBODYS_LANES((f)->hi, n), NRG_NOBODYS_LANES((f)->lo, n), NRG_NOBODYS_LANES((f)->shift, n),                              \
        NRG_NOBODYS_LANES((f)->shift_lo, n)

/* What lies behind the columns of four arrays of factors, up to a whole vector, changes places with `kept`. It may be subnormal,
 * which makes the last vector of every row slow: it is 0 while rows are done, and is put back, as it may be other columns'. */
NRG_INLINE void swap_behind_columns(float *const factors[4], size_t columns, vf kept[4])
{
    const size_t lanes = (VN - columns % VN) % VN;
    for (int i = 0; i < 4 && lanes; i++) {
        const vf was = v_ldn_f32(factors[i] + columns, lanes);
        v_stn_f32(factors[i] + columns, kept[i], lanes);
        kept[i] = was;
    }
}

/* Channels side by side, `per` columns each, `group` of them with the same statistics; of the first group, `into` come before. */
typedef struct channel_block {
    const nrg_channel_statistics *stat; /* of the first group of the block; NULL: folded */
    size_t stat_stride;                 /* bytes to that of the next group */
    size_t group, into, c, channels, per;
    const char *w, *b;
    int w_f32, fast;   /* fast: the grade of its elements */
    int plain_weights; /* all of them */
} channel_block;

static inline const nrg_channel_statistics *block_stat(const channel_block *block, size_t group)
{
    return (const nrg_channel_statistics *)((const char *)block->stat + group * block->stat_stride);
}

/* Which group of the block a channel of it is in. */
static inline size_t block_group(const channel_block *block, size_t channel) { return (channel + block->into) / block->group; }

/* Planes that are streamed side by side, where their sums are not taken at the same time: 32x64x112x112, whose statistics are
 * known, takes 9.3 ms with AVX-512 and 10.7 with AVX2, and plane after plane 11.4 and 13.2. */
enum { CHANNEL_TURNS = 4 };

/* From how many places rows of columns are normalized in turn. Streamed so, they take 0.84 (64 channels) to 0.97 (256) of the
 * time forward, and 0.82 to 1.03 backward; a prefetch of x beside it gains nothing. */
static inline size_t channel_turns(int stream, size_t rows) { return stream && rows >= 16 * CHANNEL_TURNS ? CHANNEL_TURNS : 1; }

/* Elements that lie together. */
typedef struct channel_run {
    const char *x, *y; /* y: NULL where absent */
    char *o;           /* or a stage */
    size_t n, planes;  /* planes of n elements each, one after the other */
    int folded, fast, stream;
    channel_finish finish;
    int in_turn;              /* CHANNEL_TURNS planes at a time */
    channel_column_factors f; /* of the planes */
    const char *ahead;        /* SiLU: as many elements that are wanted next, or NULL */
} channel_run;

/* Rows of columns. */
typedef struct channel_column_run {
    const char *x, *y;
    char *o;
    size_t x_stride, y_stride, o_stride; /* bytes from row to row */
    size_t rows, width;
    int folded, fast, stream;
    channel_finish finish;
} channel_column_run;

/* A channel's factors as vectors. */
typedef struct channel_vf {
    vf hi, lo, shift, shift_lo;
} channel_vf;

/* o1 of one vector in the fast grade. */
NRG_INLINE vf normalized_fast(vf x, vf mean, vf factor, vf shift) { return v_fma(v_sub(x, mean), factor, shift); }

/* A channel's factors for elements in double, as vectors: the lower and the upper half of a vector's columns. */
typedef struct channel_vd {
    vd mean_l, mean_h, low_l, low_h, a_l, a_h, b_l, b_h;
} channel_vd;

enum {
    FALLBACK_COLUMNS = 16, /* of a strip, where some are done in double: a line of the cache in f32 */
    FALLBACK_VECTORS = FALLBACK_COLUMNS / VN
};

/* What a strip is normalized with, beside its part of channel_column_factors. */
typedef struct fallback_factors {
    channel_vd exact[FALLBACK_VECTORS];
    vf plain[FALLBACK_VECTORS]; /* 1, or 0 where an element is done in double */
    size_t plain_columns;
} fallback_factors;

/* Whether element i begins a vector that is stored without a mask. One that is streamed has to be whole lines: written in part,
 * and the rest with an ordinary store, a line is read first. */
NRG_INLINE int vector_is_whole(size_t i, size_t end, int stream, nrg_dtype D)
{
    return i + VN <= end && (!stream || bytes_of(VN, D, 0) % 64 == 0);
}

/* ---- channel_elements.c ---- */

/* Whether all weights leave their channels plain: looked at once, since sets share them. */
#define weights_are_plain NRG_PATH_NAME(weights_are_plain)
int weights_are_plain(const char *w, int w_f32, size_t channels, nrg_dtype D);

/* The factors of a channel of a block, and of all columns of a block. */
#define block_factors NRG_PATH_NAME(block_factors)
#define fill_factors NRG_PATH_NAME(fill_factors)
channel_factors block_factors(const channel_block *block, size_t channel, nrg_dtype D);
void fill_factors(channel_column_factors *f, const channel_block *block, nrg_dtype D);

/* Those of sets that are all plain, from arrays of whole vectors; in the fast grade. */
#define fill_side_by_side NRG_PATH_NAME(fill_side_by_side)
void fill_side_by_side(const channel_column_factors *f, const channel_block *block, const double *mean, const double *rstd,
                       nrg_dtype D);

/* Planes that are all plain; and one that is done in double, which knows no CHANNEL_STORE_SILU. */
#define apply_run NRG_PATH_NAME(apply_run)
#define apply_run_fallback NRG_PATH_NAME(apply_run_fallback)
void apply_run(const channel_run *run, nrg_dtype D);
void apply_run_fallback(const channel_run *run, const channel_factors *f, nrg_dtype D);

/* Columns that are all plain; those of a block of which some are done in double; and a strip of these, whose factors can be made
 * first. The latter know no CHANNEL_STORE_SILU. */
#define apply_columns NRG_PATH_NAME(apply_columns)
#define apply_columns_fallback NRG_PATH_NAME(apply_columns_fallback)
#define fill_fallback NRG_PATH_NAME(fill_fallback)
#define apply_strip_fallback NRG_PATH_NAME(apply_strip_fallback)
void apply_columns(const channel_column_run *run, const channel_column_factors *f, nrg_dtype D);
void apply_columns_fallback(const channel_column_run *run, const channel_block *block, const channel_column_factors *f,
                            nrg_dtype D);
void fill_fallback(fallback_factors *to, const channel_block *strip, nrg_dtype D);
void apply_strip_fallback(const channel_column_run *strip, const channel_column_factors *f, const fallback_factors *factors,
                          nrg_dtype D);

/* ---- channel_norm.c ---- */

/* Statistics of the sets of a share whose o is NULL, for the backward pass. */
#define find_channel_statistics NRG_PATH_NAME(channel_statistics)
void find_channel_statistics(const nrg_channel_norm_job *job, nrg_dtype D);

#endif
