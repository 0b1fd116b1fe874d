/* The loops over elements, for one dtype: norm.h includes this file once for each, with NORM_DTYPE (f32) and NORM_D (NRG_F32).
 *
 * Options are tested as they run: in a prototype, 120 instances specialised by option were 15 times as large and 3 % faster. All
 * else, rows and chunks and what is left over at their ends, knows the dtype at run time only and is there once.
 *
 * SPDX-License-Identifier: MIT */

#define NORM_PASTE_(name, dtype) name##_##dtype
#define NORM_PASTE(name, dtype) NORM_PASTE_(name, dtype)
#define NORM_(name) NORM_PASTE(name, NORM_DTYPE)

static __attribute__((noinline)) void NORM_(fast_rms)(fast_blocks *blocks, vd8 *tt, const norm_part *part)
{
    if (part->opt->how & NORM_FIRST)
        fast_rows(blocks, NULL, NULL, tt, part, NORM_RESIDUAL, NORM_D, 0);
    else
        fast_rows(blocks, NULL, NULL, tt, part, NORM_PREFETCH, NORM_D, 0);
}

static __attribute__((noinline)) void NORM_(fast_centred)(fast_blocks *blocks, float *pilot, vd8 *t, vd8 *tt,
                                                          const norm_part *part)
{
    if (part->opt->how & NORM_FIRST)
        fast_rows(blocks, pilot, t, tt, part, NORM_RESIDUAL, NORM_D, 1);
    else
        fast_rows(blocks, pilot, t, tt, part, NORM_PREFETCH, NORM_D, 1);
}

static __attribute__((noinline)) void NORM_(fast_apply)(const norm_part *part, const fast_scalars *s)
{
    const unsigned how = part->opt->how;
    const int plain = NORM_D == NRG_F32 && how & NORM_READ_R
                          ? !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN))
                          : !(how & (NORM_W_OFFSET | NORM_LAST | NORM_GATE_AGAIN | NORM_READ_R | NORM_ADD_Y));
    if (plain)
        fast_apply_part(part, s, fast_apply_vectors(NORM_D), NORM_CENTRED | NORM_STREAM_O | NORM_W_F32, NORM_D);
    else
        fast_apply_part(part, s, V_FAST_ANY, NORM_ANY, NORM_D);
}

static __attribute__((noinline)) void NORM_(fast_short_rms)(fast_some *b, const nrg_norm_job *job, size_t n, size_t most)
{
    fast_short_sums(b, job, n, most, NORM_D, 0);
}

static __attribute__((noinline)) void NORM_(fast_short_elements)(const fast_some *b, const nrg_norm_job *job,
                                                                 const norm_options *opt, const fast_short_weights *weights)
{
    fast_short_elements(b, job, opt, weights, NORM_D);
}

#undef NORM_PASTE_
#undef NORM_PASTE
#undef NORM_
#undef NORM_DTYPE
#undef NORM_D
