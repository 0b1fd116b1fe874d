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

static const struct {
    size_t dim, tokens;
} large[] = {{128, 200}, {768, 33}, {1024, 5}, {4097, 3}, {20011, 2}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct embed_case {
    nrg_embed_args args;
    nrg_embed_terms terms;
    int has_ids[NRG_EMBED_TABLES], has_w, has_b, has_r, has_statistics;
    nrg_norm_spec norm;
    nrg_norm_args norm_args;
} embed_case;

static void draw_norm(const sweep_case *c, embed_case *e, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5};
    static const size_t groups[] = {1, 1, 2, 4};
    nrg_norm_spec *s = &e->norm;
    *s = sweep_draw(random, 2) ? nrg_norm_spec_rms(c->spec.dtype, e->args.dim, eps[sweep_draw(random, 4)])
                               : nrg_norm_spec_layer(c->spec.dtype, e->args.dim, eps[sweep_draw(random, 4)]);
    s->w_dtype = sweep_draw(random, 2) ? NRG_F32 : s->dtype;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->weight_offset = sweep_draw(random, 3) ? 0 : 1;
    s->groups = groups[sweep_draw(random, 4)];
    if (e->args.dim % s->groups)
        s->groups = 1;
    if (sweep_draw(random, 4) == 0)
        s->activation = (nrg_activation)sweep_draw(random, SWEEP_NORM_ACTIVATIONS);
}

static embed_case draw(const sweep_case *c)
{
    static const float scales[] = {1, 1, 1, 27.712812f, -0.3f};
    embed_case e;
    uint64_t random = c->seed;
    size_t dim = c->length, tokens = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 9) : 0;
    if (c->large) {
        dim = large[c->large - 1].dim;
        tokens = large[c->large - 1].tokens;
    }
    sweep_draw(&random, 3); /* not used any more; all that follows stays what it is */
    e.args = nrg_embed_args_init(c->spec.dtype, tokens, dim, NULL);
    e.terms = nrg_embed_terms_of(NULL);
    e.args.store = ways[c->way].has_norm ? NRG_STORE_AUTO : c->store;
    e.args.table_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    for (int i = 0; i < NRG_EMBED_TABLES; i++) {
        nrg_embed_table t = nrg_embed_table_init(0, NULL, NULL);
        e.has_ids[i] = sweep_draw(&random, 3) != 0;
        t.rows = 1 + sweep_draw(&random, 12);
        if (!e.has_ids[i]) {
            t.first_position = (int32_t)sweep_draw(&random, 5);
            t.rows = tokens + (size_t)t.first_position + sweep_draw(&random, 3);
        }
        t.scale = scales[sweep_draw(&random, 5)];
        if (ways[c->way].terms >> i & 2)
            e.terms.table[i] = t;
    }
    e.has_w = sweep_draw(&random, 3) != 0;
    e.has_b = sweep_draw(&random, 2) != 0;
    e.has_r = sweep_draw(&random, 2) != 0;
    e.has_statistics = sweep_draw(&random, 3) == 0;
    draw_norm(c, &e, &random);
    e.norm_args = nrg_norm_args_init(tokens, NULL, NULL, NULL);
    e.norm_args.store = c->store;
    return e;
}

#ifndef NRG_NO_NORM
/* Of the reference, which goes through a tensor with the sum. */
static const unsigned char sum_slots[NRG_EMBED_OPERANDS] = {0, 1, 2, 3, 4, 5, 6, [NRG_EMBED_O] = SWEEP_SCRATCH};

static void add_norm(sweep_case *c, embed_case *e, uint32_t there)
{
    there |= e->has_w ? NRG_BIT(NRG_EMBED_NORM_W) : 0;
    there |= e->has_b ? NRG_BIT(NRG_EMBED_NORM_B) : 0;
    there |= e->has_r ? NRG_BIT(NRG_EMBED_NORM_R) : 0;
    there |= e->has_statistics ? NRG_BIT(NRG_EMBED_NORM_MEAN) | NRG_BIT(NRG_EMBED_NORM_RSTD) : 0;
    c->fused = 1;
    c->weights = NRG_BIT(NRG_EMBED_NORM_W) | NRG_BIT(NRG_EMBED_NORM_B);
    norm_settle(&e->norm, e->has_w);
    sweep_add_call(c, &nrg_call_embed_norm_forward, (void *const[]){&e->args, &e->terms, &e->norm, &e->norm_args}, NULL, there,
                   0);
    sweep_add_before(c, &nrg_call_embed_forward, (void *const[]){&e->args, &e->terms}, sum_slots, 0);
}
#endif

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 5 % 3);
    embed_case e = draw(c);
    const int terms = ways[c->way].terms;
    uint64_t random = ~(c->seed << 8);
    uint32_t there = terms & 1 ? NRG_BIT(NRG_EMBED_X) : 0;
    c->rows = e.args.rows;
    c->shares = sweep_draw_shares(&random);
    for (int i = 0; i < NRG_EMBED_TABLES; i++)
        if (terms >> i & 2)
            there |= NRG_BIT(NRG_EMBED_TABLE + i) | (e.has_ids[i] && c->rows ? NRG_BIT(NRG_EMBED_IDS + i) : 0);
#ifndef NRG_NO_NORM
    if (ways[c->way].has_norm)
        add_norm(c, &e, there);
#endif
    if (!c->fused)
        sweep_add_call(c, &nrg_call_embed_forward, (void *const[]){&e.args, &e.terms}, NULL, there, 0);
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const int table = operand - NRG_EMBED_IDS;
    if (table >= 0 && table < NRG_EMBED_TABLES)
        sweep_fill_positions(c, operand, 0, (int32_t)draw(c).terms.table[table].rows - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

#ifndef NRG_NO_NORM
static nrg_status run_fused(const sweep_case *c, embed_case *e, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_embed_norm_forward, (void *const[]){&e->args, &e->terms, &e->norm, &e->norm_args}, NULL, memory);
    norm_settle(&e->norm, e->norm_args.w != NULL);
    if (!c->recompute) {
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_embed_norm_forward(&e->norm, &e->args, &e->norm_args, ith, nth));
        return status;
    }
    sweep_bind_call(c, &nrg_call_embed_forward, (void *const[]){&e->args, &e->terms}, sum_slots, memory);
    status = nrg_embed_forward(&e->args, 0, 1);
    e->norm_args.x = e->args.o;
    return status == NRG_OK ? nrg_norm_forward(&e->norm, &e->norm_args, 0, 1) : status;
}
#endif

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    embed_case e = draw(c);
    nrg_status status = NRG_OK;
    e.args.tables = e.terms.table;
    e.args.table_count = NRG_EMBED_TABLES;
#ifndef NRG_NO_NORM
    if (c->fused)
        return run_fused(c, &e, memory);
#endif
    sweep_bind_call(c, &nrg_call_embed_forward, (void *const[]){&e.args, &e.terms}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_embed_forward(&e.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const embed_case e = draw(c);
    const int terms = ways[c->way].terms;
    sweep_append(text, " %zux%zu%s", e.args.rows, e.args.dim, terms & 1 ? " + x" : "");
    for (int i = 0; i < NRG_EMBED_TABLES; i++)
        if (terms >> i & 2) {
            sweep_append(text, ", %c of %zu rows times %g", 'A' + i, e.terms.table[i].rows, (double)e.terms.table[i].scale);
            if (!e.has_ids[i])
                sweep_append(text, " from %ld", (long)e.terms.table[i].first_position);
        }
    if (c->fused)
        sweep_append(text, "; %s norm, eps %g, %zu groups, %s", e.norm.centred ? "layer" : "rms", e.norm.eps, e.norm.groups,
                     nrg_activation_name(e.norm.activation));
}

const sweep_family sweep_family_embed = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .make = make, .fill = fill, .run = run,
                                         .describe = describe};
