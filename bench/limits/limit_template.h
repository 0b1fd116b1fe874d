/* The bare loops of a SIMD path. The including file defines
 *
 *     vec, VEC_BYTES             an integer vector
 *     v_load(p), v_add(a, b)
 *     v_store2(p, a, b)          two neighbouring vectors, ordinary stores
 *     v_stream2(p, a, b)         the same past the cache; left out where there is no such thing
 *     v_fence()                  what non-temporal stores need before anyone else may look
 *     v_prefetch(p)
 *     LIMIT_LOOPS                name of the list
 *
 * Every loop is an instance of walk() with constants for options, which the compiler folds, the number of operands among them.
 *
 * SPDX-License-Identifier: MIT */
#include "limits.h"

#ifdef v_stream2
#define STREAMS 1
#else
#define STREAMS 0
#define v_stream2(p, a, b) v_store2(p, a, b) /* not called */
#define v_fence() ((void)0)
#endif

#define INLINE static inline __attribute__((always_inline))

/* Vectors a step, of which two and eight were measured to be no faster: loads first, then stores, so that a store never stands
 * between loads it might look like an alias of. */
enum { STEP_VECS = 4, STEP = STEP_VECS * VEC_BYTES, HALF_STEP = STEP / 2 };

/* How far ahead of itself a prefetching loop asks for lines, in bytes. Where the hardware prefetches well it gains nothing. */
enum { AHEAD = 2048 };

/* The first three: how many tensors are read, tensors written, rows read. */
struct options {
    int ins, outs, row_ins, non_temporal, prefetch, streams;
};

INLINE void store(char *to, const vec *v, int n, struct options opt)
{
    for (int i = 0; i < n; i += 2) {
        if (opt.non_temporal)
            v_stream2(to + i * VEC_BYTES, v[i], v[i + 1]);
        else
            v_store2(to + i * VEC_BYTES, v[i], v[i + 1]);
    }
}

/* n vectors at byte a of the tensors, byte c of the row: v is the sum of the tensors, t of everything. */
INLINE void sums(vec *v, vec *t, limit_job j, size_t a, size_t c, int n, struct options opt)
{
    if (opt.prefetch)
        for (int i = 0; i < n * VEC_BYTES; i += 64)
            for (int in = 0; in < opt.ins; in++)
                v_prefetch(j.in[in] + a + AHEAD + i);
    for (int i = 0; i < n; i++) {
        size_t at = a + (size_t)i * VEC_BYTES, of_row = c + (size_t)i * VEC_BYTES;
        v[i] = v_load(j.in[0] + at);
        if (opt.ins > 1)
            v[i] = v_add(v[i], v_load(j.in[1] + at));
        if (opt.ins > 2)
            v[i] = v_add(v[i], v_load(j.in[2] + at));
        if (opt.ins > 3)
            v[i] = v_add(v[i], v_load(j.in[3] + at));
        t[i] = v[i];
        if (opt.row_ins > 0)
            t[i] = v_add(t[i], v_load(j.row_in[0] + of_row));
        if (opt.row_ins > 1)
            t[i] = v_add(t[i], v_load(j.row_in[1] + of_row));
    }
}

INLINE void step(limit_job j, size_t a, size_t c, int n, struct options opt)
{
    vec v[STEP_VECS], t[STEP_VECS];
    sums(v, t, j, a, c, n, opt);
    if (opt.outs == 2)
        store(j.out[0] + a, v, n, opt);
    store(j.out[opt.outs - 1] + a, t, n, opt);
}

/* Bytes [from, to) of rows `apart` bytes apart, as many as there are streams; a is the first row's start. */
INLINE void rows(limit_job j, size_t a, size_t apart, size_t from, size_t to, struct options opt)
{
    size_t c = from;
    for (; c + STEP <= to; c += STEP)
        for (int p = 0; p < opt.streams; p++)
            step(j, a + (size_t)p * apart + c, c, STEP_VECS, opt);
    for (; c < to; c += HALF_STEP)
        for (int p = 0; p < opt.streams; p++)
            step(j, a + (size_t)p * apart + c, c, STEP_VECS / 2, opt);
}

/* Four streams of the tensor at once: its quarters, by rows; of a single row: by columns. */
INLINE void quarters(limit_job j, struct options opt)
{
    struct options one = opt;
    one.streams = 1;
    size_t done = 0, from = 0, apart = j.rows / 4 * j.row_bytes;
    if (j.rows >= 4) {
        for (; done < j.rows / 4; done++)
            rows(j, done * j.row_bytes, apart, 0, j.row_bytes, opt);
        done *= 4;
    } else if (j.rows == 1 && j.row_bytes >= 4 * STEP) {
        size_t quarter = j.row_bytes / 4 / STEP * STEP;
        for (size_t c = 0; c < quarter; c += STEP)
            for (size_t p = 0; p < 4; p++)
                step(j, p * quarter + c, p * quarter + c, STEP_VECS, opt);
        from = 4 * quarter;
    }
    for (; done < j.rows; done++)
        rows(j, done * j.row_bytes, 0, from, j.row_bytes, one);
}

/* Rows that are written once: any bits do. */
INLINE void write_rows(limit_job j)
{
    for (int i = 0; i < LIMIT_ROW_OUTS && j.row_out[i]; i++) {
        vec bits = v_load(j.in[0]);
        for (size_t c = 0; c < j.row_out_bytes; c += HALF_STEP)
            v_store2(j.row_out[i] + c, bits, bits);
    }
}

INLINE void walk(const limit_job *job, struct options opt)
{
    limit_job j = *job; /* a copy: stores of bytes could change what the pointer leads to */
    if (opt.streams == 4)
        quarters(j, opt);
    else
        for (size_t row = 0; row < j.rows; row++)
            rows(j, row * j.row_bytes, 0, 0, j.row_bytes, opt);
    write_rows(j);
    if (opt.non_temporal)
        v_fence();
}

/* Tensors that are read only. Without the store of the sum the compiler would drop the loads. */
INLINE void read_all(const limit_job *job, int ins, int prefetch, size_t streams)
{
    const limit_job j = *job;
    const size_t bytes = j.rows * j.row_bytes, part = bytes / streams / STEP * STEP;
    vec sum[STEP_VECS];
    for (int i = 0; i < STEP_VECS; i++)
        sum[i] = v_load(j.in[0]);
    for (size_t c = 0; c < part; c += STEP)
        for (size_t p = 0; p < streams; p++)
            for (int in = 0; in < ins; in++) {
                const char *at = j.in[in] + p * part + c;
                if (prefetch)
                    for (int i = 0; i < STEP; i += 64)
                        v_prefetch(at + AHEAD + i);
                for (int i = 0; i < STEP_VECS; i++)
                    sum[i] = v_add(sum[i], v_load(at + i * VEC_BYTES));
            }
    for (size_t c = streams * part; c < bytes; c += VEC_BYTES)
        for (int in = 0; in < ins; in++)
            sum[0] = v_add(sum[0], v_load(j.in[in] + c));
    v_store2(j.out[0], v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
}

/* Rows of tensors that become bytes: pieces of them, and after each as many bytes as it comes to, in pairs of vectors. What is
 * left at the end is less than a pair, and written over the last one. */
enum { PIECE = 2048 };

INLINE void to_bytes(const limit_job *job, struct options opt)
{
    const limit_job j = *job;
    const double each = (double)j.bytes / (double)(j.rows * j.row_bytes);
    vec sum = v_load(j.in[0]);
    size_t done = 0;
    for (size_t row = 0; row < j.rows; row++)
        for (size_t begin = 0, end; begin < j.row_bytes; begin = end) {
            const size_t a = row * j.row_bytes;
            end = j.row_bytes - begin < PIECE ? j.row_bytes : begin + PIECE;
            for (size_t c = begin; c < end; c += HALF_STEP) {
                vec v[STEP_VECS], t[STEP_VECS];
                sums(v, t, j, a + c, c, STEP_VECS / 2, opt);
                if (opt.outs)
                    store(j.out[0] + a + c, v, STEP_VECS / 2, opt);
                sum = v_add(sum, v_add(t[0], t[1]));
            }
            for (const size_t due = (size_t)((double)(a + end) * each); done + 2 * VEC_BYTES <= due; done += 2 * VEC_BYTES)
                v_store2(j.bytes_out + done, sum, sum);
        }
    if (done < j.bytes && j.bytes >= 2 * VEC_BYTES)
        v_store2(j.bytes_out + j.bytes - 2 * VEC_BYTES, sum, sum);
    if (opt.non_temporal)
        v_fence();
}

/* The other way. */
INLINE void from_bytes(const limit_job *job, struct options opt)
{
    const limit_job j = *job;
    const size_t all = j.rows * j.row_bytes;
    const double each = (double)j.bytes / (double)all;
    vec sum[2] = {v_load(j.bytes_in), v_load(j.bytes_in)};
    size_t done = 0;
    for (size_t begin = 0, end; begin < all; begin = end) {
        end = all - begin < PIECE ? all : begin + PIECE;
        if (opt.prefetch)
            for (size_t i = done; i < done + (size_t)(PIECE * each); i += 64)
                v_prefetch(j.bytes_in + i + AHEAD);
        for (const size_t due = (size_t)((double)end * each); done + VEC_BYTES <= due; done += VEC_BYTES)
            sum[0] = v_add(sum[0], v_load(j.bytes_in + done));
        sum[1] = sum[0];
        for (size_t c = begin; c < end; c += HALF_STEP)
            store(j.out[0] + c, sum, STEP_VECS / 2, opt);
    }
    if (opt.non_temporal)
        v_fence();
}

#define TO_BYTES(name, ins, outs, row_ins, ...)                                                                                  \
    static void name##_bytes_##ins##outs##row_ins(const limit_job *job)                                                          \
    {                                                                                                                            \
        to_bytes(job, (struct options){ins, outs, row_ins, __VA_ARGS__});                                                        \
    }
#define BYTES_BY_OUTS(name, ins, outs, ...)                                                                                      \
    TO_BYTES(name, ins, outs, 0, __VA_ARGS__)                                                                                    \
    TO_BYTES(name, ins, outs, 1, __VA_ARGS__)                                                                                    \
    TO_BYTES(name, ins, outs, 2, __VA_ARGS__)
#define BYTES(name, ...)                                                                                                         \
    BYTES_BY_OUTS(name, 1, 0, __VA_ARGS__)                                                                                       \
    BYTES_BY_OUTS(name, 1, 1, __VA_ARGS__)                                                                                       \
    BYTES_BY_OUTS(name, 2, 0, __VA_ARGS__)                                                                                       \
    BYTES_BY_OUTS(name, 2, 1, __VA_ARGS__)                                                                                       \
    static void name##_from_bytes(const limit_job *job) { from_bytes(job, (struct options){0, 1, 0, __VA_ARGS__}); }
#define BYTES_ROWS(name)                                                                                                         \
    {                                                                                                                            \
        name##0, name##1, name##2                                                                                                \
    }
#define BYTES_TABLE(name)                                                                                                        \
    .to_bytes = {{BYTES_ROWS(name##_bytes_10), BYTES_ROWS(name##_bytes_11)},                                                     \
                 {BYTES_ROWS(name##_bytes_20), BYTES_ROWS(name##_bytes_21)}},                                                    \
    .from_bytes = name##_from_bytes
BYTES(keep, 0, 0, 1)
BYTES(keep_prefetch, 0, 1, 1)
#if STREAMS
BYTES(stream, 1, 0, 1)
BYTES(stream_prefetch, 1, 1, 1)
#endif

#define READ(name, prefetch, streams)                                                                                            \
    static void name##_1(const limit_job *job) { read_all(job, 1, prefetch, streams); }                                          \
    static void name##_2(const limit_job *job) { read_all(job, 2, prefetch, streams); }
READ(read, 0, 1)
READ(read_prefetch, 1, 1)
READ(read_4, 0, 4)
READ(read_4_prefetch, 1, 4)

/* Each loop as a function for every set of operands. */
#define LOOP(name, ins, outs, row_ins, ...)                                                                                      \
    static void name##_##ins##outs##row_ins(const limit_job *job)                                                                \
    {                                                                                                                            \
        walk(job, (struct options){ins, outs, row_ins, __VA_ARGS__});                                                            \
    }
#define INSTANCE(ins, outs, row_ins)                                                                                             \
    LOOP(keep, ins, outs, row_ins, 0, 0, 1)                                                                                      \
    LOOP(keep_prefetch, ins, outs, row_ins, 0, 1, 1)                                                                             \
    LOOP(keep_4, ins, outs, row_ins, 0, 0, 4)                                                                                    \
    LOOP(keep_4_prefetch, ins, outs, row_ins, 0, 1, 4)
LIMIT_INSTANCES(INSTANCE)
#if STREAMS
#define STREAM_INSTANCE(ins, outs, row_ins)                                                                                      \
    LOOP(stream, ins, outs, row_ins, 1, 0, 1)                                                                                    \
    LOOP(stream_prefetch, ins, outs, row_ins, 1, 1, 1)                                                                           \
    LOOP(stream_4, ins, outs, row_ins, 1, 0, 4)                                                                                  \
    LOOP(stream_4_prefetch, ins, outs, row_ins, 1, 1, 4)
LIMIT_INSTANCES(STREAM_INSTANCE)
#endif

const limit_loop LIMIT_LOOPS[] = {
    {.name = "ordinary stores", .run = LIMIT_TABLE(keep), .read = {read_1, read_2}, BYTES_TABLE(keep)},
    {.name = "ordinary stores, prefetch",
     .run = LIMIT_TABLE(keep_prefetch),
     .read = {read_prefetch_1, read_prefetch_2},
     BYTES_TABLE(keep_prefetch)},
    {.name = "ordinary stores, 4 streams", .run = LIMIT_TABLE(keep_4), .read = {read_4_1, read_4_2}},
    {.name = "ordinary stores, 4 streams, prefetch",
     .run = LIMIT_TABLE(keep_4_prefetch),
     .read = {read_4_prefetch_1, read_4_prefetch_2}},
#if STREAMS
    {.name = "non-temporal stores", .run = LIMIT_TABLE(stream), .read = {read_1, read_2}, BYTES_TABLE(stream)},
    {.name = "non-temporal stores, prefetch",
     .run = LIMIT_TABLE(stream_prefetch),
     .read = {read_prefetch_1, read_prefetch_2},
     BYTES_TABLE(stream_prefetch)},
    {.name = "non-temporal stores, 4 streams", .run = LIMIT_TABLE(stream_4), .read = {read_4_1, read_4_2}},
    {.name = "non-temporal stores, 4 streams, prefetch",
     .run = LIMIT_TABLE(stream_4_prefetch),
     .read = {read_4_prefetch_1, read_4_prefetch_2}},
#endif
    {.name = NULL},
};
