/* Schedule: tiles of short rows. The rows of a tile are summed, their scalars follow side by side, then their outputs, still in
 * L1. The next tile is summed before these outputs, so that its scalars are there in time.
 *
 * A residual is computed for the whole tile first, and read as x from then on: from where it is stored, or from a staging buffer
 * where it is streamed or no output.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_TILE_H
#define NRG_TEMPLATE_NORM_TILE_H

#include "long.h"

#if !NORM_IS_SMALL

enum {
    TILE_ELEMENTS = 2048,
    TILE_STAGE = TILE_ELEMENTS / 2, /* elements of a staging buffer: there are two */
    TILE_NEAR_ELEMENTS = 32 << 10
};

typedef struct row_tile {
    const char *x, *w, *b;
    char *o;
    size_t x_stride, o_stride;
    size_t x_jump, o_jump, run; /* groups lie in runs with as many bytes between them; run: 0 where rows are no groups */
    unsigned left;              /* of the first run; more than a tile has where rows are no groups */
    int count;
    size_t n;
    tile_scalars s;
} row_tile;

/* In functions of their own: 200 to 250 bytes an instance less. */
static __attribute__((noinline)) void place_in_runs(row_tile *at, const nrg_norm_job *job, size_t bytes)
{
    const size_t group = at->n % job->groups, row = at->n / job->groups;
    at->x = job->x + row * job->x_stride + group * bytes;
    at->o = job->o + row * job->o_stride + group * bytes;
    at->x_stride = at->o_stride = bytes;
    at->run = job->groups;
    at->x_jump = job->x_stride - at->run * bytes;
    at->o_jump = job->o_stride - at->run * bytes;
    at->left = at->run - group < at->left ? (unsigned)(at->run - group) : at->left;
}

static __attribute__((noinline)) size_t runs_ahead(size_t rows, size_t run, size_t stride, size_t jump)
{
    return (rows + run - 1) / run * (run * stride + jump);
}

NRG_INLINE void place_tile(row_tile *at, const nrg_norm_job *job, size_t n, int count, nrg_dtype D)
{
    at->n = n;
    at->count = count;
    at->x = job->x + n * job->x_stride;
    at->o = job->o + n * job->o_stride;
    at->x_stride = job->x_stride;
    at->o_stride = job->o_stride;
    at->x_jump = at->o_jump = at->run = 0;
    at->left = TILE + 1;
    if (NRG_RARELY(job->groups != 1))
        place_in_runs(at, job, bytes_of(job->dim, D, 0));
}

/* After a row of a tile: whether what follows is not in its run. */
NRG_INLINE int run_ends(unsigned *left, const row_tile *at)
{
    if (!NRG_RARELY(--*left == 0))
        return 0;
    *left = (unsigned)at->run;
    return 1;
}

NRG_INLINE const char *next_x(const char *x, unsigned *left, const row_tile *at)
{
    x += at->x_stride;
    return run_ends(left, at) ? x + at->x_jump : x;
}

/* From a row to one that is so many rows later, or at most a run more. */
NRG_INLINE size_t bytes_ahead(const row_tile *at, size_t rows, size_t stride, size_t jump)
{
    return NRG_RARELY(at->run) ? runs_ahead(rows, at->run, stride, jump) : rows * stride;
}

/* The folded lanes of eight rows, in memory: conversions from a register take the shuffle port. */
typedef struct folded_rows {
    _Alignas(64) float row[8][FAST_LEAST];
} folded_rows;

NRG_INLINE void store_folded(float *to, const vf *v)
{
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        v_st_f32(to + j * VN, v[j]);
}

NRG_INLINE void totals_of_eight(double *to, folded_rows *from)
{
    vd8 eight[8];
#ifdef __GNUC__
    __asm__("" : "+m"(*from)); /* otherwise gcc forwards the stores in registers */
#endif
    NRG_UNROLL
    for (int k = 0; k < 8; k++) {
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++)
            eight[k].v[j] = vd_add(vd_ld_f32(from->row[k] + j * VN / 2), vd_ld_f32(from->row[k] + 8 + j * VN / 2));
    }
    vd8_sum_rows(eight, to);
}

/* All pilots before the sums: a row would have to wait for its own. One function for tiles of any length. They wait where the
 * means will be, since below the frame of the sums there is too little stack for this one. */
static __attribute__((noinline)) void pilots_of_tile(row_tile *at, size_t dim)
{
    const norm_policy P = {.dtype = NRG_F32, .least = 1};
    const vf scale = v_set1(pilot_scale(dim));
    const char *x = at->x;
    unsigned left = at->left;
    for (int k = 0; k < at->count; k += VN) {
        vf rows[VN];
        for (int i = 0; i < (int)VN; i++) { /* unrolled: 6 KB */
            const row_operands row = {.x = x};
            rows[i] = pilot_lanes(row, dim, 0, P);
            if (k + i + 1 < at->count) /* otherwise the last row again */
                x = next_x(x, &left, at);
        }
        v_st_f32(at->s.centre + k, v_mul(v_fold_rows(rows), scale));
    }
}

NRG_INLINE void sum_exact_tile(tile_sums *sums, const row_tile *at, size_t dim, norm_policy P)
{
    const char *x = at->x;
    unsigned left = at->left;
    for (int k = 0; k < at->count; k += NORM_BATCH) {
        const int some = at->count - k < NORM_BATCH ? at->count - k : NORM_BATCH;
        vd8 t[NORM_BATCH], tt[NORM_BATCH];
        for (int i = 0; i < some; i++) {
            const summed_row from = {{.x = x}, v_zero(), NULL};
            exact_lanes lanes;
            clear_exact_lanes(&lanes);
            sum_exact_chunk(&lanes, &from, 0, dim, 0, P);
            if (is_centred(P))
                t[i] = fold_exact(lanes.t);
            tt[i] = fold_exact(lanes.tt);
            x = next_x(x, &left, at);
        }
        for (int i = some; i < NORM_BATCH; i++) {
            tt[i] = tt[0];
            if (is_centred(P))
                t[i] = t[0];
        }
        vd8_sum_rows(tt, sums->tt + k);
        if (is_centred(P))
            vd8_sum_rows(t, sums->t + k);
    }
}

/* Of the rows that need no fallback. */
static __attribute__((noinline)) void keep_tile_statistics(const row_tile *at, const nrg_norm_job *job, const tile_sums *sums,
                                                           int exact)
{
    const int has_mean = job->formula.centred;
    for (int k = 0; k < at->count; k++) {
        const row_totals sum = {has_mean ? sums->t[k] : 0, sums->tt[k]};
        if (!(at->s.fallback >> k & 1))
            keep_statistics(job, has_mean ? sums->pilot[k] : 0, sum, exact, at->n + (size_t)k);
    }
}

/* The mean and rstd of all rows. Rows of the fallback store theirs later. */
static __attribute__((noinline)) void store_tile_statistics(const nrg_norm_job *job, const row_tile *at)
{
    const size_t bytes = (size_t)at->count * sizeof(float);
    if (job->mean)
        memcpy(job->mean + at->n, at->s.centre, bytes);
    if (job->rstd)
        memcpy(job->rstd + at->n, at->s.rstd, bytes);
}

NRG_INLINE void sum_tile(row_tile *at, const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const size_t dim = dim_of(job, P), bytes = bytes_of(dim, P.dtype, 0), stride = at->x_stride;
    /* pilots have read half of the next rows already */
    const size_t ahead = bytes_ahead(at, (2048 + bytes - 1) / bytes + (is_centred(P) ? TILE / 2 : 0), stride, at->x_jump);
    const int count = P.rows ? P.rows : at->count;
    const char *x = at->x;
    unsigned left = at->left;
    tile_sums sums;
    if (count < 1)
        __builtin_unreachable(); /* gcc warns of sums without rows */
    if (is_exact(P))
        sum_exact_tile(&sums, at, dim, P);
    else if (is_centred(P))
        memcpy(sums.pilot, at->s.centre, sizeof sums.pilot);
    for (int k = 0; !is_exact(P) && k < count; k += 8) {
        const int some = P.rows ? 8 : count - k < 8 ? count - k : 8;
        folded_rows t, tt;
        for (int i = 0; i < some; i++) {
            const summed_row from = {{.x = x}, is_centred(P) ? v_set1(sums.pilot[k + i]) : v_zero(), NULL};
            block_lanes sum;
            if (NRG_RARELY(options & OPT_PREFETCH))
                prefetch_ahead(x, bytes, ahead);
            sum_block(&sum, &from, 0, dim, 0, P);
            if (is_centred(P))
                store_folded(t.row[i], sum.t);
            store_folded(tt.row[i], sum.tt);
            x = next_x(x, &left, at);
        }
        for (int i = some; i < 8; i++) { /* numbers for the lanes that no row has */
            memcpy(tt.row[i], tt.row[0], sizeof tt.row[0]);
            if (is_centred(P))
                memcpy(t.row[i], t.row[0], sizeof t.row[0]);
        }
        totals_of_eight(sums.tt + k, &tt);
        if (is_centred(P))
            totals_of_eight(sums.t + k, &t);
    }
    if (VN > 8 && count <= 8) {
        memcpy(sums.tt + 8, sums.tt, 8 * sizeof *sums.tt);
        if (is_centred(P))
            memcpy(sums.t + 8, sums.t, 8 * sizeof *sums.t);
    }
    scalars_of_tile(&at->s, job, &sums, count, options, P);
    if (!P.rows && NRG_RARELY(job->statistics))
        keep_tile_statistics(at, job, &sums, is_exact(P));
}

NRG_INLINE norm_policy tile_sum_policy(nrg_dtype D, unsigned must)
{
    return (norm_policy){.dtype = D, .must = must, .least = 1, .most = FAST_BLOCK, .multiple = 1};
}

NRG_INLINE void sum_tile_rms_of(row_tile *at, const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    sum_tile(at, job, options, tile_sum_policy(D, 0));
}
NRG_BY_DTYPE(sum_tile_rms, (at, job, options), row_tile *at, const nrg_norm_job *job, unsigned options)

/* After pilots_of_tile. */
static __attribute__((noinline)) void sum_tile_layer(row_tile *at, const nrg_norm_job *job, unsigned options)
{
    sum_tile(at, job, options, tile_sum_policy(NRG_F32, OPT_CENTRED));
}

static __attribute__((noinline)) void sum_exact_tile_rms(row_tile *at, const nrg_norm_job *job, unsigned options)
{
    sum_tile(at, job, options, tile_sum_policy(NRG_F32, OPT_EXACT));
}

static __attribute__((noinline)) void sum_exact_tile_layer(row_tile *at, const nrg_norm_job *job, unsigned options)
{
    sum_tile(at, job, options, tile_sum_policy(NRG_F32, OPT_EXACT | OPT_CENTRED));
}

/* Rows of 16 bits as floats, so that centred sums are those of f32 rows: a loop of their own takes 8 KB. */
NRG_INLINE void widen_tile_of(float *to, const row_tile *at, size_t dim, nrg_dtype D)
{
    const char *x = at->x;
    unsigned left = at->left;
    for (int k = 0; k < at->count; k++, to += dim) {
        size_t i = 0;
        for (; i + VN <= dim; i += VN)
            v_st_f32(to + i, load_whole(x, i, D));
        if (i < dim)
            v_stn_f32(to + i, load_part(x, i, dim - i, D), dim - i);
        x = next_x(x, &left, at);
    }
}
NRG_BY_DTYPE(widen_tile, (to, at, dim), float *to, const row_tile *at, size_t dim)

static __attribute__((noinline)) void sum_widened_tile(row_tile *at, const nrg_norm_job *job, unsigned options, float *wide,
                                                       nrg_dtype D)
{
    const char *const x = at->x;
    const size_t x_stride = at->x_stride, x_jump = at->x_jump;
    widen_tile(wide, at, job->dim, D);
    at->x = (const char *)wide;
    at->x_stride = job->dim * sizeof *wide;
    at->x_jump = 0;
    pilots_of_tile(at, job->dim);
    sum_tile_layer(at, job, options & ~(unsigned)OPT_PREFETCH);
    at->x = x;
    at->x_stride = x_stride;
    at->x_jump = x_jump;
}

/* The scalars of a tile from given statistics. */
static __attribute__((noinline, cold)) void given_tile(row_tile *at, const nrg_norm_job *job, int exact)
{
    tile_scalars *const to = &at->s;
    to->fallback = 0;
    for (int k = 0; k < at->count; k++) {
        const row_scalars s = given_scalars(job, at->n + (size_t)k, exact);
        to->factor[k] = s.factor;
        to->low[k] = s.low;
        to->centre[k] = s.centre;
        to->shift[k] = s.shift;
        to->fallback |= (unsigned)!s.in_range << k;
    }
}

/* wide: room for the elements of a tile of 16 bits. */
NRG_INLINE void sum_tile_by(row_tile *at, const nrg_norm_job *job, unsigned options, float *wide, norm_policy P)
{
    const int has_mean = (options & OPT_CENTRED) != 0;
    if (is_exact(P) && has_mean)
        sum_exact_tile_layer(at, job, options);
    else if (is_exact(P))
        sum_exact_tile_rms(at, job, options);
    else if (!has_mean)
        sum_tile_rms(at, job, options, P.dtype);
    else if (P.dtype == NRG_F32) {
        pilots_of_tile(at, job->dim);
        sum_tile_layer(at, job, options);
    } else
        sum_widened_tile(at, job, options, wide, P.dtype);
}

NRG_INLINE row_outputs outputs_in_tile(const row_tile *at, const nrg_norm_job *job, row_operands row, int k, norm_policy P)
{
    const tile_scalars *const s = &at->s;
    const row_scalars one = {s->factor[k], is_exact(P) ? s->low[k] : 0, s->centre[k], s->shift[k], 0, 1};
    return outputs_of_row(row, &one, job);
}

NRG_INLINE void output_tile(const row_tile *at, const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const size_t dim = dim_of(job, P), bytes = bytes_of(dim, P.dtype, 0), o_stride = at->o_stride;
    const size_t ahead = bytes_ahead(at, (2048 + bytes - 1) / bytes, o_stride, at->o_jump);
    const tile_scalars *const s = &at->s;
    const unsigned fallback = s->fallback, prefetches = (options & (OPT_PREFETCH | OPT_STREAM_O)) == OPT_PREFETCH;
    const int count = P.rows ? P.rows : at->count;
    row_operands row = {.x = at->x, .w = at->w, .b = at->b, .o = at->o};
    unsigned left = at->left;
    /* apart from the loop: a call in it would take its registers from every row */
    if (NRG_RARELY(options & OPT_STATISTICS))
        store_tile_statistics(job, at);
    for (int k = 0; !P.rows && NRG_RARELY(fallback != 0) && k < count; k++)
        if (fallback >> k & 1)
            fallback_row(job, at->n + (size_t)k, P.dtype);
    for (int k = 0; k < count; k++) {
        const row_outputs to = outputs_in_tile(at, job, row, k, P);
        if (prefetches)
            prefetch_ahead(row.o, bytes, ahead);
        if (P.rows || !NRG_RARELY(fallback >> k & 1))
            output_elements(&to, 0, dim, options, P);
        row.x += at->x_stride;
        row.o += o_stride;
        if (run_ends(&left, at)) {
            row.x += at->x_jump;
            row.o += at->o_jump;
        }
    }
}

/* The rows of a tile one of which needs the fallback. */
static __attribute__((noinline)) void output_mixed_tile(const row_tile *at, const nrg_norm_job *job, unsigned options)
{
    norm_policy P = general_policy(NRG_F32, 0);
    P.may = OPT_CENTRED | OPT_WEIGHT | OPT_BIAS;
    output_tile(at, job, options & P.may, P);
}

NRG_INLINE void residual_step(int G, row_operands row, float *floats, size_t i, size_t n, unsigned options, norm_policy P)
{
    vf v[NORM_STEP];
    source_step(v, G, row, i, n, options_in(options, P), P.dtype);
    if (floats)
        store_f32_step(v, G, floats + i, n, 0);
}

/* r = x + y of the rows of a tile, to where it is stored and to the staging buffer, which may be NULL. */
NRG_INLINE void residual_of_tile_of(row_tile *at, const nrg_norm_job *job, char *stage, unsigned options, nrg_dtype D)
{
    const norm_policy P = {.dtype = D, .may = OPT_RESIDUAL | OPT_Y_F32 | (D == NRG_F32 ? 0 : OPT_KEEP_R)};
    const size_t dim = job->dim, bytes = bytes_of(dim, D, 0), ahead = (2048 + bytes - 1) / bytes;
    row_operands row = operands_of_row(job, at->n, options, D);
    at->x = stage ? stage : row.r;
    at->x_stride = stage ? bytes : job->r_stride;
    for (int k = 0; k < at->count; k++) {
        float *const floats = D == NRG_F32 ? (float *)stage : NULL;
        row.kept = (uint16_t *)stage;
        if (job->stream) {
            prefetch_ahead(row.x, bytes, ahead * job->x_stride);
            if (row.y)
                prefetch_ahead(row.y, bytes, ahead * job->y_stride);
        }
        size_t i = 0;
        for (; i + FAST_LANES <= dim; i += FAST_LANES)
            residual_step(FAST_VECTORS, row, floats, i, FAST_LANES, options, P);
        for (; i + VN <= dim; i += VN)
            residual_step(1, row, floats, i, VN, options, P);
        if (i < dim)
            residual_step(1, row, floats, i, dim - i, options, P);
        row.x += job->x_stride;
        if (row.y)
            row.y += job->y_stride;
        if (row.r)
            row.r += job->r_stride;
        if (stage)
            stage += bytes;
    }
}
NRG_BY_DTYPE(residual_of_tile, (at, job, stage, options), row_tile *at, const nrg_norm_job *job, char *stage, unsigned options)

/* w + offset, or b, as floats in the order of steps: once for all rows. */
NRG_INLINE void ready_weights_of(float *to, const char *from, float offset, size_t dim, int is_f32, nrg_dtype D)
{
    const int most = D == NRG_F32 ? FAST_VECTORS : V_FAST_HALF;
    for (size_t i = 0; i < dim;) {
        vf v[NORM_STEP];
        const size_t step = (size_t)most * VN, n = i + step <= dim ? step : lanes_at(i, dim);
        const int G = n == step ? most : 1;
        if (G == most)
            load_elements(v, most, from, i, step, D, is_f32);
        else
            load_elements(v, 1, from, i, n, D, is_f32);
        for (int j = 0; j < G; j++) {
            const vf w = offset != 0 ? v_add(v[j], v_set1(offset)) : v[j];
            store_lanes(to + i + (size_t)j * VN, w, G == 1 ? n : VN);
        }
        i += n;
    }
}

NRG_BY_DTYPE(ready_weights, (to, from, offset, dim, is_f32), float *to, const char *from, float offset, size_t dim, int is_f32)

NRG_INLINE const char *weights_of_tiles(float *to, const char *from, float offset, const nrg_norm_job *job, nrg_dtype D)
{
    if (!from || (D == NRG_F32 && offset == 0))
        return from;
    ready_weights(to, from, offset, job->dim, job->w_f32, D);
    return (const char *)to;
}

/* c/√d is so near 1 that scalars_side_by_side tests all conditions. */
NRG_INLINE int fit_tiles(const nrg_norm_job *job)
{
    return job->row_end - job->row_begin >= 2 && job->formula.k >= 0x1p-8 && job->formula.k <= 0x1p8;
}

NRG_INLINE int fit_full_tiles(const nrg_norm_job *job) { return fit_tiles(job) && job->row_end - job->row_begin >= TILE; }

/* The policy of outputs: a residual is nothing but another x, and weights are ready. */
NRG_INLINE norm_policy tile_policy(norm_policy P)
{
    const unsigned done = OPT_RESIDUAL | OPT_W_OFFSET | OPT_W_F32 | OPT_Y_F32;
    P.may &= ~done;
    P.must = (P.must & ~done) | OPT_READY;
    return P;
}

NRG_INLINE void schedule_tiles(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const int has_residual = (options & (OPT_ADD_Y | OPT_STORE_R)) != 0, staged = has_residual && !(options & OPT_READ_R);
    const size_t dim = job->dim, fit = lesser((staged ? TILE_STAGE : TILE_ELEMENTS) / dim, TILE),
                 most = fit > 8 ? fit / 8 * 8 : fit;
    const norm_policy plain = tile_policy(P);
    float ready_w[FAST_BLOCK], ready_b[FAST_BLOCK];
    /* r of two tiles. That of 16-bit rows takes half of it, and rows that are widened to f32 take the rest, or all without r. */
    _Alignas(64) char room[TILE_ELEMENTS * sizeof(float)];
    float *const wide = (float *)room + (staged ? TILE_STAGE : 0);
    const char *const w = weights_of_tiles(ready_w, job->w, P.may & OPT_W_OFFSET ? job->formula.w_offset : 0, job, P.dtype),
                      *const b = weights_of_tiles(ready_b, job->b, 0, job, P.dtype);
    row_tile tiles[2];
    size_t n = job->row_begin;
    for (int turn = 0;; turn ^= 1) {
        row_tile *const next = &tiles[turn];
        if (n != job->row_end) {
            next->w = w;
            next->b = b;
            place_tile(next, job, n, (int)lesser(most, job->row_end - n), P.dtype);
            if (has_residual)
                residual_of_tile(next, job, staged ? room + (size_t)turn * bytes_of(TILE_STAGE, P.dtype, 0) : NULL,
                                 options | (staged ? OPT_KEEP_R : 0), P.dtype);
            if (NRG_RARELY(job->part == NRG_NORM_APPLY))
                given_tile(next, job, is_exact(P));
            else
                sum_tile_by(next, job, has_residual ? options & ~(unsigned)OPT_PREFETCH : options, wide, P);
        }
        if (n != job->row_begin)
            output_tile(&tiles[turn ^ 1], job, options, plain);
        if (n == job->row_end)
            break;
        n += (size_t)next->count;
    }
    if (options & (OPT_STREAM_R | OPT_STREAM_O))
        v_nt_fence();
}

/* f32 rows of one length with a weight, in full tiles: all counts are constants. The dispatcher does the rows that are left.
 * Other tiles take 1.17 to 1.56 times as long over rows of 64 and 1.0 to 1.2 over rows of 128 (Granite Rapids). */
NRG_INLINE void schedule_full_tiles(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const unsigned residual = options & OPT_CACHED_R;
    const size_t dim = P.least, end = job->row_end - (job->row_end - job->row_begin) % TILE;
    norm_policy plain = tile_policy(P), biased;
    plain.may = 0;
    biased = plain;
    biased.must |= OPT_BIAS;
    row_tile tiles[2];
    size_t n = job->row_begin;
    /* a call of more elements reads from beyond L1: 4096x64 rms 1.12 × (AVX-512), 1.27 (AVX2) */
    options = (job->row_end - n) * dim > TILE_NEAR_ELEMENTS ? OPT_PREFETCH : 0;
    for (int turn = 0;; turn ^= 1) {
        row_tile *const next = &tiles[turn], *const ready = &tiles[turn ^ 1];
        if (n != end) {
            next->w = job->w;
            next->b = job->b;
            place_tile(next, job, n, TILE, P.dtype);
            if (residual)
                residual_of_tile(next, job, NULL, residual, P.dtype);
            if (is_centred(P))
                pilots_of_tile(next, dim);
            sum_tile(next, job, options, plain);
        }
        if (n != job->row_begin) {
            if (NRG_RARELY(ready->s.fallback != 0))
                output_mixed_tile(ready, job, (P.must & OPT_CENTRED) | OPT_WEIGHT | (job->b ? OPT_BIAS : 0));
            else if (job->b)
                output_tile(ready, job, options, biased);
            else
                output_tile(ready, job, options, plain);
        }
        if (n == end)
            break;
        n += TILE;
    }
}

#endif

#endif
