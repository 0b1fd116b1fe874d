/* The checks of all calls: one loop over the parts, one over the ranges, one over the operands, and the overlaps.
 *
 * SPDX-License-Identifier: MIT */
#include "check.h"

#include "../compiler.h"

/* No struct of any version is larger: such a size is an uninitialized field. */
enum { STRUCT_MOST = 4096 };

int nrg_copy_struct(void *copy, const void *of, const nrg_part *part)
{
    const unsigned char *const from = of;
    const size_t known = part->size, size = of ? nrg_size_at(of, 0) : part->least;
    if (size < part->least || size > STRUCT_MOST)
        return 0;
    for (size_t i = known; i < size; i++)
        if (from[i])
            return 0;
    memset(copy, 0, known);
    if (of)
        memcpy(copy, from, size < known ? size : known);
    memcpy(copy, &known, sizeof known);
    return 1;
}

static nrg_status read_parts(nrg_checked *c, const nrg_call *call, const void *const *part)
{
    nrg_status status = NRG_OK;
    size_t used = 0;
    for (unsigned i = 0; i < call->part_count; i++) {
        const nrg_part *p = &call->parts[i];
        c->part[i] = part[i];
        if (!p->least || (part[i] && nrg_size_at(part[i], 0) == p->size))
            continue;
        unsigned char *copy = c->copy + used;
        used += (p->size + sizeof(double) - 1) / sizeof(double) * sizeof(double);
        c->part[i] = copy;
        if (!part[i] && !p->may_be_absent)
            return NRG_ERR_NULL;
        if (!nrg_copy_struct(copy, part[i], p))
            status = NRG_ERR_STRUCT_SIZE; /* unless a part after it is missing */
    }
    return status;
}

nrg_status nrg_check_options(nrg_checked *c, const nrg_call *call, const void *const *part)
{
    nrg_status status = read_parts(c, call, part);
    if (status != NRG_OK)
        return status;
    for (const nrg_range *r = call->ranges; r < call->ranges + call->range_count; r++) {
        uint32_t value;
        memcpy(&value, (const unsigned char *)c->part[r->part] + r->at, sizeof value);
        if (value - r->low > r->span)
            return (nrg_status)r->status;
    }
    c->sizes.n[NRG_ONE] = 1;
    c->sizes.needed = c->sizes.always = c->sizes.ignored = c->sizes.refused = c->sizes.apart = c->sizes.written = 0;
    return call->measure(c->part, &c->sizes);
}

/* Whether an operand has elements. */
static inline int has_elements(const nrg_operand *o, const nrg_sizes *s)
{
    size_t least = s->n[o->dim];
    for (unsigned k = 0; k < o->levels && least; k++)
        least = s->n[o->level[k].count];
    return least != 0;
}

/* An operand as memory: from first up to end, rows of `bytes` bytes, `stride` apart. */
typedef struct extent {
    uintptr_t first, end;
    size_t bytes, stride, rows;
    unsigned index, element;
} extent;

typedef struct step {
    size_t stride, count;
} step;

/* Strides of 0 become those of a dense tensor: all that is inside of a level, whichever of the inner levels lies outermost. A
 * level with one step takes none, whatever its stride, as does one that repeats. Returns how many step at all, which it sorts by
 * their strides; or -1. */
static int fill_strides(step sorted[NRG_LEVELS], size_t stride[NRG_LEVELS], const nrg_operand *o, const nrg_sizes *s,
                        const void *part, size_t row)
{
    const uint32_t repeated = nrg_repeated(o, part);
    size_t span = row;
    int steps = 0, is_beyond = 0; /* memory, which is wrong where a stride is made of it: without elements it may have any */
    for (unsigned k = 0; k < o->levels; k++) {
        const size_t count = s->n[o->level[k].count];
        size_t bytes;
        if (repeated >> k & 1)
            continue;
        stride[k] = span;
        if (count == 1)
            continue;
        const size_t given = o->level[k].stride ? nrg_size_at(part, o->level[k].stride) : 0;
        if (!given && is_beyond)
            return -1;
        stride[k] = given ? given : span;
        if (!nrg_product(count, stride[k], &bytes))
            is_beyond = 1;
        else
            span = bytes > span ? bytes : span;
        int at = steps++;
        for (; at > 0 && sorted[at - 1].stride > stride[k]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (step){stride[k], count};
    }
    return steps;
}

/* Adds one level to an extent of rows: runs that follow each other without a gap become one run, and rows at equal distances stay
 * rows; whatever else there is becomes a run with its gaps in it. span: from the first byte of what is inside to its last. */
static nrg_status add_level(extent *e, size_t *span, const step *level)
{
    size_t before_last;
    if (level->stride < *span)
        return NRG_ERR_STRIDE;
    if (!nrg_product(level->count - 1, level->stride, &before_last) || before_last > SIZE_MAX - *span)
        return NRG_ERR_OVERFLOW;
    if (e->rows > 1 && level->stride % e->stride == 0 && level->stride / e->stride == e->rows) {
        e->rows *= level->count;
    } else if (level->stride == *span) {
        e->rows = 1;
        e->bytes = e->stride = before_last + *span;
    } else {
        e->bytes = *span;
        e->stride = level->stride;
        e->rows = level->count;
    }
    *span += before_last;
    return NRG_OK;
}

/* Rows of one stride, or one row: the operands of most calls. Returns whether all is well, with what can be wrong told apart
 * afterwards (lay_levels): branches cost a small call more than its row. */
static inline int lay_rows(extent *e, size_t *stride, size_t given, size_t dim, size_t rows)
{
    const size_t half = (size_t)1 << (sizeof(size_t) * 4), row = dim * e->element, taken = given ? given : row;
    e->bytes = row;
    e->rows = rows;
    e->stride = *stride = taken;
    e->end = e->first + (rows - 1) * taken + row;
    return (taken >= row) & !((e->first | taken) & (e->element - 1)) & ((dim | rows | taken) < half / 8) & (e->end > e->first);
}

/* Whether only the innermost level has steps. */
static inline int is_in_plane(const nrg_operand *o, const nrg_sizes *s, const void *part)
{
    return (s->n[o->level[1].count] == 1) & (s->n[o->level[2].count] == 1) & !(nrg_repeated(o, part) & NRG_REPEAT_ROWS);
}

/* Rows on several levels; or, with is_plane, of lay_rows: slowly, for operands that are wrong, unallocated or have no elements,
 * and for those of more than four billion. Of these a wrong alignment counts more than an end beyond memory. An unallocated
 * operand is checked as one at 0, which is aligned and has all of memory behind it. */
static __attribute__((noinline)) nrg_status lay_levels(extent *e, size_t stride[NRG_LEVELS], const nrg_operand *o,
                                                       const nrg_sizes *s, const void *part, int is_plane)
{
    step levels[NRG_LEVELS];
    const int is_allocated = e->first != (uintptr_t)NRG_UNALLOCATED;
    const uintptr_t first = is_allocated ? e->first : 0;
    uintptr_t aligned = first;
    size_t span;
    int count;
    if (!nrg_product(s->n[o->dim], e->element, &span) || (count = fill_strides(levels, stride, o, s, part, span)) < 0)
        return NRG_ERR_OVERFLOW;
    if (!has_elements(o, s))
        return NRG_OK;
    e->bytes = e->stride = span;
    e->rows = 1;
    for (int k = 0; k < count; k++) {
        const nrg_status status = add_level(e, &span, &levels[k]);
        aligned |= levels[k].stride;
        if (status != NRG_OK)
            return is_plane && status == NRG_ERR_OVERFLOW && (aligned & (e->element - 1)) ? NRG_ERR_ALIGNMENT : status;
    }
    if (aligned & (e->element - 1))
        return NRG_ERR_ALIGNMENT;
    if (span > UINTPTR_MAX - first)
        return NRG_ERR_OVERFLOW;
    e->end = first + span;
    return is_allocated ? NRG_OK : NRG_ERR_UNALLOCATED;
}

/* Whether rows of two operands whose extents meet share a byte. */
static int rows_meet(const extent *a, const extent *b)
{
    if (a->stride != b->stride || a->rows == 1 || b->rows == 1)
        return 1;
    /* equal strides: where a row of b begins, counted from the start of the nearest row of a below it */
    size_t offset =
        a->first <= b->first ? (b->first - a->first) % a->stride : (a->stride - (a->first - b->first) % a->stride) % a->stride;
    return offset < a->bytes || offset > a->stride - b->bytes;
}

/* Whether an output is in the place of another operand: row by row, element by element. */
static int lies_over(const nrg_checked *c, const nrg_laid *laid, const nrg_call *call, const extent *out, const extent *other)
{
    const nrg_operand *o = &call->operands[out->index], *x = &call->operands[other->index];
    if (!(o->over & NRG_BIT(other->index)) || out->first != other->first || out->element != other->element ||
        (c->sizes.apart & NRG_BIT(out->index) && x->role != NRG_IN))
        return 0;
    for (unsigned k = 0; k < o->levels; k++)
        if (c->sizes.n[o->level[k].count] != 1 && laid->stride[out->index][k] != laid->stride[other->index][k])
            return 0;
    return o->level[0].count == x->level[0].count;
}

static inline unsigned lowest_bit(uint32_t bits) { return (unsigned)__builtin_ctz(bits); }

/* Outputs against all inputs, and against the outputs before them. outputs: bits of extents. */
static inline nrg_status check_overlaps(const nrg_checked *c, const nrg_laid *laid, const nrg_call *call, const extent *e,
                                        unsigned count, uint32_t outputs)
{
    for (uint32_t left = outputs; left; left &= left - 1) {
        const unsigned i = lowest_bit(left);
        for (unsigned j = 0; j < count; j++)
            if (e[i].end > e[j].first && e[j].end > e[i].first && (j < i || !(outputs >> j & 1)) &&
                !lies_over(c, laid, call, &e[i], &e[j]) && rows_meet(&e[i], &e[j]))
                return NRG_ERR_OVERLAP;
    }
    return NRG_OK;
}

/* Which operands are there; or what is wrong with that. Clears their strides. */
static inline nrg_status find_operands(const nrg_checked *c, nrg_laid *laid, const nrg_call *call, uint32_t *there)
{
    const nrg_sizes *const s = &c->sizes;
    const nrg_operand *const o = call->operands;
    uint32_t given = 0, must = 0;
    for (unsigned i = call->operand_count; i-- > 0;) {
        given = 2 * given + (nrg_pointer_at(c->part[o[i].part], o[i].at) != NULL);
        must = 2 * must + !o[i].may_be_absent;
        memset(laid->stride[i], 0, sizeof laid->stride[i]); /* here, since one memset for all of them takes 10 ns to begin */
    }
    *there = given & ~s->ignored;
    if (s->always & ~given)
        return NRG_ERR_NULL;
    for (uint32_t missing = (must | s->needed) & ~given & ~s->ignored; missing; missing &= missing - 1)
        if (has_elements(&o[lowest_bit(missing)], s))
            return NRG_ERR_NULL;
    return *there & s->refused ? NRG_ERR_COMBINATION : NRG_OK;
}

/* nrg_check, with the places of operands apart: nrg_lay has them where its caller wants them, since a copy of
 * the strides takes 5 to 10 ns. */
static __attribute__((noinline)) nrg_status check(nrg_checked *c, nrg_laid *laid, const nrg_call *call, const void *const *part,
                                                  int ith, int nth)
{
    extent extents[NRG_OPERANDS], *e = extents;
    uint32_t there, outputs = 0;
    unsigned count = 0;
    size_t moved = 0;
    nrg_status status = nrg_check_options(c, call, part), places = NRG_OK;
    if (status != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if ((status = find_operands(c, laid, call, &there)) != NRG_OK)
        return status;
    const nrg_sizes *const s = &c->sizes;
    for (; there; there &= there - 1) {
        const unsigned i = lowest_bit(there);
        const nrg_operand *const o = &call->operands[i];
        const void *const from = c->part[o->part];
        const size_t dim = s->n[o->dim];
        size_t *const stride = laid->stride[i], rows = s->n[o->level[0].count];
        e->index = i;
        e->element = (unsigned)nrg_element_bytes(o->element, s);
        e->first = (uintptr_t)nrg_pointer_at(from, o->at);
        if (o->levels < 2 || is_in_plane(o, s, from)) {
            const size_t given = o->level[0].stride && rows != 1 ? nrg_size_at(from, o->level[0].stride) : 0;
            if (!lay_rows(e, stride, given, dim, rows))
                status = lay_levels(e, stride, o, s, from, 1);
            if (o->levels > 1)
                stride[1] = stride[2] = rows * stride[0];
        } else {
            status = lay_levels(e, stride, o, s, from, 0);
            rows *= s->n[o->level[1].count] * s->n[o->level[2].count];
        }
        if (status != NRG_OK) {
            if (status == NRG_ERR_UNALLOCATED && o->room && nrg_size_at(from, o->room) < e->end)
                return NRG_ERR_WORKSPACE; /* which must have room even before it has an address */
            if (status != NRG_ERR_UNALLOCATED)
                return status;
            places = status;
            status = NRG_OK;
            continue;
        }
        /* fits, since rows are no longer than their stride; where they repeat it is a hint */
        const size_t bytes = rows * dim * e->element;
        if (!bytes)
            continue;
        if (o->room && nrg_size_at(from, o->room) < bytes)
            return NRG_ERR_WORKSPACE;
        const size_t passes = bytes << (s->written >> i & 1); /* an input in its output's place counts as both */
        moved = passes > SIZE_MAX - moved ? SIZE_MAX : moved + passes;
        outputs |= (uint32_t)nrg_is_output(o, s, i) << count++;
        e++;
    }
    laid->bytes = moved;
    status = check_overlaps(c, laid, call, extents, count, outputs);
    return status != NRG_OK ? status : places;
}

nrg_status nrg_check(nrg_checked *c, const nrg_call *call, const void *const *part, int ith, int nth)
{
    return check(c, &c->laid, call, part, ith, nth);
}

nrg_status nrg_lay(nrg_laid *laid, const nrg_call *call, const void *const *part, int ith, int nth)
{
    nrg_checked c;
    return check(&c, laid, call, part, ith, nth);
}

nrg_status nrg_ask(const nrg_call *call, const void *const *part)
{
    nrg_checked c;
    return nrg_asked(nrg_check(&c, call, part, 0, 1));
}

nrg_status nrg_ask_bytes(size_t *bytes, const nrg_call *call, const void *const *part, unsigned space, size_t unit)
{
    nrg_checked c;
    if (!bytes)
        return NRG_ERR_NULL;
    const nrg_status status = nrg_check_options(&c, call, part);
    if (status == NRG_OK)
        *bytes = c.sizes.n[space] * unit;
    return status;
}
