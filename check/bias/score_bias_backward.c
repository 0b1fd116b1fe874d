/* The cases of score_bias_backward, and of the gradient of T5's table.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { D_O = SWEEP_IN };
enum { D_DIAGONALS = SWEEP_OUT, D_TABLE };

static const char *const names[SWEEP_OPERANDS] = {[D_O] = "d_o", [D_DIAGONALS] = "d_diagonals", [D_TABLE] = "d_table"};

enum { WAYS = 2 }; /* for every number of keys */

static const struct {
    size_t batch, heads, queries, keys;
} large[] = {{1, 2, 70, 65}, {2, 1, 3, 1000}, {1, 3, 130, 7}, {1, 1, 1, 4097}, {2, 2, 33, 129}, {40, 1, 5, 9}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 70, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct gradient_case {
    size_t shape[3], keys; /* batch, heads, queries */
    int by_head, accumulate, has_table;
    nrg_bias_spec spec;
} gradient_case;

static gradient_case draw(const sweep_case *c)
{
    gradient_case g;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&g, 0, sizeof g);
    g.shape[0] = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 3) : 0;
    g.shape[1] = 1 + sweep_draw(&random, 4);
    g.shape[2] = 1 + sweep_draw(&random, 9);
    g.keys = (size_t)length + 1;
    if (length >= small[c->level]) {
        g.shape[0] = large[length - small[c->level]].batch;
        g.shape[1] = large[length - small[c->level]].heads;
        g.shape[2] = large[length - small[c->level]].queries;
        g.keys = large[length - small[c->level]].keys;
    }
    g.by_head = sweep_draw(&random, 3) != 0;
    g.accumulate = sweep_draw(&random, 3) == 0;
    g.has_table = sweep_draw(&random, 2) != 0;
    g.spec = nrg_bias_spec_init(g.shape[1], g.shape[2], g.keys);
    g.spec.query_offset = sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 2000) - 1000;
    g.spec.mask_future = sweep_draw(&random, 3) == 0;
    g.spec.bidirectional = sweep_draw(&random, 2) != 0;
    g.spec.buckets = 4 + (int)sweep_draw(&random, 40);
    g.spec.max_distance = g.spec.buckets + (int)sweep_draw(&random, 200);
    return g;
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    (void)n;
    gradient_case g = draw(c);
    uint64_t random = ~(c->number << 8);
    c->rows = g.shape[1];
    c->shares = sweep_draw_shares(&random);
    sweep_add_batches(c, D_O, c->spec.dtype, g.keys, g.shape, g.by_head);
    sweep_add_tensor(c, D_DIAGONALS, SWEEP_F64, nrg_score_diagonals(g.shape[2], g.keys), g.shape[1]);
    if (g.has_table)
        sweep_add_tensor(c, D_TABLE, NRG_F32, g.shape[1], (size_t)g.spec.buckets);
    /* without accumulate, every number is written; with it, those of d_table are added to, but d_diagonals have one use */
    if (g.accumulate && g.has_table)
        sweep_accumulate(c, D_TABLE);
    c->operands[D_O].is_alone = 1;
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    gradient_case g = draw(c);
    double *diagonals = sweep_place(c, D_DIAGONALS, memory);
    nrg_score_bias_backward_args args = nrg_score_bias_backward_args_init(c->spec.dtype, g.shape[0], g.shape[1], g.shape[2],
                                                                          g.keys, sweep_place(c, D_O, memory), diagonals);
    args.d_diagonals_stride = sweep_stride(c, D_DIAGONALS);
    sweep_batch_strides(c, D_O, g.shape, g.by_head, 1, &args.d_o_batch_stride, &args.d_o_head_stride, &args.d_o_query_stride);
    nrg_status status = NRG_OK;
    /* the second time is added to the first */
    for (args.accumulate = 0; args.accumulate <= g.accumulate && status == NRG_OK; args.accumulate++)
        for (int i = 0; i < c->shares && status == NRG_OK; i++)
            status = nrg_score_bias_backward(&args, sweep_share(c, i, c->shares), c->shares);
    for (int i = 0; g.has_table && i < c->shares && status == NRG_OK; i++)
        status = nrg_t5_backward(&g.spec, diagonals, sweep_stride(c, D_DIAGONALS), sweep_place(c, D_TABLE, memory),
                                 sweep_stride(c, D_TABLE), g.accumulate, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    gradient_case g = draw(c);
    sweep_append(text, " %zux%zux%zux%zu%s", g.shape[0], g.shape[1], g.shape[2], g.keys, g.accumulate ? ", accumulate" : "");
    if (g.has_table)
        sweep_append(text, ", %d buckets to %d%s, offset %ld", g.spec.buckets, g.spec.max_distance,
                     g.spec.bidirectional ? " both ways" : "", (long)g.spec.query_offset);
}

const sweep_family sweep_family_score_bias_backward = {count, make, sweep_fill_rows, run, describe, names};
