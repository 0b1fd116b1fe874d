/* The heads of a job, for one dtype: norm_rope.h includes this file once for each, with NORM_ROPE_DTYPE (f32) and NORM_ROPE_D
 * (NRG_F32).
 *
 * SPDX-License-Identifier: MIT */

#define NORM_ROPE_PASTE_(name, dtype) name##_##dtype
#define NORM_ROPE_PASTE(name, dtype) NORM_ROPE_PASTE_(name, dtype)
#define NORM_ROPE_(name) NORM_ROPE_PASTE(name, NORM_ROPE_DTYPE)
#define NORM_ROPE_KERNEL(op) NRG_PATH_NAME(NORM_ROPE_(op))

static __attribute__((noinline)) void NORM_ROPE_(in_turn)(const nrg_norm_rope_job *job, size_t begin, size_t end)
{
    norm_rope_in_turn(job, begin, end, NORM_ROPE_D == NRG_F32 ? 4 : 2, NORM_ROPE_KERNEL(norm_forward),
                      NORM_ROPE_KERNEL(norm_gated), NORM_ROPE_KERNEL(rope));
}

/* The rows that need the fallback go through the two kernels, outside the frame with the arrays. */
static void NORM_ROPE_(norm_rope)(const nrg_norm_rope_job *job)
{
    if (!norm_rope_serves(job, NORM_ROPE_D)) {
        NORM_ROPE_(in_turn)(job, job->rope.begin, job->rope.end);
        return;
    }
    unsigned needs_fallback;
    for (size_t n = job->rope.begin, end = job->rope.end; n < end; n += NORM_BATCH) {
        norm_rope_some_rows(job, &n, &needs_fallback, NORM_ROPE_D);
        for (size_t i = 0; n < end && i < NORM_BATCH; i++)
            if (needs_fallback >> i & 1)
                NORM_ROPE_(in_turn)(job, n + i, n + i + 1);
    }
}

#undef NORM_ROPE_PASTE_
#undef NORM_ROPE_PASTE
#undef NORM_ROPE_
#undef NORM_ROPE_KERNEL
#undef NORM_ROPE_DTYPE
#undef NORM_ROPE_D
