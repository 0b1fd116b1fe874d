/* The cases of relative_scores, relative_values and relative_backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../src/operands/relative.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* A length is that of a row or a number of keys. */
enum { WAYS = 2 };

static const struct {
    size_t batch, heads, queries, keys, dim, classes;
} large[] = {{1, 2, 40, 41, 64, 33}, {1, 1, 3, 700, 16, 9},     {2, 2, 5, 33, 130, 500}, {1, 1, 70, 66, 33, 150},
             {1, 2, 9, 9, 257, 17},  {1, 1, 2, 1500, 40, 2000}, {3, 3, 17, 17, 80, 5}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct relative_case {
    nrg_relative_args args;
    int q_by_head, a_by_head, o_by_head, has_ends;
} relative_case;

static int is_op(const sweep_case *c, const char *op) { return strcmp(sweep_kernel_op(c->kernel), op) == 0; }

static relative_case draw(const sweep_case *c)
{
    relative_case r;
    uint64_t random = c->seed;
    size_t batch = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 2) : 0, heads = 1 + sweep_draw(&random, 3),
           queries = 1 + sweep_draw(&random, 9), keys = c->way ? c->length : 1 + sweep_draw(&random, 40),
           dim = c->way ? 1 + sweep_draw(&random, 40) : c->length,
           classes = 1 + sweep_draw(&random, sweep_draw(&random, 2) ? 60 : 9);
    if (c->large) {
        batch = large[c->large - 1].batch;
        heads = large[c->large - 1].heads;
        queries = large[c->large - 1].queries;
        keys = large[c->large - 1].keys;
        dim = large[c->large - 1].dim;
        classes = large[c->large - 1].classes;
    }
    /* mostly where the distances of queries and keys are, sometimes beyond */
    const int64_t offset = sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 2 * (unsigned)keys + 1) - (int64_t)keys / 2,
                  p_min = -(int64_t)(classes / 2) + (sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 60) - 30);
    r.args = nrg_relative_args_init(c->spec.dtype, batch, heads, queries, keys, dim, p_min, p_min + (int64_t)classes - 1);
    r.args.first_position = offset;
    r.args.table_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    r.q_by_head = sweep_draw(&random, 3) != 0;
    r.a_by_head = sweep_draw(&random, 3) != 0;
    r.o_by_head = sweep_draw(&random, 3) != 0;
    r.args.table_per_head = sweep_draw(&random, 3) == 0;
    r.has_ends = !is_op(c, "relative_scores") && sweep_draw(&random, 2);
    r.args.accumulate = sweep_draw(&random, 2) != 0;
    return r;
}

static void make(sweep_case *c, relative_case *r, const nrg_call *call, uint32_t there, uint32_t transposed)
{
    uint64_t random = ~(c->seed << 8);
    c->rows = r->args.batch * r->args.heads * r->args.queries;
    c->shares = sweep_draw_shares(&random);
    c->accumulate = r->args.accumulate;
    sweep_add_call(c, call, (void *const[]){&r->args}, NULL, there, transposed);
    sweep_lay_out(c, &random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const relative_case r = draw(c);
    const nrg_relative_args *a = &r.args;
    sweep_append(text, " %zux%zux%zux%zu, dim %zu, offset %ld, classes %ld to %ld%s%s", a->batch, a->heads, a->queries, a->keys,
                 a->dim, (long)a->first_position, (long)a->p_min, (long)a->p_max, a->table_per_head ? " for each head" : "",
                 r.has_ends ? ", ends" : "");
}

#define LENGTHS SWEEP_LENGTHS(WAYS, 40, 100, 400, LARGE)

static void make_scores(sweep_case *c)
{
    relative_case r = draw(c);
    make(c, &r, &nrg_call_relative_scores, 0,
         (r.q_by_head ? 0 : NRG_BIT(NRG_RELATIVE_SCORES_Q)) | (r.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_SCORES_SCORES)));
}

static nrg_status run_scores(const sweep_case *c, unsigned char *memory)
{
    relative_case r = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_relative_scores, (void *const[]){&r.args}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_relative_scores(&r.args, ith, nth));
    return status;
}

const sweep_family sweep_family_relative_scores = {LENGTHS, .make = make_scores, .run = run_scores, .describe = describe};

static void make_values(sweep_case *c)
{
    relative_case r = draw(c);
    make(c, &r, &nrg_call_relative_values, r.has_ends ? NRG_BIT(NRG_RELATIVE_VALUES_ENDS) : 0,
         (r.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_VALUES_A)) | (r.o_by_head ? 0 : NRG_BIT(NRG_RELATIVE_VALUES_O)));
}

static nrg_status run_values(const sweep_case *c, unsigned char *memory)
{
    relative_case r = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_relative_values, (void *const[]){&r.args}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_relative_values(&r.args, ith, nth));
    return status;
}

const sweep_family sweep_family_relative_values = {LENGTHS, .make = make_values, .run = run_values, .describe = describe};

#ifndef NRG_NO_BACKWARD
/* Ends, where there are any, are what relative_values has left; the reference does without. */
enum { Q = SWEEP_IN, A, TABLE };
enum { D_TABLE = SWEEP_OUT };
enum { ENDS = SWEEP_SCRATCH, O };

static const unsigned char backward_slots[] = {[NRG_RELATIVE_BACKWARD_Q] = Q,
                                               [NRG_RELATIVE_BACKWARD_A] = A,
                                               [NRG_RELATIVE_BACKWARD_ENDS] = ENDS,
                                               [NRG_RELATIVE_BACKWARD_D_TABLE] = D_TABLE};
static const unsigned char values_slots[] = {[NRG_RELATIVE_VALUES_A] = A,
                                             [NRG_RELATIVE_VALUES_TABLE] = TABLE,
                                             [NRG_RELATIVE_VALUES_O] = O,
                                             [NRG_RELATIVE_VALUES_ENDS] = ENDS};

static void make_backward(sweep_case *c)
{
    relative_case r = draw(c), values = r;
    uint64_t random = ~(c->seed << 8);
    c->rows = r.args.batch * r.args.heads * r.args.queries;
    c->shares = sweep_draw_shares(&random);
    c->accumulate = r.args.accumulate;
    c->fused = r.has_ends;
    r.args.table_dtype = NRG_DTYPE_SAME;
    sweep_add_call(c, &nrg_call_relative_backward, (void *const[]){&r.args}, backward_slots,
                   r.has_ends ? NRG_BIT(NRG_RELATIVE_BACKWARD_ENDS) : 0,
                   (r.q_by_head ? 0 : NRG_BIT(NRG_RELATIVE_BACKWARD_Q)) | (r.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_BACKWARD_A)));
    if (r.has_ends)
        sweep_add_before(c, &nrg_call_relative_values, (void *const[]){&values.args}, values_slots,
                         NRG_BIT(NRG_RELATIVE_VALUES_ENDS));
    sweep_lay_out(c, &random);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    relative_case r = draw(c);
    nrg_status status = NRG_OK;
    if (r.has_ends && !c->recompute) {
        relative_case values = r;
        sweep_bind_call(c, &nrg_call_relative_values, (void *const[]){&values.args}, values_slots, memory);
        values.args.accumulate = 0;
        status = nrg_relative_values(&values.args, 0, 1);
    }
    r.args.table_dtype = NRG_DTYPE_SAME;
    sweep_bind_call(c, &nrg_call_relative_backward, (void *const[]){&r.args}, backward_slots, memory);
    if (c->recompute)
        r.args.ends_in = NULL;
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_relative_backward(&r.args, ith, nth));
    return status;
}

const sweep_family sweep_family_relative_backward = {LENGTHS, .make = make_backward, .run = run_backward, .describe = describe};
#endif
