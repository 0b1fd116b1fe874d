/* The cases of embed: sums of a tensor and rows of tables, alone and with the norm after them.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { X = SWEEP_IN, TABLES, IDS = TABLES + NRG_EMBED_TABLES, W = IDS + NRG_EMBED_TABLES, B };
enum { O = SWEEP_OUT, R, MEAN, RSTD };
enum { SUM = SWEEP_SCRATCH }; /* of the reference, where a norm follows */

static const char *const names[SWEEP_OPERANDS] = {[X] = "x",
                                                  [TABLES] = "table A",
                                                  [TABLES + 1] = "table B",
                                                  [TABLES + 2] = "table C",
                                                  [IDS] = "a",
                                                  [IDS + 1] = "b",
                                                  [IDS + 2] = "c",
                                                  [W] = "w",
                                                  [B] = "bias",
                                                  [O] = "o",
                                                  [R] = "r",
                                                  [MEAN] = "mean",
                                                  [RSTD] = "rstd",
                                                  [SUM] = "sum"};

/* What is added up for every length: bit 0 is x, the others a table each; and whether a norm follows. */
static const struct {
    int terms, has_norm;
} ways[] = {{2, 0}, {3, 0}, {14, 0}, {15, 0}, {6, 0}, {14, 1}, {3, 1}, {2, 1}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static const struct {
    size_t dim, tokens;
} large[] = {{128, 200}, {768, 33}, {1024, 5}, {4097, 3}, {20011, 2}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct embed_case {
    size_t dim, tokens;
    int terms, in_place, has_w, has_b, has_r, has_statistics;
    nrg_dtype table_dtype;
    struct {
        size_t rows;
        int has_ids;
        int32_t first;
        float scale;
    } tables[NRG_EMBED_TABLES];
    nrg_norm_spec norm;
} embed_case;

static void draw_norm(const sweep_case *c, embed_case *e, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 0.5};
    static const size_t groups[] = {0, 0, 2, 4};
    nrg_norm_spec *s = &e->norm;
    *s = sweep_draw(random, 2) ? nrg_rms_norm_spec(e->dim, eps[sweep_draw(random, 4)])
                               : nrg_layer_norm_spec(e->dim, eps[sweep_draw(random, 4)]);
    s->dtype = c->spec.dtype;
    s->store = c->spec.store;
    s->w_dtype = sweep_draw(random, 2) ? NRG_F32 : s->dtype;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->weight_offset = sweep_draw(random, 3) ? 0 : 1;
    s->groups = groups[sweep_draw(random, 4)];
    if (s->groups && e->dim % s->groups)
        s->groups = 0;
    if (sweep_draw(random, 4) == 0)
        s->activation = (nrg_activation)sweep_draw(random, NRG_ACT_SOFTPLUS + 1);
}

static embed_case draw(const sweep_case *c)
{
    static const float scales[] = {0, 0, 1, 27.712812f, -0.3f};
    embed_case e;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&e, 0, sizeof e);
    e.dim = (size_t)length + 1;
    e.tokens = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 9) : 0;
    if (length >= small[c->level]) {
        e.dim = large[length - small[c->level]].dim;
        e.tokens = large[length - small[c->level]].tokens;
    }
    e.terms = ways[c->n % WAYS].terms;
    e.in_place = sweep_draw(&random, 3) == 0;
    e.table_dtype = sweep_draw(&random, 2) ? NRG_F32 : c->spec.dtype;
    for (int i = 0; i < NRG_EMBED_TABLES; i++) {
        e.tables[i].has_ids = sweep_draw(&random, 3) != 0;
        e.tables[i].rows = 1 + sweep_draw(&random, 12);
        if (!e.tables[i].has_ids) {
            e.tables[i].first = (int32_t)sweep_draw(&random, 5);
            e.tables[i].rows = e.tokens + (size_t)e.tables[i].first + sweep_draw(&random, 3);
        }
        e.tables[i].scale = scales[sweep_draw(&random, 5)];
    }
    e.has_w = sweep_draw(&random, 3) != 0;
    e.has_b = sweep_draw(&random, 2) != 0;
    e.has_r = sweep_draw(&random, 2) != 0;
    e.has_statistics = sweep_draw(&random, 3) == 0;
    draw_norm(c, &e, &random);
    return e;
}

static void add_norm(sweep_case *c, const embed_case *e)
{
    size_t groups = e->norm.groups ? e->norm.groups : 1;
    c->fused = 1;
    if (e->has_w)
        sweep_add_dense(c, W, e->norm.w_dtype, e->dim, 1);
    if (e->has_b)
        sweep_add_dense(c, B, e->norm.w_dtype, e->dim, 1);
    if (e->has_r)
        sweep_add_tensor(c, R, e->norm.r_dtype, e->dim, e->tokens);
    if (e->has_statistics) {
        sweep_add_dense(c, MEAN, NRG_F32, groups, e->tokens);
        sweep_add_dense(c, RSTD, NRG_F32, groups, e->tokens);
    }
    sweep_add_dense(c, SUM, c->spec.dtype, e->dim, e->tokens);
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 5 % 3);
    embed_case e = draw(c);
    uint64_t random = ~(c->number << 8);
    c->rows = e.tokens;
    c->shares = sweep_draw_shares(&random);
    if (e.terms & 1)
        sweep_add_tensor(c, X, c->spec.dtype, e.dim, e.tokens);
    for (int i = 0; i < NRG_EMBED_TABLES; i++)
        if (e.terms >> i & 2) {
            sweep_add_tensor(c, TABLES + i, e.table_dtype, e.dim, e.tables[i].rows);
            if (e.tables[i].has_ids && e.tokens)
                sweep_add_dense(c, IDS + i, SWEEP_I32, e.tokens, 1);
        }
    sweep_add_tensor(c, O, c->spec.dtype, e.dim, e.tokens);
    if (ways[n % WAYS].has_norm && nrg_family_built("norm"))
        add_norm(c, &e);
    sweep_lay_out(c, &random);
    if (e.in_place)
        sweep_share_place(c, e.has_r && sweep_draw(&random, 2) ? R : O, X);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    embed_case e = draw(c);
    if (operand >= IDS && operand < IDS + NRG_EMBED_TABLES)
        sweep_fill_positions(c, operand, 0, (int32_t)e.tables[operand - IDS].rows - 1, memory, random);
    else
        for (size_t row = 0; row < c->operands[operand].rows; row++)
            sweep_fill_operand_row(c, operand, row, operand == W || operand == B, memory, random);
}

static nrg_embed_args embed_args(const sweep_case *c, const embed_case *e, unsigned char *memory)
{
    nrg_embed_args args = nrg_embed_args_init(e->tokens, e->dim, NULL);
    args.dtype = c->spec.dtype;
    args.table_dtype = e->table_dtype;
    args.store = c->spec.store;
    args.x = sweep_place(c, X, memory);
    args.x_stride = sweep_stride(c, X);
    for (int i = 0; i < NRG_EMBED_TABLES; i++) {
        nrg_embed_table *t = &args.tables[i];
        if (!(e->terms >> i & 2))
            continue;
        t->table = sweep_place(c, TABLES + i, memory);
        t->stride = sweep_stride(c, TABLES + i);
        t->rows = e->tables[i].rows;
        t->ids = sweep_place(c, IDS + i, memory);
        t->first = t->ids ? 0 : e->tables[i].first;
        t->scale = e->tables[i].scale;
    }
    return args;
}

static nrg_status forward(const sweep_case *c, nrg_embed_args *args, int operand, int shares, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    args->o = sweep_place(c, operand, memory);
    args->o_stride = sweep_stride(c, operand);
    for (int i = 0; i < shares && status == NRG_OK; i++)
        status = nrg_embed_forward(args, sweep_share(c, i, shares), shares);
    return status;
}

#ifndef NRG_NO_NORM
static nrg_status run_fused(const sweep_case *c, const embed_case *e, nrg_embed_args *args, unsigned char *memory)
{
    nrg_norm_args norm = nrg_norm_args_init(e->tokens, NULL, sweep_place(c, O, memory));
    norm.o_stride = sweep_stride(c, O);
    norm.w = sweep_place(c, W, memory);
    norm.b = sweep_place(c, B, memory);
    norm.r = sweep_place(c, R, memory);
    norm.r_stride = sweep_stride(c, R);
    norm.mean = sweep_place(c, MEAN, memory);
    norm.rstd = sweep_place(c, RSTD, memory);
    nrg_status status = NRG_OK;
    if (c->recompute) {
        status = forward(c, args, SUM, 1, memory);
        norm.x = sweep_place(c, SUM, memory);
        return status == NRG_OK ? nrg_norm_forward(&e->norm, &norm, 0, 1) : status;
    }
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_embed_norm_forward(args, &e->norm, &norm, sweep_share(c, i, c->shares), c->shares);
    return status;
}
#endif

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    embed_case e = draw(c);
    nrg_embed_args args = embed_args(c, &e, memory);
#ifndef NRG_NO_NORM
    if (c->fused)
        return run_fused(c, &e, &args, memory);
#endif
    return forward(c, &args, O, c->shares, memory);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const stores[] = {"auto", "keep", "stream"};
    embed_case e = draw(c);
    sweep_append(text, " %zux%zu%s, store %s", e.tokens, e.dim, e.terms & 1 ? " + x" : "", stores[c->spec.store]);
    for (int i = 0; i < NRG_EMBED_TABLES; i++)
        if (e.terms >> i & 2) {
            sweep_append(text, ", %c of %zu rows times %g", 'A' + i, e.tables[i].rows, (double)e.tables[i].scale);
            if (!e.tables[i].has_ids)
                sweep_append(text, " from %ld", (long)e.tables[i].first);
        }
    if (c->fused)
        sweep_append(text, "; %s norm, eps %g, %zu groups, %s", e.norm.centred ? "layer" : "rms", e.norm.eps, e.norm.groups,
                     nrg_activation_name(e.norm.activation));
}

const sweep_family sweep_family_embed = {count, make, fill, run, describe, names};
