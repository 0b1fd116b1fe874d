/* Biases of attention scores over the vectors of a path's vec.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_BIAS_SCORE_BIAS_H
#define NRG_TEMPLATE_BIAS_SCORE_BIAS_H

#include "../../job/score_bias.h"
#include "../step.h"

NRG_INLINE size_t score_larger(size_t a, size_t b) { return a > b ? a : b; }

/* Where row i of head h of sample b begins, in bytes. */
NRG_INLINE size_t score_row_at(nrg_head_strides stride, size_t b, size_t h, size_t i)
{
    return b * stride.batch + h * stride.head + i * stride.row;
}

/* Rows of one head, one after the other: row r has its own place in the table, one entry before that of row r - 1. */
typedef struct score_run {
    const char *scores;
    const float *bias; /* of key 0 of the first row */
    char *o;
    size_t scores_stride, o_stride;
    size_t rows, keys;
    int stream, far; /* far: the tensors are not in L1 */
    float scale;
} score_run;

/* Some columns of some rows, and the entries of the table that bf16 takes for them: the even ones apart from the odd ones, as it
 * takes its elements (v_even_from_bf16). */
enum {
    SCORE_COLUMNS = 2048,
    SCORE_PIECE_ROWS = 448,
    SCORE_ENTRIES = (SCORE_COLUMNS + SCORE_PIECE_ROWS + 64) / 2,
    SCORE_ROWS_WORTH = 8, /* fewer rows do not pay for taking the table apart */
    SCORE_VECTORS = 4,    /* of a step */
    SCORE_WIDTH = SCORE_VECTORS * VN,
    SCORE_LINE_MOST = 32 / VN > SCORE_VECTORS ? 32 / VN : SCORE_VECTORS /* vectors of a line of any dtype, or a step */
};

typedef struct score_piece {
    size_t begin, end;  /* columns; rows end there where end is the number of keys */
    const float *first; /* the entry that is even[0] */
    float even[SCORE_ENTRIES], odd[SCORE_ENTRIES];
} score_piece;

/* Where a row is read and written, from some key on. */
typedef struct score_stream {
    const char *scores;
    char *o;
    const float *bias, *even, *odd; /* even and odd: with a piece */
} score_stream;

NRG_INLINE score_stream score_place_of(const score_run *run, const score_piece *piece, size_t r, size_t key, nrg_dtype D)
{
    const size_t before = bytes_of(key, D, 0);
    score_stream at = {run->scores + r * run->scores_stride + before, run->o + r * run->o_stride + before, run->bias - r + key,
                       NULL, NULL};
    if (piece) {
        const size_t entry = (size_t)(at.bias - piece->first);
        at.even = entry % 2 ? piece->odd + entry / 2 : piece->even + entry / 2;
        at.odd = entry % 2 ? piece->even + entry / 2 + 1 : piece->odd + entry / 2;
    }
    return at;
}

/* ---- vectors of a row ---- */

NRG_INLINE vf score_biased(const score_stream *at, size_t j, vf scale, nrg_dtype D)
{
    return v_fma(load_whole(at->scores, j, D), scale, v_ld_f32(at->bias + j));
}

/* What is streamed starts at a line, so that v_nt_* need not look. */
NRG_INLINE void score_store(char *o, size_t j, vf v, int stream, nrg_dtype D)
{
    char *const to = o + bytes_of(j, D, 0);
    if (!stream)
        store_whole(to, 0, v, D, 0);
    else if (D == NRG_F32)
        store_whole(__builtin_assume_aligned(to, VN * sizeof(float)), 0, v, D, 1);
    else
        store_whole(__builtin_assume_aligned(to, VN * sizeof(uint16_t)), 0, v, D, 1);
}

/* G vectors. All loads come before the stores. */
NRG_INLINE void score_vectors(const score_stream *at, size_t j, int G, vf scale, int stream, nrg_dtype D)
{
    vf v[SCORE_LINE_MOST];
    NRG_UNROLL
    for (int k = 0; k < G; k++)
        v[k] = score_biased(at, j + (size_t)k * VN, scale, D);
    NRG_UNROLL
    for (int k = 0; k < G; k++)
        score_store(at->o, j + (size_t)k * VN, v[k], stream, D);
}

/* Keys from j to end, which are few: the dtype is looked up at run time, and the code is there once. The last vector is whole
 * where it can be, and lies over the one before it; so o may not be the scores then. */
static __attribute__((noinline)) void score_rest(const score_stream *at, size_t j, size_t end, float scale, nrg_dtype D)
{
    const vf factor = v_set1(scale);
    if (end - j < VN) {
        const size_t n = end - j;
        vf v = v_fma(load_part(at->scores, j, n, D), factor, v_ldn_f32(at->bias + j, n));
        store_step(&v, 1, at->o, j, n, D, 0);
        return;
    }
    for (; j < end; j += VN) {
        const size_t from = lesser(j, end - VN);
        score_store(at->o, from, score_biased(at, from, factor, D), 0, D);
    }
}

NRG_INLINE vp score_biased_pair(const score_stream *at, size_t j, vf scale)
{
    const vp h = v_ld_pair((const uint16_t *)at->scores + j);
    return v_calm_to_bf16(v_fma(v_even_from_bf16(h), scale, v_ld_f32(at->even + j / 2)),
                          v_fma(v_odd_from_bf16(h), scale, v_ld_f32(at->odd + j / 2)));
}

/* SCORE_WIDTH keys. */
NRG_INLINE void score_step(const score_stream *at, size_t j, vf scale, int stream, int pairs, nrg_dtype D)
{
    if (!pairs) {
        score_vectors(at, j, SCORE_VECTORS, scale, stream, D);
        return;
    }
    const vp a = score_biased_pair(at, j, scale), b = score_biased_pair(at, j + 2 * VN, scale);
    uint16_t *o = (uint16_t *)at->o + j;
    if (stream) {
        v_nt_pair(__builtin_assume_aligned(o, 4 * VN), a);
        v_nt_pair(__builtin_assume_aligned(o + 2 * VN, 4 * VN), b);
    } else {
        v_st_pair(o, a);
        v_st_pair(o + 2 * VN, b);
    }
}

/* ---- rows that stay in cache ---- */

/* Where both tensors are more than L1 holds, o is asked for this many bytes ahead: stores wait for their lines otherwise (4 heads
 * of 128 × 128 in f32: 0.83 of the limit with AVX-512, 0.92 with AVX2; 1.00 and 1.02 with it). In L1 it costs a tenth.
 * bf16 scores, whose rounding takes long, are asked for, too: 4.47 to 4.33 us and with AVX2 6.90 to 6.54. */
enum { SCORE_PREFETCH_OUT = 1024, SCORE_NEAR = 24 << 10 };

/* A step's lines. */
NRG_INLINE void score_prefetch(const char *p, size_t j, size_t ahead, nrg_dtype D)
{
    for (size_t line = 0; line < bytes_of(SCORE_WIDTH, D, 0); line += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + bytes_of(j, D, 0) + line + ahead));
}

/* The last vector of a row that is no multiple of VN is whole, and lies over the one before it. It is computed first, since o may
 * be the scores, and stored last. (Where the next row follows at once, the end of a masked store would be in the way of its
 * loads.) */
NRG_INLINE void score_rows_kept(const score_run *run, const score_piece *piece, int pairs, nrg_dtype D)
{
    const size_t begin = piece ? piece->begin : 0, keys = (piece ? piece->end : run->keys) - begin, rows = run->rows;
    const int over = keys % VN && keys > VN;
    const vf scale = v_set1(run->scale);
    for (size_t r = 0; r < rows; r++) {
        const score_stream at = score_place_of(run, piece, r, begin, D);
        vf end = v_zero();
        if (over)
            end = score_biased(&at, keys - VN, scale, D);
        size_t j = 0;
        for (; j + SCORE_WIDTH <= keys; j += SCORE_WIDTH)
            score_step(&at, j, scale, 0, pairs, D);
        for (; j + VN <= keys; j += VN)
            score_vectors(&at, j, 1, scale, 0, D);
        if (over)
            score_store(at.o, keys - VN, end, 0, D);
        else if (j < keys)
            score_rest(&at, j, keys, run->scale, D);
    }
}

/* Rows of whole steps, in one loop: constants of the rounding are made once, where a loop in a loop makes them for every row
 * (bf16, AVX-512: 64 rows of 64 in 307 ns, and in a loop a row 449; 4 heads of 128 × 128 in 4.5 us, and 5.7). The next row's
 * entries are one before this one's, so that the even ones and the odd ones change places. */
NRG_INLINE void score_whole_rows_kept(const score_run *run, const score_piece *piece, int pairs, nrg_dtype D)
{
    const size_t begin = piece ? piece->begin : 0, keys = (piece ? piece->end : run->keys) - begin;
    const size_t scores_stride = run->scores_stride, o_stride = run->o_stride;
    const vf scale = v_set1(run->scale);
    const int far = run->far;
    score_stream at = score_place_of(run, piece, 0, begin, D);
    size_t j = 0;
    for (size_t steps = run->rows * (keys / SCORE_WIDTH); steps; steps--) {
        if (far)
            score_prefetch(at.o, j, SCORE_PREFETCH_OUT, D);
        if (far && D == NRG_BF16)
            score_prefetch(at.scores, j, SCORE_PREFETCH_OUT, D);
        score_step(&at, j, scale, 0, pairs, D);
        j += SCORE_WIDTH;
        if (j < keys || steps == 1)
            continue;
        j = 0;
        at.scores += scores_stride;
        at.o += o_stride;
        if (pairs) {
            const float *even = at.even;
            at.even = at.odd - 1;
            at.odd = even;
        } else {
            at.bias--;
        }
    }
}

/* ---- rows that are streamed: whole lines, and what is before and behind them with ordinary stores ---- */

/* Quarters of a run side by side. Out of cache, AVX-512, f32: 0.93 of the limit, where row after row is 0.82; AVX2, bf16: 0.87
 * and 0.77. Neighbouring rows side by side are slower than one (33 ms where that takes 28). */
enum { SCORE_STREAMS = 4 };

/* Lines are prefetched this far ahead, in bytes, also where another row or nothing follows: 1.06 × for the 16-bit types. */
enum { SCORE_PREFETCH = 2048 };

/* Whole steps of some streams. Returns their keys. */
NRG_INLINE size_t score_steps(const score_stream *some, int streams, size_t keys, vf scale, int pairs, nrg_dtype D)
{
    score_stream at[SCORE_STREAMS]; /* a copy, which lives in registers */
    NRG_UNROLL
    for (int p = 0; p < streams; p++)
        at[p] = some[p];
    size_t j = 0;
    for (; j + SCORE_WIDTH <= keys; j += SCORE_WIDTH) {
        NRG_UNROLL
        for (int p = 0; p < streams; p++) {
            score_prefetch(at[p].scores, j, SCORE_PREFETCH, D);
            score_step(&at[p], j, scale, 1, pairs, D);
        }
    }
    return j;
}

/* Rows for some streams, `apart` rows apart: what is before their first lines is done, and `at` is where these begin, with
 * left[p] keys from there on. Returns how many all have. The dtype is looked up at run time. */
static __attribute__((noinline)) size_t score_before_lines(const score_run *run, const score_piece *piece, size_t r, size_t apart,
                                                           int streams, score_stream *at, size_t *left, nrg_dtype D)
{
    const size_t begin = piece ? piece->begin : 0, end = piece ? piece->end : run->keys;
    size_t together = SIZE_MAX;
    for (int p = 0; p < streams; p++, r += apart) {
        const score_stream row = score_place_of(run, piece, r, begin, D);
        const size_t before = (64 - ((uintptr_t)row.o & 63)) % 64 / bytes_of(1, D, 0);
        /* every piece ends where a line does, or the row */
        const size_t from = lesser(begin + before, run->keys), to = lesser(end + before, run->keys);
        if (before && !begin)
            score_rest(&row, 0, from, run->scale, D);
        at[p] = score_place_of(run, piece, r, from, D);
        left[p] = to - from;
        /* the lines at the row's end and at the next one's start are not whole, and come from memory */
        if (to == run->keys) {
            const uintptr_t o = (uintptr_t)row.o;
            __builtin_prefetch((const void *)(o + bytes_of(run->keys - begin, D, 0)), 1);
            __builtin_prefetch((const void *)(o + run->o_stride - bytes_of(begin, D, 0)), 1);
        }
        together = left[p] < together ? left[p] : together;
    }
    return together;
}

NRG_INLINE void score_rows_streamed(const score_run *run, const score_piece *piece, size_t r, size_t apart, int streams,
                                    int whole_lines, int pairs, nrg_dtype D)
{
    const size_t line = 64 / bytes_of(1, D, 0);
    const vf scale = v_set1(run->scale);
    score_stream at[SCORE_STREAMS];
    size_t left[SCORE_STREAMS], together;
    if (whole_lines) {
        const size_t begin = piece ? piece->begin : 0;
        together = (piece ? piece->end : run->keys) - begin;
        for (int p = 0; p < streams; p++) {
            at[p] = score_place_of(run, piece, r + (size_t)p * apart, begin, D);
            left[p] = together;
        }
    } else {
        together = score_before_lines(run, piece, r, apart, streams, at, left, D);
    }
    /* bf16 without pairs is for fewer rows than that */
    const size_t done = streams == 1 || (D == NRG_BF16 && !pairs) ? score_steps(at, 1, together, scale, pairs, D)
                                                                  : score_steps(at, SCORE_STREAMS, together, scale, pairs, D);
    for (int p = 0; p < streams; p++) {
        size_t j = done;
        for (; j + line <= left[p]; j += line)
            score_vectors(&at[p], j, (int)(line / VN), scale, 1, D);
        if (j < left[p])
            score_rest(&at[p], j, left[p], run->scale, D);
    }
}

NRG_INLINE void score_rows(const score_run *run, const score_piece *piece, int pairs, nrg_dtype D)
{
    const size_t keys = (piece ? piece->end - piece->begin : run->keys);
    if (!run->stream && keys % SCORE_WIDTH == 0) {
        score_whole_rows_kept(run, piece, pairs, D);
        return;
    }
    if (!run->stream) {
        score_rows_kept(run, piece, pairs, D);
        return;
    }
    const int streams = run->rows >= SCORE_ROWS_WORTH && (pairs || D != NRG_BF16) ? SCORE_STREAMS : 1;
    /* pieces begin where lines do, in a row that does */
    const int whole_lines = (((uintptr_t)run->o | run->o_stride | bytes_of(run->keys, D, 0)) & 63) == 0;
    const size_t apart = run->rows / (size_t)streams, all = apart * (size_t)streams;
    for (size_t r = 0; r < run->rows; r = r + 1 == apart ? all : r + 1)
        score_rows_streamed(run, piece, r, apart, r < all ? streams : 1, whole_lines, pairs, D);
}

/* Entries of the table, as bf16 takes them. No NaN among them has a lower half that would have to be looked at when an output is
 * rounded: those of scores have none. */
NRG_INLINE void score_take_apart(score_piece *piece, size_t entries)
{
    const float *from = piece->first;
    for (size_t e = 0; e < entries; e += 2 * VN) {
        const size_t lanes = lanes_at(e, entries), more = e + VN < entries ? lanes_at(e + VN, entries) : 0;
        const vf a = load_lanes(from + e, lanes), b = more ? load_lanes(from + e + VN, more) : v_zero();
        v_st_f32(piece->even + e / 2, v_calm(v_even(a, b)));
        v_st_f32(piece->odd + e / 2, v_calm(v_odd(a, b)));
    }
}

static __attribute__((noinline)) void score_run_bf16(const score_run *run)
{
    score_piece piece;
    score_run some = *run;
    for (size_t r = 0; r < run->rows; r += some.rows) {
        some.scores = run->scores + r * run->scores_stride;
        some.o = run->o + r * run->o_stride;
        some.bias = run->bias - r;
        some.rows = lesser(run->rows - r, SCORE_PIECE_ROWS);
        for (piece.begin = 0; piece.begin < run->keys; piece.begin = piece.end) {
            const int last = run->keys - piece.begin <= SCORE_COLUMNS;
            piece.end = last ? run->keys : piece.begin + SCORE_COLUMNS;
            piece.first = some.bias - (some.rows - 1) + piece.begin;
            /* a row that begins behind the start of a line goes on as far behind the end of the piece */
            const size_t columns = last ? piece.end - piece.begin : lesser(SCORE_COLUMNS + 31, run->keys - piece.begin);
            const size_t entries = some.rows - 1 + columns;
            score_take_apart(&piece, entries);
            score_rows(&some, &piece, 1, NRG_BF16);
        }
    }
}

NRG_INLINE void score_forward(const nrg_score_bias_job *at, nrg_dtype D)
{
    const nrg_score_bias_job job = *at;
    for (size_t n = job.begin, next; n < job.end; n = next) {
        const size_t i = n % job.queries, h = n / job.queries % job.heads, b = n / job.queries / job.heads;
        next = lesser(n - i + job.queries, job.end);
        const score_run run = {
            .scores = job.scores + score_row_at(job.scores_stride, b, h, i),
            .bias = (const float *)(job.diagonals + h * job.diagonals_stride) + (job.queries - 1 - i),
            .o = job.o + score_row_at(job.o_stride, b, h, i),
            .scores_stride = job.scores_stride.row,
            .o_stride = job.o_stride.row,
            .rows = next - n,
            .keys = job.keys,
            /* lines that are in cache because the call is in place gain nothing by streaming */
            .stream = job.stream && job.o != job.scores,
            .far = bytes_of((job.end - job.begin) * job.keys, D, 0) > SCORE_NEAR,
            .scale = job.scale,
        };
        if (!V_SMALL && D == NRG_BF16 && run.rows >= SCORE_ROWS_WORTH)
            score_run_bf16(&run);
        else
            score_rows(&run, NULL, 0, D);
    }
    if (job.stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(score_bias, score_bias, score_forward)

#endif
