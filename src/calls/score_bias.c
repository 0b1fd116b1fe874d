/* The public layer of attention score biases: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include "score_bias_checks.h"

enum operand { SCORES = 1, DIAGONALS = 2, O = 4 };

enum {
    ARGS_SIZE_MIN = offsetof(nrg_score_bias_args, reserved) + sizeof(uint32_t),
    BACKWARD_ARGS_SIZE_MIN = offsetof(nrg_score_bias_backward_args, d_diagonals_stride) + sizeof(size_t)
};

/* A tensor [batch, heads, queries, keys]. */
typedef struct score_shape {
    size_t batch, heads, queries, keys;
    nrg_dtype dtype;
    size_t count;     /* elements */
    size_t diagonals; /* of a head */
} score_shape;

static nrg_status find_shape(score_shape *s)
{
    nrg_status status = count_diagonals(s->queries, s->keys, &s->diagonals);
    if (status != NRG_OK)
        return status;
    if (!s->batch || !s->heads || !s->diagonals) {
        s->count = 0;
        return NRG_OK;
    }
    size_t rows;
    return product(s->batch, s->heads, &rows) && product(rows, s->queries, &rows) && product(rows, s->keys, &s->count)
               ? NRG_OK
               : NRG_ERR_OVERFLOW;
}

typedef struct level {
    size_t count, stride;
} level;

/* Sorted by stride, each level steps over all that is in the ones below it: then no two rows share a byte. */
static int levels_nest(level *l, size_t row)
{
    for (int i = 1; i < 3; i++)
        for (int j = i; j > 0 && l[j].stride < l[j - 1].stride; j--) {
            const level t = l[j];
            l[j] = l[j - 1];
            l[j - 1] = t;
        }
    size_t inside = row;
    for (int i = 0; i < 3; i++) {
        if (l[i].count == 1)
            continue;
        if (l[i].stride < inside)
            return 0;
        inside = (l[i].count - 1) * l[i].stride + inside; /* fits: the operand's extent does */
    }
    return 1;
}

/* Adds a tensor, if it has elements, as all that is between its first and its last byte. Strides of 0 become real ones. */
static nrg_status add_tensor(extents *all, unsigned name, unsigned in_place, const void *pointer, const score_shape *s,
                             nrg_score_strides *stride)
{
    const size_t element = s->dtype == NRG_F32 ? 4 : 2;
    size_t row, bytes;
    if (!product(s->keys, element, &row) || !product(s->count, element, &bytes))
        return NRG_ERR_OVERFLOW;
    stride->query = stride->query ? stride->query : row;
    if (!stride->head && !product(s->queries, stride->query, &stride->head))
        return NRG_ERR_OVERFLOW;
    if (!stride->batch) {
        size_t of_heads, of_queries; /* whichever lie outside */
        if (!product(s->heads, stride->head, &of_heads) || !product(s->queries, stride->query, &of_queries))
            return NRG_ERR_OVERFLOW;
        stride->batch = of_heads > of_queries ? of_heads : of_queries;
    }
    if (!s->count)
        return NRG_OK;
    if (stride->query < row || stride->head < row || stride->batch < row)
        return NRG_ERR_STRIDE;
    const uintptr_t first = (uintptr_t)pointer;
    if ((first | stride->query | stride->head | stride->batch) & (element - 1))
        return NRG_ERR_ALIGNMENT;
    level l[3] = {{s->queries, stride->query}, {s->heads, stride->head}, {s->batch, stride->batch}};
    size_t extent_bytes = row;
    for (int i = 0; i < 3; i++) {
        size_t before_last;
        if (!product(l[i].count - 1, l[i].stride, &before_last) || before_last > SIZE_MAX - extent_bytes)
            return NRG_ERR_OVERFLOW;
        extent_bytes += before_last;
    }
    if (extent_bytes > UINTPTR_MAX - first)
        return NRG_ERR_OVERFLOW;
    if (in_place != ANY_OPERAND && !levels_nest(l, row))
        return NRG_ERR_STRIDE;
    extent *e = &all->e[all->count++];
    e->name = name;
    e->in_place = in_place;
    e->element = element;
    e->bytes = bytes; /* what is moved. As one row it meets whatever it is around, gaps or not */
    e->stride = bytes;
    e->rows = 1;
    e->first = first;
    e->end = first + extent_bytes;
    return NRG_OK;
}

/* Whether rows of equal numbers lie at equal places. */
static int same_rows(const score_shape *s, const nrg_score_strides *a, const nrg_score_strides *b)
{
    return (s->queries == 1 || a->query == b->query) && (s->heads == 1 || a->head == b->head) &&
           (s->batch == 1 || a->batch == b->batch);
}

nrg_status nrg_score_bias_forward(const nrg_score_bias_args *args, int ith, int nth)
{
    nrg_score_bias_args copy;
    if (!args)
        return NRG_ERR_NULL;
    const nrg_score_bias_args *a = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    if (!a || a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || (unsigned)a->store > NRG_STORE_STREAM)
        return NRG_ERR_ENUM;
    if (!(a->scale >= -FLT_MAX && a->scale <= FLT_MAX))
        return NRG_ERR_CONSTANT;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    score_shape shape = {a->batch, a->heads, a->queries, a->keys, a->dtype, 0, 0};
    nrg_status status = find_shape(&shape);
    if (status != NRG_OK)
        return status;
    const size_t heads = shape.count ? a->heads : 0;
    if (shape.count && (!a->scores || !a->diagonals || !a->o))
        return NRG_ERR_NULL;

    nrg_score_strides scores_stride = {a->scores_batch_stride, a->scores_head_stride, a->scores_query_stride};
    nrg_score_strides o_stride = {a->o_batch_stride, a->o_head_stride, a->o_query_stride};
    size_t diagonals_stride = a->diagonals_stride;
    extent operands[3];
    extents all = {0, operands};
    if ((status = add_tensor(&all, SCORES, ANY_OPERAND, a->scores, &shape, &scores_stride)) != NRG_OK ||
        (status = add_operand(&all, DIAGONALS, ANY_OPERAND, a->diagonals, NRG_F32, shape.diagonals, heads, &diagonals_stride)) !=
            NRG_OK ||
        (status = add_tensor(&all, O, SCORES, a->o, &shape, &o_stride)) != NRG_OK || (status = check_overlap(&all)) != NRG_OK)
        return status;
    if (!shape.count)
        return NRG_OK;
    if (a->scores == a->o && !same_rows(&shape, &scores_stride, &o_stride))
        return NRG_ERR_OVERLAP;

    const size_t rows = a->batch * a->heads * a->queries;
    const nrg_score_bias_job job = {
        .scores = a->scores,
        .diagonals = (const char *)a->diagonals,
        .o = a->o,
        .scores_stride = scores_stride,
        .o_stride = o_stride,
        .diagonals_stride = diagonals_stride,
        .heads = a->heads,
        .queries = a->queries,
        .keys = a->keys,
        .begin = share(rows, ith, nth),
        .end = share(rows, ith + 1, nth),
        .scale = a->scale != 0 ? a->scale : 1,
        .stream = wants_stream(a->store, &all),
    };
    if (job.begin == job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(score_bias, a->dtype)(&job);
    return NRG_OK;
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

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
    const size_t of_head = s->queries * s->keys, element = share(s->heads * of_head, ith, nth);
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

nrg_status nrg_score_bias_backward(const nrg_score_bias_backward_args *args, int ith, int nth)
{
    nrg_score_bias_backward_args copy;
    if (!args)
        return NRG_ERR_NULL;
    const nrg_score_bias_backward_args *a = read_struct(args, &copy, sizeof copy, BACKWARD_ARGS_SIZE_MIN);
    if (!a)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype))
        return NRG_ERR_ENUM;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    score_shape shape = {a->batch, a->heads, a->queries, a->keys, a->dtype, 0, 0};
    nrg_status status = find_shape(&shape);
    if (status != NRG_OK)
        return status;
    const size_t heads = shape.diagonals ? a->heads : 0;
    if ((shape.count && !a->d_o) || (heads && !a->d_diagonals))
        return NRG_ERR_NULL;

    nrg_score_strides d_o_stride = {a->d_o_batch_stride, a->d_o_head_stride, a->d_o_query_stride};
    size_t stride = a->d_diagonals_stride;
    extent operands[2];
    extents all = {0, operands};
    if ((status = add_tensor(&all, SCORES, ANY_OPERAND, a->d_o, &shape, &d_o_stride)) != NRG_OK ||
        (status = add_doubles(&all, DIAGONALS, 0, a->d_diagonals, shape.diagonals, heads, &stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    if (!heads)
        return NRG_OK;

    const size_t diagonals = a->heads * shape.diagonals;
    const nrg_score_bias_backward_job job = {
        .d_o = a->d_o,
        .d_diagonals = (char *)a->d_diagonals,
        .d_o_stride = d_o_stride,
        .d_diagonals_stride = stride,
        .batch = a->batch,
        .queries = a->queries,
        .keys = a->keys,
        .begin = shape.count ? share_of_diagonals(&shape, ith, nth) : share(diagonals, ith, nth),
        .end = shape.count ? share_of_diagonals(&shape, ith + 1, nth) : share(diagonals, ith + 1, nth),
        .accumulate = a->accumulate != 0,
    };
    if (job.begin == job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(score_bias_backward, a->dtype)(&job);
    return NRG_OK;
}
#endif
