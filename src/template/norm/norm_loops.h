/* The loops over elements, for one dtype: norm.h includes this file once for each, with NORM_DTYPE (f32) and NORM_D (NRG_F32).
 *
 * Options are tested as they run: in a prototype, 120 instances specialised by option were 15 times as large and 3 % faster. All
 * else, rows and chunks and what is left over at their ends, knows the dtype at run time only and is there once.
 *
 * SPDX-License-Identifier: MIT */

#define NORM_PASTE_(name, dtype) name##_##dtype
#define NORM_PASTE(name, dtype) NORM_PASTE_(name, dtype)
#define NORM_(name) NORM_PASTE(name, NORM_DTYPE)

static __attribute__((noinline)) void NORM_(sum_rms)(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part)
{
    sum_rows(lanes, t, tt, part, NORM_ANY, NORM_D, 0);
}

static __attribute__((noinline)) void NORM_(sum_centred)(norm_lanes *lanes, vd8 *t, vd8 *tt, const norm_part *part)
{
    sum_rows(lanes, t, tt, part, NORM_ANY, NORM_D, 1);
}

static __attribute__((noinline)) void NORM_(apply)(const norm_part *part, const norm_scalars *s) { apply_part(part, s, NORM_D); }

#undef NORM_PASTE_
#undef NORM_PASTE
#undef NORM_
#undef NORM_DTYPE
#undef NORM_D
