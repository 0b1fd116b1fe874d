/* RMSNorm of every head and its rotation in one pass: norm_rope_row.h has a row.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_NORM_ROPE_H
#define NRG_TEMPLATE_ROPE_NORM_ROPE_H

#include "norm_rope_row.h"

/* Rows from *at on, up to the job's end or the first eight among which some need the fallback: those are the bits of
 * *needs_fallback, and *at is the first row of these eight, or the end. */
NRG_INLINE void norm_rope_some_rows_of(const nrg_norm_rope_job *job, size_t *at, unsigned *needs_fallback, nrg_dtype D)
{
    size_t n = *at;
    norm_rope_plan p;
    norm_rope_set_up(&p, job, D);
    const size_t end = job->rope.end, heads = p.heads;
    size_t token = n ? n / heads : 0, head = n - token * heads; /* a single row does not wait for a division */
    norm_rope_token(&p, token);
    for (; n < end; n += NORM_BATCH) {
        const int count = end - n < NORM_BATCH ? (int)(end - n) : NORM_BATCH;
        const char *x[NORM_BATCH];
        vd8 tt[NORM_BATCH];
        tile_sums sums;
        tile_scalars s;
        size_t t = token, h = head;
        for (int i = 0; i < count; i++) {
            x[i] = p.x + t * p.x_token_stride + h * p.x_head_stride;
            tt[i] = squares_of_head(x[i], p.dim, D);
            if (++h == heads) {
                h = 0;
                t++;
            }
        }
        if (count == 1) { /* 15 ns less than as one of a tile */
            const row_scalars one = scalars_of_row(&job->norm, 0, (row_totals){0, vd8_sum(&tt[0])}, (norm_policy){.dtype = D});
            s.factor[0] = one.factor;
            s.rstd[0] = one.rstd;
            s.fallback = !one.in_range;
        } else {
            for (int i = count; i < NORM_BATCH; i++)
                tt[i] = tt[0];
            vd8_sum_rows(tt, sums.tt);
            memcpy(sums.tt + NORM_BATCH, sums.tt, NORM_BATCH * sizeof *sums.tt);
            scalars_of_tile(&s, &job->norm, &sums, count, OPT_STATISTICS, (norm_policy){.dtype = D});
        }
        *needs_fallback = s.fallback;
        for (int i = 0; i < count; i++) {
            char *o = p.o + token * p.o_token_stride + head * p.o_head_stride;
            if (!(s.fallback >> i & 1)) {
                const vf f = v_set1(s.factor[i]);
                if (p.mean)
                    p.mean[n + (size_t)i] = 0;
                if (p.rstd)
                    p.rstd[n + (size_t)i] = s.rstd[i];
                if (streams(p.stream))
                    norm_rope_row(&p, f, x[i], o, D, 1);
                else
                    norm_rope_row(&p, f, x[i], o, D, 0);
            }
            if (++head == heads) {
                head = 0;
                token++;
                if (n + (size_t)i + 1 < end)
                    norm_rope_token(&p, token);
            }
        }
        if (*needs_fallback)
            break;
    }
    if (p.stream)
        v_nt_fence();
    *at = n < end ? n : end;
}

NRG_BY_DTYPE(norm_rope_some_rows, (job, at, needs_fallback), const nrg_norm_rope_job *job, size_t *at, unsigned *needs_fallback)

/* Rows that need the fallback go through the kernels of the norm and of the rotation, outside the frame with the arrays. */
NRG_INLINE void norm_rope_rows(const nrg_norm_rope_job *job, void (*in_turn)(const nrg_norm_rope_job *, size_t, size_t),
                               nrg_dtype D)
{
    if (!norm_rope_serves(job, D)) {
        in_turn(job, job->rope.begin, job->rope.end);
        return;
    }
    unsigned needs_fallback;
    for (size_t n = job->rope.begin, end = job->rope.end; n < end; n += NORM_BATCH) {
        norm_rope_some_rows(job, &n, &needs_fallback, D);
        for (size_t i = 0; n < end && i < NORM_BATCH; i++)
            if (needs_fallback >> i & 1)
                in_turn(job, n + i, n + i + 1);
    }
}

/* The kernel of a dtype, which names those of its dtype only. */
#define NORM_ROPE(dtype, D)                                                                                                      \
    static __attribute__((noinline)) void in_turn_##dtype(const nrg_norm_rope_job *job, size_t begin, size_t end)                \
    {                                                                                                                            \
        norm_rope_in_turn(job, begin, end, bytes_of(1, D, 0), NRG_PATH_NAME(norm_forward_##dtype),                               \
                          NRG_PATH_NAME(norm_gated_##dtype), NRG_PATH_NAME(rope_##dtype));                                       \
    }                                                                                                                            \
    NRG_PATH_KERNEL(norm_rope, dtype, norm_rope, norm_rope_rows(job, in_turn_##dtype, D))
NORM_ROPE(f32, NRG_F32)
NORM_ROPE(f16, NRG_F16)
NORM_ROPE(bf16, NRG_BF16)
#undef NORM_ROPE

#endif
