/* The cases of embed: sums of a tensor and rows of tables, alone and with the norm after them.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/embed.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../norm/settle.h"

/* What is added up for every length: bit 0 is x, the others a table each; and whether a norm follows. */
static const struct {
    int terms, has_norm;
} ways[] = {{2, 0}, {3, 0}, {14, 0}, {15, 0}, {6, 0}, {14, 1}, {3, 1}, {2, 1}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* dim and tokens */
static const size_t large[][2] = {{128, 200}, {768, 33}, {1024, 5}, {4097, 3}, {20011, 2}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct embed_case {
    nrg_embed_args args;
    nrg_embed_terms terms;
    nrg_norm_spec norm;
    nrg_norm_args norm_args, plain_args;
} embed_case;
#define AT(field) SWEEP_AT(embed_case, field)

/* The calls have their tables in a part of its own. */
static void set_tables(void *const *part)
{
    nrg_embed_args *args = part[0];
    args->tables = ((const nrg_embed_terms *)part[1])->table;
    args->table_count = NRG_EMBED_TABLES;
}

static const sweep_call sum = {&invoke_embed_forward, .part = {AT(args), AT(terms)}, .store = AT(args.store), .fix = set_tables};

#ifndef NRG_NO_NORM
/* The reference goes through a tensor with the sum. */
static const unsigned char sum_slots[NRG_EMBED_OPERANDS] = {0, 1, 2, 3, 4, 5, 6, [NRG_EMBED_O] = SWEEP_SCRATCH};
static const unsigned char norm_slots[NRG_NORM_OPERANDS] = {
    [NRG_NORM_X] = SWEEP_SCRATCH,      [NRG_NORM_Y] = SWEEP_NOWHERE,     [NRG_NORM_Z] = SWEEP_NOWHERE,
    [NRG_NORM_W] = NRG_EMBED_NORM_W,   [NRG_NORM_B] = NRG_EMBED_NORM_B,  [NRG_NORM_O] = SWEEP_OUT,
    [NRG_NORM_R] = SWEEP_OUT + 1,      [NRG_NORM_MEAN] = SWEEP_OUT + 2,  [NRG_NORM_RSTD] = SWEEP_OUT + 3,
    [NRG_NORM_PACKED] = SWEEP_NOWHERE, [NRG_NORM_SCALES] = SWEEP_NOWHERE};
static const sweep_call fused = {&invoke_embed_norm_forward, .part = {AT(args), AT(terms), AT(norm), AT(norm_args)},
                                 .store = AT(norm_args.store), .fix = set_tables},
                        plain_sum = {&invoke_embed_forward, .slots = sum_slots, .part = {AT(args), AT(terms)}, .fix = set_tables},
                        plain_norm = {&invoke_norm_forward, .slots = norm_slots, .part = {AT(norm), AT(plain_args)}};

static void draw_norm(const sweep_case *c, embed_case *e, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5};
    nrg_norm_spec *s = &e->norm;
    *s = sweep_draw(random, 2) ? nrg_norm_spec_rms(c->spec.dtype, e->args.dim, eps[sweep_draw(random, 4)])
                               : nrg_norm_spec_layer(c->spec.dtype, e->args.dim, eps[sweep_draw(random, 4)]);
    s->w_dtype = sweep_draw(random, 2) ? NRG_F32 : s->dtype;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->weight_offset = sweep_draw(random, 3) ? 0 : 1;
    s->groups = (const size_t[]){1, 1, 2, 4}[sweep_draw(random, 4)];
    if (e->args.dim % s->groups)
        s->groups = 1;
    if (sweep_draw(random, 4) == 0)
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
}
#endif

/* Returns which operands are there. */
static uint32_t draw_terms(sweep_case *c, embed_case *e, uint64_t *random)
{
    const int terms = ways[c->way].terms;
    uint32_t there = terms & 1 ? NRG_BIT(NRG_EMBED_X) : 0;
    size_t dim = c->length, tokens = sweep_draw(random, 24) ? 1 + sweep_draw(random, 9) : 0;
    sweep_take_large(c, large[0], 2, (size_t *const[]){&dim, &tokens});
    sweep_draw(random, 3); /* no use: hashes depend on the number of draws */
    e->args = nrg_embed_args_init(c->spec.dtype, tokens, dim, NULL);
    e->terms = nrg_embed_terms_of(NULL);
    e->args.table_dtype = sweep_draw(random, 2) ? NRG_F32 : c->spec.dtype;
    for (int i = 0; i < NRG_EMBED_TABLES; i++) {
        nrg_embed_table t = nrg_embed_table_init(0, NULL, NULL);
        const int has_ids = sweep_draw(random, 3) != 0;
        t.rows = 1 + sweep_draw(random, 12);
        if (!has_ids) {
            t.first_position = (int32_t)sweep_draw(random, 5);
            t.rows = tokens + (size_t)t.first_position + sweep_draw(random, 3);
        }
        t.scale = (const float[]){1, 1, 1, 27.712812f, -0.3f}[sweep_draw(random, 5)];
        if (terms >> i & 2) {
            e->terms.table[i] = t;
            there |= NRG_BIT(NRG_EMBED_TABLE + i) | (has_ids && tokens ? NRG_BIT(NRG_EMBED_IDS + i) : 0);
        }
    }
    return there;
}

static void draw(sweep_case *c, uint64_t *random)
{
    embed_case *e = sweep_structs(c);
    uint32_t there = draw_terms(c, e, random);
    c->rows = e->args.rows;
    if (!ways[c->way].has_norm) {
        sweep_add(c, SWEEP_ALWAYS, &sum, there, 0);
        return;
    }
#ifndef NRG_NO_NORM
    const int has_w = sweep_draw(random, 3) != 0;
    there |= has_w ? NRG_BIT(NRG_EMBED_NORM_W) : 0;
    there |= sweep_draw(random, 2) ? NRG_BIT(NRG_EMBED_NORM_B) : 0;
    there |= sweep_draw(random, 2) ? NRG_BIT(NRG_EMBED_NORM_R) : 0;
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_EMBED_NORM_MEAN) | NRG_BIT(NRG_EMBED_NORM_RSTD) : 0;
    draw_norm(c, e, random);
    norm_settle(&e->norm, has_w && c->rows);
    e->norm_args = e->plain_args = nrg_norm_args_init(c->rows, NULL, NULL, NULL);
    c->weights = NRG_BIT(NRG_EMBED_NORM_W) | NRG_BIT(NRG_EMBED_NORM_B);
    sweep_add(c, SWEEP_FUSED, &fused, there, 0);
    sweep_add_first(c, SWEEP_PLAIN, &plain_sum, 0);
    sweep_add_last(c, SWEEP_PLAIN, &plain_norm);
#endif
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const embed_case *e = sweep_const_structs(c);
    const int table = operand - NRG_EMBED_IDS;
    if (table >= 0 && table < NRG_EMBED_TABLES)
        sweep_fill_positions(c, operand, 0, (int32_t)e->terms.table[table].rows - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const embed_case *e = sweep_const_structs(c);
    if (ways[c->way].has_norm)
        sweep_describe_norm(&e->norm, text);
}

const sweep_family sweep_family_embed = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .draw = draw, .fill = fill,
                                         .describe = describe};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

/* How ids are spread: over all rows, most in one row, or counted. */
enum { SPREAD, HEAVY, COUNTED, SPREADS };

/* dim, tokens and rows */
static const size_t large_backward[][3] = {{64, 900, 300}, {128, 700, 3},  {768, 60, 2},
                                           {1000, 9, 40},  {5, 4000, 100}, {33, 3000, 1}};

typedef struct backward_case {
    nrg_embed_backward_args args;
    nrg_embed_gradients gradients; /* one table */
} backward_case;
#undef AT
#define AT(field) SWEEP_AT(backward_case, field)

static void set_gradients(void *const *part)
{
    nrg_embed_backward_args *args = part[0];
    args->tables = ((const nrg_embed_gradients *)part[1])->table;
    args->table_count = 1;
}
static const sweep_call order = {&invoke_embed_backward_order, .part = {AT(args), AT(gradients)}, .fix = set_gradients},
                        backward = {&invoke_embed_backward, .part = {AT(args), AT(gradients)}, .store = AT(args.store),
                                    .fix = set_gradients};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    backward_case *b = sweep_structs(c);
    nrg_embed_gradient *const t = &b->gradients.table[0];
    size_t dim = c->length, tokens = sweep_draw(random, 24) ? 1 + sweep_draw(random, 40) : 0, rows = 1 + sweep_draw(random, 20);
    int32_t first = 0;
    sweep_take_large(c, large_backward[0], 3, (size_t *const[]){&dim, &tokens, &rows});
    if (c->way == COUNTED) {
        first = (int32_t)sweep_draw(random, 4);
        rows = tokens + (size_t)first + sweep_draw(random, 4);
    }
    b->args = nrg_embed_backward_args_init(c->spec.dtype, tokens, dim, NULL);
    b->gradients = nrg_embed_gradients_of(NULL);
    b->args.tables = t;
    b->args.table_count = 1;
    t->rows = c->rows = rows;
    t->first_position = first;
    t->scale = (const float[]){1, 1, 1, 27.712812f, -0.3f}[sweep_draw(random, 5)];
    t->accumulate = c->accumulate = sweep_draw(random, 3) == 0;
    b->args.table_dtype = sweep_draw(random, 3) ? NRG_F32 : c->spec.dtype;
    sweep_add_last(c, SWEEP_ALWAYS, &order);
    sweep_add(c, SWEEP_ALWAYS, &backward,
              NRG_BIT(NRG_EMBED_BACKWARD_D_TABLE) | (c->way != COUNTED && tokens ? NRG_BIT(NRG_EMBED_BACKWARD_IDS) : 0), 0);
}

static void fill_backward(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (operand != NRG_EMBED_BACKWARD_IDS) {
        sweep_fill_rows(c, operand, memory, random);
        return;
    }
    const int32_t most = (int32_t)(c->seed % c->rows);
    int32_t *ids = sweep_place(c, operand, memory);
    sweep_fill_positions(c, operand, 0, (int32_t)c->rows - 1, memory, random);
    for (size_t i = 0; c->way == HEAVY && i < c->operands[operand].length; i++)
        ids[i] = sweep_draw(random, 5) ? most : ids[i];
}

const sweep_family sweep_family_embed_backward = {SWEEP_LENGTHS(SPREADS, 40, 140, 600, NRG_COUNT(large_backward)),
                                                  .draw = draw_backward, .fill = fill_backward};
#endif
