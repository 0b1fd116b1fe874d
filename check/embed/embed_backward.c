/* The cases of embed_backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../src/operands/embed.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* How ids are spread: over all rows, most in one row, or counted. */
enum { SPREAD, HEAVY, COUNTED, WAYS };

static const struct {
    size_t dim, tokens, rows;
} large[] = {{64, 900, 300}, {128, 700, 3}, {768, 60, 2}, {1000, 9, 40}, {5, 4000, 100}, {33, 3000, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

/* The args, and the one table of gradients. */
static nrg_embed_backward_args draw(const sweep_case *c, nrg_embed_gradients *gradients)
{
    static const float scales[] = {1, 1, 1, 27.712812f, -0.3f};
    uint64_t random = c->seed;
    size_t dim = c->length, tokens = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 40) : 0,
           rows = 1 + sweep_draw(&random, 20);
    int32_t first = 0;
    if (c->large) {
        dim = large[c->large - 1].dim;
        tokens = large[c->large - 1].tokens;
        rows = large[c->large - 1].rows;
    }
    if (c->way == COUNTED) {
        first = (int32_t)sweep_draw(&random, 4);
        rows = tokens + (size_t)first + sweep_draw(&random, 4);
    }
    nrg_embed_backward_args args = nrg_embed_backward_args_init(c->spec.dtype, tokens, dim, NULL);
    nrg_embed_gradient *const t = &gradients->table[0];
    *gradients = nrg_embed_gradients_of(NULL);
    args.tables = t;
    args.table_count = 1;
    t->rows = rows;
    t->first_position = first;
    t->scale = scales[sweep_draw(&random, 5)];
    t->accumulate = sweep_draw(&random, 3) == 0;
    args.table_dtype = sweep_draw(&random, 3) ? NRG_F32 : c->spec.dtype;
    args.store = c->store;
    return args;
}

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 5 % 3);
    nrg_embed_gradients gradients;
    nrg_embed_backward_args args = draw(c, &gradients);
    uint64_t random = ~(c->seed << 8);
    uint32_t there = NRG_BIT(NRG_EMBED_BACKWARD_D_TABLE);
    there |= c->way != COUNTED && args.rows ? NRG_BIT(NRG_EMBED_BACKWARD_IDS) : 0;
    c->rows = gradients.table[0].rows;
    c->shares = sweep_draw_shares(&random);
    c->accumulate = gradients.table[0].accumulate;
    sweep_add_call(c, &nrg_call_embed_backward, (void *const[]){&args, &gradients}, NULL, there, 0);
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (operand != NRG_EMBED_BACKWARD_IDS) {
        sweep_fill_rows(c, operand, memory, random);
        return;
    }
    nrg_embed_gradients gradients;
    const nrg_embed_backward_args args = draw(c, &gradients);
    const int32_t most = (int32_t)(c->seed % gradients.table[0].rows);
    unsigned char *ids = memory + c->operands[operand].offset;
    sweep_fill_positions(c, operand, 0, (int32_t)gradients.table[0].rows - 1, memory, random);
    for (size_t i = 0; c->way == HEAVY && i < args.rows; i++)
        if (sweep_draw(random, 5))
            memcpy(ids + i * sizeof most, &most, sizeof most);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    nrg_embed_gradients gradients;
    nrg_embed_backward_args args = draw(c, &gradients);
    sweep_bind_call(c, &nrg_call_embed_backward, (void *const[]){&args, &gradients}, NULL, memory);
    nrg_status status = nrg_embed_backward_order(&args);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_embed_backward(&args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const spreads[] = {"", ", most in one row", ", counted"};
    nrg_embed_gradients gradients;
    const nrg_embed_backward_args args = draw(c, &gradients);
    sweep_append(text, " %zux%zu into %zu rows%s, times %g", args.rows, args.dim, gradients.table[0].rows, spreads[c->way],
                 (double)gradients.table[0].scale);
}

const sweep_family sweep_family_embed_backward = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .make = make, .fill = fill,
                                                  .run = run, .describe = describe};
