/* The public layer of rotary position embedding: frequencies, the table and the rotation.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../exact/rope_frequencies.h"
#include "../job/rope.h"
#include "../operands/place.h"
#include "quick.h"
#include "rope_job.h"
#include "call.h"

#define NRG_MAKE "../operands/table.h"
#include "../operands/rope_calls.def"

size_t nrg_rope_pairs(const nrg_rope_spec *spec)
{
    nrg_checked c;
    const nrg_status status = nrg_check_options(&c, &nrg_call_rope_pairs, (const void *const[]){spec});
    return status == NRG_OK ? c.sizes.n[NRG_ROPE_PAIRS_N_PAIRS] : 0;
}

nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude)
{
    nrg_laid l;
    const nrg_rope_frequencies_args args = {frequencies, magnitude};
    const nrg_status status = nrg_lay(&l, &nrg_call_rope_frequencies, (const void *const[]){spec, &args}, 0, 1);
    if (status != NRG_OK)
        return status;
    return nrg_rope_turns(spec, nrg_rope_pairs_of(spec), frequencies, magnitude) ? NRG_OK : NRG_ERR_CONSTANT;
}

#define NRG_OF NRG_ROPE_TABLE
#define NRG_NAME rope_table
#include "../operands/precheck.h"

NRG_OWN_FRAME nrg_status lay_table(nrg_laid *l, const nrg_rope_spec *s, const nrg_rope_table_args *a, int ith, int nth)
{
    return rope_table_precheck(s, a, ith, nth, l) == NRG_OK ? NRG_OK : NRG_LAY(l, rope_table, s, a);
}

nrg_status nrg_rope_table(const nrg_rope_spec *s, const nrg_rope_table_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay_table(&l, s, a, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_position_table_job job;
    rope_fill_table_job(&job, s, a, l.stride[NRG_ROPE_TABLE_POSITIONS][0], l.stride[NRG_ROPE_TABLE_TABLE][0], ith, nth);
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    return NRG_OK;
}

nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args)
{
    return NRG_ASK(rope_table, spec, args);
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

/* Most calls, of one token above all, in every layer for every token that is made. Whether they are plainly sound; the jobs
 * of what has heads are then complete but for their shares. */
static inline int is_plain(nrg_rope_job job[2], const nrg_rope_spec *s, const nrg_rope_args *a, int backward)
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
    const int stream = nrg_wants_stream_past_l3(a->store, bytes), far = nrg_is_far(bytes);
    rope_fill_job(&job[0], s, a, 0, table.stride, q.x_strides, q.o_strides, backward, stream, far);
    if (k_heads) {
        sound &= plain_pair(&k, a->k, &a->k_strides, a->k_o, &a->k_o_strides, tokens, k_heads, row, unit) &
                 quick_apart(&k.o, &k.x, 1) & quick_apart(&k.o, &table, 0) & quick_apart(&k.o, &q.x, 0) &
                 quick_apart(&k.o, &q.o, 0) & quick_apart(&q.o, &k.x, 0);
        if (a->table_ids)
            sound &= quick_apart(&k.o, &positions, 0);
        rope_fill_job(&job[1], s, a, 1, table.stride, k.x_strides, k.o_strides, backward, stream, far);
    } else {
        sound &= !a->k & !a->k_o;
    }
    return a->table_ids ? sound && rope_positions_fit(a->table_ids, tokens, table_rows) : sound & (table_rows >= tokens);
}

/* All other calls. */
NRG_OWN_FRAME nrg_status make_jobs(nrg_rope_job job[2], rope_batches batches[2], const nrg_rope_spec *spec,
                                   const nrg_rope_args *args, int ith, int nth, int backward)
{
    nrg_laid l;
    nrg_status status = NRG_LAY(&l, rope, spec, args);
    if (status != NRG_OK || (status = rope_check_ids(args, &l)) != NRG_OK)
        return status;
    rope_make_jobs((nrg_rope_job *const[]){&job[0], &job[1]}, batches, &l, spec, args, NRG_ROPE_Q_O, backward,
                   nrg_wants_stream_past_l3(args->store, l.bytes));
    return NRG_OK;
}

NRG_TABLES(rope)

static nrg_status rotate(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth, int backward)
{
    nrg_rope_job job[2];
    rope_batches batches[2];
    if (!(spec && args && (ith >= 0) & (ith < nth) && is_plain(job, spec, args, backward))) {
        const nrg_status status = make_jobs(job, batches, spec, args, ith, nth, backward);
        if (status != NRG_OK)
            return status;
    }
    const size_t batch = args->batch, q_rows = batch * args->tokens * args->q_heads,
                 k_rows = batch * args->tokens * args->k_heads;
    const size_t rows = q_rows + k_rows, begin = nth == 1 ? 0 : nrg_share(rows, ith, nth),
                 end = nth == 1 ? rows : nrg_share(rows, ith + 1, nth);
    nrg_rope_kernel *const rope = NRG_ACTIVE_KERNEL(rope, args->dtype);
    for (int k = 0; k < 2; k++) {
        if (!(k ? k_rows : q_rows))
            continue;
        rope_share(&job[k], k ? q_rows : 0, k ? k_rows : q_rows, begin, end);
        if (job[k].begin == job[k].end)
            continue;
        if (batch == 1)
            rope(&job[k]);
        else
            rope_turn_batches(rope, &job[k], &batches[k]);
    }
    return NRG_OK;
}

nrg_status nrg_rope_forward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    return rotate(spec, args, ith, nth, 0);
}

nrg_status nrg_rope_forward_check(const nrg_rope_spec *spec, const nrg_rope_args *args)
{
    return rope_ask(&nrg_call_rope, (const void *const[]){spec, args}, args);
}

#ifndef NRG_NO_BACKWARD
nrg_status nrg_rope_backward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth)
{
    return rotate(spec, args, ith, nth, 1);
}

nrg_status nrg_rope_backward_check(const nrg_rope_spec *spec, const nrg_rope_args *args)
{
    return nrg_rope_forward_check(spec, args); /* the same operands */
}
#endif
