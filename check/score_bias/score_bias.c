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

static void describe_t5(const nrg_score_bias_spec *s, char text[SWEEP_TEXT_ROOM])
{
    sweep_append(text, ", %d buckets to %d%s", s->buckets, s->max_distance, s->bidirectional ? " both ways" : "");
}

/* ---- forward ---- */

enum { SCORES = SWEEP_IN, DIAGONALS, TABLE };
enum { O = SWEEP_OUT, MADE };

static const unsigned char given[] = {
    [NRG_SCORE_BIAS_SCORES] = SCORES, [NRG_SCORE_BIAS_DIAGONALS] = DIAGONALS, [NRG_SCORE_BIAS_O] = O};
static const unsigned char made[] = {[NRG_SCORE_BIAS_SCORES] = SCORES, [NRG_SCORE_BIAS_DIAGONALS] = MADE, [NRG_SCORE_BIAS_O] = O};
static const unsigned char t5[] = {[NRG_T5_TABLE] = TABLE, [NRG_T5_DIAGONALS] = MADE};
static const unsigned char alibi[] = {[NRG_ALIBI_SLOPES] = TABLE, [NRG_ALIBI_DIAGONALS] = MADE};

typedef struct bias_case {
    nrg_score_bias_spec spec;
    nrg_t5_args t5;
    nrg_alibi_args alibi;
    nrg_score_bias_args args;
    uint32_t transposed;
} bias_case;

static bias_case draw(const sweep_case *c)
{
    static const unsigned most[] = {2, 4, 9};
    static const float scales[] = {1, 1, 1, 0.125f, -3.3f};
    bias_case b = {.t5.dtype = c->spec.dtype};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    b.args = nrg_score_bias_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL, NULL);
    const int is_alike = sweep_draw(&random, 3) == 0, by_head = sweep_draw(&random, 3) != 0;
    b.transposed = by_head ? 0 : NRG_BIT(NRG_SCORE_BIAS_O);
    if (is_alike ? !by_head : sweep_draw(&random, 3) == 0)
        b.transposed |= NRG_BIT(NRG_SCORE_BIAS_SCORES);
    b.args.scale = scales[sweep_draw(&random, 5)];
    b.args.store = c->store;
    b.spec = draw_spec(shape, &random);
    if (c->way == ALIBI)
        b.spec.bidirectional = b.spec.buckets = b.spec.max_distance = 0;
    return b;
}

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 5 % 3);
    bias_case b = draw(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = b.args.batch;
    c->shares = sweep_draw_shares(&random);
    if (c->way == T5)
        sweep_add_before(c, &nrg_call_t5_diagonals_forward, (void *const[]){&b.spec, &b.t5}, t5, 0);
    else if (c->way == ALIBI)
        sweep_add_before(c, &nrg_call_alibi_diagonals, (void *const[]){&b.spec, &b.alibi}, alibi, 0);
    sweep_add_call(c, &nrg_call_score_bias_forward, (void *const[]){&b.args}, c->way == ANY ? given : made, 0, b.transposed);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    bias_case b = draw(c);
    nrg_status status = NRG_OK;
    if (c->way == T5) {
        sweep_bind_call(c, &nrg_call_t5_diagonals_forward, (void *const[]){&b.spec, &b.t5}, t5, memory);
        SWEEP_EACH_SHARE(status, c, c->shares,
                         nrg_t5_diagonals_forward(&b.spec, b.t5.dtype, b.t5.table, b.t5.table_stride, b.t5.diagonals,
                                                  b.t5.diagonals_stride, ith, nth));
    } else if (c->way == ALIBI) {
        sweep_bind_call(c, &nrg_call_alibi_diagonals, (void *const[]){&b.spec, &b.alibi}, alibi, memory);
        SWEEP_EACH_SHARE(status, c, c->shares,
                         nrg_alibi_diagonals(&b.spec, b.alibi.slopes, b.alibi.diagonals, b.alibi.diagonals_stride, ith, nth));
    }
    sweep_bind_call(c, &nrg_call_score_bias_forward, (void *const[]){&b.args}, c->way == ANY ? given : made, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_score_bias_forward(&b.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const kinds[] = {"any", "t5", "alibi"};
    const bias_case b = draw(c);
    sweep_append(text, " %zux%zux%zux%zu %s times %g, offset %ld%s", b.args.batch, b.args.heads, b.args.queries, b.args.keys,
                 kinds[c->way], (double)b.args.scale, (long)b.spec.first_position, b.spec.causal ? ", causal" : "");
    if (c->way == T5)
        describe_t5(&b.spec, text);
}

const sweep_family sweep_family_score_bias = {LENGTHS(WAYS), .make = make, .run = run, .describe = describe};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

enum { D_O = SWEEP_IN };
enum { D_DIAGONALS = SWEEP_OUT, D_TABLE };

static const unsigned char t5_backward[] = {[NRG_T5_BACKWARD_D_DIAGONALS] = D_DIAGONALS, [NRG_T5_BACKWARD_D_TABLE] = D_TABLE};

typedef struct backward_case {
    nrg_score_bias_backward_args args;
    int by_head, accumulate, has_table;
    nrg_score_bias_spec spec;
    nrg_t5_backward_args t5;
} backward_case;

static backward_case draw_backward(const sweep_case *c)
{
    static const unsigned most[] = {3, 4, 9};
    backward_case g = {.accumulate = 0};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    if (c->large == LARGE) /* more of a batch than is added up at a time */
        memcpy(shape, (const size_t[]){40, 1, 5, 9}, sizeof shape);
    g.args = nrg_score_bias_backward_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL);
    g.by_head = sweep_draw(&random, 3) != 0;
    g.accumulate = sweep_draw(&random, 3) == 0;
    g.has_table = sweep_draw(&random, 2) != 0;
    g.spec = draw_spec(shape, &random);
    return g;
}

static void make_backward(sweep_case *c)
{
    backward_case g = draw_backward(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = g.args.heads;
    c->shares = sweep_draw_shares(&random);
    sweep_add_call(c, &nrg_call_score_bias_backward, (void *const[]){&g.args}, NULL, 0,
                   g.by_head ? 0 : NRG_BIT(NRG_SCORE_BIAS_BACKWARD_D_O));
    /* d_diagonals, which the second call uses, are added to by a second call of the first */
    c->accumulate = g.accumulate;
    if (g.has_table)
        sweep_add_call(c, &nrg_call_t5_diagonals_backward, (void *const[]){&g.spec, &g.t5}, t5_backward, 0, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    backward_case g = draw_backward(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_score_bias_backward, (void *const[]){&g.args}, NULL, memory);
    sweep_bind_call(c, &nrg_call_t5_diagonals_backward, (void *const[]){&g.spec, &g.t5}, t5_backward, memory);
    for (g.args.accumulate = 0; g.args.accumulate <= g.accumulate; g.args.accumulate++)
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_score_bias_backward(&g.args, ith, nth));
    if (g.has_table)
        SWEEP_EACH_SHARE(status, c, c->shares,
                         nrg_t5_diagonals_backward(&g.spec, g.t5.d_diagonals, g.t5.d_diagonals_stride, g.t5.d_table,
                                                   g.t5.d_table_stride, g.accumulate, ith, nth));
    return status;
}

static void describe_backward(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const backward_case g = draw_backward(c);
    sweep_append(text, " %zux%zux%zux%zu", g.args.batch, g.args.heads, g.args.queries, g.args.keys);
    if (g.has_table) {
        sweep_append(text, ", offset %ld", (long)g.spec.first_position);
        describe_t5(&g.spec, text);
    }
}

const sweep_family sweep_family_score_bias_backward = {LENGTHS(2), .make = make_backward, .run = run_backward,
                                                       .describe = describe_backward};
#endif
