/* The cases of score_bias, with diagonals of T5's and ALiBi's among them; of score_bias_backward, and of the gradient of T5's
 * table.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../src/operands/score_bias.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Where diagonals come from; each for every number of keys. */
enum { ANY, T5, ALIBI, WAYS };

static const size_t large[][4] = {{1, 2, 70, 65},  {2, 1, 3, 1000}, {1, 3, 130, 7},
                                  {1, 1, 1, 4097}, {2, 2, 33, 129}, {1, 8, 64, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS(ways_) SWEEP_LENGTHS(ways_, 70, 140, 600, LARGE)

static nrg_score_bias_spec draw_spec(const size_t shape[4], uint64_t *random)
{
    nrg_score_bias_spec spec = nrg_score_bias_spec_t5(shape[1], shape[2], shape[3]);
    spec.first_position = sweep_draw(random, 2) ? 0 : (int64_t)sweep_draw(random, 2000) - 1000;
    spec.causal = sweep_draw(random, 3) == 0;
    spec.bidirectional = sweep_draw(random, 2) != 0;
    spec.buckets = 4 + (int)sweep_draw(random, 40);
    spec.max_distance = spec.buckets + (int)sweep_draw(random, 200);
    return spec;
}

/* ---- forward ---- */

enum { SCORES = SWEEP_IN, DIAGONALS, TABLE };
enum { O = SWEEP_OUT, MADE };

static const unsigned char given[] = {SCORES, DIAGONALS, O};
static const unsigned char made[] = {SCORES, MADE, O};
static const unsigned char t5[] = {TABLE, MADE};
static const unsigned char alibi[] = {TABLE, MADE};

typedef struct bias_case {
    nrg_score_bias_spec spec;
    nrg_t5_args t5;
    nrg_alibi_args alibi;
    nrg_score_bias_args args;
} bias_case;
#define AT(field) SWEEP_AT(bias_case, field)

static const sweep_call from_t5 = {&invoke_t5_diagonals_forward, .slots = t5, .part = {AT(spec), AT(t5)}},
                        from_alibi = {&invoke_alibi_diagonals, .slots = alibi, .part = {AT(spec), AT(alibi)}},
                        with_given = {&invoke_score_bias_forward, .slots = given, .part = {AT(args)}, .store = AT(args.store)},
                        with_made = {&invoke_score_bias_forward, .slots = made, .part = {AT(args)}, .store = AT(args.store)};

static void draw(sweep_case *c, uint64_t *random)
{
    static const unsigned most[] = {2, 4, 9};
    bias_case *b = sweep_structs(c);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    c->rows = shape[0];
    b->t5.dtype = c->spec.dtype;
    b->args = nrg_score_bias_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL, NULL);
    const int is_alike = sweep_draw(random, 3) == 0, by_head = sweep_draw(random, 3) != 0;
    uint32_t transposed = by_head ? 0 : NRG_BIT(NRG_SCORE_BIAS_O);
    if (is_alike ? !by_head : sweep_draw(random, 3) == 0)
        transposed |= NRG_BIT(NRG_SCORE_BIAS_SCORES);
    b->args.scale = (const float[]){1, 1, 1, 0.125f, -3.3f}[sweep_draw(random, 5)];
    b->spec = draw_spec(shape, random);
    if (c->way == ALIBI)
        b->spec.bidirectional = b->spec.buckets = b->spec.max_distance = 0;
    if (c->way != ANY)
        sweep_add_first(c, SWEEP_ALWAYS, c->way == T5 ? &from_t5 : &from_alibi, 0);
    sweep_add(c, SWEEP_ALWAYS, c->way == ANY ? &with_given : &with_made, 0, transposed);
}

const sweep_family sweep_family_score_bias = {LENGTHS(WAYS), .draw = draw};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

enum { D_O = SWEEP_IN };
enum { D_DIAGONALS = SWEEP_OUT, D_TABLE };

static const unsigned char t5_backward[] = {D_DIAGONALS, D_TABLE};

typedef struct backward_case {
    nrg_score_bias_backward_args args;
    nrg_score_bias_spec spec;
    nrg_t5_backward_args t5;
} backward_case;
#undef AT
#define AT(field) SWEEP_AT(backward_case, field)

static void add_to_them(void *const *part) { ((nrg_score_bias_backward_args *)part[0])->accumulate = 1; }
static nrg_status add_table(void *const *part, int ith, int nth)
{
    const nrg_t5_backward_args *a = part[1];
    return nrg_t5_diagonals_backward(part[0], a->d_diagonals, a->d_diagonals_stride, a->d_table, a->d_table_stride, 1, ith, nth);
}
static const invoke_function invoke_add_table = {"nrg_t5_diagonals_backward", &nrg_call_t5_diagonals_backward, add_table, NULL,
                                                 NULL};
static const sweep_call backward = {&invoke_score_bias_backward, .part = {AT(args)}},
                        again = {&invoke_score_bias_backward, .part = {AT(args)}, .fix = add_to_them},
                        table_written = {&invoke_t5_diagonals_backward, .slots = t5_backward, .part = {AT(spec), AT(t5)}},
                        table_added = {&invoke_add_table, .slots = t5_backward, .part = {AT(spec), AT(t5)}};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    static const unsigned most[] = {3, 4, 9};
    backward_case *g = sweep_structs(c);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    if (c->large == LARGE) /* more of a batch than is added up at a time */
        memcpy(shape, (const size_t[]){40, 1, 5, 9}, sizeof shape);
    c->rows = shape[1];
    g->args = nrg_score_bias_backward_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL);
    const int by_head = sweep_draw(random, 3) != 0, accumulate = sweep_draw(random, 3) == 0,
              has_table = sweep_draw(random, 2) != 0;
    g->spec = draw_spec(shape, random);
    sweep_add(c, SWEEP_ALWAYS, &backward, 0, by_head ? 0 : NRG_BIT(NRG_SCORE_BIAS_BACKWARD_D_O));
    if (accumulate)
        sweep_add_last(c, SWEEP_ALWAYS, &again);
    c->accumulate = accumulate; /* to the table; what the case adds to d_diagonals it has written there itself */
    if (has_table)
        sweep_add(c, SWEEP_ALWAYS, accumulate ? &table_added : &table_written, 0, 0);
}

const sweep_family sweep_family_score_bias_backward = {LENGTHS(2), .draw = draw_backward};
#endif
