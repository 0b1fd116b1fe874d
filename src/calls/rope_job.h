/* The jobs of a rotation: for nrg_rope_forward, and for the calls that fuse it with a norm.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_ROPE_JOB_H
#define NRG_CALLS_ROPE_JOB_H

#include "../job/rope.h"
#include "../operands/check.h"
#include "../operands/rope.h"
#include "call.h"
#include "quick.h"

/* Share ith of nth of a table. */
static inline void rope_fill_table_job(nrg_position_table_job *job, const nrg_rope_spec *s, const nrg_rope_table_args *a,
                                       size_t positions_stride, size_t table_stride, int ith, int nth)
{
    const size_t pairs = nrg_rope_pairs_of(s);
    *job = (nrg_position_table_job){
        .high = a->frequencies,
        .low = a->tokens ? a->frequencies + pairs : NULL,
        .magnitude = a->magnitude,
        .positions = a->positions,
        .positions_stride = positions_stride,
        .first = a->first_position,
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

static inline int rope_positions_fit(const int32_t *positions, size_t tokens, size_t rows)
{
    for (size_t t = 0; t < tokens; t++)
        if (positions[t] < 0 || (size_t)positions[t] >= rows)
            return 0;
    return 1;
}

/* The last that can be wrong with a rotation that is otherwise sound: rows that its table does not have. */
static inline nrg_status rope_check_ids(const nrg_rope_args *a, const nrg_laid *l)
{
    const size_t stride = l->stride[NRG_ROPE_POSITIONS][0], rows = a->shared_table_ids ? 1 : a->batch;
    for (size_t b = 0; nrg_rope_is_used(a) && a->table_ids && b < rows; b++)
        if (!rope_positions_fit((const int32_t *)((const char *)a->table_ids + b * stride), a->tokens, a->table_rows))
            return NRG_ERR_POSITION;
    return NRG_OK;
}

/* What a _check returns. */
static inline nrg_status rope_ask(const nrg_call *call, const void *const *part, const nrg_rope_args *a)
{
    nrg_laid l;
    const nrg_status status = nrg_lay(&l, call, part, 0, 1);
    return nrg_asked(status == NRG_OK ? rope_check_ids(a, &l) : status);
}

/* Without an output, the input is written. */
static inline void *rope_output(const void *x, void *o) { return o ? o : (void *)(uintptr_t)x; }

/* The job of q, or of k, without its share. Strides: of heads, then of tokens. Field by field: an initializer clears the job
 * first, which takes as long as a head. */
static inline void rope_fill_job(nrg_rope_job *job, const nrg_rope_spec *s, const nrg_rope_args *a, int is_k, size_t table_stride,
                                 const size_t x_strides[2], const size_t o_strides[2], int backward, int stream, int far)
{
    job->x = is_k ? a->k : a->q;
    job->o = rope_output(is_k ? a->k : a->q, is_k ? a->k_o : a->q_o);
    job->x_token_stride = x_strides[1];
    job->x_head_stride = x_strides[0];
    job->o_token_stride = o_strides[1];
    job->o_head_stride = o_strides[0];
    job->table = (const char *)a->table;
    job->table_stride = table_stride;
    job->positions = a->table_ids;
    job->heads = is_k ? a->k_heads : a->q_heads;
    job->dim = a->dim;
    job->offset = a->rotate_from;
    job->pairs = nrg_rope_pairs_of(s);
    job->interleaved = s->mode == NRG_ROPE_NORMAL;
    job->backward = backward;
    job->stream = stream;
    job->far = far;
}

/* A tensor of a plain call and its output, with their strides: of heads, then of tokens. */
typedef struct plain_tensor {
    quick_operand x, o;
    size_t x_strides[2], o_strides[2];
} plain_tensor;

/* Whether all heads lie at equal distances. */
static inline int plain_heads(quick_operand *rows, size_t strides[2], const void *pointer, const nrg_head_strides *given,
                              size_t tokens, size_t heads, size_t row, size_t unit)
{
    const int lie_well = quick_rows(rows, pointer, heads == 1 ? given->row : given->head, tokens * heads, row, unit);
    strides[0] = rows->stride;
    strides[1] = heads * rows->stride;
    return lie_well & (pointer != NULL) & ((tokens == 1) | (given->row == 0) | (given->row == strides[1]));
}

/* A tensor; without an output it takes that place. */
static inline int plain_pair(plain_tensor *t, const void *x, const nrg_head_strides *x_strides, const void *o,
                             const nrg_head_strides *o_strides, size_t tokens, size_t heads, size_t row, size_t unit)
{
    const int lies_well = plain_heads(&t->x, t->x_strides, x, x_strides, tokens, heads, row, unit);
    if (o)
        return lies_well & plain_heads(&t->o, t->o_strides, o, o_strides, tokens, heads, row, unit);
    t->o = t->x;
    t->o_strides[0] = t->x_strides[0];
    t->o_strides[1] = t->x_strides[1];
    return lies_well;
}

/* Most calls, of one token above all, in every layer for every token that is made. Whether they are plainly sound, but for what
 * table_ids holds; the jobs of what has heads are then complete but for their shares, and o is where they write. past_l3, a
 * constant: outputs of a call that an L3 holds are not streamed. */
NRG_INLINE int rope_is_plain(nrg_rope_job *const job[2], quick_operand o[2], const nrg_rope_spec *s, const nrg_rope_args *a,
                             int backward, int past_l3)
{
    if ((s->size != sizeof *s) | (a->size != sizeof *a))
        return 0;
    const size_t dim = a->dim, tokens = a->tokens, q_heads = a->q_heads, k_heads = a->k_heads, table_rows = a->table_rows;
    /* branches that are never taken: 343 instructions of this call where one sum of all conditions takes 438 */
    if ((s->mode != NRG_ROPE_NORMAL && s->mode != NRG_ROPE_NEOX) || (unsigned)a->dtype - NRG_F32 > NRG_BF16 - NRG_F32 ||
        (unsigned)a->store > NRG_STORE_STREAM || s->yarn > NRG_ROPE_YARN_MOST ||
        ((a->batch - 1) | a->table_ids_batch_stride | a->reserved | (unsigned)a->shared_table_ids))
        return 0;
    if (dim - 1 >= NRG_PLACE_MOST || q_heads - 1 >= NRG_PLACE_MOST || k_heads >= NRG_PLACE_MOST || tokens - 1 >= NRG_PLACE_MOST ||
        tokens * (q_heads | k_heads) >= NRG_PLACE_MOST || table_rows - 1 >= NRG_PLACE_MOST || s->n_dims - 1 >= dim ||
        (s->n_dims & 1) || a->rotate_from > dim - s->n_dims || !a->table)
        return 0;
    const size_t element = a->dtype == NRG_F32 ? 4 : 2, row = dim * element, unit = element - 1;
    const size_t table_row = s->n_dims * sizeof(float);
    plain_tensor q, k;
    quick_operand table, positions = {0, 0, 0};
    int sound = plain_pair(&q, a->q, &a->q_strides, a->q_o, &a->q_o_strides, tokens, q_heads, row, unit) &
                quick_rows(&table, a->table, a->table_stride, table_rows, table_row, sizeof(float) - 1) &
                quick_apart(&q.o, &q.x, 1) & quick_apart(&q.o, &table, 0);
    size_t bytes = 2 * tokens * (q_heads + k_heads) * row + table_rows * table_row;
    if (a->table_ids) {
        sound &= quick_rows(&positions, a->table_ids, 0, 1, tokens * sizeof(int32_t), sizeof(int32_t) - 1) &
                 quick_apart(&q.o, &positions, 0);
        bytes += tokens * sizeof(int32_t);
    }
    const int stream = past_l3 ? nrg_wants_stream_past_l3(a->store, bytes) : nrg_wants_stream(a->store, bytes),
              far = nrg_is_far(bytes);
    rope_fill_job(job[0], s, a, 0, table.stride, q.x_strides, q.o_strides, backward, stream, far);
    if (k_heads) {
        sound &= plain_pair(&k, a->k, &a->k_strides, a->k_o, &a->k_o_strides, tokens, k_heads, row, unit) &
                 quick_apart(&k.o, &k.x, 1) & quick_apart(&k.o, &table, 0) & quick_apart(&k.o, &q.x, 0) &
                 quick_apart(&k.o, &q.o, 0) & quick_apart(&q.o, &k.x, 0);
        if (a->table_ids)
            sound &= quick_apart(&k.o, &positions, 0);
        rope_fill_job(job[1], s, a, 1, table.stride, k.x_strides, k.o_strides, backward, stream, far);
    } else {
        sound &= !a->k & !a->k_o;
    }
    o[0] = q.o;
    o[1] = k_heads ? k.o : q.o;
    return sound & ((a->table_ids != NULL) | (table_rows >= tokens));
}

/* Whether each of table_ids is a row of the table. A caller of rope_is_plain tests this as well, after all else. */
static inline int rope_plain_ids_fit(const nrg_rope_args *a)
{
    return !a->table_ids || rope_positions_fit(a->table_ids, a->tokens, a->table_rows);
}

/* How the batches of q, or of k, lie: each is a job of its own. */
typedef struct rope_batches {
    size_t count, rows; /* rows: of one */
    size_t x_stride, o_stride, positions_stride;
} rope_batches;

/* Jobs of q and k without their shares, those of the first batch, and what the others have, from a sound call; q_o: its operand;
 * stream: whether outputs go past the caches. heads of a job is 0 if the tensor is empty. */
static inline void rope_make_jobs(nrg_rope_job *const job[2], rope_batches batches[2], const nrg_laid *l, const nrg_rope_spec *s,
                                  const nrg_rope_args *a, unsigned q_o, int backward, int stream)
{
    for (unsigned k = 0; k < 2; k++) {
        const size_t *const x_stride = l->stride[NRG_ROPE_Q + k];
        const size_t *const o_stride = (k ? a->k_o : a->q_o) ? l->stride[q_o + k] : x_stride;
        batches[k] = (rope_batches){
            .count = a->batch,
            .rows = a->tokens * (k ? a->k_heads : a->q_heads),
            .x_stride = x_stride[2],
            .o_stride = o_stride[2],
            .positions_stride = a->shared_table_ids ? 0 : l->stride[NRG_ROPE_POSITIONS][0],
        };
        job[k]->heads = 0;
        if (batches[k].count && batches[k].rows)
            rope_fill_job(job[k], s, a, (int)k, l->stride[NRG_ROPE_TABLE][0], x_stride, o_stride, backward, stream,
                          nrg_is_far(l->bytes));
    }
}

/* A share of a call's rows, q's before k's, as a share of one tensor's. */
static inline void rope_share(nrg_rope_job *job, size_t rows_before, size_t rows, size_t begin, size_t end)
{
    begin = begin > rows_before ? begin - rows_before : 0;
    end = end > rows_before ? end - rows_before : 0;
    job->begin = begin < rows ? begin : rows;
    job->end = end < rows ? end : rows;
}

/* What a share of all batches has of one of them. */
static inline void rope_take_batch(nrg_rope_job *one, const nrg_rope_job *all, const rope_batches *b, size_t batch)
{
    const size_t before = batch * b->rows;
    one->x = all->x + batch * b->x_stride;
    one->o = all->o + batch * b->o_stride;
    if (all->positions)
        one->positions = (const int32_t *)((const char *)all->positions + batch * b->positions_stride);
    one->begin = all->begin > before ? all->begin - before : 0;
    one->end = all->end - before < b->rows ? all->end - before : b->rows;
}

/* A share of all batches, which has rows. */
static inline void rope_turn_batches(nrg_rope_kernel *rope, const nrg_rope_job *all, const rope_batches *b)
{
    nrg_rope_job one = *all;
    for (size_t batch = all->begin / b->rows; batch * b->rows < all->end; batch++) {
        rope_take_batch(&one, all, b, batch);
        rope(&one);
    }
}

#endif
