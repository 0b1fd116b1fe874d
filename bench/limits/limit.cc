/* The bare loops of a path. bench/meson.build compiles this file once a path, with the path's flags and
 *
 *     LIMIT_LOOPS     the name of the list
 *     VEC_BYTES       bytes of a vector
 *     NON_TEMPORAL    1: the path has stores past the cache. GNU C has none, so the scalar and the generic path lack them
 *
 * Every loop is an instance of walk(), read_all(), to_bytes() or from_bytes() with constants for options, which the compiler
 * folds, the number of operands among them. All of it has internal linkage: the linker must not take one path's instance for
 * another's.
 *
 * SPDX-License-Identifier: MIT */
#include <cstdint>
#include <cstring>
#include <utility>

#if NON_TEMPORAL && defined(__x86_64__)
#include <immintrin.h>
#endif

#include "limits.h"

#define INLINE static inline __attribute__((always_inline))

namespace
{

typedef uint32_t vec __attribute__((vector_size(VEC_BYTES)));

INLINE vec v_load(const char *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Two neighbouring vectors past the cache. STNP is a hint that some cores follow and others take for STP. */
INLINE void v_stream2(char *p, vec a, vec b)
{
#if NON_TEMPORAL && defined(__aarch64__)
    __asm__ volatile("stnp %q1, %q2, [%0]" : : "r"(p), "w"(a), "w"(b) : "memory");
#elif NON_TEMPORAL && VEC_BYTES == 64
    _mm512_stream_si512((__m512i *)p, (__m512i)a);
    _mm512_stream_si512((__m512i *)(p + VEC_BYTES), (__m512i)b);
#elif NON_TEMPORAL
    _mm256_stream_si256((__m256i *)p, (__m256i)a);
    _mm256_stream_si256((__m256i *)(p + VEC_BYTES), (__m256i)b);
#else
    (void)p, (void)a, (void)b;
#endif
}

/* What non-temporal stores need before anyone else may look; STNP keeps the order of one thread's own accesses. */
INLINE void v_fence()
{
#if NON_TEMPORAL && defined(__x86_64__)
    _mm_sfence();
#endif
}

/* Vectors a step, of which two and eight were measured to be no faster: loads first, then stores, so that a store never stands
 * between loads it might look like an alias of. */
enum { STEP_VECS = 4, STEP = STEP_VECS * VEC_BYTES, HALF_STEP = STEP / 2 };

/* How far ahead of itself a prefetching loop asks for lines, in bytes. Where the hardware prefetches well it gains nothing. */
enum { AHEAD = 2048 };

/* The last three: how many tensors are read, tensors written, rows read. */
struct options {
    bool non_temporal, prefetch;
    int streams, ins = 1, outs = 1, row_ins = 0;
};

INLINE void store2(char *to, vec a, vec b)
{
    memcpy(to, &a, sizeof a);
    memcpy(to + VEC_BYTES, &b, sizeof b);
}

INLINE void store(char *to, const vec *v, int n, options opt)
{
    for (int i = 0; i < n; i += 2) {
        if (opt.non_temporal)
            v_stream2(to + i * VEC_BYTES, v[i], v[i + 1]);
        else
            store2(to + i * VEC_BYTES, v[i], v[i + 1]);
    }
}

/* n vectors at byte a of the tensors, byte c of the row: v is the sum of the tensors, t of everything. */
INLINE void sums(vec *v, vec *t, const limit_job &j, size_t a, size_t c, int n, options opt)
{
    if (opt.prefetch)
        for (int i = 0; i < n * VEC_BYTES; i += 64)
            for (int in = 0; in < opt.ins; in++)
                __builtin_prefetch(j.in[in] + a + AHEAD + i);
    for (int i = 0; i < n; i++) {
        v[i] = v_load(j.in[0] + a + i * VEC_BYTES);
        for (int in = 1; in < opt.ins; in++)
            v[i] += v_load(j.in[in] + a + i * VEC_BYTES);
        t[i] = v[i];
        for (int in = 0; in < opt.row_ins; in++)
            t[i] += v_load(j.row_in[in] + c + i * VEC_BYTES);
    }
}

INLINE void step(const limit_job &j, size_t a, size_t c, int n, options opt)
{
    vec v[STEP_VECS], t[STEP_VECS];
    sums(v, t, j, a, c, n, opt);
    if (opt.outs == 2)
        store(j.out[0] + a, v, n, opt);
    store(j.out[opt.outs - 1] + a, t, n, opt);
}

/* Bytes [from, to) of rows `apart` bytes apart, as many as there are streams; a is the first row's start. */
INLINE void rows(const limit_job &j, size_t a, size_t apart, size_t from, size_t to, options opt)
{
    size_t c = from;
    for (; c + STEP <= to; c += STEP)
        for (int p = 0; p < opt.streams; p++)
            step(j, a + p * apart + c, c, STEP_VECS, opt);
    for (; c < to; c += HALF_STEP)
        for (int p = 0; p < opt.streams; p++)
            step(j, a + p * apart + c, c, STEP_VECS / 2, opt);
}

/* Four streams of the tensor at once: its quarters, by rows; of a single row: by columns. */
INLINE void quarters(const limit_job &j, options opt)
{
    options one = opt;
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

/* job is copied, here and below: stores of bytes could change what the pointer leads to. */
INLINE void walk(const limit_job *job, options opt)
{
    const limit_job j = *job;
    if (opt.streams == 4)
        quarters(j, opt);
    else
        for (size_t row = 0; row < j.rows; row++)
            rows(j, row * j.row_bytes, 0, 0, j.row_bytes, opt);
    for (int i = 0; i < LIMIT_ROW_OUTS && j.row_out[i]; i++) { /* rows that are written once: any bits do */
        const vec bits = v_load(j.in[0]);
        for (size_t c = 0; c < j.row_out_bytes; c += HALF_STEP)
            store2(j.row_out[i] + c, bits, bits);
    }
    if (opt.non_temporal)
        v_fence();
}

/* Tensors that are read only. Without the store of the sum the compiler would drop the loads. */
INLINE void read_all(const limit_job *job, options opt)
{
    const limit_job j = *job;
    const size_t bytes = j.rows * j.row_bytes, part = bytes / opt.streams / STEP * STEP;
    vec sum[STEP_VECS];
    for (int i = 0; i < STEP_VECS; i++)
        sum[i] = v_load(j.in[0]);
    for (size_t c = 0; c < part; c += STEP)
        for (int p = 0; p < opt.streams; p++)
            for (int in = 0; in < opt.ins; in++) {
                const char *at = j.in[in] + p * part + c;
                if (opt.prefetch)
                    for (int i = 0; i < STEP; i += 64)
                        __builtin_prefetch(at + AHEAD + i);
                for (int i = 0; i < STEP_VECS; i++)
                    sum[i] += v_load(at + i * VEC_BYTES);
            }
    for (size_t c = opt.streams * part; c < bytes; c += VEC_BYTES)
        for (int in = 0; in < opt.ins; in++)
            sum[0] += v_load(j.in[in] + c);
    store2(j.out[0], sum[0] + sum[1], sum[2] + sum[3]);
}

/* Rows of tensors that become bytes: pieces of them, and after each as many bytes as it comes to, in pairs of vectors. What is
 * left at the end is less than a pair, and written over the last one. */
constexpr size_t PIECE = 2048;

INLINE void to_bytes(const limit_job *job, options opt)
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
                sum += t[0] + t[1];
            }
            for (const size_t due = (size_t)((double)(a + end) * each); done + 2 * VEC_BYTES <= due; done += 2 * VEC_BYTES)
                store2(j.bytes_out + done, sum, sum);
        }
    if (done < j.bytes && j.bytes >= 2 * VEC_BYTES)
        store2(j.bytes_out + j.bytes - 2 * VEC_BYTES, sum, sum);
    if (opt.non_temporal)
        v_fence();
}

/* The other way. */
INLINE void from_bytes(const limit_job *job, options opt)
{
    const limit_job j = *job;
    const size_t all = j.rows * j.row_bytes;
    const double each = (double)j.bytes / (double)all;
    vec sum[2] = {v_load(j.bytes_in), v_load(j.bytes_in)};
    size_t done = 0;
    for (size_t begin = 0, end; begin < all; begin = end) {
        end = all - begin < PIECE ? all : begin + PIECE;
        if (opt.prefetch)
            for (size_t i = done; i < done + (size_t)((double)PIECE * each); i += 64)
                __builtin_prefetch(j.bytes_in + i + AHEAD);
        for (const size_t due = (size_t)((double)end * each); done + VEC_BYTES <= due; done += VEC_BYTES)
            sum[0] += v_load(j.bytes_in + done);
        sum[1] = sum[0];
        for (size_t c = begin; c < end; c += HALF_STEP)
            store(j.out[0] + c, sum, STEP_VECS / 2, opt);
    }
    if (opt.non_temporal)
        v_fence();
}

/* Which of a loop's options are those of the i-th instance in a table of limit_loop: tensors read, tensors written, rows read, of
 * which the last counts fastest. */
constexpr options nth(options loop, size_t i, int least_outs)
{
    constexpr int rows_in = 1 + LIMIT_ROW_INS;
    loop.row_ins = (int)i % rows_in;
    loop.outs = (int)i / rows_in % LIMIT_OUTS + least_outs;
    loop.ins = (int)i / (rows_in * LIMIT_OUTS) + 1;
    return loop;
}

template <options O> void walk_of(const limit_job *job) { walk(job, O); }
template <options O> void read_of(const limit_job *job) { read_all(job, O); }
template <options O> void to_bytes_of(const limit_job *job) { to_bytes(job, O); }
template <options O> void from_bytes_of(const limit_job *job) { from_bytes(job, O); }

template <options O, size_t... I, size_t... K>
constexpr limit_loop instances(const char *name, std::index_sequence<I...>, std::index_sequence<K...>)
{
    limit_loop loop = {};
    size_t i = 0, k = 0;
    loop.name = name;
    for (limit_run *run : {walk_of<nth(O, I, 1)>...})
        loop.run[i++] = run;
    loop.read[0] = read_of<options{false, O.prefetch, O.streams, 1}>;
    loop.read[1] = read_of<options{false, O.prefetch, O.streams, 2}>;
    if constexpr (O.streams == 1) {
        for (limit_run *run : {to_bytes_of<nth(O, K, 0)>...})
            loop.to_bytes[k++] = run;
        loop.from_bytes = from_bytes_of<O>;
    }
    return loop;
}

template <bool non_temporal, bool prefetch, int streams> constexpr limit_loop loop(const char *name)
{
    return instances<options{non_temporal, prefetch, streams}>(name, std::make_index_sequence<LIMIT_RUNS>(),
                                                               std::make_index_sequence<LIMIT_BYTES_RUNS>());
}

} // namespace

extern "C" constexpr limit_loop LIMIT_LOOPS[] = {
    loop<0, 0, 1>("ordinary stores"),
    loop<0, 1, 1>("ordinary stores, prefetch"),
    loop<0, 0, 4>("ordinary stores, 4 streams"),
    loop<0, 1, 4>("ordinary stores, 4 streams, prefetch"),
#if NON_TEMPORAL
    loop<1, 0, 1>("non-temporal stores"),
    loop<1, 1, 1>("non-temporal stores, prefetch"),
    loop<1, 0, 4>("non-temporal stores, 4 streams"),
    loop<1, 1, 4>("non-temporal stores, 4 streams, prefetch"),
#endif
    {},
};
