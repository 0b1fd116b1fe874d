/* The heads of a job, for one dtype: norm_rope.h includes this file once for each, with NORM_ROPE_DTYPE (f32) and NORM_ROPE_D
 * (NRG_F32).
 *
 * SPDX-License-Identifier: MIT */

#define NORM_ROPE_PASTE_(name, dtype) name##_##dtype
#define NORM_ROPE_PASTE(name, dtype) NORM_ROPE_PASTE_(name, dtype)
#define NORM_ROPE_(name) NORM_ROPE_PASTE(name, NORM_ROPE_DTYPE)
#define NORM_ROPE_KERNEL(op) NRG_PATH_NAME(NORM_ROPE_(op))

/* Rows from n on, up to the job's end or the first eight among which some need the fallback: those are the bits of
 * *needs_fallback. Returns the first row of these eight, or the end. */
static __attribute__((noinline)) size_t NORM_ROPE_(some_rows)(const nrg_norm_rope_job *job, size_t n, unsigned *needs_fallback)
{
    const nrg_dtype D = NORM_ROPE_D;
    norm_rope_plan p;
    norm_rope_set_up(&p, job, D);
    const size_t end = job->rope.end, heads = p.heads;
    size_t token = n / heads, head = n - token * heads;
    norm_rope_token(&p, token);
    for (; n < end; n += NORM_BATCH) {
        const int count = end - n < NORM_BATCH ? (int)(end - n) : NORM_BATCH;
        const char *x[NORM_BATCH];
        double total_tt[FAST_ROWS] = {0};
        vd8 tt[NORM_BATCH];
        fast_scalars s;
        size_t t = token, h = head;
        for (int i = 0; i < count; i++) {
            x[i] = p.x + t * p.x_token_stride + h * p.x_head_stride;
            tt[i] = fast_short_sum(NULL, x[i], p.dim, NORM_BLOCK, v_zero(), D, 0);
            if (++h == heads) {
                h = 0;
                t++;
            }
        }
        for (int i = count; i < NORM_BATCH; i++)
            tt[i] = tt[0];
        vd8_sum_rows(tt, total_tt);
        fast_scalars_of(&s, &job->norm, NULL, NULL, total_tt, count, 0);
        *needs_fallback = 0;
        for (int i = 0; i < count; i++) {
            char *o = p.o + token * p.o_token_stride + head * p.o_head_stride;
            if (s.needs_fallback[i] != 0)
                *needs_fallback |= 1u << i;
            else {
                const vf f = v_set1(s.factor[i]);
                if (p.mean)
                    p.mean[n + (size_t)i] = 0;
                if (p.rstd)
                    p.rstd[n + (size_t)i] = s.rstd[i];
                if (p.stream)
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
    return n < end ? n : end;
}

static __attribute__((noinline)) void NORM_ROPE_(in_turn)(const nrg_norm_rope_job *job, size_t begin, size_t end)
{
    norm_rope_in_turn(job, begin, end, NORM_ROPE_D == NRG_F32 ? 4 : 2, NORM_ROPE_KERNEL(norm_forward), NORM_ROPE_KERNEL(rope));
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
        n = NORM_ROPE_(some_rows)(job, n, &needs_fallback);
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
