/* The loops over elements, for each dtype.
 *
 * Options are tested as they run: in a prototype, 120 instances specialised by option were 15 times as large and 3 % faster. All
 * else, rows and chunks and what is left over at their ends, knows the dtype at run time only and is there once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_LOOPS_H
#define NRG_TEMPLATE_NORM_NORM_LOOPS_H

#include "norm_fast_apply.h"
#include "norm_fast_rows.h"
#include "norm_fast_short.h"

NRG_INLINE void fast_rms_of(fast_blocks *blocks, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (V_SMALL || part->opt->how & NORM_FIRST)
        fast_rows(blocks, NULL, NULL, tt, part, NORM_RESIDUAL | (D == NRG_F32 ? 0 : NORM_KEEP_R), D, 0);
    else
        fast_rows(blocks, NULL, NULL, tt, part, NORM_PREFETCH, D, 0);
}

NRG_BY_DTYPE(fast_rms, (blocks, tt, part), fast_blocks *blocks, vd8 *tt, const norm_part *part)

NRG_INLINE void fast_centred_of(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt, const norm_part *part, nrg_dtype D)
{
    if (V_SMALL || part->opt->how & NORM_FIRST)
        fast_rows(blocks, pilot, t, tt, part, NORM_RESIDUAL | (D == NRG_F32 ? 0 : NORM_KEEP_R), D, 1);
    else
        fast_rows(blocks, pilot, t, tt, part, NORM_PREFETCH, D, 1);
}

NRG_BY_DTYPE(fast_centred, (blocks, pilot, t, tt, part), fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt,
             const norm_part *part)

NRG_INLINE void fast_apply_of(const norm_part *part, const fast_scalars *s, nrg_dtype D)
{
    const unsigned how = part->opt->how;
    const int plain = r_serves_as_x(how, D) ? !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN))
                                            : !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN | NORM_READ_R | NORM_ADD_Y));
    if (!V_SMALL && plain)
        fast_apply_part(part, s, fast_apply_vectors(D), NORM_CENTRED | NORM_STREAM_O | NORM_W_F32, D);
    else
        fast_apply_part(part, s, V_FAST_ANY, NORM_ANY, D);
}

NRG_BY_DTYPE(fast_apply, (part, s), const norm_part *part, const fast_scalars *s)

NRG_INLINE void fast_short_rms_of(fast_some *b, const nrg_norm_job *job, size_t n, size_t most, nrg_dtype D)
{
    fast_short_sums(b, job, n, most, D, 0);
}

NRG_BY_DTYPE(fast_short_rms, (b, job, n, most), fast_some *b, const nrg_norm_job *job, size_t n, size_t most)

NRG_BY_DTYPE(fast_short_elements, (b, job, opt, weights), const fast_some *b, const nrg_norm_job *job, const norm_options *opt,
             const fast_short_weights *weights)

#endif
