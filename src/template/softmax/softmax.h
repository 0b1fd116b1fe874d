/* Softmax of rows over the vectors of a path's vec.h: the walk over rows. What is done to floats is in softmax_row.h.
 *
 * A row that fits a chunk is read once and written once; what lies between is on the stack. A longer one is read for its maximum,
 * and again for its sum: of f32, the powers stay in o and are multiplied there; of 16 bits they are computed once more, since
 * there is nowhere to keep them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_SOFTMAX_SOFTMAX_H
#define NRG_TEMPLATE_SOFTMAX_SOFTMAX_H

#include "softmax_flight.h"

typedef struct softmax_row {
    const char *x, *mask;
    const float *bias;
    char *o;
    float slope, sink;
    softmax_keys seen;
} softmax_row;

/* Row n of all. */
typedef struct softmax_at {
    size_t b, h, i;
} softmax_at;

NRG_INLINE softmax_at softmax_at_row(size_t n, size_t heads, size_t queries)
{
    return (softmax_at){n / queries / heads, n / queries % heads, n % queries};
}

/* In its place: three numbers that are handed on by value are stored one by one and loaded two at a time, which waits for the
 * cache. */
NRG_INLINE void softmax_next(softmax_at *at, size_t heads, size_t queries)
{
    if (++at->i < queries)
        return;
    at->i = 0;
    if (++at->h == heads) {
        at->h = 0;
        at->b++;
    }
}

NRG_INLINE softmax_row softmax_row_of(const nrg_softmax_job *job, const softmax_at *at)
{
    softmax_row row = {
        .x = job->x + softmax_row_at(job->x_stride, at->b, at->h, at->i),
        .slope = job->slopes ? job->slopes[at->h] : 1,
        .sink = job->sinks ? job->sinks[at->h] : -INFINITY,
        .seen = softmax_seen(job->sight, at->i, job->keys),
    };
    if (job->o)
        row.o = job->o + softmax_row_at(job->o_stride, at->b, at->h, at->i);
    if (job->mask)
        row.mask = job->mask + softmax_row_at(job->mask_stride, at->b, at->h, at->i);
    if (job->diagonals)
        row.bias = (const float *)(job->diagonals + at->h * job->diagonals_stride) + (job->queries - 1 - at->i);
    return row;
}

/* t of keys begin to end, less shift, and -infinity up to the lanes around them; the largest of them and *most. */
static __attribute__((noinline)) void softmax_make(vf *most, float *u, const nrg_softmax_job *job, const softmax_row *row,
                                                   size_t begin, size_t end, nrg_dtype D)
{
    const size_t from = begin < row->seen.begin ? row->seen.begin : begin, n = end - from, size = bytes_of(1, D, 0);
    const float *bias = row->bias ? row->bias + from : NULL;
    float *to = u + (from - begin);
    vf here;
    if (from > begin)
        softmax_fill(u, 0, from - begin, -INFINITY);
    if (job->cap > 0) {
        softmax_read_to(&here, to, row->x + from * size, n, job->scale, NULL, D);
        NRG_PATH_NAME(activate)(NRG_ACT_TANH, to, to, n);
        softmax_read_to(&here, to, (const char *)to, n, job->cap, bias, NRG_F32);
    } else {
        softmax_read_to(&here, to, row->x + from * size, n, job->scale, bias, D);
    }
    if (row->mask)
        softmax_add_to(&here, to, row->mask + from * bytes_of(1, job->mask_dtype, 0), n, row->slope, job->mask_dtype);
    if ((end - begin) % FAST_LANES)
        softmax_fill(u, end - begin, (end - begin + FAST_LANES - 1) / FAST_LANES * FAST_LANES, -INFINITY);
    *most = v_max(*most, here);
}

static __attribute__((noinline)) void softmax_shift(float *u, size_t n, float shift)
{
    for (size_t i = 0; i < n; i += VN)
        v_st_f32(u + i, v_sub(v_ld_f32(u + i), v_set1(shift)));
}

/* The same chunk again, around the base. Returns its floats, with what fills the lanes. */
NRG_INLINE size_t softmax_make_again(float *u, const nrg_softmax_job *job, const softmax_row *row, size_t begin, size_t end,
                                     nrg_softmax_base base, nrg_dtype D)
{
    const size_t n = (end - begin + FAST_LANES - 1) / FAST_LANES * FAST_LANES;
    vf unused = v_zero();
    softmax_make(&unused, u, job, row, begin, end, D);
    if (NRG_RARELY(base.shift != 0))
        softmax_shift(u, n, base.shift);
    return n;
}

/* The power of one number. */
NRG_INLINE float softmax_power_of(float t, nrg_softmax_base base)
{
    float lanes[VN];
    vf e[1] = {v_set1(t - base.shift)};
    softmax_power(1, e, e, v_set1(base.low), v_set1(NRG_EXP_MAGIC - base.n));
    v_st_f32(lanes, e[0]);
    return lanes[0];
}

/* 1/total as two floats. */
NRG_INLINE softmax_end softmax_inverse(double total)
{
    const double inverse = 1 / total;
    const float high = (float)inverse;
    return (softmax_end){.high = high, .low = (float)(inverse - (double)high)};
}

/* What is written, from the sum of powers, which a NaN among them has made NaN, and with log the logarithm of that sum beside the
 * largest. */
static __attribute__((noinline)) softmax_end softmax_finish(const nrg_softmax_job *job, size_t n, float m, nrg_softmax_base base,
                                                            double total, double log)
{
    const int is_nan = total != total || m > FLT_MAX, is_empty = m < -FLT_MAX;
    if (job->m) {
        const float m_in = job->m_in ? job->m_in[n] : -INFINITY;
        const double s_in = job->s_in ? job->s_in[n] : 0;
        const int poisoned = is_nan | (m_in != m_in) | (s_in != s_in);
        double factor = m == m_in ? 1 : 0;
        if (m_in >= -FLT_MAX && m != m_in && !poisoned)
            factor = nrg_softmax_factor(nrg_softmax_base_of(m_in), base);
        job->m[n] = poisoned ? NAN : m;
        job->s[n] = poisoned ? (double)NAN : is_empty ? 0 : s_in * factor + total * (1 / (double)NRG_SOFTMAX_UNIT);
        job->factor[n] = poisoned ? NAN : (float)factor;
        return (softmax_end){.high = poisoned ? NAN : is_empty ? 0 : 1 / NRG_SOFTMAX_UNIT};
    }
    if (is_nan)
        return (softmax_end){.high = NAN, .is_log = job->log};
    if (is_empty)
        return (softmax_end){.high = job->log ? INFINITY : 0, .is_log = job->log};
    return job->log ? (softmax_end){.high = m - base.shift, .low = (float)log, .is_log = 1} : softmax_inverse(total);
}

/* A row's sum, which ends with this. */
NRG_INLINE double softmax_total(const nrg_softmax_job *job, const softmax_row *row, nrg_softmax_base base, softmax_sum *sum)
{
    softmax_end_segment(sum);
    const double total = sum->total.sum + sum->total.lost;
    return job->sinks ? total + (double)softmax_power_of(row->sink, base) : total;
}

/* The largest of a row; +0 of zeros, whose signs depend on the order. */
NRG_INLINE float softmax_most(const nrg_softmax_job *job, const softmax_row *row, size_t n, vf most)
{
    float m = softmax_largest(most);
    if (row->sink > m)
        m = row->sink;
    if (job->m_in && job->m_in[n] > m)
        m = job->m_in[n];
    return m + 0.0f;
}

/* What rows in flight that are not like the others need: t - shift of a row, and the row before. */
NRG_INLINE void softmax_shift_row(float *u, const char *x, size_t n, float scale, float shift, nrg_dtype D)
{
    vf unused;
    softmax_read_to(&unused, u, x, n, scale, NULL, D);
    softmax_shift(u, n, shift);
}

NRG_INLINE void softmax_end_flight(const softmax_flight *f, softmax_end end, int stream, nrg_dtype D)
{
    if (f->o)
        softmax_write(f->o, f->done, f->n, &end, stream, D);
}

static __attribute__((noinline)) void softmax_blank_row(const nrg_softmax_job *job, const softmax_row *row, int stream,
                                                        nrg_dtype D)
{
    const float blank = job->log ? -INFINITY : 0;
    if (!row->o)
        return;
    if (row->seen.begin)
        softmax_blank(row->o, 0, row->seen.begin, blank, stream, D);
    if (row->seen.end < job->keys)
        softmax_blank(row->o, row->seen.end, job->keys, blank, stream, D);
}

enum { SOFTMAX_TOGETHER = 8 };

/* The logarithms of sums of powers beside the largest, operation by operation as softmax_log has them: one after the other they
 * would take a third of a row of 128. */
static __attribute__((noinline)) void softmax_logs(double log[SOFTMAX_TOGETHER], const double total[SOFTMAX_TOGETHER],
                                                   const double top[SOFTMAX_TOGETHER])
{
    double f[SOFTMAX_TOGETHER], less[SOFTMAX_TOGETHER], k[SOFTMAX_TOGETHER];
    for (int i = 0; i < SOFTMAX_TOGETHER; i += VN / 2)
        vd_st(less + i, vd_div(vd_above_0(vd_sub(vd_ld(total + i), vd_ld(top + i))), vd_ld(top + i)));
    for (int i = 0; i < SOFTMAX_TOGETHER; i++) {
        int exponent;
        f[i] = nrg_softmax_split(1 + less[i], &exponent);
        less[i] = exponent ? f[i] - 1 : less[i];
        k[i] = exponent;
    }
    for (int i = 0; i < SOFTMAX_TOGETHER; i += VN / 2) {
        const vd z = vd_div(vd_ld(less + i), vd_add(vd_ld(f + i), vd_set1(1))), zz = vd_mul(z, z), square = vd_mul(zz, zz);
        vd even = vd_set1(nrg_softmax_log_even[0]), odd = vd_set1(nrg_softmax_log_odd[0]);
        for (int j = 1; j < NRG_SOFTMAX_LOG_TERMS; j++) {
            even = vd_add(vd_mul(even, square), vd_set1(nrg_softmax_log_even[j]));
            odd = vd_add(vd_mul(odd, square), vd_set1(nrg_softmax_log_odd[j]));
        }
        even = vd_add(vd_mul(even, square), vd_set1(nrg_softmax_log_even[NRG_SOFTMAX_LOG_TERMS]));
        const vd series = vd_mul(vd_set1(2), vd_add(z, vd_mul(z, vd_mul(zz, vd_add(even, vd_mul(zz, odd))))));
        vd_st(log + i, vd_add(vd_mul(vd_ld(k + i), vd_set1(NRG_SOFTMAX_LN2)), series));
    }
}

/* The logarithm of a sum of powers of which `top` is the largest's. */
NRG_INLINE double softmax_log(double total, double top)
{
    const double others = total - top;
    return nrg_softmax_log1p((others > 0 ? others : 0) / top);
}

/* Adds the powers of keys begin and on, in whole lanes, but for the one that the sum leaves out. */
NRG_INLINE void softmax_add_keys(softmax_sum *sum, const nrg_softmax_job *job, float *e, size_t begin, size_t n)
{
    if (job->without - 1 - begin < n)
        e[job->without - 1 - begin] = 0;
    softmax_add(sum, e, n);
}

/* Rows of one chunk, several of them a step at a time: what waits in one, for its maximum, its sum, its logarithm, goes on in the
 * next. room: floats of a row in u. Returns how many rows that were. */
static __attribute__((noinline)) size_t softmax_short(float *u, const nrg_softmax_job *job, softmax_at *at, size_t n, size_t room,
                                                      int stream, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0),
                 most_rows = SOFTMAX_CHUNK / room < SOFTMAX_TOGETHER ? SOFTMAX_CHUNK / room : SOFTMAX_TOGETHER;
    const size_t rows = job->end - n < most_rows ? job->end - n : most_rows;
    softmax_row row[SOFTMAX_TOGETHER];
    nrg_softmax_base base[SOFTMAX_TOGETHER];
    vf most[SOFTMAX_TOGETHER];
    float m[SOFTMAX_TOGETHER];
    double total[SOFTMAX_TOGETHER];
    vd8 eight[SOFTMAX_TOGETHER];
    const int plain = softmax_is_plain(job) && !job->log;
    int direct[SOFTMAX_TOGETHER];
    softmax_flight f; /* made once: to clear it takes a tenth of a row of 128 */
    softmax_sum sum;
    f.scale = job->scale;
    f.most = v_set1(-INFINITY);
    f.o = NULL;
    for (size_t r = 0; r < rows; r++) {
        row[r] = softmax_row_of(job, at);
        softmax_next(at, job->heads, job->queries);
        most[r] = v_set1(-INFINITY);
        direct[r] = plain && row[r].seen.begin == row[r].seen.first && (row[r].seen.end - row[r].seen.begin) % FAST_LANES == 0;
        if (direct[r]) {
            softmax_look(&most[r], row[r].x + row[r].seen.begin * size, row[r].seen.end - row[r].seen.begin, D);
            most[r] = v_mul(most[r], v_set1(job->scale));
        } else if (row[r].seen.begin < row[r].seen.end) {
            softmax_make(&most[r], u + r * room, job, &row[r], row[r].seen.first, row[r].seen.end, D);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        m[r] = softmax_most(job, &row[r], n + r, most[r]);
        base[r] = nrg_softmax_base_of(m[r]);
    }
    for (size_t r = 0; r < rows; r++) {
        const size_t padded = (row[r].seen.end - row[r].seen.first + FAST_LANES - 1) / FAST_LANES * FAST_LANES;
        float *t = u + r * room;
        f.n = padded;
        f.base = base[r];
        f.next = row[r].x + rows * job->keys * size;
        softmax_clear(&sum);
        if (NRG_RARELY(base[r].shift != 0)) {
            if (direct[r])
                softmax_make(&most[r], t, job, &row[r], row[r].seen.first, row[r].seen.end, D);
            softmax_shift(t, padded, base[r].shift);
            direct[r] = 0;
        }
        if (direct[r]) {
            f.x = row[r].x + row[r].seen.begin * size;
            f.e = t;
            softmax_turn_alone(&f, D);
        } else if (!job->log) {
            softmax_powers_and(t, t, padded, base[r], f.next);
        }
        if (job->log)
            softmax_add_powers(&sum, t, padded, base[r], f.next);
        else
            softmax_add_keys(&sum, job, t, row[r].seen.first, padded);
        eight[r] = sum.lanes; /* of one segment */
    }
    for (size_t r = rows; r < SOFTMAX_TOGETHER; r++)
        eight[r] = eight[0];
    vd8_sum_rows(eight, total);
    for (size_t r = 0; r < rows && job->sinks; r++)
        total[r] += (double)softmax_power_of(row[r].sink, base[r]);
    double log[SOFTMAX_TOGETHER] = {0};
    if (job->log) {
        double top[SOFTMAX_TOGETHER];
        for (size_t r = 0; r < SOFTMAX_TOGETHER; r++)
            top[r] = (double)softmax_power_of(m[r < rows ? r : 0], base[r < rows ? r : 0]);
        softmax_logs(log, total, top);
    }
    for (size_t r = 0; r < rows; r++) {
        const softmax_end end = softmax_finish(job, n + r, m[r], base[r], total[r], log[r]);
        const softmax_keys seen = row[r].seen;
        if (row[r].o)
            softmax_write(row[r].o + seen.begin * size, u + r * room + (seen.begin - seen.first), seen.end - seen.begin, &end,
                          stream && ((uintptr_t)row[r].o + seen.begin * size) % 64 == 0, D);
        softmax_blank_row(job, &row[r], stream, D);
    }
    return rows;
}

/* ---- guessed bases: e^t·2^n and its sum times 2^n give the bits of e^t and its sum, so that any base does in which nothing is
 * lost, and a row need not be read for its maximum first (docs/ops/softmax.md) ---- */

/* Whether the largest of a few may stand for the row's, which is above it: not where that might have a shift. */
NRG_INLINE int softmax_may_guess(float m) { return m >= -256 && m <= 220; }

/* Whether it has done: the largest is less than 40 powers of two above. m: the largest that was seen. Where the scale by a power
 * of two saturates it need not be the row's: then the sum tells. */
NRG_INLINE int softmax_did_well(float m, nrg_softmax_base base, double total)
{
    return total < NRG_SOFTMAX_MOST && m <= 256 && nrg_softmax_base_of(m).n - base.n <= 40;
}

/* Whole blocks of a long row of f32, whose powers go into o, up to where segments end; what is left over is another chunk's. */
static __attribute__((noinline)) void softmax_long_powers(softmax_flight *f, softmax_sum *sum, const softmax_row *row,
                                                          size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i += f->n) {
        f->n = end - i < NORM_SEGMENT ? end - i : NORM_SEGMENT;
        f->x = f->next = row->x + i * sizeof(float);
        f->e = (float *)row->o + i;
        softmax_turn_alone(f, NRG_F32);
        softmax_add(sum, f->e, f->n);
        if (f->n == NORM_SEGMENT && i + f->n < row->seen.end)
            softmax_end_segment(sum);
    }
}

/* A base that is given may be any: what is far above it counts as e^40. */
static __attribute__((noinline)) void softmax_limit(float *u, size_t n, nrg_softmax_base base)
{
    const vf most = v_set1(fmaf(base.n, NRG_LN2_HI, 40));
    for (size_t i = 0; i < n; i += VN)
        v_st_f32(u + i, v_min(most, v_ld_f32(u + i)));
}

/* Results of a row of scores and nothing else, from a base and a factor that are given: no sum is made, so that one loop does. */
NRG_INLINE void softmax_given_of(char *o, const char *x, size_t n, float scale, nrg_softmax_base base, const softmax_end *end,
                                 int stream, nrg_dtype D)
{
    const vf lowest = v_set1(base.low), offset = v_set1(NRG_EXP_MAGIC - base.n), most = v_set1(fmaf(base.n, NRG_LN2_HI, 40));
    const vf by = v_set1(scale), shift = v_set1(base.shift), high = v_set1(end->high), low = v_set1(end->low);
    size_t i = 0;
    for (; i + SOFTMAX_SIDE * VN <= n; i += SOFTMAX_SIDE * VN) {
        vf v[SOFTMAX_SIDE];
        load_step(v, SOFTMAX_SIDE, x, i, 0, D);
        SOFTMAX_EACH v[j] = v_min(most, v_sub(v_mul(v[j], by), shift));
        softmax_power(SOFTMAX_SIDE, v, v, lowest, offset);
        SOFTMAX_EACH v[j] = softmax_result(v[j], high, low, 0);
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

NRG_BY_DTYPE(softmax_given, (o, x, n, scale, base, end, stream), char *o, const char *x, size_t n, float scale,
             nrg_softmax_base base, const softmax_end *end, int stream)

/* Results of a row whose base is known, and what its powers are to be multiplied by. */
static __attribute__((noinline)) void softmax_again(float *u, const nrg_softmax_job *job, const softmax_row *row,
                                                    nrg_softmax_base base, const softmax_end *result, int stream, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    for (size_t i = row->seen.first, end; i < row->seen.end; i = end) {
        end = softmax_chunk_end(i, row->seen.end);
        const size_t from = i < row->seen.begin ? row->seen.begin : i;
        const size_t padded = softmax_make_again(u, job, row, i, end, base, D);
        if (job->given)
            softmax_limit(u, padded, base);
        if (!job->log)
            softmax_powers(u, padded, base);
        softmax_write(row->o + from * size, u + (from - i), end - from, result,
                      stream && ((uintptr_t)row->o + from * size) % 64 == 0, D);
    }
}

/* The powers of a long row beside a base, and their sum: the first `plain` from x to o without a stage between. What is made
 * again is t of chunks; *most: its largest. Returns the last chunk's begin, which remains in u. */
NRG_INLINE size_t softmax_long_sum(float *u, const nrg_softmax_job *job, const softmax_row *row, size_t plain,
                                   nrg_softmax_base base, vf *most, softmax_sum *sum, int keep, nrg_dtype D)
{
    const softmax_end as_is = {.is_log = 1};
    softmax_flight f = {.scale = job->scale, .base = base, .most = v_set1(-INFINITY)};
    size_t last = row->seen.end;
    softmax_clear(sum);
    if (plain > row->seen.first) {
        softmax_long_powers(&f, sum, row, row->seen.first, plain);
        *most = v_max(*most, v_mul(f.most, v_set1(job->scale)));
    }
    for (size_t i = plain, end; i < row->seen.end; i = end) {
        end = softmax_chunk_end(i, row->seen.end);
        const size_t padded = (end - i + FAST_LANES - 1) / FAST_LANES * FAST_LANES;
        softmax_make(most, u, job, row, i, end, D);
        if (NRG_RARELY(base.shift != 0))
            softmax_shift(u, padded, base.shift);
        if (job->log) {
            softmax_add_powers(sum, u, padded, base, (const char *)u);
        } else {
            softmax_powers(u, padded, base);
            softmax_add_keys(sum, job, u, i, padded);
        }
        if (end % NORM_SEGMENT == 0 && end < row->seen.end)
            softmax_end_segment(sum);
        const size_t from = i < row->seen.begin ? row->seen.begin : i;
        if (keep)
            softmax_write(row->o + from * bytes_of(1, D, 0), u + (from - i), end - from, &as_is, 0, D);
        last = i;
    }
    return last;
}

static __attribute__((noinline)) void softmax_long(float *u, const nrg_softmax_job *job, const softmax_row *row, size_t n,
                                                   nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), first = row->seen.first;
    const int keep = D == NRG_F32 && !job->log && row->o;
    const int is_plain = keep && softmax_is_plain(job) && !job->m && first == row->seen.begin && first % NORM_SEGMENT == 0;
    /* the end of what needs no stage: that of a chunk, or in the last one */
    size_t plain = is_plain ? row->seen.end - row->seen.end % FAST_BLOCK : first, last = row->seen.end;
    const size_t some = softmax_chunk_end(first, row->seen.end);
    softmax_sum sum;
    nrg_softmax_base base;
    vf most = v_set1(-INFINITY);
    float m;
    double total = (double)NAN;
    if (!(keep && row->o == row->x)) { /* where scores become powers in their place, none can be made twice */
        if (is_plain) {
            softmax_look(&most, row->x + first * size, 16 * SOFTMAX_LOOK, D);
            most = v_mul(most, v_set1(job->scale));
        } else {
            softmax_make(&most, u, job, row, first, some, D);
        }
        m = softmax_most(job, row, n, most);
        base = nrg_softmax_base_of(m);
        if (softmax_may_guess(m)) {
            last = softmax_long_sum(u, job, row, plain, base, &most, &sum, keep, D);
            total = softmax_total(job, row, base, &sum);
            m = softmax_most(job, row, n, most);
        }
        if (!softmax_did_well(m, base, total))
            total = (double)NAN;
    }
    if (NRG_RARELY(total != total)) {
        most = v_set1(-INFINITY);
        if (plain > first) {
            softmax_look(&most, row->x + first * size, plain - first, D);
            most = v_mul(most, v_set1(job->scale));
        }
        for (size_t i = plain, end; i < row->seen.end; i = end) {
            end = softmax_chunk_end(i, row->seen.end);
            softmax_make(&most, u, job, row, i, end, D);
        }
        m = softmax_most(job, row, n, most);
        base = nrg_softmax_base_of(m);
        if (NRG_RARELY(base.shift != 0))
            plain = first;
        last = softmax_long_sum(u, job, row, plain, base, &most, &sum, keep, D);
        total = softmax_total(job, row, base, &sum);
    }
    /* powers, beside a base that is the largest's */
    const float away = nrg_softmax_two_to(base.n - nrg_softmax_base_of(m).n);
    total *= (double)away;
    const nrg_softmax_base best = nrg_softmax_base_of(m);
    softmax_end result =
        softmax_finish(job, n, m, best, total, job->log ? softmax_log(total, (double)softmax_power_of(m, best)) : 0);
    if (!job->log) {
        result.high *= away;
        result.low *= away;
    }
    if (!row->o)
        return;
    if (keep) {
        /* from its end, which is still in L1 */
        for (size_t end = row->seen.end, begin; end > row->seen.begin; end = begin) {
            begin = end - row->seen.begin > NORM_SEGMENT ? end - NORM_SEGMENT : row->seen.begin;
            softmax_write(row->o + begin * size, (const float *)row->o + begin, end - begin, &result, 0, D);
        }
        return;
    }
    const size_t from = last < row->seen.begin ? row->seen.begin : last;
    softmax_row before = *row;
    before.seen.end = last;
    softmax_write(row->o + from * size, u + (from - last), row->seen.end - from, &result, 0, D);
    softmax_again(u, job, &before, base, &result, 0, D);
}

/* The sum of a row in flight, which is a segment at most. */
NRG_INLINE double softmax_flight_sum(const softmax_flight *f)
{
    softmax_sum sum = {.lanes = softmax_no_lanes()};
    softmax_add(&sum, f->e, f->n);
    return vd8_sum(&sum.lanes);
}

/* A row whose base was a bad guess, once more: from its scores, around its largest. */
static __attribute__((noinline)) double softmax_fly_again(softmax_flight *f, float *m, nrg_dtype D)
{
    vf most;
    softmax_look(&most, f->x, f->n, D);
    *m = softmax_largest(most) * f->scale + 0.0f;
    f->base = nrg_softmax_base_of(*m);
    softmax_shift_row(f->e, f->x, f->n, f->scale, f->base.shift, D);
    softmax_powers(f->e, f->n, f->base);
    return softmax_flight_sum(f);
}

/* Powers lie on the stack until they are multiplied; those of long rows in o. */
static __attribute__((noinline)) void softmax_fly(const nrg_softmax_job *at, int stream, nrg_dtype D)
{
    _Alignas(VN * sizeof(float)) float stage[2][SOFTMAX_FLIGHT];
    const nrg_softmax_job job = *at;
    const int in_o = job.keys > SOFTMAX_FLIGHT;
    const size_t some = in_o && job.o == job.x ? job.keys : SOFTMAX_LOOK; /* of scores that are gone all must have been seen */
    softmax_at place = softmax_at_row(job.begin, job.heads, job.queries);
    const char *x = job.x + softmax_row_at(job.x_stride, place.b, place.h, place.i);
    softmax_flight f = {.n = job.keys, .scale = job.scale};
    softmax_end end = {.high = 0};
    vf most;
    softmax_look(&most, x, some, D);
    for (size_t n = job.begin; n < job.end; n++) {
        char *o = job.o + softmax_row_at(job.o_stride, place.b, place.h, place.i);
        float m = softmax_largest(most) * job.scale + 0.0f;
        int guessed = some < job.keys;
        f.x = x;
        if (guessed && NRG_RARELY(!softmax_may_guess(m))) {
            softmax_look(&most, x, job.keys, D);
            m = softmax_largest(most) * job.scale + 0.0f;
            guessed = 0;
        }
        if (n + 1 < job.end) {
            softmax_next(&place, job.heads, job.queries);
            x = job.x + softmax_row_at(job.x_stride, place.b, place.h, place.i);
        }
        f.next = x;
        softmax_look(&most, x, some, D);
        f.e = in_o ? (float *)o : stage[n & 1];
        f.base = nrg_softmax_base_of(m);
        f.most = v_set1(-INFINITY);
        if (NRG_RARELY(f.base.shift != 0)) {
            /* exact, and then as any other row */
            softmax_shift_row(f.e, f.x, f.n, f.scale, f.base.shift, D);
            softmax_end_flight(&f, end, stream, D);
            softmax_powers(f.e, f.n, f.base);
        } else {
            f.end = end;
            f.stream = stream;
            softmax_turn(&f, D);
        }
        double total = softmax_flight_sum(&f);
        if (guessed && NRG_RARELY(!softmax_did_well(softmax_largest(f.most) * job.scale, f.base, total)))
            total = softmax_fly_again(&f, &m, D);
        end = softmax_finish(&job, n, m, f.base, total, 0);
        f.done = f.e;
        f.o = o;
        if (in_o) {
            softmax_end_flight(&f, end, stream, D);
            f.o = NULL;
        }
    }
    softmax_end_flight(&f, end, stream, D);
}

static __attribute__((noinline)) void softmax_walk(const nrg_softmax_job *at, int stream, nrg_dtype D)
{
    _Alignas(VN * sizeof(float)) float u[SOFTMAX_CHUNK + VN];
    const nrg_softmax_job job = *at;
    softmax_at place = softmax_at_row(job.begin, job.heads, job.queries);
    const size_t room = (job.keys + FAST_LANES - 1) / FAST_LANES * FAST_LANES;
    for (size_t n = job.begin; n < job.end;) {
        if (room <= SOFTMAX_CHUNK && !job.given) {
            n += softmax_short(u, &job, &place, n, room, stream, D);
            continue;
        }
        const softmax_row row = softmax_row_of(&job, &place);
        if (job.given) {
            const softmax_end end = {.high = job.given[2 * n], .low = job.given[2 * n + 1]};
            const nrg_softmax_base base = nrg_softmax_base_of(job.m_in[n]);
            const size_t from = row.seen.begin * bytes_of(1, D, 0);
            if (softmax_is_plain(&job))
                softmax_given(row.o + from, row.x + from, row.seen.end - row.seen.begin, job.scale, base, &end,
                              stream && ((uintptr_t)row.o + from) % 16 == 0, D);
            else
                softmax_again(u, &job, &row, base, &end, stream, D);
            softmax_blank_row(&job, &row, stream, D);
        } else if (row.seen.end - row.seen.first <= SOFTMAX_CHUNK) {
            softmax_at one = place;
            softmax_short(u, &job, &one, n, SOFTMAX_CHUNK, stream, D);
        } else {
            softmax_long(u, &job, &row, n, D);
            softmax_blank_row(&job, &row, stream, D);
        }
        softmax_next(&place, job.heads, job.queries);
        n++;
    }
}

static void softmax_rows(const nrg_softmax_job *job, nrg_dtype D)
{
    const int stream = !V_SMALL && job->stream && job->o != job->x && (job->given || softmax_lines(job->o, &job->o_stride));
    if (softmax_flies(job, D))
        softmax_fly(job, stream, D);
    else
        softmax_walk(job, stream, D);
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNEL(softmax, f32, softmax, softmax_rows(job, NRG_F32))
NRG_PATH_KERNEL(softmax, f16, softmax, softmax_rows(job, NRG_F16))
NRG_PATH_KERNEL(softmax, bf16, softmax, softmax_rows(job, NRG_BF16))

#endif
