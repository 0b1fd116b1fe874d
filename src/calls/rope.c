/* The public layer of rotary position embedding: frequencies, the table and the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../exact/rope_frequencies.h"
#include "../job/rope.h"
#include "quick.h"
#include "quick_table.h"
#include "rope_job.h"
#include "share.h"

size_t nrg_rope_pairs(const nrg_rope_spec *spec)
{
    nrg_checked c;
    const nrg_status status = nrg_check_options(&c, &nrg_call_rope_pairs, (const void *const[]){spec});
    return status == NRG_OK ? c.sizes.n[NRG_ROPE_PAIRS] : 0;
}

static int factors_are_sound(const float *factors, size_t pairs)
{
    for (size_t p = 0; factors && p < pairs; p++)
        if (!(factors[p] > 0 && factors[p] <= FLT_MAX))
            return 0;
    return 1;
}

nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude)
{
    nrg_checked c;
    const nrg_rope_frequencies_args args = {frequencies, magnitude};
    const nrg_status status = nrg_check(&c, &nrg_call_rope_frequencies, (const void *const[]){spec, &args}, 0, 1);
    if (status != NRG_OK)
        return status;
    const nrg_rope_spec *s = c.part[NRG_ROPE_SPEC];
    const size_t pairs = nrg_rope_pairs_of(s);
    return factors_are_sound(s->freq_factors, pairs) && nrg_rope_turns(s, pairs, frequencies, magnitude) ? NRG_OK
                                                                                                         : NRG_ERR_CONSTANT;
}

static void fill_table_job(nrg_position_table_job *job, const nrg_rope_spec *s, const nrg_rope_table_args *a,
                           size_t positions_stride, size_t table_stride, int ith, int nth)
{
    const size_t pairs = nrg_rope_pairs_of(s);
    *job = (nrg_position_table_job){
        .high = a->frequencies,
        .low = a->tokens ? a->frequencies + pairs : NULL,
        .magnitude = a->magnitude,
        .positions = a->positions,
        .positions_stride = positions_stride,
        .first = a->first,
        .mode = s->mode,
        .order = NRG_TABLE_COS_SIN,
        .pairs = pairs,
        .dim = 2 * pairs,
        .table = (char *)a->table,
        .table_stride = table_stride,
        .begin = nrg_share(a->tokens, ith, nth),
        .end = nrg_share(a->tokens, ith + 1, nth),
    };
    memcpy(job->sections, s->sections, sizeof job->sections);
}

/* Whether a call is plainly sound; *table_stride is then the real one. Without sections there is one axis of positions. */
static inline int is_plain_table(size_t *table_stride, const nrg_rope_spec *s, const nrg_rope_table_args *a)
{
    if ((s->size != sizeof *s) | (a->size != sizeof *a) | (s->reserved | a->reserved) ||
        ((s->mode != NRG_ROPE_NORMAL) & (s->mode != NRG_ROPE_NEOX)) | (s->n_dims % 2 != 0) | !(fabs(a->magnitude) <= DBL_MAX) |
            (a->positions_stride != 0))
        return 0;
    quick_table table = {a->frequencies, a->positions, a->first,      (void *)a->table, a->table_stride,
                         a->tokens,      s->n_dims,    sizeof(float), s->n_dims / 2};
    const int is_sound = quick_table_is_sound(&table);
    *table_stride = table.stride;
    return is_sound;
}

/* All other calls. In a frame of its own, like the one of nrg_rope: what checking takes shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_table_job(nrg_position_table_job *job, const nrg_rope_spec *spec,
                                                           const nrg_rope_table_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_rope_table, (const void *const[]){spec, args}, ith, nth);
    if (status == NRG_OK)
        fill_table_job(job, c.part[NRG_ROPE_SPEC], c.part[NRG_ROPE_ARGS], c.stride[NRG_ROPE_TABLE_POSITIONS][0],
                       c.stride[NRG_ROPE_TABLE_TABLE][0], ith, nth);
    return status;
}

nrg_status nrg_rope_table(const nrg_rope_spec *spec, const nrg_rope_table_args *args, int ith, int nth)
{
    nrg_position_table_job job;
    size_t table_stride;
    if (spec && args && (ith >= 0) & (ith < nth) && is_plain_table(&table_stride, spec, args)) {
        fill_table_job(&job, spec, args, 0, table_stride, ith, nth);
    } else {
        const nrg_status status = make_table_job(&job, spec, args, ith, nth);
        if (status != NRG_OK)
            return status;
    }
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    return NRG_OK;
}

nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args)
{
    nrg_position_table_job job;
    return make_table_job(&job, spec, args, 0, 1);
}

/* A tensor of a plain call, and its strides: of heads, then of tokens. */
typedef struct plain_tensor {
    quick_operand rows;
    size_t strides[2];
} plain_tensor;

typedef struct plain_call {
    plain_tensor q, k, q_o, k_o;
    quick_operand table, positions;
    size_t bytes;
} plain_call;

/* Heads at equal distances; those of one token are. */
static inline int plain_heads(plain_tensor *t, const void *pointer, size_t head_stride, size_t token_stride, size_t tokens,
                              size_t heads, size_t row, size_t unit)
{
    const int lie_well = quick_rows(&t->rows, heads ? pointer : NULL, head_stride, tokens * heads, row, unit);
    t->strides[0] = t->rows.stride;
    t->strides[1] = heads * t->rows.stride;
    return lie_well & ((tokens == 1) | (token_stride == 0) | (token_stride == t->strides[1]) | !heads);
}

/* Most calls, of one token above all, in every layer for every token that is made. Whether they are plainly sound; *c is then
 * complete. */
static inline int is_plain(plain_call *c, const nrg_rope_spec *s, const nrg_rope_args *a)
{
    if ((s->size != sizeof *s) | (a->size != sizeof *a))
        return 0;
    const size_t dim = a->dim, tokens = a->tokens, q_heads = a->q_heads, k_heads = a->k_heads;
    const size_t table_rows = a->table_rows ? a->table_rows : tokens;
    const int options = ((s->mode == NRG_ROPE_NORMAL) | (s->mode == NRG_ROPE_NEOX)) &
                        ((unsigned)a->dtype - NRG_F32 <= NRG_BF16 - NRG_F32) & ((unsigned)a->store <= NRG_STORE_STREAM) &
                        !s->reserved & (a->batch <= 1) & !a->positions_batch_stride;
    const int sizes = (dim - 1 < QUICK_MOST) & ((q_heads | k_heads) - 1 < QUICK_MOST) & (tokens - 1 < QUICK_MOST) &
                      (tokens * (q_heads | k_heads) < QUICK_MOST) & (table_rows < QUICK_MOST) & (s->n_dims - 1 < dim) &
                      !(s->n_dims & 1) & (a->offset <= dim - s->n_dims);
    const int operands = ((a->q && a->q_o) | !q_heads) & ((a->k && a->k_o) | !k_heads) & (a->table != NULL);
    if (!(options & sizes & operands))
        return 0;
    const size_t element = a->dtype == NRG_F32 ? 4 : 2, row = dim * element, table_row = s->n_dims * sizeof(float);
    const int lie_well =
        plain_heads(&c->q, a->q, a->q_head_stride, a->q_token_stride, tokens, q_heads, row, element - 1) &
        plain_heads(&c->k, a->k, a->k_head_stride, a->k_token_stride, tokens, k_heads, row, element - 1) &
        plain_heads(&c->q_o, a->q_o, a->q_o_head_stride, a->q_o_token_stride, tokens, q_heads, row, element - 1) &
        plain_heads(&c->k_o, a->k_o, a->k_o_head_stride, a->k_o_token_stride, tokens, k_heads, row, element - 1) &
        quick_rows(&c->table, a->table, a->table_stride, table_rows, table_row, sizeof(float) - 1) &
        quick_rows(&c->positions, a->positions, 0, 1, tokens * sizeof(int32_t), sizeof(int32_t) - 1);
    const quick_operand *const q = &c->q.rows, *const k = &c->k.rows, *const q_o = &c->q_o.rows, *const k_o = &c->k_o.rows;
    const int apart = quick_apart(q_o, q, 1) & quick_apart(q_o, k, 0) & quick_apart(q_o, &c->table, 0) &
                      quick_apart(q_o, &c->positions, 0) & quick_apart(k_o, q, 0) & quick_apart(k_o, k, 1) &
                      quick_apart(k_o, &c->table, 0) & quick_apart(k_o, &c->positions, 0) & quick_apart(k_o, q_o, 0);
    c->bytes = 2 * tokens * (q_heads + k_heads) * row + table_rows * table_row + (a->positions ? tokens * sizeof(int32_t) : 0);
    return lie_well & apart && (a->positions ? rope_positions_fit(a->positions, tokens, table_rows) : table_rows >= tokens);
}

/* All other calls. */
static __attribute__((noinline)) nrg_status make_jobs(nrg_rope_job job[2], rope_batches batches[2], const nrg_rope_spec *spec,
                                                      const nrg_rope_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, &nrg_call_rope, (const void *const[]){spec, args}, ith, nth);
    if (status != NRG_OK)
        return status;
    return rope_make_jobs(job, batches, &c, c.part[NRG_ROPE_SPEC], c.part[NRG_ROPE_ARGS], NRG_ROPE_Q_O);
}

nrg_status nrg_rope(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    nrg_rope_job job[2];
    rope_batches batches[2];
    plain_call plain;
    size_t batch = 1;
    if (spec && args && (ith >= 0) & (ith < nth) && is_plain(&plain, spec, args)) {
        const int stream = nrg_wants_stream(args->store, plain.bytes);
        rope_fill_job(&job[0], spec, args, 0, plain.table.stride, plain.q.strides, plain.q_o.strides, stream);
        rope_fill_job(&job[1], spec, args, 1, plain.table.stride, plain.k.strides, plain.k_o.strides, stream);
    } else {
        const nrg_status status = make_jobs(job, batches, spec, args, ith, nth);
        if (status != NRG_OK)
            return status;
        batch = batches[0].count;
    }
    const size_t q_rows = batch * args->tokens * args->q_heads, k_rows = batch * args->tokens * args->k_heads;
    const size_t rows = q_rows + k_rows, begin = nth == 1 ? 0 : nrg_share(rows, ith, nth),
                 end = nth == 1 ? rows : nrg_share(rows, ith + 1, nth);
    rope_share(&job[0], 0, q_rows, begin, end);
    rope_share(&job[1], q_rows, k_rows, begin, end);
    nrg_rope_kernel *const rope = NRG_ACTIVE_KERNEL(rope, args->dtype);
    for (int i = 0; i < 2; i++) {
        if (!job[i].heads || job[i].begin == job[i].end)
            continue;
        if (batch == 1)
            rope(&job[i]);
        else
            rope_turn_batches(rope, &job[i], &batches[i]);
    }
    return NRG_OK;
}

nrg_status nrg_rope_check(const nrg_rope_spec *spec, const nrg_rope_args *args)
{
    nrg_rope_job job[2];
    rope_batches batches[2];
    return make_jobs(job, batches, spec, args, 0, 1);
}
