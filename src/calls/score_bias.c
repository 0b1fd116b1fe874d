/* The public layer of attention score biases: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/score_bias.h"
#include "../operands/place.h"
#include "../operands/score_bias.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/score_bias_calls.def"

size_t nrg_score_bias_diagonals(size_t queries, size_t keys) { return nrg_diagonals(queries, keys); }

NRG_OWN_FRAME nrg_status lay(nrg_laid *l, const nrg_score_bias_args *a, int ith, int nth)
{
    return score_bias_forward_precheck(a, ith, nth, l) == NRG_OK ? NRG_OK : NRG_LAY(l, score_bias_forward, a);
}

NRG_TABLES(score_bias)

nrg_status nrg_score_bias_forward(const nrg_score_bias_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = lay(&l, a, ith, nth);
    if (status != NRG_OK)
        return status;
    const size_t rows = a->keys ? a->batch * a->heads * a->queries : 0;
    const nrg_score_bias_job job = {
        .scores = a->scores,
        .diagonals = (const char *)a->diagonals,
        .o = a->o,
        .scores_stride = nrg_rows_together(l.stride[NRG_SCORE_BIAS_SCORES]),
        .o_stride = nrg_rows_together(l.stride[NRG_SCORE_BIAS_O]),
        .diagonals_stride = l.stride[NRG_SCORE_BIAS_DIAGONALS][0],
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .begin = nrg_share(rows, ith, nth),
        .end = nrg_share(rows, ith + 1, nth),
        .scale = a->scale,
        .stream = nrg_wants_stream(a->store, l.bytes),
    };
    if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(score_bias, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_score_bias_forward_check(const nrg_score_bias_args *args) { return NRG_ASK(score_bias_forward, args); }

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

/* A head's matrix. */
typedef struct score_shape {
    size_t heads, queries, keys, diagonals;
} score_shape;

enum { LINE_OF_DOUBLES = 8 };

/* Elements of a head's matrix on its first e diagonals, which grow by one until they are as long as the shorter side allows. */
static size_t elements_before(const score_shape *s, size_t e)
{
    const size_t shorter = s->queries < s->keys ? s->queries : s->keys;
    if (e <= shorter)
        return e * (e + 1) / 2;
    if (e <= s->diagonals - shorter)
        return shorter * (shorter + 1) / 2 + (e - shorter) * shorter;
    return s->queries * s->keys - elements_before(s, s->diagonals - e);
}

/* The diagonal, counted over all heads, where ith's share of the elements begins: within a head a multiple of 8, so that
 * threads do not write to the same line. */
static size_t share_of_diagonals(const score_shape *s, int ith, int nth)
{
    const size_t of_head = s->queries * s->keys, element = nrg_share(s->heads * of_head, ith, nth);
    const size_t head = element / of_head, wanted = element % of_head;
    size_t low = 0, high = s->diagonals; /* elements_before(low) <= wanted < elements_before(high) */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (elements_before(s, middle) <= wanted)
            low = middle;
        else
            high = middle;
    }
    return head * s->diagonals + low / LINE_OF_DOUBLES * LINE_OF_DOUBLES;
}

NRG_TABLES(score_bias_backward)

nrg_status nrg_score_bias_backward(const nrg_score_bias_backward_args *a, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, score_bias_backward, a);
    if (status != NRG_OK)
        return status;
    const score_shape shape = {a->heads, a->queries, a->keys, nrg_diagonals(a->queries, a->keys)};
    const size_t diagonals = a->heads * shape.diagonals; /* fits, since d_diagonals has so many numbers */
    const int has_elements = a->batch && diagonals;
    const nrg_score_bias_backward_job job = {
        .d_o = a->d_o,
        .d_diagonals = (char *)a->d_diagonals,
        .d_o_stride = nrg_rows_together(l.stride[NRG_SCORE_BIAS_BACKWARD_D_O]),
        .d_diagonals_stride = l.stride[NRG_SCORE_BIAS_BACKWARD_D_DIAGONALS][0],
        .batch = a->batch,
        .queries = a->queries,
        .keys = a->keys,
        .begin = has_elements ? share_of_diagonals(&shape, ith, nth) : nrg_share(diagonals, ith, nth),
        .end = has_elements ? share_of_diagonals(&shape, ith + 1, nth) : nrg_share(diagonals, ith + 1, nth),
        .accumulate = a->accumulate != 0,
    };
    if (job.begin != job.end)
        NRG_ACTIVE_KERNEL(score_bias_backward, a->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_score_bias_backward_check(const nrg_score_bias_backward_args *args) { return NRG_ASK(score_bias_backward, args); }
#endif
