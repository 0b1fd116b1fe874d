/* Long rows of the fast grade that are streamed, f32: one loop sums a row and makes outputs of the row before it, 64 elements of
 * each in turn. In pieces of 512, 8192 rows of 4096 took 1.24 to 1.42 times as long (Zen 4): the memory has nothing to store
 * while a piece is summed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_ALONG_H
#define NRG_TEMPLATE_NORM_NORM_FAST_ALONG_H

#include "norm_fast_rows.h"

enum { ALONG_PLAIN = NORM_ALONG | NORM_PREFETCH | NORM_STREAM_O, ALONG_RESIDUAL = ALONG_PLAIN | NORM_RESIDUAL | NORM_READ_R };

/* Where two sums go by turns, half of the lanes each, centred rows go in pieces: along a turn they took up to twice as long in
 * cache (AVX2 on Zen 4: 512 rows of 768). */
NRG_INLINE int along_serves(const norm_options *opt, nrg_dtype D)
{
    return !V_SMALL && (!(opt->how & NORM_CENTRED) || (int)V_FAST2 == (int)FAST_VECTORS) && D == NRG_F32 && opt->fast &&
           opt->how & NORM_PREFETCH && opt->dim % FAST_LANES == 0 &&
           !(opt->how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_FIRST | NORM_GATE_AGAIN | NORM_LINES_O));
}

static __attribute__((noinline)) void along_rms(fast_blocks *blocks, vd8 *tt, const norm_part *part)
{
    fast_rows(blocks, NULL, NULL, tt, part, ALONG_PLAIN, NRG_F32, 0);
}

static __attribute__((noinline)) void along_add_rms(fast_blocks *blocks, vd8 *tt, const norm_part *part)
{
    fast_rows(blocks, NULL, NULL, tt, part, ALONG_RESIDUAL, NRG_F32, 0);
}

static __attribute__((noinline)) void along_centred(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part)
{
    fast_rows(blocks, pilot, t, tt, part, ALONG_PLAIN, NRG_F32, 1);
}

static __attribute__((noinline)) void along_add_centred(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part)
{
    fast_rows(blocks, pilot, t, tt, part, ALONG_RESIDUAL, NRG_F32, 1);
}

static void sum_along(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part)
{
    const int residual = (part->opt->how & NORM_FIRST) != 0;
    if ((int)V_FAST2 == (int)FAST_VECTORS && part->opt->how & NORM_CENTRED) {
        if (residual)
            along_add_centred(blocks, pilot, t, tt, part);
        else
            along_centred(blocks, pilot, t, tt, part);
    } else if (residual)
        along_add_rms(blocks, tt, part);
    else
        along_rms(blocks, tt, part);
}

#endif
