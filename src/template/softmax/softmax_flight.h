/* Rows of scores and nothing else, three at a time: while the powers of one are made, the next one's maximum is looked for, and
 * the one before is multiplied by 1 over its sum. Alone, those two take a third as long as the powers, and wait for memory, while
 * the powers wait for multiplications (docs/speed/softmax.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_FLIGHT_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_FLIGHT_H

#include "softmax_row.h"

enum {
    SOFTMAX_SHORT = 256,   /* up to here rows wait for their sums longer than for powers, and go several at a time */
    SOFTMAX_FLIGHT = 1024, /* floats of a row on the stack, of which there are two */
    SOFTMAX_LOOK = 64      /* scores of a row from which its base is guessed; of a long one a segment's quarter */
};

/* One row's turn. next: the row after it, or itself, which is fetched; done: the powers of the row before it, which become o. */
typedef struct softmax_flight {
    const char *x, *next;
    float *e;
    const float *done;
    char *o; /* where they go */
    size_t n;
    float scale;
    softmax_end end; /* of the row before */
    int stream;
    nrg_softmax_base base;
    vf most; /* of x so far, where no sum tells (V_SCALE_KEEPS_NAN) */
} softmax_flight;

NRG_INLINE void softmax_turn_of(softmax_flight *f, int has_done, nrg_dtype D)
{
    const vf lowest = v_set1(f->base.low), offset = v_set1(NRG_EXP_MAGIC - f->base.n), scale = v_set1(f->scale);
    const vf high = v_set1(f->end.high), low = v_set1(f->end.low);
    const char *x = f->x, *next = f->next;
    char *o = f->o;
    float *e = f->e;
    const float *done = f->done;
    const size_t n = f->n;
    const int stream = f->stream;
    vf most[SOFTMAX_SIDE];
    SOFTMAX_EACH most[j] = f->most;
    for (size_t i = 0; i < n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE], before[SOFTMAX_SIDE];
        /* loads before stores, which may be as far into a page: they would wait */
        if (has_done)
            SOFTMAX_EACH before[j] = softmax_result(v_ld_f32(done + i + (size_t)j * VN), high, low, 0);
        softmax_fetch(next, bytes_of(i, D, 0), bytes_of(SOFTMAX_SIDE * VN, D, 0));
        load_step(v, SOFTMAX_SIDE, x, i, 0, D);
        if (!V_SCALE_KEEPS_NAN)
            SOFTMAX_EACH most[j] = v_max(most[j], v[j]);
        if (has_done)
            store_step(before, SOFTMAX_SIDE, o, i, 0, D, stream);
        SOFTMAX_EACH v[j] = v_mul(v[j], scale);
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH v_st_f32(e + i + (size_t)j * VN, v[j]);
    }
    for (int j = 1; j < SOFTMAX_SIDE; j++)
        most[0] = v_max(most[0], most[j]);
    f->most = most[0];
}

NRG_INLINE void softmax_turn_both_of(softmax_flight *f, nrg_dtype D) { softmax_turn_of(f, 1, D); }
NRG_INLINE void softmax_turn_alone_of(softmax_flight *f, nrg_dtype D) { softmax_turn_of(f, 0, D); }

NRG_BY_DTYPE(softmax_turn_both, (f), softmax_flight *f)
NRG_BY_DTYPE(softmax_turn_alone, (f), softmax_flight *f)

NRG_INLINE void softmax_turn(softmax_flight *f, nrg_dtype D)
{
    if (f->o)
        softmax_turn_both(f, D);
    else
        softmax_turn_alone(f, D);
}

/* A row's maximum alone. */
NRG_INLINE void softmax_look_of(vf *most, const char *x, size_t n, nrg_dtype D)
{
    vf v[SOFTMAX_STEP], top[SOFTMAX_STEP];
    NRG_UNROLL
    for (int j = 0; j < SOFTMAX_STEP; j++)
        top[j] = v_set1(-INFINITY);
    for (size_t i = 0; i < n; i += SOFTMAX_STEP * VN) {
        load_step(v, SOFTMAX_STEP, x, i, 0, D);
        NRG_UNROLL
        for (int j = 0; j < SOFTMAX_STEP; j++)
            top[j] = v_max(top[j], v[j]);
    }
    *most = v_max(v_max(top[0], top[1]), v_max(top[2], top[3]));
}

NRG_BY_DTYPE(softmax_look, (most, x, n), vf *most, const char *x, size_t n)

/* Whether t is x times a positive number, so that the largest x gives the largest t. */
NRG_INLINE int softmax_is_plain(const nrg_softmax_job *job)
{
    return !V_SMALL && !job->mask && !job->diagonals && !job->log && !(job->cap > 0) && job->scale > 0;
}

/* Whether rows are of this kind. */
NRG_INLINE int softmax_flies(const nrg_softmax_job *job, nrg_dtype D)
{
    const size_t most = D == NRG_F32 && !job->stream ? NORM_SEGMENT : SOFTMAX_FLIGHT;
    return softmax_is_plain(job) && !job->sinks && !job->m && !job->given && job->keys % FAST_LANES == 0 &&
           job->keys > SOFTMAX_SHORT && job->keys <= most && job->end - job->begin > 1 &&
           job->sight.first + (int64_t)job->queries <= 1 && job->sight.last >= (int64_t)job->keys;
}

#endif
