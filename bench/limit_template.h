/* The bare loops of a SIMD path. The including file defines
 *
 *     vec, VEC_BYTES             an integer vector
 *     v_load(p), v_add(a, b)
 *     v_store2(p, a, b)          two neighbouring vectors, ordinary stores
 *     v_stream2(p, a, b)         the same past the cache
 *     v_fence()                  what non-temporal stores need before anyone else may look
 *     v_prefetch(p)
 *     LIMIT_LOOPS                name of the list
 *
 * Every loop is an instance of walk() with constants for options, which the compiler folds.
 *
 * SPDX-License-Identifier: MIT */
#include "limits.h"

#define INLINE static inline __attribute__((always_inline))

/* Vectors a step, of which two and eight were measured to be no faster: loads first, then stores, so that a store never stands
 * between loads it might look like an alias of. */
enum { STEP_VECS = 4, STEP = STEP_VECS * VEC_BYTES, HALF_STEP = STEP / 2 };

/* How far ahead of itself a prefetching loop asks for lines, in bytes. Where the hardware prefetches well it gains nothing. */
enum { AHEAD = 2048 };

struct options {
    int add, bias, stream, prefetch, places;
};

/* n vectors at byte a of the tensors, byte c of the row. */
INLINE void step(limit_job j, size_t a, size_t c, int n, struct options opt)
{
    vec v[STEP_VECS], t[STEP_VECS];
    if (opt.prefetch)
        for (int i = 0; i < n * VEC_BYTES; i += 64) {
            v_prefetch(j.x + a + AHEAD + i);
            if (opt.add)
                v_prefetch(j.y + a + AHEAD + i);
        }
    for (int i = 0; i < n; i++) {
        v[i] = v_load(j.x + a + i * VEC_BYTES);
        if (opt.add)
            v[i] = v_add(v[i], v_load(j.y + a + i * VEC_BYTES));
        t[i] = v_add(v[i], v_load(j.w + c + i * VEC_BYTES));
        if (opt.bias)
            t[i] = v_add(t[i], v_load(j.b + c + i * VEC_BYTES));
    }
    for (int i = 0; opt.add && i < n; i += 2) {
        if (opt.stream)
            v_stream2(j.r + a + i * VEC_BYTES, v[i], v[i + 1]);
        else
            v_store2(j.r + a + i * VEC_BYTES, v[i], v[i + 1]);
    }
    for (int i = 0; i < n; i += 2) {
        if (opt.stream)
            v_stream2(j.o + a + i * VEC_BYTES, t[i], t[i + 1]);
        else
            v_store2(j.o + a + i * VEC_BYTES, t[i], t[i + 1]);
    }
}

/* Bytes [from, to) of rows `apart` bytes apart, as many as there are places; a is the first row's start. */
INLINE void rows(limit_job j, size_t a, size_t apart, size_t from, size_t to, struct options opt)
{
    size_t c = from;
    for (; c + STEP <= to; c += STEP)
        for (int p = 0; p < opt.places; p++)
            step(j, a + (size_t)p * apart + c, c, STEP_VECS, opt);
    for (; c < to; c += HALF_STEP)
        for (int p = 0; p < opt.places; p++)
            step(j, a + (size_t)p * apart + c, c, STEP_VECS / 2, opt);
}

/* Four places of the tensor at once: its quarters, by rows; of a single row: by columns. */
INLINE void quarters(limit_job j, struct options opt)
{
    struct options one = opt;
    one.places = 1;
    size_t done = 0, apart = j.rows / 4 * j.row_bytes;
    if (j.rows >= 4) {
        for (; done < j.rows / 4; done++)
            rows(j, done * j.row_bytes, apart, 0, j.row_bytes, opt);
        done *= 4;
    } else if (j.rows == 1 && j.row_bytes >= 4 * STEP) {
        size_t quarter = j.row_bytes / 4 / STEP * STEP;
        for (size_t c = 0; c < quarter; c += STEP)
            for (size_t p = 0; p < 4; p++)
                step(j, p * quarter + c, p * quarter + c, STEP_VECS, opt);
        rows(j, 0, 0, 4 * quarter, j.row_bytes, one);
        done = 1;
    }
    for (; done < j.rows; done++)
        rows(j, done * j.row_bytes, 0, 0, j.row_bytes, one);
}

INLINE void walk(const limit_job *job, struct options opt)
{
    limit_job j = *job; /* a copy: stores of bytes could change what the pointer leads to */
    if (opt.places == 4)
        quarters(j, opt);
    else
        for (size_t row = 0; row < j.rows; row++)
            rows(j, row * j.row_bytes, 0, 0, j.row_bytes, opt);
    if (opt.stream)
        v_fence();
}

/* The operands a job has, as constants. */
INLINE void run(const limit_job *job, struct options opt)
{
    opt.add = opt.bias = 0;
    if (!job->y && !job->b)
        walk(job, opt);
    else if (!job->y)
        walk(job, (opt.bias = 1, opt));
    else if (!job->b)
        walk(job, (opt.add = 1, opt));
    else
        walk(job, (opt.add = opt.bias = 1, opt));
}

#define LOOP(name, stream, prefetch, places)                                                                                     \
    static void name(const limit_job *job) { run(job, (struct options){0, 0, stream, prefetch, places}); }
LOOP(keep, 0, 0, 1)
LOOP(keep_prefetch, 0, 1, 1)
LOOP(keep_4, 0, 0, 4)
LOOP(stream, 1, 0, 1)
LOOP(stream_4, 1, 0, 4)
LOOP(stream_4_prefetch, 1, 1, 4)

const limit_loop LIMIT_LOOPS[] = {
    {"ordinary stores", keep},
    {"ordinary stores, prefetch", keep_prefetch},
    {"ordinary stores, 4 places", keep_4},
    {"non-temporal stores", stream},
    {"non-temporal stores, 4 places", stream_4},
    {"non-temporal stores, 4 places, prefetch", stream_4_prefetch},
    {NULL, NULL},
};
