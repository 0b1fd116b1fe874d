/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include <string.h>

/* Of numbers of half as many bits, sums and products of a few: never more. */
#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 wide;
#else
typedef uint64_t wide;
#endif

static const void *pointer_of(const nrg_operand *o, const void *const *part) { return nrg_pointer_at(part[o->part], o->at); }

nrg_status verdict_measure(const nrg_call *call, const void *const *part, nrg_sizes *s, verdict_operand *operands)
{
    for (int i = 0; i < call->range_count; i++) {
        const nrg_range *r = &call->ranges[i];
        int32_t value;
        memcpy(&value, (const char *)part[r->part] + r->at, sizeof value);
        if ((int64_t)value < (int64_t)r->low || (int64_t)value > (int64_t)r->low + (int64_t)r->span)
            return (nrg_status)r->status;
    }
    memset(s, 0, sizeof *s);
    s->n[NRG_ONE] = 1;
    nrg_status status = call->measure(part, s);
    for (int i = 0; i < call->operand_count && status == NRG_OK; i++) {
        const nrg_operand *o = &call->operands[i];
        verdict_operand *v = &operands[i];
        memset(v, 0, sizeof *v);
        v->is_there = pointer_of(o, part) && !(s->ignored >> i & 1);
        v->element = nrg_element_bytes(o->element, s);
        v->dim = s->n[o->dim];
        v->row = v->dim * v->element;
        v->rows = 1;
        v->has_elements = v->dim != 0;
        if (o->repeat)
            memcpy(&v->repeated, (const char *)part[o->part] + o->repeat, sizeof v->repeated);
        while (v->levels < NRG_LEVELS && o->level[v->levels].count != NRG_ONE) {
            const size_t count = s->n[o->level[v->levels].count];
            v->has_elements &= count != 0;
            v->count[v->levels] = v->repeated >> v->levels & 1 ? 1 : count;
            v->rows *= v->count[v->levels];
            v->levels++;
        }
    }
    return status;
}

/* The strides that are meant. 0 where they do not fit. */
static int find_strides(const nrg_operand *o, const verdict_operand *v, const void *part, wide stride[NRG_LEVELS])
{
    wide inside = (wide)v->dim * v->element;
    if (inside > SIZE_MAX)
        return 0;
    for (unsigned k = 0; k < v->levels; k++) {
        const size_t given = o->level[k].stride ? nrg_size_at(part, o->level[k].stride) : 0;
        stride[k] = given && v->count[k] != 1 ? given : inside;
        if (v->count[k] == 1)
            continue;
        if (stride[k] > SIZE_MAX)
            return 0;
        if (stride[k] * v->count[k] > inside)
            inside = stride[k] * v->count[k];
    }
    return 1;
}

int verdict_span(const nrg_operand *o, const verdict_operand *v, const void *part, size_t *span)
{
    wide stride[NRG_LEVELS], last = (wide)v->dim * v->element;
    *span = 0;
    if (!find_strides(o, v, part, stride))
        return 0;
    if (!v->has_elements)
        return 1;
    for (unsigned k = 0; k < v->levels; k++) {
        last += stride[k] * (v->count[k] - 1);
        if (last > SIZE_MAX)
            return 0;
    }
    *span = (size_t)last;
    return 1;
}

static nrg_status judge_operand(const nrg_operand *o, const verdict_operand *v, const void *const *part, wide stride[NRG_LEVELS])
{
    const int is_unallocated = pointer_of(o, part) == NRG_UNALLOCATED;
    const uintptr_t first = is_unallocated ? 0 : (uintptr_t)pointer_of(o, part);
    wide span = (wide)v->dim * v->element, last = 0;
    int misaligned = first % v->element != 0;
    if (!find_strides(o, v, part[o->part], stride))
        return NRG_ERR_OVERFLOW;
    if (!v->has_elements)
        return NRG_OK;
    if (o->room && nrg_size_at(part[o->part], o->room) < span)
        return NRG_ERR_WORKSPACE;
    /* from the smallest stride up, each steps over what is inside */
    unsigned done = 0;
    for (unsigned n = 0; n < v->levels; n++) {
        unsigned least = NRG_LEVELS;
        for (unsigned k = 0; k < v->levels; k++)
            if (!(done >> k & 1) && (least == NRG_LEVELS || stride[k] < stride[least]))
                least = k;
        done |= 1u << least;
        if (v->count[least] == 1)
            continue; /* no step is taken */
        if (stride[least] < span)
            return NRG_ERR_STRIDE;
        misaligned |= stride[least] % v->element != 0;
        last += stride[least] * (v->count[least] - 1);
        if (last + v->row > SIZE_MAX)
            return NRG_ERR_OVERFLOW;
        span = last + v->row;
    }
    if (misaligned)
        return NRG_ERR_ALIGNMENT;
    return span > (wide)(UINTPTR_MAX - first) ? NRG_ERR_OVERFLOW : is_unallocated ? NRG_ERR_UNALLOCATED : NRG_OK;
}

static uintptr_t row_at(const nrg_operand *o, const verdict_operand *v, const void *const *part, const wide stride[NRG_LEVELS],
                        size_t row)
{
    uintptr_t at = (uintptr_t)pointer_of(o, part);
    for (unsigned k = 0; k < v->levels; k++) {
        at += (uintptr_t)(row % v->count[k] * stride[k]);
        row /= v->count[k];
    }
    return at;
}

const void *verdict_element(const nrg_operand *o, const verdict_operand *v, const void *const *part, size_t i)
{
    wide stride[NRG_LEVELS];
    find_strides(o, v, part[o->part], stride);
    return (const void *)(row_at(o, v, part, stride, i / v->dim) + i % v->dim * v->element); /* NOLINT */
}

typedef struct judged {
    const nrg_call *call;
    const void *const *part;
    const nrg_sizes *s;
    const verdict_operand *v;
    wide (*stride)[NRG_LEVELS];
} judged;

static int share_a_byte(const judged *c, int a, int b)
{
    for (size_t i = 0; i < c->v[a].rows; i++)
        for (size_t j = 0; j < c->v[b].rows; j++) {
            const uintptr_t x = row_at(&c->call->operands[a], &c->v[a], c->part, c->stride[a], i);
            const uintptr_t y = row_at(&c->call->operands[b], &c->v[b], c->part, c->stride[b], j);
            if (x < y + c->v[b].row && y < x + c->v[a].row)
                return 1;
        }
    return 0;
}

static int extents_meet(const judged *c, int a, int b)
{
    uintptr_t first[2] = {UINTPTR_MAX, UINTPTR_MAX}, end[2] = {0, 0};
    const int which[2] = {a, b};
    for (int i = 0; i < 2; i++)
        for (size_t row = 0; row < c->v[which[i]].rows; row++) {
            const uintptr_t at = row_at(&c->call->operands[which[i]], &c->v[which[i]], c->part, c->stride[which[i]], row);
            first[i] = at < first[i] ? at : first[i];
            end[i] = at + c->v[which[i]].row > end[i] ? at + c->v[which[i]].row : end[i];
        }
    return first[0] < end[1] && first[1] < end[0];
}

/* Whether an operand is rows of one stride. */
static int is_matrix(const verdict_operand *v)
{
    size_t inner = 1;
    for (unsigned k = 1; k < v->levels; k++)
        inner *= v->count[k];
    return inner == 1 && !(v->repeated & NRG_REPEAT_ROWS);
}

/* Rows that interleave without a common byte are allowed where one stride says it of both, which is what the headers promise;
 * elsewhere the library may refuse them. */
static int may_interleave(const judged *c, int a, int b)
{
    return c->stride[a][0] == c->stride[b][0] && c->v[a].rows > 1 && c->v[b].rows > 1;
}

static int lies_in_place(const judged *c, int out, int other)
{
    const nrg_operand *o = &c->call->operands[out], *x = &c->call->operands[other];
    if (!(o->over >> other & 1) || pointer_of(o, c->part) != pointer_of(x, c->part) || c->v[out].element != c->v[other].element)
        return 0;
    if (c->s->apart >> out & 1 && x->role != NRG_IN)
        return 0;
    for (unsigned k = 0; k < c->v[out].levels; k++)
        if (c->v[out].count[k] != 1 && c->stride[out][k] != c->stride[other][k])
            return 0;
    return 1;
}

static int is_input(const nrg_call *call, const nrg_sizes *s, int i)
{
    return !nrg_is_output(&call->operands[i], s, (unsigned)i);
}

nrg_status verdict_of(const nrg_call *call, const void *const *part, int ith, int nth, int *is_open)
{
    *is_open = 0;
    static wide stride[NRG_OPERANDS][NRG_LEVELS];
    verdict_operand v[NRG_OPERANDS];
    nrg_sizes s;
    nrg_status status = verdict_measure(call, part, &s, v);
    if (status != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    for (int i = 0; i < call->operand_count; i++)
        if (!v[i].is_there && v[i].has_elements && !(s.ignored >> i & 1) &&
            (!call->operands[i].may_be_absent || s.needed >> i & 1))
            return NRG_ERR_NULL;
    for (int i = 0; i < call->operand_count; i++)
        if (s.always >> i & 1 && !pointer_of(&call->operands[i], part))
            return NRG_ERR_NULL;
    for (int i = 0; i < call->operand_count; i++)
        if (v[i].is_there && s.refused >> i & 1)
            return NRG_ERR_COMBINATION;
    nrg_status places = NRG_OK;
    for (int i = 0; i < call->operand_count; i++) {
        status = v[i].is_there ? judge_operand(&call->operands[i], &v[i], part, stride[i]) : NRG_OK;
        if (status == NRG_ERR_UNALLOCATED) {
            places = status;
            v[i].is_there = 0; /* it overlaps nothing */
        } else if (status != NRG_OK)
            return status;
    }
    const judged c = {call, part, &s, v, stride};
    for (int i = 0; i < call->operand_count; i++)
        for (int j = 0; j < call->operand_count; j++) {
            if (i == j || !v[i].is_there || !v[j].is_there || !v[i].has_elements || !v[j].has_elements)
                continue;
            /* an output against inputs, and against the outputs before it */
            if (is_input(call, &s, i) || (!is_input(call, &s, j) && j > i))
                continue;
            if (lies_in_place(&c, i, j) || !extents_meet(&c, i, j))
                continue;
            const int are_matrices = is_matrix(&v[i]) && is_matrix(&v[j]);
            if (share_a_byte(&c, i, j) || (are_matrices && !may_interleave(&c, i, j)))
                return NRG_ERR_OVERLAP;
            *is_open |= !are_matrices;
        }
    return places;
}
