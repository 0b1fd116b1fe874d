/* The operands of a case, from the description of its call.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "family.h"

const bench_function *bench_function_of(const bench_case *c) { return c->op->function ? c->op->function : c->family->function; }

static const nrg_call *call_of(const bench_case *c) { return bench_function_of(c)->call; }

int bench_names(const char *list, const nrg_operand *operand) { return list && bench_admits(list, operand->name); }

static int is_asked_for(const bench_case *c, int operand)
{
    const nrg_operand *o = &call_of(c)->operands[operand];
    return !o->may_be_absent || bench_names(c->op->operands, o);
}

static void set_pointer(const nrg_operand *o, void *const *part, const void *pointer)
{
    memcpy((char *)part[o->part] + o->at, &pointer, sizeof pointer);
}

static void set_stride(const nrg_operand *o, void *const *part, size_t stride)
{
    if (stride)
        memcpy((char *)part[o->part] + o->level[0].stride, &stride, sizeof stride);
}

static void start(bench_parts *parts, const bench_case *c)
{
    const nrg_call *call = call_of(c);
    memset(parts, 0, sizeof *parts);
    for (int i = 0; i < NRG_PARTS; i++)
        parts->part[i] = parts->bytes[i];
    c->family->prepare(c, parts->part);
    for (int i = 0; c->layout && i < call->operand_count; i++)
        set_stride(&call->operands[i], parts->part, c->layout->of[i].stride);
}

/* Sizes as the call sees them, with all operands of the case there. 0: it will be refused. */
static int measure_parts(const bench_case *c, bench_parts *parts, nrg_sizes *s)
{
    static double any;
    const nrg_call *call = call_of(c);
    start(parts, c);
    memset(s, 0, sizeof *s);
    s->n[NRG_ONE] = 1;
    for (int i = 0; i < call->operand_count; i++)
        set_pointer(&call->operands[i], parts->part, is_asked_for(c, i) ? &any : NULL);
    return call->measure((const void *const *)parts->part, s) == NRG_OK;
}

static int measure(const bench_case *c, nrg_sizes *s)
{
    bench_parts parts;
    return measure_parts(c, &parts, s);
}

static size_t elements_of(const nrg_operand *o, const nrg_sizes *s)
{
    return s->n[o->dim] * s->n[o->level[0].count] * s->n[o->level[1].count] * s->n[o->level[2].count];
}

/* Of rows with elements: a stride of 0 continues what is inside of its level. */
static size_t span_of(const nrg_operand *o, const nrg_sizes *s, const bench_parts *parts, size_t row)
{
    size_t span = row, inside = row;
    for (int i = 0; i < NRG_LEVELS; i++) {
        const size_t count = s->n[o->level[i].count],
                     given = o->level[i].stride ? nrg_size_at(parts->part[o->part], o->level[i].stride) : 0,
                     stride = given ? given : inside;
        span += (count - 1) * stride;
        inside = stride * count;
    }
    return span;
}

/* Whether there are more of them in a case of more rows: a tensor of one row has as many as a row that all share, and the
 * statistics of some rows as many as a row has elements. */
static int has_rows(const bench_case *c, const nrg_operand *o, size_t elements)
{
    bench_case more = *c;
    nrg_sizes s;
    more.shape.rows++;
    return measure(&more, &s) && elements_of(o, &s) > elements;
}

static int is_tensor(const bench_case *c, const nrg_operand *o, size_t elements)
{
    return elements == bench_shape_elements(c->shape) && (c->shape.rows > 1 || has_rows(c, o, elements));
}

static bench_kind kind_of(const bench_case *c, int operand, size_t elements)
{
    const nrg_operand *o = &call_of(c)->operands[operand];
    if (o->role == NRG_SCRATCH || bench_names(c->family->aside, o))
        return BENCH_ASIDE;
    if (o->element == NRG_ELEMENT_BYTE)
        return o->role == NRG_IN ? BENCH_BYTES_IN : BENCH_BYTES_OUT;
    if (is_tensor(c, o, elements))
        return o->role == NRG_IN ? BENCH_IN : BENCH_OUT;
    if (elements == c->shape.dim && !c->shape.channels && !has_rows(c, o, elements))
        return o->role == NRG_IN ? BENCH_ROW_IN : BENCH_ROW_OUT;
    return BENCH_FEW;
}

/* What only the limit moves. */
static bench_operand also_of(const bench_case *c)
{
    const size_t elements = c->family->also == BENCH_ROW_IN ? c->shape.dim : bench_shape_elements(c->shape);
    const size_t size = nrg_dtype_size(c->dtype), bytes = c->family->also ? elements * size : 0;
    return (bench_operand){c->family->also, BENCH_EVEN, c->dtype, bytes, bytes, size, bytes};
}

bench_operand bench_operand_of(const bench_case *c, int operand)
{
    const bench_family *f = c->family;
    bench_operand result = {.kind = BENCH_ASIDE, .fill = BENCH_EVEN, .dtype = c->dtype};
    bench_parts parts;
    nrg_sizes s;
    if (operand == BENCH_OPERANDS - 1)
        return also_of(c);
    if (operand >= call_of(c)->operand_count || !is_asked_for(c, operand) || !measure_parts(c, &parts, &s) ||
        (s.ignored | s.refused) >> operand & 1)
        return result;
    const nrg_operand *o = &call_of(c)->operands[operand];
    const size_t elements = elements_of(o, &s), bytes = nrg_element_bytes(o->element, &s);
    result.kind = kind_of(c, operand, elements);
    result.fill = bench_names(f->wide, o) ? BENCH_WIDE : bench_names(f->positive, o) ? BENCH_POSITIVE : BENCH_EVEN;
    result.dtype = bytes == 2 ? c->dtype : NRG_F32;
    result.bytes = elements * bytes;
    result.element = bytes;
    result.row = s.n[o->dim] * bytes;
    result.span = elements ? span_of(o, &s, &parts, result.row) : 0;
    return result;
}

int bench_may_move(const bench_case *c, int operand)
{
    return operand < call_of(c)->operand_count && call_of(c)->operands[operand].role != NRG_SCRATCH;
}

int bench_has_stride(const bench_case *c, int operand)
{
    bench_parts parts;
    nrg_sizes s;
    if (!bench_may_move(c, operand) || c->op->fixed_strides || !measure_parts(c, &parts, &s))
        return 0;
    const nrg_operand *o = &call_of(c)->operands[operand];
    return o->level[0].stride && !nrg_repeated(o, parts.part[o->part]);
}

int bench_fits_over(const bench_case *c, int output, int input)
{
    const nrg_call *call = call_of(c);
    nrg_sizes s;
    if (output >= call->operand_count || input >= call->operand_count || c->op->fixed_strides || !measure(c, &s))
        return 0;
    const nrg_operand *o = &call->operands[output], *in = &call->operands[input];
    const bench_operand to = bench_operand_of(c, output), from = bench_operand_of(c, input);
    return o->over >> input & 1 && in->role == NRG_IN && to.bytes && to.bytes == from.bytes && to.element == from.element &&
           to.row == from.row && !o->level[0].stride == !in->level[0].stride;
}

void bench_parts_bind(bench_parts *parts, const bench_case *c, char *const operand[BENCH_OPERANDS])
{
    const nrg_call *call = call_of(c);
    start(parts, c);
    for (int i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const size_t bytes = bench_operand_of(c, i).bytes;
        set_pointer(o, parts->part, operand[i]);
        if (o->room)
            memcpy((char *)parts->part[o->part] + o->room, &bytes, sizeof bytes);
    }
    if (c->family->ready)
        c->family->ready(c, parts->part);
}

/* clang-format moves the lines of this list at each run. */
/* clang-format off */
#define EACH_FIELD(F)                                                                                                            \
    F(x) F(y) F(z) F(w) F(b) F(w2) F(d_o) F(dr_in) F(mean) F(o) F(r) F(dx) F(dz) F(dw) F(db) F(statistics) F(table) F(k) F(v)    \
    F(q_w) F(k_w) F(k_o) F(v_o) F(slots) F(q) F(scales) F(running_mean) F(running_var) F(m_in) F(d_loss) F(sum_in) F(others_in)  \
    F(ids) F(m) F(factor) F(inverse) F(loss) F(sum) F(others)
/* clang-format on */

static const struct rival_field {
    const char *name;
    size_t at;
} rival_fields[] = {
#define FIELD(name) {#name, offsetof(rival_job, name)},
    EACH_FIELD(FIELD)};

/* An operand of the call under the names that the family's list has for it. */
static void put_operand(rival_job *job, const char *list, const nrg_operand *o, const void *pointer)
{
    char name[64];
    for (const struct rival_field *f = rival_fields; pointer && f < rival_fields + NRG_COUNT(rival_fields); f++) {
        snprintf(name, sizeof name, strcmp(f->name, o->name) == 0 ? "%s" : "%s=%s", f->name, o->name);
        if (bench_admits(list, name))
            memcpy((char *)job + f->at, &pointer, sizeof pointer);
    }
}

/* Rows of matrices, and of scores; a family whose rows or numbers are others has rival_numbers. */
rival_job bench_rival_job(const bench_case *c, void *const *part)
{
    const bench_shape s = c->shape;
    rival_job job = {.rows = s.channels ? s.rows * s.channels * s.height : s.rows,
                     .dim = s.channels ? s.width : s.dim,
                     .groups = c->op->groups,
                     .head_dim = BENCH_HEAD,
                     .eps = c->op->centred ? 1e-5f : 1e-6f}; /* norm/norm.h */
    const nrg_call *call = call_of(c);
    for (int i = 0; i < call->operand_count; i++)
        put_operand(&job, c->family->rival, &call->operands[i],
                    nrg_pointer_at(part[call->operands[i].part], call->operands[i].at));
    if (c->family->rival_numbers)
        c->family->rival_numbers(c, part, &job);
    return job;
}
