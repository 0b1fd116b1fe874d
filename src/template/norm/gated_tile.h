/* Schedule: tiles of short rows with a gate, or with an activation on the output. The activation is a call for the whole tile,
 * and the next tile is summed before the outputs of this one, as in tile.h. In the exact grade rows of a block at most.
 *
 * r and p of 16-bit rows become floats first, and so do short rows with a mean, so that the sums are those of f32 rows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_GATED_TILE_H
#define NRG_TEMPLATE_NORM_GATED_TILE_H

#include "gated.h"
#include "plain.h"

#if !NORM_IS_SMALL

enum { GATED_DIM_MAX = 1024 };

typedef struct gated_tiles {
    gated_plan plan;
    size_t together; /* rows without a gap between them, which the steps over elements do at once */
    size_t room;     /* elements of a staging buffer */
    size_t apart;    /* from that of a tile to that of the next; 0: one serves all */
    int is_staged;   /* r or p is in the staging buffer of a tile, */
    int in_o;        /* or p in o, which is not in place */
    int prefetches;  /* x of rows that are summed where they are */
} gated_tiles;

typedef struct gated_tile {
    row_tile rows;
    float *stage;
    char *o; /* of the output loop, like gates */
    size_t o_stride;
    const float *gates;
} gated_tile;

/* Whether nothing is between the rows of a tensor. */
static __attribute__((noinline)) int rows_are_dense(const nrg_norm_job *job, nrg_dtype D)
{
    const size_t row = job->groups * job->dim;
    const size_t wide = row * sizeof(float), own = bytes_of(row, D, 0);
    return job->x_stride == own && (!job->o || job->o_stride == own) && (!job->z || job->z_stride == own) &&
           (!job->y || job->y_stride == (job->y_f32 ? wide : own)) && (!job->r || job->r_stride == (job->r_f32 ? wide : own));
}

/* 16-bit rows longer than a block whose gates follow the norm go by chunks with AVX2: 20000x1024 1.16 times as fast (Zen 4). */
static int gated_tiles_fit(const nrg_norm_job *job, nrg_dtype D)
{
    const int are_short = nrg_norm_is_exact(&job->formula, D) || (VN < 16 && D != NRG_F32 && job->gate == NRG_GATE_POST);
    return job->dim <= (are_short ? (size_t)FAST_BLOCK : (size_t)GATED_DIM_MAX) && fit_tiles(job) &&
           job->part != NRG_NORM_APPLY && job->formula.divisor == NRG_DIV_ROOT && (job->groups == 1 || rows_are_dense(job, D));
}

/* The staging buffers: of the gates, and of the tiles, each of which has one if r or p waits there. Whether a row fits. */
static __attribute__((noinline)) int stage_tiles(gated_tiles *all)
{
    gated_plan *const g = &all->plan;
    const nrg_norm_job *job = g->job;
    const int is_pre = job->gate == NRG_GATE_PRE, in_place = job->o == job->x || job->o == job->y || job->o == job->z;
    all->in_o = is_pre && g->D == NRG_F32 && !(g->options & OPT_STREAM_O) && !in_place && job->part == NRG_NORM_WHOLE;
    const unsigned wide = OPT_ADD_Y | OPT_STORE_R | OPT_X_F32 | (job->dim <= FAST_BLOCK ? OPT_CENTRED : 0);
    all->is_staged =
        !all->in_o && (is_pre || (g->D == NRG_F32 ? g->options & OPT_ADD_Y && !g->reads_r : (g->options & wide) != 0));
    all->prefetches =
        g->options & OPT_PREFETCH && job->stream == 1 && !is_pre && !all->is_staged && !(g->options & (OPT_ADD_Y | OPT_STORE_R));
    const size_t are_two = all->is_staged && job->part == NRG_NORM_WHOLE;
    const size_t buffers =
        (size_t)has_gate_stage(job, g->D) + are_two + (all->is_staged || !g->is_direct || g->options & OPT_AFTER);
    all->room = buffers > 1 ? GATED_ROOM / buffers / 16 * 16 : GATED_ROOM;
    all->apart = are_two ? all->room : 0;
    return job->dim <= all->room;
}

NRG_INLINE norm_policy gated_tile_policy(nrg_dtype D, unsigned may)
{
    return (norm_policy){.dtype = D, .may = may, .least = 1, .most = SIZE_MAX, .multiple = 1};
}

/* Rows without a mean have a pilot and a t of 0. */
static __attribute__((noinline)) void scalars_of_gated_tile(row_tile *at, const nrg_norm_job *job, const tile_sums *sums,
                                                            unsigned options)
{
    const norm_policy P = {.must = OPT_CENTRED};
    scalars_of_tile(&at->s, job, sums, at->count, options, P);
}

/* Rows longer than a block. */
static __attribute__((noinline)) void sum_gated_rows(row_tile *at, const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    row_chunk chunk = {.options = options & OPT_CENTRED, .end = job->dim, .dim = job->dim};
    tile_sums sums;
    for (int k = 0; k < at->count; k++) {
        row_sums sum;
        chunk.row.x = at->x + (size_t)k * at->x_stride;
        general_sum(&sum, &chunk, policy_of_rows(D, OPT_CENTRED));
        const row_totals totals = general_totals(&sum, options);
        sums.pilot[k] = options & OPT_CENTRED ? sum.pilot : 0;
        sums.t[k] = totals.t;
        sums.tt[k] = totals.tt;
    }
    for (int k = at->count; k % VN != 0; k++) { /* numbers for the lanes that no row has */
        sums.pilot[k] = sums.pilot[0];
        sums.t[k] = sums.t[0];
        sums.tt[k] = sums.tt[0];
    }
    scalars_of_gated_tile(at, job, &sums, options);
}

/* The squares of rows of 16 elements. */
NRG_INLINE void square_groups_of(folded_rows *to, const row_tile *at, int first, int count, nrg_dtype D)
{
    const char *x = at->x + (size_t)first * at->x_stride;
    for (int k = 0; k < count; k++, x += at->x_stride) {
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++) {
            const vf v = load_whole(x, (size_t)j * VN, D);
            v_st_f32(to->row[k] + j * VN, v_mul(v, v));
        }
    }
}
NRG_BY_DTYPE(square_groups, (to, at, first, count), folded_rows *to, const row_tile *at, int first, int count)

/* Groups of 16 elements without a mean, which are their own lanes: with AVX2 1.13 times as fast as by sum_tile_rms (Zen 4). */
static __attribute__((noinline)) void sum_least_groups(row_tile *at, const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    tile_sums sums = {.tt = {0}};
    for (int k = 0; k < at->count; k += 8) {
        const int count = at->count - k < 8 ? at->count - k : 8;
        folded_rows squares;
        square_groups(&squares, at, k, count, D);
        for (int i = count; i < 8; i++) /* numbers for the lanes that no row has */
            memcpy(squares.row[i], squares.row[0], sizeof squares.row[0]);
        totals_of_eight(sums.tt + k, &squares);
    }
    scalars_of_gated_tile(at, job, &sums, options);
}

/* As output_elements, but with smaller steps: the rows are short. */
NRG_INLINE void output_gated_row(const row_outputs *to, size_t dim, unsigned options, norm_policy P)
{
    const size_t step = (size_t)V_APPLY * VN;
    size_t i = 0;
    for (; i + step <= dim; i += step)
        output_step(V_APPLY, to, i, step, options_in(options, P), P.dtype);
    for (; i + VN <= dim; i += VN)
        output_step(1, to, i, VN, options_in(options, P), P.dtype);
    if (NRG_RARELY(i < dim))
        output_step(1, to, i, dim - i, options_in(options, P), P.dtype);
}

/* A row with what is rare, of the exact grade, or of f16: a call a row, and 2 KB less a path than a loop for each. */
static __attribute__((noinline)) void output_general_row(const row_outputs *to, size_t dim, unsigned options, nrg_dtype D)
{
    const row_chunk whole = {.options = options, .end = dim, .dim = dim};
    general_output(to, &whole, policy_of_rows(D, OPT_EXACT));
}

/* Groups of 16 f32 elements, which have little but what is done once for each. Not centred, and with a weight only. */
static __attribute__((noinline)) void output_least_groups(const gated_tile *t, const nrg_norm_job *job, int stream)
{
    const row_tile *const at = &t->rows;
    const float *const factor = at->s.factor, *x = (const float *)at->x;
    const size_t all = job->groups * FAST_LEAST;
    size_t w_at = at->n % job->groups * FAST_LEAST;
    char *o = t->o;
    for (int k = 0; k < at->count; k++) {
        const vf times = v_set1(factor[k]);
        const float *const w = (const float *)job->w + w_at;
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++) {
            const vf v = v_mul(v_mul(v_ld_f32(x + j * VN), times), v_ld_f32(w + j * VN));
            store_f32_step(&v, 1, (float *)o + j * VN, VN, stream);
        }
        x = (const float *)((const char *)x + at->x_stride);
        o += t->o_stride;
        w_at += FAST_LEAST;
        w_at = w_at == all ? 0 : w_at;
    }
}

/* To o, or to o1 as floats. */
NRG_INLINE void output_gated_tile_of(const gated_tile *t, const nrg_norm_job *job, unsigned options, nrg_dtype D)
{
    const norm_policy P = gated_tile_policy(D, OPT_CENTRED | OPT_WEIGHT | OPT_BIAS | OPT_STREAM_O |
                                                   (D == NRG_F32 ? 0 : OPT_GATE | OPT_X_F32 | OPT_O_F32));
    const row_tile *const at = &t->rows;
    const size_t dim = job->dim, w_bytes = bytes_of(dim, D, job->w_f32), w_all = w_bytes * job->groups;
    const tile_scalars *const s = &at->s;
    const unsigned fallback = s->fallback;
    const int is_general = (VN >= 16 && D == NRG_F16) || (options & (OPT_EXACT | OPT_W_OFFSET | OPT_W_F32)) != 0;
    size_t w_at = at->n % job->groups * w_bytes;
    row_operands row = {.x = at->x,
                        .w = job->w ? job->w + w_at : NULL,
                        .b = job->b ? job->b + w_at : NULL,
                        .o = t->o,
                        .gate = (const char *)t->gates};
    for (int k = 0; k < at->count; k++) {
        const row_scalars one = {s->factor[k], options & OPT_EXACT ? s->low[k] : 0, s->centre[k], s->shift[k], 0, 1};
        const row_outputs to = outputs_of_row(row, &one, job);
        if (!NRG_RARELY(fallback >> k & 1)) {
            if (is_general) {
                const row_outputs copy = to; /* an address would take the operands of all rows from their registers */
                output_general_row(&copy, dim, options, D);
            } else
                output_gated_row(&to, dim, options, P);
        }
        row.x += at->x_stride;
        row.o += t->o_stride;
        if (D != NRG_F32 && row.gate)
            row.gate += dim * sizeof(float);
        if (job->groups > 1) {
            const size_t back = w_at + w_bytes == w_all ? w_all : 0;
            w_at = w_at + w_bytes - back;
            row.w = row.w ? row.w + w_bytes - back : NULL;
            row.b = row.b ? row.b + w_bytes - back : NULL;
        }
    }
}
NRG_BY_DTYPE(output_gated_tile, (t, job, options), const gated_tile *t, const nrg_norm_job *job, unsigned options)

static __attribute__((noinline)) void output_fallback_rows(const gated_tile *t, const nrg_norm_job *job, unsigned options,
                                                           nrg_dtype D)
{
    const row_tile *const at = &t->rows;
    for (size_t k = 0; k < (size_t)at->count; k++) {
        const size_t n = at->n + k;
        row_operands row; /* its weights */
        if (!(at->s.fallback >> k & 1))
            continue;
        find_row(&row, job, n, options & OPT_GROUPS, D);
        row.x = at->x + k * at->x_stride;
        row.o = t->o + k * t->o_stride;
        row.gate = t->gates ? (const char *)(t->gates + k * job->dim) : NULL;
        fallback_of(job, &row, options, n, D);
    }
}

/* From row to row; groups have nothing between them. */
NRG_INLINE size_t row_stride(const nrg_norm_job *job, size_t stride, nrg_dtype D, int is_f32)
{
    return job->groups == 1 ? stride : bytes_of(job->dim, D, is_f32);
}

/* As find_gated_row, but for w and b, and without a division. */
static __attribute__((noinline)) void find_row_in_tile(gated_row *row, const gated_plan *g, size_t n)
{
    const nrg_norm_job *job = g->job;
    const nrg_dtype D = g->D;
    row->first = (row_operands){.x = job->x + n * row_stride(job, job->x_stride, D, 0),
                                .y = job->y ? job->y + n * row_stride(job, job->y_stride, D, job->y_f32) : NULL,
                                .r = job->r ? job->r + n * row_stride(job, job->r_stride, D, job->r_f32) : NULL};
    row->first.o = (char *)((uintptr_t)job->o + n * row_stride(job, job->o_stride, D, 0));
    row->again = operands_in_registers(&row->first);
    row->again.x = g->reads_r ? row->first.r : row->first.x;
    row->z = job->z ? job->z + n * row_stride(job, job->z_stride, D, 0) : NULL;
}

/* The rows of a tile up to their scalars. */
static __attribute__((noinline)) void begin_gated_tile(gated_tile *t, const gated_tiles *all)
{
    const gated_plan *g = &all->plan;
    const nrg_norm_job *job = g->job;
    const int is_pre = job->gate == NRG_GATE_PRE, is_source = is_pre || all->is_staged || g->options & (OPT_ADD_Y | OPT_STORE_R);
    row_tile *const rows = &t->rows;
    const size_t count = (size_t)rows->count;
    unsigned options = all->prefetches ? g->options & ~(unsigned)OPT_PREFETCH : g->options;
    gated_row row;
    find_row_in_tile(&row, g, rows->n);
    rows->x = all->is_staged ? (const char *)t->stage : all->in_o ? row.again.o : row.again.x;
    const size_t stride = all->in_o ? job->o_stride : g->reads_r ? job->r_stride : job->x_stride;
    rows->x_jump = rows->run = 0;
    rows->left = TILE + 1;
    rows->x_stride = all->is_staged ? job->dim * sizeof(float) : row_stride(job, stride, g->D, 0);
    for (size_t k = 0, some; is_source && k < count; k += some) {
        some = lesser(all->together, count - k);
        if (k)
            find_row_in_tile(&row, g, rows->n + k);
        float *const to = all->is_staged ? t->stage + k * job->dim : all->in_o ? (float *)row.again.o : NULL;
        if (is_pre)
            gated_source(g, &row, to, 0, some * job->dim, 0);
        else
            source_floats(to, &row.first, g->options, 0, some * job->dim, g->D);
        options &= ~(unsigned)OPT_PREFETCH;
    }
    const nrg_dtype D = all->is_staged ? NRG_F32 : g->D;
    if (job->dim > FAST_BLOCK)
        sum_gated_rows(rows, job, options, D);
    else if (options & OPT_EXACT)
        sum_tile_by(rows, job, options, NULL, tile_sum_policy(NRG_F32, OPT_EXACT));
    else if (options & OPT_CENTRED) {
        pilots_of_tile(rows, job->dim);
        sum_tile_layer(rows, job, options);
    } else if (VN < 16 && job->dim == FAST_LEAST && !job->statistics)
        sum_least_groups(rows, job, options, D);
    else
        sum_tile_rms(rows, job, options, D);
}

static __attribute__((noinline)) void end_gated_tile(gated_tile *t, const gated_tiles *all)
{
    const gated_plan *g = &all->plan;
    const nrg_norm_job *job = g->job;
    const size_t count = (size_t)t->rows.count;
    const int is_direct = g->is_direct && !(g->options & OPT_AFTER);
    /* staged floats of bf16 would have to be put in the order of pairs: x or r is read again where it can be */
    const int is_here = g->D == NRG_BF16 && job->gate != NRG_GATE_PRE && (g->reads_r || !(g->options & OPT_ADD_Y));
    const int reads_stage = all->is_staged && !is_here;
    gated_row row;
    find_row_in_tile(&row, g, t->rows.n);
    if (all->prefetches) /* the rows that are summed next, while the activation keeps the CPU from memory */
        for (size_t b = 0; b < count * t->rows.x_stride; b += 64) /* to L2: L1 still needs this tile and the next */
            __builtin_prefetch((const void *)((uintptr_t)t->rows.x + b + 2 * count * t->rows.x_stride), 0, 2);
    if (all->is_staged && !reads_stage) {
        t->rows.x = row.again.x;
        t->rows.x_stride = row_stride(job, g->reads_r ? job->r_stride : job->x_stride, g->D, g->reads_r && job->r_f32);
    }
    t->gates = NULL;
    t->o = is_direct ? row.again.o : (char *)t->stage;
    t->o_stride = !is_direct ? job->dim * sizeof(float) : row_stride(job, job->o_stride, g->D, 0);
    for (size_t k = 0, some; g->has_gates && k < count; k += some) {
        some = lesser(all->together, count - k);
        if (k)
            find_row_in_tile(&row, g, t->rows.n + k);
        stage_gates(g, row.z, g->gates + k * job->dim, 0, some * job->dim);
        t->gates = g->gates;
    }
    unsigned options = (g->again & ~(unsigned)(OPT_ADD_Y | OPT_PREFETCH)) | (reads_stage ? OPT_X_F32 : 0);
    if (!is_direct)
        options = (options & ~(unsigned)(OPT_STREAM_O | OPT_AFTER)) | OPT_O_F32;
    if (NRG_RARELY(options & OPT_STATISTICS))
        store_tile_statistics(job, &t->rows);
    if (NRG_RARELY(t->rows.s.fallback != 0))
        output_fallback_rows(t, job, options, g->D);
    if (job->part == NRG_NORM_SUMS)
        return;
    if (g->D == NRG_F32 && job->dim == FAST_LEAST && job->w && !job->b && !t->rows.s.fallback &&
        !(options & (OPT_CENTRED | OPT_EXACT | OPT_W_OFFSET)))
        output_least_groups(t, job, (options & OPT_STREAM_O) != 0);
    else
        output_gated_tile(t, job, options, g->D);
    for (size_t k = 0, some; !is_direct && k < count; k += some) {
        some = lesser(all->together, count - k);
        if (k || t->gates)
            find_row_in_tile(&row, g, t->rows.n + k);
        gated_sink(g, &row, t->stage + k * job->dim, 0, some * job->dim);
    }
}

/* Returns 0 if a row does not fit. */
static __attribute__((noinline)) int schedule_gated_tiles(const nrg_norm_job *job, nrg_dtype D)
{
    _Alignas(64) float room[GATED_ROOM];
    gated_tiles all = {.plan = plan_of_gated(job, room, NULL, 1, D), .together = rows_are_dense(job, D) ? TILE : 1};
    const gated_plan *g = &all.plan;
    if (!stage_tiles(&all))
        return 0;
    float *const stage = room + (has_gate_stage(job, D) ? all.room : 0);
    const size_t most = lesser(all.room / job->dim, TILE);
    gated_tile tiles[2] = {{.stage = stage}, {.stage = stage + all.apart}};
    const int is_ahead = job->part == NRG_NORM_WHOLE; /* sums alone have nothing to wait for */
    size_t n = job->row_begin;
    for (int turn = 0;; turn ^= 1) {
        gated_tile *const next = &tiles[turn];
        const int begins = n != job->row_end;
        if (begins) {
            next->rows.n = n;
            next->rows.count = (int)lesser(most, job->row_end - n);
            begin_gated_tile(next, &all);
        }
        if (is_ahead ? n != job->row_begin : begins)
            end_gated_tile(is_ahead ? &tiles[turn ^ 1] : next, &all);
        if (n == job->row_end)
            break;
        n += (size_t)next->rows.count;
    }
    if (g->options & (OPT_STREAM_R | OPT_STREAM_O))
        v_nt_fence();
    return 1;
}
#endif

static __attribute__((noinline)) void norm_gated(const nrg_norm_job *job, nrg_dtype D)
{
    const int is_plain = job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY;
#if !NORM_IS_SMALL
    const int has_tiles = job->part == NRG_NORM_SUMS ? job->dim <= FAST_BLOCK : !is_plain;
    if (has_tiles && gated_tiles_fit(job, D) && schedule_gated_tiles(job, D))
        return;
#endif
    if (is_plain)
        norm_part(job, D);
    else
        gated_rows(job, job->row_begin, job->row_end, NULL, D);
}

#endif
