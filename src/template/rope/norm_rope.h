/* RMSNorm of every head and its rotation in one pass: norm_rope_row.h has a row, norm_rope_rows.h the walk over them.
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
    size_t token = n / heads, head = n - token * heads;
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
        for (int i = count; i < NORM_BATCH; i++)
            tt[i] = tt[0];
        vd8_sum_rows(tt, sums.tt);
        memcpy(sums.tt + NORM_BATCH, sums.tt, NORM_BATCH * sizeof *sums.tt);
        scalars_of_tile(&s, &job->norm, &sums, count, OPT_STATISTICS, (norm_policy){.dtype = D});
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

#define NORM_ROPE_DTYPE f32
#define NORM_ROPE_D NRG_F32
#include "norm_rope_rows.h"
#define NORM_ROPE_DTYPE f16
#define NORM_ROPE_D NRG_F16
#include "norm_rope_rows.h"
#define NORM_ROPE_DTYPE bf16
#define NORM_ROPE_D NRG_BF16
#include "norm_rope_rows.h"

NRG_PATH_KERNEL(norm_rope, f32, norm_rope, norm_rope_f32(job))
NRG_PATH_KERNEL(norm_rope, f16, norm_rope, norm_rope_f16(job))
NRG_PATH_KERNEL(norm_rope, bf16, norm_rope, norm_rope_bf16(job))

#endif
