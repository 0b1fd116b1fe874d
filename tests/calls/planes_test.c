/* Calls on tensors in four dimensions, from their descriptions: rows in any order of dimensions, with gaps, in place, repeated,
 * cut into shares. Each has the bits of one matrix of all its rows, on the scalar path, and nothing between the rows is written.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/invoke.h"
#include "../../src/operands/activation.h"
#include "../../src/operands/norm.h"
#include "../../src/operands/softmax.h"
#include "../../src/operands/quantize.h"
#include "../harness/element.h"
#include "../harness/support.h"

enum { PARTS = 3, PART_BYTES = 512, DIMS = 3 };

typedef struct planes_op {
    const invoke_function *function, *reduce;                               /* NULL: one phase */
    unsigned args;                                                          /* the part that has the numbers of rows */
    size_t rows, rows2, rows3;                                              /* where in it they are */
    uint32_t (*draw)(void *const *part, nrg_dtype dtype, uint64_t *random); /* the operands that may be absent and are there */
    size_t (*split)(void *const *part); /* makes groups that are rows to the call rows of a matrix; how many. NULL: none */
} planes_op;

/* An operand in one of two places: all rows together, or as it lies in four dimensions. */
typedef struct tensor {
    int is_there, over; /* over: the operand in whose place it is, or itself */
    size_t element, row, rows, bytes;
    size_t step[DIMS];
    uint32_t repeated;
    unsigned char *matrix, *contents; /* in rows; results of the matrix, and what was there before */
    unsigned char *memory, *before;
} tensor;

typedef struct trial {
    const planes_op *op;
    _Alignas(16) unsigned char bytes[PARTS][PART_BYTES];
    void *part[PARTS];
    size_t n[DIMS];
    nrg_sizes sizes;
    tensor t[NRG_OPERANDS];
} trial;

static const nrg_call *call_of(const trial *t) { return t->op->function->call; }
static const nrg_operand *operand_of(const trial *t, int i) { return &call_of(t)->operands[i]; }

/* Whether an operand has rows in all dimensions. */
static int has_planes(const nrg_operand *o) { return o->level[1].count != NRG_ONE; }

static void set_number(trial *t, unsigned part, size_t at, size_t number) { invoke_set_number(t->part[part], at, number); }

static void set_pointer(trial *t, int i, const void *pointer) { invoke_set_pointer(operand_of(t, i), t->part, pointer); }

static void set_rows(trial *t, size_t rows, size_t rows2, size_t rows3)
{
    set_number(t, t->op->args, t->op->rows, rows);
    set_number(t, t->op->args, t->op->rows2, rows2);
    set_number(t, t->op->args, t->op->rows3, rows3);
}

static void set_repeat(trial *t, int i, uint32_t repeated)
{
    if (operand_of(t, i)->repeat)
        memcpy((char *)t->part[operand_of(t, i)->part] + operand_of(t, i)->repeat, &repeated, sizeof repeated);
}

/* Row n of all, as an index of each dimension. */
static void indices_of(const trial *t, size_t n, size_t index[DIMS])
{
    for (int k = 0; k < DIMS; k++) {
        index[k] = n % t->n[k];
        n /= t->n[k];
    }
}

static size_t offset_of(const trial *t, const tensor *operand, size_t n)
{
    size_t index[DIMS], offset = 0;
    indices_of(t, n, index);
    for (int k = 0; k < DIMS; k++)
        offset += index[k] * operand->step[k];
    return offset;
}

/* The row that row n repeats. */
static size_t first_of(const trial *t, const tensor *operand, size_t n)
{
    size_t index[DIMS], first = 0;
    indices_of(t, n, index);
    for (int k = DIMS - 1; k >= 0; k--)
        first = first * t->n[k] + (operand->repeated >> k & 1 ? 0 : index[k]);
    return first;
}

static size_t all_rows(const trial *t) { return t->n[0] * t->n[1] * t->n[2]; }

/* ---- a case ---- */

static void draw_contents(trial *t, int i, uint64_t *random)
{
    const nrg_operand *o = operand_of(t, i);
    tensor *to = &t->t[i];
    const int is_float = o->element == NRG_ELEMENT_F32 || o->element >= NRG_ELEMENT_CHOSEN;
    const nrg_dtype dtype = o->element >= NRG_ELEMENT_CHOSEN ? t->sizes.type[o->element - NRG_ELEMENT_CHOSEN] : NRG_F32;
    for (size_t k = 0; k < to->rows * to->row / to->element && is_float; k++)
        element_set(to->contents, k, dtype, (float)(4 * test_uniform(random)));
    if (!has_planes(o))
        return;
    for (size_t n = 0; n < to->rows; n++)
        memmove(to->contents + n * to->row, to->contents + first_of(t, to, n) * to->row, to->row);
}

/* Where an operand lies: a place of its own, dimensions in a drawn order, gaps between rows and planes. */
static void draw_place(trial *t, int i, const unsigned char *order, uint64_t *random)
{
    const nrg_operand *o = operand_of(t, i);
    tensor *to = &t->t[i];
    const size_t gap = test_draw(random, 2) ? test_draw(random, 5) * to->element : 0;
    size_t span = to->row + gap;
    int is_dense = !gap;
    to->over = i;
    for (int k = 0; k < DIMS && has_planes(o); k++) {
        const unsigned dim = order[k];
        is_dense &= dim == (unsigned)k;
        to->step[dim] = to->repeated >> dim & 1 ? 0 : span;
        if (!(to->repeated >> dim & 1))
            span *= t->n[dim];
    }
    to->bytes = has_planes(o) ? offset_of(t, to, to->rows - 1) + to->row : to->rows * to->row;
    is_dense &= (int)test_draw(random, 2);
    for (int k = 0; k < DIMS && has_planes(o); k++)
        set_number(t, o->part, o->level[k].stride, is_dense ? 0 : to->repeated >> k & 1 ? test_draw(random, 9) : to->step[k]);
}

/* An output in the place of another operand, where it may be and fits. */
static void draw_in_place(trial *t, int i, uint64_t *random)
{
    const nrg_operand *o = operand_of(t, i);
    const int j = (int)test_draw(random, call_of(t)->operand_count);
    tensor *to = &t->t[i], *at = &t->t[j];
    if (o->role != NRG_OUT || !to->is_there || !at->is_there || !(o->over >> j & 1) ||
        (operand_of(t, j)->role != NRG_IN && t->sizes.apart >> i & 1) || to->over != i || at->repeated ||
        at->element != to->element || at->over != j)
        return;
    for (int k = 0; k < call_of(t)->operand_count; k++)
        if (k != i && ((t->t[k].over == j && k != j) || t->t[k].over == i))
            return; /* taken */
    to->over = j;
    to->bytes = at->bytes;
    memcpy(to->step, at->step, sizeof to->step);
    for (int k = 0; k < DIMS; k++) {
        size_t stride;
        memcpy(&stride, (char *)t->part[operand_of(t, j)->part] + operand_of(t, j)->level[k].stride, sizeof stride);
        set_number(t, o->part, o->level[k].stride, stride);
    }
}

static void draw(trial *t, const planes_op *op, nrg_dtype dtype, uint64_t *random)
{
    static const unsigned char orders[6][DIMS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static double any;
    const int count = op->function->call->operand_count, is_one_order = test_draw(random, 3) == 0;
    const unsigned char *order = orders[test_draw(random, 6)];
    memset(t, 0, sizeof *t);
    t->op = op;
    for (int i = 0; i < PARTS; i++)
        t->part[i] = t->bytes[i];
    const uint32_t there = op->draw(t->part, dtype, random);
    for (int k = 0; k < DIMS; k++)
        t->n[k] = 1 + test_draw(random, test_draw(random, 4) ? 4 : 12);
    set_rows(t, all_rows(t), 1, 1);
    for (int i = 0; i < count; i++)
        set_pointer(t, i, !operand_of(t, i)->may_be_absent || there >> i & 1 ? &any : NULL);
    t->sizes.n[NRG_ONE] = 1;
    ck_assert_int_eq(op->function->call->measure((const void *const *)t->part, &t->sizes), NRG_OK);
    for (int i = 0; i < count; i++) {
        const nrg_operand *o = operand_of(t, i);
        tensor *to = &t->t[i];
        to->is_there = !o->may_be_absent || there >> i & 1;
        to->element = nrg_element_bytes(o->element, &t->sizes);
        to->row = to->element * t->sizes.n[o->dim];
        to->rows = has_planes(o) ? all_rows(t) : 1;
        to->repeated = o->repeat && test_draw(random, 2) ? (uint32_t)test_draw(random, 8) : 0;
        set_repeat(t, i, to->repeated);
        if (o->room)
            set_number(t, o->part, o->room, to->row);
        draw_place(t, i, is_one_order ? order : orders[test_draw(random, 6)], random);
    }
    if (test_draw(random, 2))
        for (int n = 0; n < 2 * count; n++)
            draw_in_place(t, (int)test_draw(random, (size_t)count), random);
    for (int i = 0; i < count; i++) {
        tensor *to = &t->t[i];
        if (!to->is_there)
            continue;
        to->matrix = test_allocate(to->rows * to->row + 1, 1);
        to->contents = test_allocate(to->rows * to->row + 1, 1);
        to->memory = test_allocate(to->bytes + 1, 1);
        to->before = test_allocate(to->bytes + 1, 1);
        draw_contents(t, i, random);
        for (size_t k = 0; k < to->bytes; k++)
            to->before[k] = (unsigned char)test_mix(k);
        for (size_t n = 0; n < to->rows; n++)
            memcpy(to->before + offset_of(t, to, n), to->contents + n * to->row, to->row);
    }
}

static void free_trial(trial *t)
{
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        free(t->t[i].matrix);
        free(t->t[i].contents);
        free(t->t[i].memory);
        free(t->t[i].before);
    }
}

/* ---- calls ---- */

static void run_shares(const trial *t, int nth)
{
    for (int ith = nth - 1; ith >= 0; ith--)
        ck_assert_msg(t->op->function->run(t->part, ith, nth) == NRG_OK, "%s: %s", test_note,
                      nrg_status_string(t->op->function->run(t->part, ith, nth)));
    for (int ith = 0; ith < nth && t->op->reduce; ith++)
        ck_assert_int_eq(t->op->reduce->run(t->part, ith, nth), NRG_OK);
}

/* All rows as one matrix. */
static void run_matrix(const trial *in_planes)
{
    trial t = *in_planes;
    for (int i = 0; i < PARTS; i++)
        t.part[i] = t.bytes[i];
    set_rows(&t, all_rows(&t) * (t.op->split ? t.op->split(t.part) : 1), 1, 1);
    for (int i = 0; i < call_of(&t)->operand_count; i++) {
        tensor *to = &t.t[i];
        if (!to->is_there)
            continue;
        memcpy(to->matrix, to->contents, to->rows * to->row);
        set_pointer(&t, i, to->matrix);
        set_repeat(&t, i, NRG_REPEAT_NONE);
        for (int k = 0; k < DIMS && has_planes(operand_of(&t, i)); k++)
            set_number(&t, operand_of(&t, i)->part, operand_of(&t, i)->level[k].stride, 0);
    }
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    run_shares(&t, 1);
}

static void run_planes(trial *t, int nth)
{
    set_rows(t, t->n[0], t->n[1], t->n[2]);
    for (int i = 0; i < call_of(t)->operand_count; i++)
        if (t->t[i].is_there) {
            memcpy(t->t[i].memory, t->t[i].before, t->t[i].bytes);
            set_pointer(t, i, t->t[t->t[i].over].memory);
        }
    run_shares(t, nth);
}

/* Results are the matrix's, and whatever is no result is as before. */
static void compare(trial *t)
{
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        const nrg_operand *o = operand_of(t, i);
        tensor *to = &t->t[i], *at = &t->t[to->over];
        if (!to->is_there || o->role == NRG_IN || o->role == NRG_SCRATCH)
            continue;
        for (size_t n = 0; n < to->rows; n++)
            ck_assert_msg(memcmp(at->memory + offset_of(t, to, n), to->matrix + n * to->row, to->row) == 0, "%s: row %zu of %s",
                          test_note, n, o->name);
    }
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        tensor *to = &t->t[i], *at = &t->t[to->over];
        for (size_t n = 0; to->is_there && operand_of(t, i)->role != NRG_IN && n < to->rows; n++)
            memcpy(at->memory + offset_of(t, to, n), at->before + offset_of(t, to, n), to->row);
    }
    for (int i = 0; i < call_of(t)->operand_count; i++)
        if (t->t[i].is_there && operand_of(t, i)->role != NRG_SCRATCH)
            ck_assert_msg(memcmp(t->t[i].memory, t->t[i].before, t->t[i].bytes) == 0, "%s: something beside the rows of %s",
                          test_note, operand_of(t, i)->name);
}

/* ---- the calls ---- */

enum { SPEC = NRG_NORM_SPEC, ARGS = NRG_NORM_ARGS };

static nrg_dtype draw_beside(nrg_dtype dtype, uint64_t *random) { return test_draw(random, 2) ? NRG_F32 : dtype; }

static nrg_norm_spec draw_norm(nrg_dtype dtype, uint64_t *random)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(dtype, 0, 1e-5);
    spec.groups = test_draw(random, 2) ? 1 + test_draw(random, 3) : 1;
    /* groups of 16 have a loop of their own */
    spec.dim = (test_draw(random, 4) ? 1 + test_draw(random, 70) : 16) * spec.groups;
    spec.weights = test_draw(random, 2) ? NRG_WEIGHTS_GROUP : NRG_WEIGHTS_ROW;
    spec.centred = (int)test_draw(random, 2);
    spec.y_dtype = draw_beside(dtype, random);
    spec.r_dtype = draw_beside(dtype, random);
    spec.w_dtype = draw_beside(dtype, random);
    spec.residual_mode = test_draw(random, 4) ? NRG_RESIDUAL_BEFORE : NRG_RESIDUAL_AFTER;
    spec.gate = (nrg_gate)test_draw(random, 3);
    spec.activation = (nrg_activation)test_draw(random, NRG_ACTIVATION_COUNT);
    return spec;
}

static size_t split_groups(void *const *part)
{
    nrg_norm_spec *spec = part[SPEC];
    const size_t groups = spec->weights == NRG_WEIGHTS_GROUP ? spec->groups : 1;
    spec->weights = NRG_WEIGHTS_ROW;
    if (groups == 1)
        return 1;
    spec->dim /= groups;
    spec->groups = 1;
    return groups;
}

static uint32_t draw_forward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    nrg_norm_spec *spec = part[SPEC];
    *spec = draw_norm(dtype, random);
    nrg_norm_args *args = part[ARGS];
    *args = nrg_norm_args_init(0, NULL, NULL, NULL);
    args->store = (nrg_store)test_draw(random, 3);
    /* none of the bytes instead of o */
    uint32_t there = (uint32_t)test_draw(random, (size_t)1 << NRG_NORM_PACKED) | NRG_BIT(NRG_NORM_O);
    if (test_draw(random, 2))
        there &= ~(NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD));
    if (spec->residual_mode == NRG_RESIDUAL_AFTER)
        there = (there | NRG_BIT(NRG_NORM_Y)) & ~NRG_BIT(NRG_NORM_R);
    return spec->gate ? there | NRG_BIT(NRG_NORM_Z) : there & ~NRG_BIT(NRG_NORM_Z);
}

/* Norms without a gate, of rows that tiles take: as a token's heads lie in a view. */
static uint32_t draw_heads(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    const uint32_t there = draw_forward(part, dtype, random);
    nrg_norm_spec *spec = part[SPEC];
    spec->gate = NRG_GATE_NONE;
    spec->activation = NRG_ACT_IDENTITY;
    spec->accuracy = test_draw(random, 4) ? NRG_ACCURACY_FAST : NRG_ACCURACY_EXACT;
    spec->dim = (test_draw(random, 2) ? 1 + test_draw(random, 300) : (size_t)64 << test_draw(random, 2)) * spec->groups;
    return there & ~NRG_BIT(NRG_NORM_Z);
}

#define BACKWARD(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static uint32_t draw_backward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    nrg_norm_spec *spec = part[SPEC];
    nrg_norm_backward_args *args = part[ARGS];
    *spec = draw_norm(dtype, random);
    *args = nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL);
    args->accumulate = (int)test_draw(random, 2);
    uint32_t there = (uint32_t)test_draw(random, (size_t)1 << NRG_NORM_BACKWARD_OPERANDS);
    if (spec->residual_mode == NRG_RESIDUAL_AFTER)
        there &= ~(BACKWARD(R) | BACKWARD(DR_IN) | BACKWARD(Y));
    if (there & BACKWARD(R))
        there &= ~(BACKWARD(X) | BACKWARD(Y));
    else
        there |= BACKWARD(X);
    if (!spec->centred)
        there &= ~BACKWARD(MEAN);
    if (spec->gate)
        there |= BACKWARD(Z);
    else
        there &= ~(BACKWARD(Z) | BACKWARD(DZ));
    return there;
}

/* Both norms with one spec: the first's is the trial's. */
static uint32_t draw_sandwich(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    nrg_norm_spec *first = part[SPEC], *second = part[NRG_SANDWICH_SECOND];
    *first = draw_norm(dtype, random);
    first->gate = NRG_GATE_NONE;
    first->activation = NRG_ACT_IDENTITY;
    first->residual_mode = NRG_RESIDUAL_BEFORE;
    first->weights = NRG_WEIGHTS_ROW;
    *second = *first;
    second->centred = !first->centred;
    return (uint32_t)test_draw(random, (size_t)1 << NRG_SANDWICH_PACKED); /* none of the bytes instead of o */
}

static uint32_t draw_sandwich_forward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    *(nrg_norm_sandwich_args *)part[NRG_SANDWICH_ARGS] = nrg_norm_sandwich_args_init(0, NULL, NULL, NULL, NULL, NULL, NULL);
    return draw_sandwich(part, dtype, random) | NRG_BIT(NRG_SANDWICH_R) | NRG_BIT(NRG_SANDWICH_O);
}

static uint32_t draw_sandwich_backward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    *(nrg_norm_sandwich_backward_args *)part[NRG_SANDWICH_ARGS] =
        nrg_norm_sandwich_backward_args_init(0, NULL, NULL, NULL, NULL, NULL, NULL);
    const uint32_t there = draw_sandwich(part, dtype, random);
    const nrg_norm_spec *first = part[SPEC];
    const uint32_t unused = first->centred ? NRG_BIT(NRG_SANDWICH_BACKWARD_MEAN2) : NRG_BIT(NRG_SANDWICH_BACKWARD_MEAN1);
    return (there & ~unused) | (uint32_t)test_draw(random, 8) << (NRG_SANDWICH_BACKWARD_OPERANDS - 3);
}

static uint32_t draw_activation(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    const nrg_activation g = (nrg_activation)test_draw(random, NRG_ACTIVATION_COUNT);
    *(nrg_activation_args *)part[0] = nrg_activation_args_init(g, dtype, 0, 1 + test_draw(random, 70), NULL, NULL);
    return 0;
}

/* Of two tensors, or of pairs. */
static uint32_t draw_glu(void *const *part, nrg_dtype dtype, uint64_t *random, uint32_t two, uint32_t one)
{
    const nrg_activation g = (nrg_activation)test_draw(random, NRG_ACTIVATION_COUNT);
    nrg_glu_args *args = part[0];
    *args = nrg_glu_args_init(g, dtype, 0, 1 + test_draw(random, 70), NULL, NULL, NULL);
    args->limit = test_draw(random, 2) ? 1 : FLT_MAX;
    return test_draw(random, 2) ? two : one;
}

static uint32_t draw_glu_forward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    return NRG_BIT(NRG_GLU_O) | draw_glu(part, dtype, random, NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B), NRG_BIT(NRG_GLU_X));
}

static uint32_t draw_glu_backward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    return draw_glu(part, dtype, random,
                    NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) |
                        NRG_BIT(NRG_GLU_BACKWARD_DB),
                    NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX));
}

/* Formats whose rows lie alone: others have fewer rows of bytes than of floats. */
static nrg_quant_format draw_format(uint64_t *random, size_t *dim)
{
    static const nrg_quant_format formats[] = {NRG_QUANT_Q8_0, NRG_QUANT_Q8_K, NRG_QUANT_INT8, NRG_QUANT_INT8_64};
    const nrg_quant_format format = formats[test_draw(random, 4)];
    *dim = nrg_quant_has_scales(format) ? 1 + test_draw(random, 70) : nrg_quant_block(format) * (1 + test_draw(random, 2));
    return format;
}

static uint32_t draw_quantize(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    size_t dim;
    const nrg_quant_format format = draw_format(random, &dim);
    *(nrg_quantize_args *)part[0] = nrg_quantize_args_init(format, dtype, 0, dim, NULL, NULL, NULL);
    return nrg_quant_has_scales(format) ? NRG_BIT(NRG_QUANTIZE_SCALES) : 0;
}

static uint32_t draw_dequantize(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    size_t dim;
    const nrg_quant_format format = draw_format(random, &dim);
    *(nrg_dequantize_args *)part[0] = nrg_dequantize_args_init(format, dtype, 0, dim, NULL, NULL, NULL);
    return nrg_quant_has_scales(format) ? NRG_BIT(NRG_DEQUANTIZE_SCALES) : 0;
}

/* Heads are planes, and samples volumes: what is one number a head is not there. */
static uint32_t draw_softmax(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    nrg_softmax_args *args = part[0];
    *args = nrg_softmax_args_init(dtype, 1, 1, 0, 1 + test_draw(random, 150), NULL, NULL);
    args->scale = 0.5f;
    args->log = test_draw(random, 2) != 0;
    args->mask_dtype = (nrg_dtype)test_draw(random, 4);
    return test_draw(random, 2) ? NRG_BIT(NRG_SOFTMAX_MASK) : 0;
}

static uint32_t draw_softmax_backward(void *const *part, nrg_dtype dtype, uint64_t *random)
{
    nrg_softmax_backward_args *args = part[0];
    *args = nrg_softmax_backward_args_init(dtype, 1, 1, 0, 1 + test_draw(random, 150), NULL, NULL, NULL);
    args->cap = test_draw(random, 2) ? 3 : INFINITY;
    return args->cap < 4 ? NRG_BIT(NRG_SOFTMAX_BACKWARD_X) : 0;
}

#define SCORES(type) 0, NRG_AT(type, queries), NRG_AT(type, heads), NRG_AT(type, batch)
#define ROWS(part, type) part, NRG_AT(type, rows), NRG_AT(type, rows2), NRG_AT(type, rows3)

static const planes_op ops[] = {
    {&invoke_norm_forward, NULL, ROWS(ARGS, nrg_norm_args), draw_forward, split_groups},
    {&invoke_norm_forward, NULL, ROWS(ARGS, nrg_norm_args), draw_heads, split_groups},
    {&invoke_norm_sandwich_forward, NULL, ROWS(NRG_SANDWICH_ARGS, nrg_norm_sandwich_args), draw_sandwich_forward, NULL},
    {&invoke_norm_sandwich_backward, &invoke_norm_sandwich_backward_reduce,
     ROWS(NRG_SANDWICH_ARGS, nrg_norm_sandwich_backward_args), draw_sandwich_backward, NULL},
    {&invoke_activation_rows_forward, NULL, ROWS(0, nrg_activation_args), draw_activation, NULL},
    {&invoke_norm_backward, &invoke_norm_backward_reduce, ROWS(ARGS, nrg_norm_backward_args), draw_backward, split_groups},
    {&invoke_activation_rows_backward, NULL, ROWS(0, nrg_activation_args), draw_activation, NULL},
    {&invoke_glu_forward, NULL, ROWS(0, nrg_glu_args), draw_glu_forward, NULL},
    {&invoke_glu_backward, NULL, ROWS(0, nrg_glu_args), draw_glu_backward, NULL},
    {&invoke_quantize, NULL, ROWS(0, nrg_quantize_args), draw_quantize, NULL},
    {&invoke_dequantize, NULL, ROWS(0, nrg_dequantize_args), draw_dequantize, NULL},
    {&invoke_softmax_forward, NULL, SCORES(nrg_softmax_args), draw_softmax, NULL},
    {&invoke_softmax_backward, NULL, SCORES(nrg_softmax_backward_args), draw_softmax_backward, NULL},
};

START_TEST(planes_are_one_matrix)
{
    static const int shares[] = {1, 2, 7};
    const planes_op *op = &ops[_i];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    const int cases = test_small() ? 25 : 400;
    uint64_t random = 12;
    for (int n = 0; n < cases; n++)
        for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
            trial t;
            draw(&t, op, dtype, &random);
            run_matrix(&t);
            for (size_t p = 0; p < count; p++)
                for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
                    snprintf(test_note, sizeof test_note, "%s, case %d, dtype %d, %s, %zu x %zu x %zu rows, %d shares",
                             op->function->name, n, (int)dtype, nrg_isa_name(paths[p]), t.n[0], t.n[1], t.n[2], shares[k]);
                    ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                    run_planes(&t, shares[k]);
                    compare(&t);
                }
            free_trial(&t);
        }
}
END_TEST

/* Slices of one buffer [batch][tokens][q, k and v heads][dim]: what nrg/base.h says may be read and written at once. */
START_TEST(slices_of_one_buffer)
{
    enum { BATCH = 2, TOKENS = 5, HEADS = 3, SLICE = 8, DIM_ = 3 * HEADS * SLICE, ALL = BATCH * TOKENS * DIM_ };
    static float buffer[ALL], before[ALL], expected[ALL];
    const size_t head = SLICE * sizeof(float), token = DIM_ * sizeof(float);
    const nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, SLICE, 1e-5);
    for (int order = 0; order < 2; order++) {
        for (size_t i = 0; i < ALL; i++)
            before[i] = expected[i] = buffer[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
        /* q normalized to where v is, by heads of tokens or by tokens of heads */
        nrg_norm_args a = nrg_norm_args_init(order ? TOKENS : HEADS, buffer, NULL, buffer + 2 * (size_t)HEADS * SLICE);
        a.rows2 = order ? HEADS : TOKENS;
        a.rows3 = BATCH;
        a.x_stride[0] = a.o_stride[0] = order ? token : head;
        a.x_stride[1] = a.o_stride[1] = order ? head : token;
        a.x_stride[2] = a.o_stride[2] = TOKENS * token;
        ck_assert_int_eq(nrg_norm_forward_check(&spec, &a), NRG_OK);
        for (int ith = 0; ith < 4; ith++)
            ck_assert_int_eq(nrg_norm_forward(&spec, &a, ith, 4), NRG_OK);
        for (size_t row = 0; row < (size_t)BATCH * TOKENS * HEADS; row++) {
            const size_t at = row / HEADS * DIM_ + row % HEADS * SLICE;
            nrg_norm_args one = nrg_norm_args_init(1, before + at, NULL, expected + at + 2 * (size_t)HEADS * SLICE);
            ck_assert_int_eq(nrg_norm_forward(&spec, &one, 0, 1), NRG_OK);
        }
        ck_assert_mem_eq(buffer, expected, sizeof buffer);
        /* an element further it would lie in the next token's q */
        a.o = buffer + 2 * (size_t)HEADS * SLICE + 1;
        ck_assert_int_eq(nrg_norm_forward(&spec, &a, 0, 1), NRG_ERR_OVERLAP);
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("calls: four dimensions");
    TCase *all = test_case(suite, "planes");
    tcase_add_loop_test(all, planes_are_one_matrix, 0, (int)(sizeof ops / sizeof ops[0]));
    tcase_add_test(all, slices_of_one_buffer);
    return test_run(suite);
}
