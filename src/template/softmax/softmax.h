/* Softmax of rows over the vectors of a path's vec.h: the order in which rows and chunks pass through the steps of softmax_row.h.
 *
 * - Rows that fit the stack go in tiles, each step for all rows of a tile. Rows of scores and nothing else are written while the
 *   powers of the next tile are made (docs/speed/softmax.md).
 * - A longer row goes in chunks. f32 powers stay in o and are multiplied there; 16-bit ones have no place, and are made twice.
 * - A row whose sum is given passes once.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_H

#include "softmax_row.h"

/* Scores from which a base is guessed; of a long row a segment's quarter. */
enum { SOFTMAX_LOOK = 64, SOFTMAX_LOOK_LONG = NORM_SEGMENT / 4 };

/* What the rows of a call have in common. */
typedef struct softmax_call {
    const nrg_softmax_job *job;
    size_t n; /* the next row, and its place */
    softmax_at at;
    float *u; /* room for a chunk */
    int stream;
    /* rows go straight from x, and to two tiles in turn, or to o; their bases are guessed */
    int is_direct, is_in_o, has_guess;
} softmax_call;

/* A constant in a small build. */
NRG_INLINE int softmax_is_direct(const softmax_call *c) { return !SOFTMAX_IS_SMALL && c->is_direct; }

/* Rows n and on, side by side: `room` floats of e for each. */
typedef struct softmax_tile {
    size_t n, rows, room;
    float *e;
    softmax_row row[SOFTMAX_TILE];
    float m[SOFTMAX_TILE];
    nrg_softmax_base base[SOFTMAX_TILE];
    softmax_end end[SOFTMAX_TILE];
} softmax_tile;

static __attribute__((noinline)) void softmax_blank_row(const nrg_softmax_job *job, const softmax_row *row, int stream,
                                                        nrg_dtype D)
{
    if (!row->o)
        return;
    if (row->seen.begin)
        softmax_blank(row->o, 0, row->seen.begin, job->log, stream, D);
    if (row->seen.end < job->keys)
        softmax_blank(row->o, row->seen.end, job->keys, job->log, stream, D);
}

/* A row of powers or scores in e. */
NRG_INLINE void softmax_store_row(const softmax_call *c, const softmax_row *row, const float *e, const softmax_end *end,
                                  nrg_dtype D)
{
    const size_t begin = row->seen.begin, at = begin * bytes_of(1, D, 0);
    if (row->o)
        softmax_write(row->o + at, e + (begin - row->seen.first), row->seen.end - begin, end,
                      c->stream && ((uintptr_t)row->o + at) % 64 == 0, D);
    softmax_blank_row(c->job, row, c->stream, D);
}

/* ---- one row ---- */

/* A row that fits the stack and lies in one segment. A tile of one takes 250 instructions more. */
static __attribute__((noinline)) void softmax_one(const softmax_call *c, const softmax_row *row, nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    const softmax_keys seen = row->seen;
    const size_t padded = softmax_padded(seen.end - seen.first);
    vf max = v_set1(-INFINITY);
    vd8 sum = softmax_no_lanes();
    if (padded)
        softmax_scores(&max, c->u, job, row, seen.first, seen.end, D);
    const float m = softmax_row_max(job, row, c->n, max);
    const nrg_softmax_base base = nrg_softmax_base_of(m);
    softmax_around(c->u, padded, base);
    softmax_powers_and_sum(&sum, job, c->u, seen.first, padded, base, (const char *)c->u);
    double total = vd8_sum(&sum);
    if (job->sinks)
        total += (double)softmax_power_of(row->sink, base);
    const softmax_end end =
        softmax_finish(job, c->n, m, base, total, job->log ? softmax_log(total, (double)softmax_power_of(m, base)) : 0);
    softmax_store_row(c, row, c->u, &end, D);
}

/* ---- tiles ---- */

/* The next rows, at most `most`: of direct rows their maximum, from a few scores if that is a guess; of others their scores. */
static __attribute__((noinline)) void softmax_begin_tile(softmax_call *c, softmax_tile *t, size_t most, nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    const size_t rows = job->end - c->n < most ? job->end - c->n : most, look = c->has_guess ? SOFTMAX_LOOK : job->keys;
    t->n = c->n;
    t->rows = rows;
    c->n += rows;
    for (size_t r = 0; r < rows; r++) {
        softmax_row *row = &t->row[r];
        softmax_place(row, job, &c->at);
        softmax_next(&c->at, job->heads, job->queries);
        vf max = v_set1(-INFINITY);
        if (c->is_in_o)
            t->e = (float *)row->o;
        if (softmax_is_direct(c))
            softmax_look(&max, row->x, look, job->scale, D);
        else if (row->seen.begin < row->seen.end)
            softmax_scores(&max, t->e + r * t->room, job, row, row->seen.first, row->seen.end, D);
        t->m[r] = softmax_row_max(job, row, t->n + r, max);
        t->base[r] = nrg_softmax_base_of(t->m[r]);
    }
}

/* The powers of a direct row, while row r of the tile before is written. */
NRG_INLINE void softmax_direct_row(const softmax_call *c, softmax_direct *f, softmax_tile *t, const softmax_tile *before,
                                   size_t r, nrg_dtype D)
{
    f->x = t->row[r].x;
    f->e = t->e + r * t->room;
    f->n = c->job->keys;
    f->base = t->base[r];
    if (r < before->rows && before->row[r].o) {
        f->done = before->e + r * t->room;
        f->o = before->row[r].o;
        f->result = before->end[r];
        f->stream = c->stream;
        softmax_direct_both(f, D);
    } else {
        softmax_direct_alone(f, D);
    }
}

/* The sum of a direct row, once more: around its maximum. */
static __attribute__((noinline)) double softmax_row_again(const nrg_softmax_job *job, softmax_tile *t, size_t r, nrg_dtype D)
{
    float *e = t->e + r * t->room;
    vf max = v_set1(-INFINITY);
    vd8 sum = softmax_no_lanes();
    softmax_scores(&max, e, job, &t->row[r], 0, job->keys, D);
    t->m[r] = softmax_row_max(job, &t->row[r], t->n + r, max);
    t->base[r] = nrg_softmax_base_of(t->m[r]);
    softmax_around(e, job->keys, t->base[r]);
    softmax_powers(e, e, job->keys, t->base[r], (const char *)e);
    softmax_add_keys(&sum, job, e, 0, job->keys);
    return vd8_sum(&sum);
}

/* Whether the base of a direct row did for its sum; all: the largest of its scores, where the sum does not tell. */
NRG_INLINE int softmax_is_good(const softmax_call *c, const softmax_tile *t, size_t r, float all, double total)
{
    const float m = V_SCALE_KEEPS_NAN ? t->m[r] : all;
    return t->base[r].shift == 0 && (!c->has_guess || (softmax_may_guess(t->m[r]) && softmax_did_well(m, t->base[r], total)));
}

/* From maxima to what rows are written with. What waits in one row, for its sum, its logarithm, goes on in the next. */
static __attribute__((noinline)) void softmax_do_tile(const softmax_call *c, softmax_tile *t, const softmax_tile *before,
                                                      nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    const size_t rows = t->rows;
    double total[SOFTMAX_TILE], top[SOFTMAX_TILE], log[SOFTMAX_TILE];
    float all[SOFTMAX_TILE];
    vd8 sum[SOFTMAX_TILE]; /* of one segment */
    softmax_direct f;      /* made once: to clear it takes a tenth of a row of 128 */
    /* of a row of the next tile; that of direct rows was begun before this one */
    const size_t ahead = (softmax_is_direct(c) ? 2 : 1) * rows * job->keys * bytes_of(1, D, 0);
    f.scale = job->scale;
    for (size_t r = 0; r < rows; r++) {
        const softmax_keys seen = t->row[r].seen;
        const size_t padded = softmax_padded(seen.end - seen.first);
        float *e = t->e + r * t->room;
        sum[r] = softmax_no_lanes();
        f.next = t->row[r].x + ahead;
        if (softmax_is_direct(c)) {
            softmax_direct_row(c, &f, t, before, r, D);
            all[r] = softmax_largest(f.max) * job->scale;
            softmax_add_keys(&sum[r], job, e, 0, padded);
        } else {
            softmax_around(e, padded, t->base[r]);
            softmax_powers_and_sum(&sum[r], job, e, seen.first, padded, t->base[r], f.next);
        }
    }
    for (size_t r = 0; r < (job->log ? SOFTMAX_TILE : rows); r++) {
        const size_t k = r < rows ? r : 0; /* logarithms are those of a whole tile */
        total[r] = vd8_sum(&sum[k]);
        if (softmax_is_direct(c) && NRG_RARELY(!softmax_is_good(c, t, k, all[k], total[r])))
            total[r] = softmax_row_again(job, t, k, D);
        if (job->sinks)
            total[r] += (double)softmax_power_of(t->row[k].sink, t->base[k]);
        if (job->log)
            top[r] = (double)softmax_power_of(t->m[k], t->base[k]);
    }
    if (job->log)
        softmax_logs(log, total, top);
    for (size_t r = 0; r < rows; r++)
        t->end[r] = softmax_finish(job, t->n + r, t->m[r], t->base[r], total[r], job->log ? log[r] : 0);
}

/* Rows `from` and on. */
static __attribute__((noinline)) void softmax_store_tile(const softmax_call *c, const softmax_tile *t, size_t from, nrg_dtype D)
{
    for (size_t r = from; r < t->rows; r++)
        softmax_store_row(c, &t->row[r], t->e + r * t->room, &t->end[r], D);
}

/* All rows of a call. The bases of direct rows are made a tile ahead, so that powers do not wait for them. */
NRG_INLINE void softmax_tiles(softmax_call *c, nrg_dtype D)
{
    softmax_tile tile[3];
    enum { HALF = SOFTMAX_CHUNK / 2 };
    const size_t room = softmax_padded(c->job->keys), fit = room ? (softmax_is_direct(c) ? HALF : SOFTMAX_CHUNK) / room : 1,
                 most = fit == 0             ? 1
                        : fit < SOFTMAX_TILE ? fit
                                             : SOFTMAX_TILE;
    softmax_tile *before = &tile[0], *t = &tile[1], *next = &tile[2];
    before->rows = 0;
    for (int i = 0; i < 3; i++)
        tile[i].room = room;
    t->e = c->u;
    softmax_begin_tile(c, t, most, D);
    while (t->rows) {
        next->e = softmax_is_direct(c) && t->e == c->u ? c->u + HALF : c->u;
        if (softmax_is_direct(c))
            softmax_begin_tile(c, next, most, D);
        softmax_do_tile(c, t, before, D);
        softmax_store_tile(c, before, t->rows, D); /* what a last tile with fewer rows leaves */
        if (!softmax_is_direct(c) || c->is_in_o) {
            softmax_store_tile(c, t, 0, D);
            t->rows = 0;
        }
        if (!softmax_is_direct(c))
            softmax_begin_tile(c, next, most, D);
        softmax_tile *const done = before;
        before = t;
        t = next;
        next = done;
    }
    softmax_store_tile(c, before, 0, D);
}

/* ---- long rows ---- */

/* Results of a row whose base is known, and what its powers are to be multiplied by. */
static __attribute__((noinline)) void softmax_again(float *u, const nrg_softmax_job *job, const softmax_row *row,
                                                    nrg_softmax_base base, const softmax_end *result, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    vf unused = v_zero();
    for (size_t i = row->seen.first, end; i < row->seen.end; i = end) {
        end = softmax_chunk_end(i, row->seen.end);
        const size_t from = i < row->seen.begin ? row->seen.begin : i, padded = softmax_padded(end - i);
        softmax_scores(&unused, u, job, row, i, end, D);
        softmax_around(u, padded, base);
        if (!job->log)
            softmax_powers(u, u, padded, base, (const char *)u);
        softmax_write(row->o + from * size, u + (from - i), end - from, result, 0, D);
    }
}

/* A long row: its base, what is in u, and whether powers stay in o. */
typedef struct softmax_pass {
    float *u;
    nrg_softmax_base base;
    int keeps;
    size_t direct, last; /* keys before the first of these go from x to o; those from the second on remain in u */
} softmax_pass;

/* The powers of a row beside a base, and their sum; max: the maximum of all scores. */
NRG_INLINE void softmax_long_sum(softmax_pass *p, const nrg_softmax_job *job, const softmax_row *row, vf *max, softmax_sum *sum,
                                 nrg_dtype D)
{
    const softmax_end as_is = {.is_log = 1};
    const size_t all = row->seen.end;
    softmax_direct f = {.scale = job->scale, .base = p->base};
    softmax_clear(sum);
    for (size_t i = row->seen.first; i < p->direct; i += f.n) {
        f.n = p->direct - i < NORM_SEGMENT ? p->direct - i : NORM_SEGMENT;
        f.x = row->x + i * sizeof(float);
        f.next = f.x + (job->keys <= NORM_SEGMENT ? job->keys * sizeof(float) : 0); /* of the next row, or this one */
        f.e = (float *)row->o + i;
        softmax_direct_alone(&f, NRG_F32);
        softmax_add(&sum->lanes, f.e, f.n);
        if (f.n == NORM_SEGMENT && i + f.n < all)
            softmax_end_segment(sum);
        *max = v_max(*max, v_mul(f.max, v_set1(job->scale)));
    }
    p->last = all;
    for (size_t i = p->direct, end; i < all; i = end) {
        end = softmax_chunk_end(i, all);
        const size_t from = i < row->seen.begin ? row->seen.begin : i, padded = softmax_padded(end - i);
        softmax_scores(max, p->u, job, row, i, end, D);
        softmax_around(p->u, padded, p->base);
        softmax_powers_and_sum(&sum->lanes, job, p->u, i, padded, p->base, (const char *)p->u);
        if (end % NORM_SEGMENT == 0 && end < all)
            softmax_end_segment(sum);
        if (p->keeps)
            softmax_write(row->o + from * sizeof(float), p->u + (from - i), end - from, &as_is, 0, NRG_F32);
        p->last = i;
    }
}

/* A row of any length. Its base is guessed and, if that was a bad guess, once more made of its maximum. */
static __attribute__((noinline)) void softmax_long(float *u, const nrg_softmax_job *job, const softmax_row *row, size_t n,
                                                   nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), first = row->seen.first, end = row->seen.end;
    const int keeps = D == NRG_F32 && !job->log && row->o;
    const int is_direct = keeps && softmax_is_plain(job) && !job->m && first == row->seen.begin && first % NORM_SEGMENT == 0;
    softmax_pass p = {.u = u, .keeps = keeps};
    softmax_sum sum;
    double total;
    float m;
    /* where scores become powers in their place, none can be made twice */
    for (int is_exact = keeps && row->o == row->x, is_done = 0; !is_done; is_exact = 1) {
        const size_t look = is_exact ? end : is_direct ? first + SOFTMAX_LOOK_LONG : softmax_chunk_end(first, end);
        vf max = v_set1(-INFINITY);
        for (size_t i = first, to; i < look; i = to) {
            to = softmax_chunk_end(i, look);
            softmax_scores(&max, is_direct ? NULL : u, job, row, i, to, D);
        }
        m = softmax_row_max(job, row, n, max);
        if (!is_exact && !softmax_may_guess(m))
            continue;
        p.base = nrg_softmax_base_of(m);
        p.direct = is_direct && p.base.shift == 0 ? end - end % FAST_BLOCK : first;
        softmax_long_sum(&p, job, row, &max, &sum, D);
        total = softmax_total(job, row, p.base, &sum);
        m = softmax_row_max(job, row, n, max);
        is_done = is_exact || softmax_did_well(m, p.base, total);
    }
    /* powers, beside a base that is the largest's */
    const nrg_softmax_base best = nrg_softmax_base_of(m);
    const float away = nrg_softmax_two_to(p.base.n - best.n);
    total *= (double)away;
    softmax_end result =
        softmax_finish(job, n, m, best, total, job->log ? softmax_log(total, (double)softmax_power_of(m, best)) : 0);
    if (!job->log) {
        result.high *= away;
        result.low *= away;
    }
    if (!row->o)
        return;
    if (keeps) {
        /* from its end, which is still in L1 */
        for (size_t to = end, begin; to > row->seen.begin; to = begin) {
            begin = to - row->seen.begin > NORM_SEGMENT ? to - NORM_SEGMENT : row->seen.begin;
            softmax_write(row->o + begin * size, (const float *)row->o + begin, to - begin, &result, 0, NRG_F32);
        }
    } else {
        const size_t from = p.last < row->seen.begin ? row->seen.begin : p.last;
        softmax_row before = *row;
        before.seen.end = p.last;
        softmax_write(row->o + from * size, u + (from - p.last), end - from, &result, 0, D);
        softmax_again(u, job, &before, p.base, &result, D);
    }
    softmax_blank_row(job, row, 0, D);
}

/* ---- rows with a sum that is given ---- */

typedef struct softmax_factors {
    float scale;
    nrg_softmax_base base;
    softmax_end end;
} softmax_factors;

/* Results of n scores: no sum is made, so that one loop does. A base that is given may be any: what is far above it counts as
 * e^40. */
NRG_INLINE void softmax_given_of(char *o, const char *x, size_t n, const softmax_factors *s, int stream, nrg_dtype D)
{
    const nrg_softmax_base base = s->base;
    const vf lowest = v_set1(base.low), offset = v_set1(NRG_EXP_MAGIC - base.n), most = v_set1(fmaf(base.n, NRG_LN2_HI, 40));
    const vf by = v_set1(s->scale), shift = v_set1(base.shift), high = v_set1(s->end.high), low = v_set1(s->end.low);
    size_t i = 0;
    for (; i + SOFTMAX_SIDE * VN <= n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE];
        load_step(v, SOFTMAX_SIDE, x, i, 0, D);
        SOFTMAX_EACH(SOFTMAX_SIDE) v[j] = v_min(most, v_sub(v_mul(v[j], by), shift));
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH(SOFTMAX_SIDE) v[j] = softmax_result(v[j], high, low, 0);
        store_step(v, SOFTMAX_SIDE, o, i, 0, D, stream);
    }
    for (; i < n; i += VN) {
        const size_t lanes = lanes_at(i, n);
        vf v[1];
        v[0] = v_min(most, v_sub(v_mul(load_part(x, i, lanes, D), by), shift));
        softmax_power(1, v, v, lowest, offset);
        v[0] = softmax_result(v[0], high, low, 0);
        store_step(v, 1, o, i, lanes, D, stream);
    }
}

NRG_BY_DTYPE(softmax_given, (o, x, n, s, stream), char *o, const char *x, size_t n, const softmax_factors *s, int stream)

NRG_INLINE void softmax_given_row(const nrg_softmax_job *job, const softmax_row *row, size_t n, int stream, nrg_dtype D)
{
    const softmax_factors s = {
        job->scale, nrg_softmax_base_of(job->m_in[n]), {.high = job->given[2 * n], .low = job->given[2 * n + 1]}};
    const size_t from = row->seen.begin * bytes_of(1, D, 0);
    softmax_given(row->o + from, row->x + from, row->seen.end - row->seen.begin, &s,
                  stream && ((uintptr_t)row->o + from) % 16 == 0, D);
    softmax_blank_row(job, row, stream, D);
}

/* ---- all rows ---- */

/* Whether rows are of scores alone, in whole lanes, all of which are seen. */
NRG_INLINE int softmax_is_whole(const nrg_softmax_job *job)
{
    return softmax_is_plain(job) && job->keys % FAST_LANES == 0 && job->sight.first + (int64_t)job->queries <= 1 &&
           job->sight.last >= (int64_t)job->keys;
}

/* One after the other. */
NRG_INLINE void softmax_single_rows(softmax_call *c, size_t longest, nrg_dtype D)
{
    for (; c->n < c->job->end; c->n++) {
        softmax_row row;
        softmax_place(&row, c->job, &c->at);
        const size_t first = row.seen.first, end = row.seen.end;
        if (first == end || (end - first <= longest && first / NORM_SEGMENT == (end - 1) / NORM_SEGMENT))
            softmax_one(c, &row, D);
        else
            softmax_long(c->u, c->job, &row, c->n, D);
        softmax_next(&c->at, c->job->heads, c->job->queries);
    }
}

NRG_INLINE void softmax_given_rows(softmax_call *c, nrg_dtype D)
{
    for (; c->n < c->job->end; c->n++) {
        softmax_row row;
        softmax_place(&row, c->job, &c->at);
        softmax_given_row(c->job, &row, c->n, c->stream, D);
        softmax_next(&c->at, c->job->heads, c->job->queries);
    }
}

static __attribute__((noinline)) void softmax_rows(const nrg_softmax_job *job, nrg_dtype D)
{
    _Alignas(VN * sizeof(float)) float u[SOFTMAX_CHUNK + VN];
    softmax_call c;
    /* f32 scores alone take less time as a long row than on the stack */
    const size_t longest = SOFTMAX_CHUNK / (D == NRG_F32 && softmax_is_plain(job) ? 2 : 1);
    const int fits_twice = 2 * job->keys <= SOFTMAX_CHUNK, has_tiles = job->end - job->begin > 1;
    c.job = job;
    c.n = job->begin;
    c.at = softmax_at_row(job->begin, job->heads, job->queries);
    c.u = u;
    c.stream = !V_SMALL && job->stream && job->o != job->x && (job->given || softmax_lines(job->o, &job->o_stride));
    c.is_in_o = D == NRG_F32 && has_tiles && !fits_twice && job->keys <= NORM_SEGMENT && !job->stream && !job->m &&
                job->o != job->x && softmax_is_whole(job);
    c.is_direct = c.is_in_o || (has_tiles && fits_twice && softmax_is_whole(job));
    c.has_guess = c.is_direct && !job->m && !job->sinks && job->keys > SOFTMAX_LOOK;
    if (job->given)
        softmax_given_rows(&c, D);
    else if (c.is_direct || (has_tiles && softmax_padded(job->keys) <= longest))
        softmax_tiles(&c, D);
    else
        softmax_single_rows(&c, longest, D);
    if (c.stream)
        v_nt_fence();
}

NRG_PATH_KERNEL(softmax, f32, softmax, softmax_rows(job, NRG_F32))
NRG_PATH_KERNEL(softmax, f16, softmax, softmax_rows(job, NRG_F16))
NRG_PATH_KERNEL(softmax, bf16, softmax, softmax_rows(job, NRG_BF16))

#endif
