/* Softmax of rows over the vectors of a path's vec.h: the order in which rows and chunks pass through the steps of softmax_row.h.
 *
 * - Rows of scores alone go one by one through a pipeline: a row is written while the powers of a later one are made
 *   (docs/speed/softmax.md).
 * - Other rows that fit the stack go in tiles, each step for all rows of a tile, but for a single row.
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
} softmax_call;

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

/* Whether rows are of scores alone, in whole lanes, all of which are seen. */
NRG_INLINE int softmax_is_whole(const nrg_softmax_job *job)
{
    return softmax_is_plain(job) && job->keys % FAST_LANES == 0 && job->sight.first + (int64_t)job->queries <= 1 &&
           job->sight.last >= (int64_t)job->keys;
}

/* ---- one row ---- */

/* The sum of powers of a row that fits in u and lies in one segment, its maximum and their base. */
NRG_INLINE double softmax_sum_row(const nrg_softmax_job *job, const softmax_row *row, size_t n, float *u, float *m,
                                  nrg_softmax_base *base, nrg_dtype D)
{
    const size_t first = row->seen.first, padded = softmax_padded(row->seen.end - first);
    vf max = v_set1(-INFINITY);
    vd8 sum = softmax_no_lanes();
    if (padded)
        softmax_scores(&max, u, job, row, first, row->seen.end, D);
    *m = softmax_row_max(job, row, n, max);
    *base = nrg_softmax_base_of(*m);
    softmax_around(u, padded, *base);
    softmax_powers_and_sum(&sum, job, u, first, padded, *base, (const char *)u);
    return vd8_sum(&sum);
}

/* A tile of one takes 250 instructions more. */
static __attribute__((noinline)) void softmax_one(const softmax_call *c, const softmax_row *row, nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    float m;
    nrg_softmax_base base;
    double total = softmax_sum_row(job, row, c->n, c->u, &m, &base, D);
    if (job->sinks)
        total += (double)softmax_power_of(row->sink, base);
    const softmax_end end =
        softmax_finish(job, c->n, m, base, total, job->log ? softmax_log(total, (double)softmax_power_of(m, base)) : 0);
    softmax_store_row(c, row, c->u, &end, D);
}

/* A row of f32 scores alone in whole lanes, all of which are seen, without what other options need: softmax_one takes 1.5 times
 * as long for a call of 64 keys (EPYC, AVX2 and AVX-512). Its base is guessed, so that powers wait for no maximum. Returns 0
 * where the guess does not serve, and the row is not done. */
static __attribute__((noinline)) int softmax_one_whole(const softmax_call *c)
{
    const nrg_softmax_job *job = c->job;
    const char *x = job->x;
    char *o = job->o;
    if (c->n) { /* places of the first row do not wait for strides */
        x += softmax_row_at(job->x_stride, &c->at);
        o += softmax_row_at(job->o_stride, &c->at);
    }
    const float first = ((const float *)x)[0], middle = ((const float *)x)[job->keys / 2];
    const float guess = (first > middle ? first : middle) * job->scale;
    softmax_direct f = {.x = x, .next = x, .e = c->u, .n = job->keys, .scale = job->scale, .base = nrg_softmax_base_of(guess)};
    if (NRG_RARELY(!softmax_may_guess(guess)))
        return 0;
    vd8 sum = softmax_no_lanes();
    softmax_direct_of(&f, 0, NRG_F32);
    softmax_add_of(&sum, c->u, job->keys);
    const double total = vd8_sum(&sum);
    if (NRG_RARELY(!softmax_did_well(V_SCALE_KEEPS_NAN ? guess : softmax_largest(f.max) * job->scale, f.base, total)))
        return 0;
    const softmax_end end = softmax_inverse(total);
    softmax_write(o, c->u, job->keys, &end, c->stream && (uintptr_t)o % 64 == 0, NRG_F32);
    return 1;
}

/* ---- tiles ---- */

/* Rows of `room` floats in u: what waits in one row, for its sum, its logarithm, goes on in the next. */
static __attribute__((noinline)) void softmax_tile(softmax_call *c, size_t rows, size_t room, nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    softmax_row row[SOFTMAX_TILE];
    float m[SOFTMAX_TILE];
    nrg_softmax_base base[SOFTMAX_TILE];
    double total[SOFTMAX_TILE], log[SOFTMAX_TILE];
    vd8 sum[SOFTMAX_TILE]; /* of one segment */
    for (size_t r = 0; r < rows; r++) {
        vf max = v_set1(-INFINITY);
        if (r && c->at.i)
            softmax_place_below(&row[r], &row[r - 1], job, &c->at);
        else
            softmax_place(&row[r], job, &c->at);
        softmax_next(&c->at, job->heads, job->queries);
        if (row[r].seen.begin < row[r].seen.end)
            softmax_scores(&max, c->u + r * room, job, &row[r], row[r].seen.first, row[r].seen.end, D);
        m[r] = softmax_row_max(job, &row[r], c->n + r, max);
        base[r] = nrg_softmax_base_of(m[r]);
    }
    for (size_t r = 0; r < rows; r++) {
        const size_t first = row[r].seen.first, padded = softmax_padded(row[r].seen.end - first);
        sum[r] = softmax_no_lanes();
        softmax_around(c->u + r * room, padded, base[r]);
        softmax_powers_and_sum(&sum[r], job, c->u + r * room, first, padded, base[r],
                               row[r].x + rows * job->keys * bytes_of(1, D, 0));
    }
    for (size_t r = 0; r < rows; r++) {
        total[r] = vd8_sum(&sum[r]);
        if (job->sinks)
            total[r] += (double)softmax_power_of(row[r].sink, base[r]);
    }
    if (job->log)
        softmax_logs(log, total, m, base, rows);
    for (size_t r = 0; r < rows; r++) {
        const softmax_end end = softmax_finish(job, c->n + r, m[r], base[r], total[r], job->log ? log[r] : 0);
        softmax_store_row(c, &row[r], c->u + r * room, &end, D);
    }
    c->n += rows;
}

NRG_INLINE void softmax_tiles(softmax_call *c, nrg_dtype D)
{
    const size_t room = softmax_padded(c->job->keys), fit = room ? SOFTMAX_CHUNK / room : 1;
    const size_t most = fit < SOFTMAX_TILE ? fit : SOFTMAX_TILE;
    while (c->n < c->job->end)
        softmax_tile(c, c->job->end - c->n < most ? c->job->end - c->n : most, room, D);
}

/* ---- a pipeline of rows of scores alone ---- */

/* A row on its way. */
typedef struct softmax_entry {
    const char *x;
    char *o;
    float *e; /* its powers: in u, or in o */
    float m, sink;
    nrg_softmax_base base;
    softmax_end end;
} softmax_entry;

/* The sum of a row whose base was a bad guess, once more: around its maximum. */
static __attribute__((noinline)) double softmax_again_exactly(const nrg_softmax_job *job, softmax_entry *p, size_t n, nrg_dtype D)
{
    const softmax_row row = {.x = p->x, .sink = p->sink, .seen = {0, 0, job->keys}};
    return softmax_sum_row(job, &row, n, p->e, &p->m, &p->base, D);
}

/* The maximum of a row is read a few rows before its powers are made, and it is written as many rows later, so that nothing waits
 * for a maximum or a sum. is_in_o: powers stay in o, and become results at once. */
static __attribute__((noinline)) void softmax_pipeline(softmax_call *c, int is_in_o, nrg_dtype D)
{
    const nrg_softmax_job *job = c->job;
    const size_t keys = job->keys, away = is_in_o ? 1 : keys > SOFTMAX_CHUNK / 4 ? 2 : keys > SOFTMAX_CHUNK / 8 ? 4 : 8;
    const int has_guess = !job->m && !job->sinks && keys > SOFTMAX_LOOK;
    softmax_entry entry[2 * SOFTMAX_TILE];
    softmax_direct f = {.n = keys, .scale = job->scale, .stream = c->stream};
    softmax_row row;
    const char *x = NULL;
    char *o = NULL;
    for (size_t n = job->begin, next = n, left = 0; n < job->end; n++) {
        for (; next < job->end && next < n + away; next++) {
            softmax_entry *p = &entry[next % (2 * SOFTMAX_TILE)];
            vf max = v_set1(-INFINITY);
            if (left == 0) { /* a new head; in it, pointers only move: to place a row takes a tenth of one of 64 */
                softmax_place(&row, job, &c->at);
                x = row.x;
                o = row.o;
                left = job->queries - c->at.i;
                c->at.i = job->queries - 1;
                softmax_next(&c->at, job->heads, job->queries);
            }
            left--;
            p->x = x;
            p->o = o;
            p->sink = row.sink;
            x += job->x_stride.row;
            if (o)
                o += job->o_stride.row;
            p->e = is_in_o ? (float *)p->o : c->u + (next & (away - 1)) * keys;
            softmax_look(&max, p->x, has_guess ? SOFTMAX_LOOK : keys, job->scale, D);
            p->m = softmax_row_max(job, &row, next, max);
            p->base = nrg_softmax_base_of(p->m);
        }
        softmax_entry *p = &entry[n % (2 * SOFTMAX_TILE)];
        vd8 sum = softmax_no_lanes();
        f.x = p->x;
        f.next = p->x + 2 * away * keys * bytes_of(1, D, 0);
        f.e = p->e;
        f.base = p->base;
        if (p->o && !is_in_o && n >= job->begin + away) {
            const softmax_entry *before = &entry[(n - away) % (2 * SOFTMAX_TILE)];
            f.o = before->o;
            f.result = before->end;
            softmax_direct_both(&f, D);
        } else {
            softmax_direct_alone(&f, D);
        }
        softmax_add_keys(&sum, job, p->e, 0, keys);
        double total = vd8_sum(&sum);
        const float m = V_SCALE_KEEPS_NAN ? p->m : softmax_largest(f.max) * job->scale; /* where the sum does not tell */
        if (NRG_RARELY(p->base.shift != 0 || (has_guess && !(softmax_may_guess(p->m) && softmax_did_well(m, p->base, total)))))
            total = softmax_again_exactly(job, p, n, D);
        if (job->sinks)
            total += (double)softmax_power_of(p->sink, p->base);
        p->end = softmax_finish(job, n, p->m, p->base, total, 0);
        if (is_in_o)
            softmax_write(p->o, p->e, keys, &p->end, 0, D);
    }
    for (size_t n = job->end - job->begin < away ? job->begin : job->end - away; !is_in_o && job->o && n < job->end; n++) {
        const softmax_entry *p = &entry[n % (2 * SOFTMAX_TILE)];
        softmax_write(p->o, p->e, keys, &p->end, c->stream, D);
    }
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

/* A base that is given may be any: what is far above it counts as e^40. */
NRG_INLINE void softmax_given_step(char *o, const char *x, size_t i, int G, size_t lanes, const softmax_factors *s, int stream,
                                   nrg_dtype D)
{
    const nrg_softmax_base base = s->base;
    const vf most = v_set1(fmaf(base.n, NRG_LN2_HI, 40)), by = v_set1(s->scale), shift = v_set1(base.shift);
    const vf high = v_set1(s->end.high), low = v_set1(s->end.low);
    vf v[SOFTMAX_SIDE];
    load_step(v, G, x, i, lanes, D);
    SOFTMAX_EACH(G) v[j] = v_min(most, v_sub(v_mul(v[j], by), shift));
    softmax_power(G, v, v, v_set1(base.low), v_set1(NRG_EXP_MAGIC - base.n));
    SOFTMAX_EACH(G) v[j] = softmax_result(v[j], high, low, 0);
    store_step(v, G, o, i, lanes, D, stream);
}

/* Results of n scores: no sum is made, so that one loop does. */
NRG_INLINE void softmax_given_of(char *o, const char *x, size_t n, const softmax_factors *factors, int stream, nrg_dtype D)
{
    const softmax_factors s = *factors;
    size_t i = 0;
    for (; i + SOFTMAX_SIDE * VN <= n; i += SOFTMAX_SIDE * VN)
        softmax_given_step(o, x, i, SOFTMAX_SIDE, VN, &s, stream, D);
    for (; i < n; i += VN)
        softmax_given_step(o, x, i, 1, lanes_at(i, n), &s, stream, D);
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

/* One after the other. */
NRG_INLINE void softmax_single_rows(softmax_call *c, size_t longest, nrg_dtype D)
{
    for (; c->n < c->job->end; c->n++) {
        softmax_row row;
        const softmax_keys *seen = &row.seen;
        softmax_place(&row, c->job, &c->at);
        softmax_next(&c->at, c->job->heads, c->job->queries);
        if (c->job->given)
            softmax_given_row(c->job, &row, c->n, c->stream, D);
        else if (seen->first == seen->end ||
                 (seen->end - seen->first <= longest && seen->first / NORM_SEGMENT == (seen->end - 1) / NORM_SEGMENT))
            softmax_one(c, &row, D);
        else
            softmax_long(c->u, c->job, &row, c->n, D);
    }
}

static __attribute__((noinline)) void softmax_rows(const nrg_softmax_job *job, nrg_dtype D)
{
    _Alignas(VN * sizeof(float)) float u[SOFTMAX_CHUNK + VN];
    softmax_call c;
    /* f32 scores alone take less time as a long row than on the stack */
    const size_t longest = SOFTMAX_CHUNK / (D == NRG_F32 && softmax_is_plain(job) ? 2 : 1);
    const int is_single = !job->given && job->end - job->begin == 1, one_by_one = job->given || is_single;
    const int is_in_o =
        D == NRG_F32 && job->keys > longest && job->keys <= NORM_SEGMENT && !job->stream && !job->m && job->o != job->x;
    c.job = job;
    c.n = job->begin;
    c.at = softmax_at_row(job->begin, job->heads, job->queries);
    c.u = u;
    c.stream = !V_SMALL && job->stream && job->o != job->x && (job->given || softmax_lines(job->o, &job->o_stride));
    if (!one_by_one && softmax_is_whole(job) && (is_in_o || job->keys <= SOFTMAX_CHUNK / 2))
        softmax_pipeline(&c, is_in_o, D);
    else if (!one_by_one && softmax_padded(job->keys) <= longest)
        softmax_tiles(&c, D);
    else if (!(D == NRG_F32 && is_single && softmax_is_whole(job) && job->keys <= longest && !job->m && !job->sinks &&
               softmax_one_whole(&c)))
        softmax_single_rows(&c, longest, D);
    if (c.stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(softmax, softmax, softmax_rows)

#endif
