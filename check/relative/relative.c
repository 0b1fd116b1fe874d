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

/* batch, heads, queries, keys, dim and classes */
static const size_t large[][6] = {{1, 2, 40, 41, 64, 33},  {1, 1, 3, 700, 16, 9}, {2, 2, 5, 33, 130, 500},
                                  {1, 1, 70, 66, 33, 150}, {1, 2, 9, 9, 257, 17}, {1, 1, 2, 1500, 40, 2000},
                                  {3, 3, 17, 17, 80, 5}};
enum { LARGE = sizeof large / sizeof large[0] };

/* values: of relative_backward, whose ends are what relative_values has left; the reference does without. */
typedef struct relative_case {
    nrg_relative_args args, values;
} relative_case;
#define AT(field) SWEEP_AT(relative_case, field)

/* Operands that lie by head, and not by row; whether there are ends. */
typedef struct relative_layout {
    int q_by_head, a_by_head, o_by_head, has_ends;
} relative_layout;

static relative_layout draw(sweep_case *c, uint64_t *random)
{
    relative_layout l;
    nrg_relative_args *args = sweep_structs(c);
    size_t batch = sweep_draw(random, 24) ? 1 + sweep_draw(random, 2) : 0, heads = 1 + sweep_draw(random, 3),
           queries = 1 + sweep_draw(random, 9), keys = c->way ? c->length : 1 + sweep_draw(random, 40),
           dim = c->way ? 1 + sweep_draw(random, 40) : c->length,
           classes = 1 + sweep_draw(random, sweep_draw(random, 2) ? 60 : 9);
    sweep_take_large(c, large[0], 6, (size_t *const[]){&batch, &heads, &queries, &keys, &dim, &classes});
    /* mostly where the distances of queries and keys are, sometimes beyond */
    const int64_t offset = sweep_draw(random, 2) ? 0 : (int64_t)sweep_draw(random, 2 * (unsigned)keys + 1) - (int64_t)keys / 2,
                  p_min = -(int64_t)(classes / 2) + (sweep_draw(random, 2) ? 0 : (int64_t)sweep_draw(random, 60) - 30);
    *args = nrg_relative_args_init(c->spec.dtype, batch, heads, queries, keys, dim, p_min, p_min + (int64_t)classes - 1);
    args->first_position = offset;
    args->table_dtype = sweep_draw(random, 2) ? NRG_F32 : c->spec.dtype;
    l.q_by_head = sweep_draw(random, 3) != 0;
    l.a_by_head = sweep_draw(random, 3) != 0;
    l.o_by_head = sweep_draw(random, 3) != 0;
    args->table_per_head = sweep_draw(random, 3) == 0;
    l.has_ends = strcmp(sweep_kernel_op(c->kernel), "relative_scores") != 0 && sweep_draw(random, 2);
    c->accumulate = args->accumulate = sweep_draw(random, 2) != 0;
    c->rows = batch * heads * queries;
    return l;
}

#define LENGTHS SWEEP_LENGTHS(WAYS, 40, 100, 400, LARGE)

static const sweep_call scores = {&invoke_relative_scores, .part = {AT(args)}},
                        values = {&invoke_relative_values, .part = {AT(args)}};

static void draw_scores(sweep_case *c, uint64_t *random)
{
    const relative_layout l = draw(c, random);
    sweep_add(c, SWEEP_ALWAYS, &scores, 0,
              (l.q_by_head ? 0 : NRG_BIT(NRG_RELATIVE_SCORES_Q)) | (l.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_SCORES_SCORES)));
}

const sweep_family sweep_family_relative_scores = {LENGTHS, .draw = draw_scores};

static void draw_values(sweep_case *c, uint64_t *random)
{
    const relative_layout l = draw(c, random);
    sweep_add(c, SWEEP_ALWAYS, &values, l.has_ends ? NRG_BIT(NRG_RELATIVE_VALUES_ENDS) : 0,
              (l.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_VALUES_A)) | (l.o_by_head ? 0 : NRG_BIT(NRG_RELATIVE_VALUES_O)));
}

const sweep_family sweep_family_relative_values = {LENGTHS, .draw = draw_values};

#ifndef NRG_NO_BACKWARD
enum { Q = SWEEP_IN, A, TABLE };
enum { D_TABLE = SWEEP_OUT };
enum { ENDS = SWEEP_SCRATCH, O };

static const unsigned char backward_slots[] = {Q, A, ENDS, D_TABLE};
static const unsigned char plain_slots[] = {Q, A, SWEEP_NOWHERE, D_TABLE};
static const unsigned char values_slots[] = {A, TABLE, O, ENDS};
static const sweep_call ends = {&invoke_relative_values, .slots = values_slots, .part = {AT(values)}},
                        backward = {&invoke_relative_backward, .slots = backward_slots, .part = {AT(args)}},
                        plain = {&invoke_relative_backward, .slots = plain_slots, .part = {AT(args)}};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    relative_case *r = sweep_structs(c);
    const relative_layout l = draw(c, random);
    r->values = r->args;
    r->values.accumulate = 0;
    r->args.table_dtype = NRG_DTYPE_SAME;
    const uint32_t transposed =
        (l.q_by_head ? 0 : NRG_BIT(NRG_RELATIVE_BACKWARD_Q)) | (l.a_by_head ? 0 : NRG_BIT(NRG_RELATIVE_BACKWARD_A));
    if (!l.has_ends) {
        sweep_add(c, SWEEP_ALWAYS, &plain, 0, transposed);
        return;
    }
    sweep_add(c, SWEEP_FUSED, &backward, NRG_BIT(NRG_RELATIVE_BACKWARD_ENDS), transposed);
    sweep_add_first(c, SWEEP_FUSED, &ends, NRG_BIT(NRG_RELATIVE_VALUES_ENDS));
    sweep_add_last(c, SWEEP_PLAIN, &plain);
}

const sweep_family sweep_family_relative_backward = {LENGTHS, .draw = draw_backward};
#endif
