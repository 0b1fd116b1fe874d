/* The cases of relative_scores, relative_values and relative_backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { Q = SWEEP_IN, A, TABLE };
enum { SCORES = SWEEP_OUT, O, ENDS, D_TABLE };
enum { WORK_O = SWEEP_SCRATCH, WORK_ENDS }; /* from which relative_backward has its ends */

static const char *const names[SWEEP_OPERANDS] = {
    [Q] = "q",           [A] = "a",       [TABLE] = "table",     [SCORES] = "scores",
    [O] = "o",           [ENDS] = "ends", [D_TABLE] = "d_table", [WORK_O] = "o of the ends",
    [WORK_ENDS] = "ends"};

enum operation { OF_SCORES, OF_VALUES, OF_BACKWARD };

/* A length is that of a row or a number of keys. */
enum { WAYS = 2 };

static const struct {
    size_t batch, heads, queries, keys, dim, classes;
} large[] = {{1, 2, 40, 41, 64, 33}, {1, 1, 3, 700, 16, 9},     {2, 2, 5, 33, 130, 500}, {1, 1, 70, 66, 33, 150},
             {1, 2, 9, 9, 257, 17},  {1, 1, 2, 1500, 40, 2000}, {3, 3, 17, 17, 80, 5}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 100, [SWEEP_FULL] = 400};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct relative_case {
    enum operation operation;
    size_t shape[3], keys, dim, classes; /* batch, heads, queries */
    int64_t query_offset, p_min;
    nrg_dtype table_dtype;
    int q_by_head, a_by_head, o_by_head, table_by_head, has_ends, accumulate;
} relative_case;

static enum operation operation_of(const sweep_case *c)
{
    const char *op = sweep_kernel_op(c->kernel);
    return strcmp(op, "relative_scores") == 0 ? OF_SCORES : strcmp(op, "relative_values") == 0 ? OF_VALUES : OF_BACKWARD;
}

static relative_case draw(const sweep_case *c)
{
    relative_case r;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&r, 0, sizeof r);
    r.operation = operation_of(c);
    r.shape[0] = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 2) : 0;
    r.shape[1] = 1 + sweep_draw(&random, 3);
    r.shape[2] = 1 + sweep_draw(&random, 9);
    r.keys = c->n % WAYS ? (size_t)length + 1 : 1 + sweep_draw(&random, 40);
    r.dim = c->n % WAYS ? 1 + sweep_draw(&random, 40) : (size_t)length + 1;
    r.classes = 1 + sweep_draw(&random, sweep_draw(&random, 2) ? 60 : 9);
    if (length >= small[c->level]) {
        r.shape[0] = large[length - small[c->level]].batch;
        r.shape[1] = large[length - small[c->level]].heads;
        r.shape[2] = large[length - small[c->level]].queries;
        r.keys = large[length - small[c->level]].keys;
        r.dim = large[length - small[c->level]].dim;
        r.classes = large[length - small[c->level]].classes;
    }
    /* mostly where the distances of queries and keys are, sometimes beyond */
    r.query_offset = sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 2 * (unsigned)r.keys + 1) - (int64_t)r.keys / 2;
    r.p_min = -(int64_t)(r.classes / 2) + (sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 60) - 30);
    r.table_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    r.q_by_head = sweep_draw(&random, 3) != 0;
    r.a_by_head = sweep_draw(&random, 3) != 0;
    r.o_by_head = sweep_draw(&random, 3) != 0;
    r.table_by_head = sweep_draw(&random, 3) == 0;
    r.has_ends = r.operation != OF_SCORES && sweep_draw(&random, 2);
    r.accumulate = sweep_draw(&random, 2) != 0;
    return r;
}

static void add_table(sweep_case *c, const relative_case *r, int operand, nrg_dtype dtype)
{
    if (r->table_by_head)
        sweep_add_runs(c, operand, dtype, r->dim, r->classes, r->shape[1], 0);
    else
        sweep_add_tensor(c, operand, dtype, r->dim, r->classes);
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    (void)n;
    relative_case r = draw(c);
    uint64_t random = ~(c->number << 8);
    nrg_dtype dtype = c->spec.dtype;
    size_t rows = r.shape[0] * r.shape[1] * r.shape[2];
    c->rows = rows;
    c->shares = sweep_draw_shares(&random);
    c->fused = r.operation == OF_BACKWARD && r.has_ends; /* the reference does without */
    if (r.operation != OF_VALUES)
        sweep_add_batches(c, Q, dtype, r.dim, r.shape, r.q_by_head);
    if (r.operation != OF_SCORES)
        sweep_add_batches(c, A, dtype, r.keys, r.shape, r.a_by_head);
    if (r.operation == OF_SCORES)
        sweep_add_batches(c, SCORES, dtype, r.keys, r.shape, r.a_by_head);
    else if (r.operation == OF_VALUES)
        sweep_add_batches(c, O, dtype, r.dim, r.shape, r.o_by_head);
    if (r.operation == OF_BACKWARD)
        add_table(c, &r, D_TABLE, NRG_F32);
    if (r.operation != OF_BACKWARD || r.has_ends)
        add_table(c, &r, TABLE, r.table_dtype);
    if (r.has_ends && r.operation == OF_VALUES)
        sweep_add_dense(c, ENDS, SWEEP_F64, 2, rows);
    else if (r.has_ends) {
        sweep_add_dense(c, WORK_O, dtype, r.dim, rows);
        sweep_add_dense(c, WORK_ENDS, SWEEP_F64, 2, rows);
    }
    for (int operand = SWEEP_OUT; r.accumulate && operand < SWEEP_FIRST_SCRATCH; operand++)
        if (operand != ENDS)
            sweep_accumulate(c, operand);
    sweep_lay_out(c, &random);
}

static void strides_of(const sweep_case *c, const relative_case *r, int operand, int by_head, nrg_head_strides *strides)
{
    sweep_batch_strides(c, operand, r->shape, by_head, 1, &strides->batch, &strides->head, &strides->row);
}

static nrg_relative_args relative_args(const sweep_case *c, const relative_case *r, unsigned char *memory)
{
    nrg_relative_args args = nrg_relative_args_init(r->shape[0], r->shape[1], r->shape[2], r->keys, r->dim, r->p_min,
                                                    r->p_min + (int64_t)r->classes - 1);
    args.query_offset = r->query_offset;
    args.dtype = c->spec.dtype;
    args.table_dtype = r->table_dtype;
    args.q = sweep_place(c, Q, memory);
    args.a = sweep_place(c, A, memory);
    args.table = sweep_place(c, TABLE, memory);
    args.scores = sweep_place(c, SCORES, memory);
    args.o = sweep_place(c, O, memory);
    args.ends = sweep_place(c, ENDS, memory);
    args.d_table = sweep_place(c, D_TABLE, memory);
    args.accumulate = r->accumulate;
    strides_of(c, r, Q, r->q_by_head, &args.q_strides);
    strides_of(c, r, A, r->a_by_head, &args.a_strides);
    strides_of(c, r, SCORES, r->a_by_head, &args.scores_strides);
    strides_of(c, r, O, r->o_by_head, &args.o_strides);
    args.table_stride = sweep_stride(c, TABLE);
    args.table_head_stride = r->table_by_head ? c->operands[TABLE].run_stride : 0;
    args.d_table_stride = sweep_stride(c, D_TABLE);
    args.d_table_head_stride = r->table_by_head ? c->operands[D_TABLE].run_stride : 0;
    return args;
}

/* What nrg_relative_values leaves for the backward pass. */
static nrg_status make_ends(const sweep_case *c, const nrg_relative_args *args, unsigned char *memory)
{
    const nrg_head_strides dense = {0, 0, 0};
    nrg_relative_args values = *args;
    values.o = sweep_place(c, WORK_O, memory);
    values.ends = sweep_place(c, WORK_ENDS, memory);
    values.o_strides = dense;
    values.accumulate = 0;
    return nrg_relative_values(&values, 0, 1);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    static nrg_status (*const operations[])(const nrg_relative_args *, int, int) = {
        [OF_SCORES] = nrg_relative_scores,
        [OF_VALUES] = nrg_relative_values,
#ifndef NRG_NO_BACKWARD
        [OF_BACKWARD] = nrg_relative_backward,
#endif
    };
    relative_case r = draw(c);
    nrg_relative_args args = relative_args(c, &r, memory);
    nrg_status status = NRG_OK;
    if (c->fused && !c->recompute) {
        status = make_ends(c, &args, memory);
        args.ends = sweep_place(c, WORK_ENDS, memory);
    }
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = operations[r.operation](&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    relative_case r = draw(c);
    sweep_append(text, " %zux%zux%zux%zu, dim %zu, offset %ld, %zu classes from %ld%s%s%s", r.shape[0], r.shape[1], r.shape[2],
                 r.keys, r.dim, (long)r.query_offset, r.classes, (long)r.p_min, r.table_by_head ? " for each head" : "",
                 r.has_ends ? ", ends" : "", r.accumulate ? ", accumulate" : "");
}

const sweep_family sweep_family_relative_scores = {count, make, sweep_fill_rows, run, describe, names};
const sweep_family sweep_family_relative_values = {count, make, sweep_fill_rows, run, describe, names};
#ifndef NRG_NO_BACKWARD
const sweep_family sweep_family_relative_backward = {count, make, sweep_fill_rows, run, describe, names};
#endif
