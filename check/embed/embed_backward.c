/* The cases of embed_backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { D_O = SWEEP_IN, IDS };
enum { D_TABLE = SWEEP_OUT };
enum { WORKSPACE = SWEEP_SCRATCH };

static const char *const names[SWEEP_OPERANDS] = {[D_O] = "d_o", [IDS] = "ids", [D_TABLE] = "d_table", [WORKSPACE] = "workspace"};

/* How ids are spread: over all rows, most in one row, or counted. */
enum { SPREAD, HEAVY, COUNTED, WAYS };

static const struct {
    size_t dim, tokens, rows;
} large[] = {{64, 900, 300}, {128, 700, 3}, {768, 60, 2}, {1000, 9, 40}, {5, 4000, 100}, {33, 3000, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct gradient_case {
    size_t dim, tokens, rows;
    int spread, accumulate;
    int32_t first;
    float scale;
    nrg_dtype table_dtype;
} gradient_case;

static gradient_case draw(const sweep_case *c)
{
    static const float scales[] = {0, 0, 1, 27.712812f, -0.3f};
    gradient_case g;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&g, 0, sizeof g);
    g.spread = (int)(c->n % WAYS);
    g.dim = (size_t)length + 1;
    g.tokens = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 40) : 0;
    g.rows = 1 + sweep_draw(&random, 20);
    if (length >= small[c->level]) {
        g.dim = large[length - small[c->level]].dim;
        g.tokens = large[length - small[c->level]].tokens;
        g.rows = large[length - small[c->level]].rows;
    }
    if (g.spread == COUNTED) {
        g.first = (int32_t)sweep_draw(&random, 4);
        g.rows = g.tokens + (size_t)g.first + sweep_draw(&random, 4);
    }
    g.scale = scales[sweep_draw(&random, 5)];
    g.accumulate = sweep_draw(&random, 3) == 0;
    g.table_dtype = sweep_draw(&random, 3) ? NRG_F32 : c->spec.dtype;
    return g;
}

static nrg_embed_backward_args gradient_args(const sweep_case *c, const gradient_case *g, unsigned char *memory)
{
    nrg_embed_backward_args args =
        nrg_embed_backward_args_init(g->tokens, g->dim, sweep_place(c, D_O, memory), g->rows, sweep_place(c, D_TABLE, memory));
    args.dtype = c->spec.dtype;
    args.table_dtype = g->table_dtype;
    args.store = c->spec.store;
    args.accumulate = g->accumulate;
    args.ids = sweep_place(c, IDS, memory);
    args.first = args.ids ? 0 : g->first;
    args.scale = g->scale;
    args.d_o_stride = sweep_stride(c, D_O);
    args.d_table_stride = sweep_stride(c, D_TABLE);
    args.workspace = sweep_place(c, WORKSPACE, memory);
    args.workspace_size = c->operands[WORKSPACE].length * sizeof(float);
    return args;
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 5 % 3);
    gradient_case g = draw(c);
    uint64_t random = ~(c->number << 8);
    size_t bytes = 0;
    c->rows = g.rows;
    c->shares = sweep_draw_shares(&random);
    sweep_add_tensor(c, D_O, c->spec.dtype, g.dim, g.tokens);
    if (g.spread != COUNTED && g.tokens)
        sweep_add_dense(c, IDS, SWEEP_I32, g.tokens, 1);
    sweep_add_tensor(c, D_TABLE, g.table_dtype, g.dim, g.rows);
    if (g.accumulate)
        sweep_accumulate(c, D_TABLE);
    /* if the library refuses to say, its run will say why */
    static int32_t any;
    nrg_embed_backward_args args = gradient_args(c, &g, NULL);
    args.ids = c->operands[IDS].rows ? &any : NULL;
    if (nrg_embed_backward_workspace(&args, &bytes) == NRG_OK && bytes)
        sweep_add_dense(c, WORKSPACE, NRG_F32, (bytes + sizeof(float) - 1) / sizeof(float), 1);
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    gradient_case g = draw(c);
    int32_t last = (int32_t)g.rows - 1, most = g.spread == HEAVY ? (int32_t)(c->number % g.rows) : last;
    if (operand != IDS) {
        sweep_fill_rows(c, operand, memory, random);
        return;
    }
    sweep_fill_positions(c, IDS, 0, last, memory, random);
    unsigned char *ids = memory + c->operands[IDS].offset;
    for (size_t i = 0; g.spread == HEAVY && i < g.tokens; i++)
        if (sweep_draw(random, 5))
            memcpy(ids + i * sizeof most, &most, sizeof most);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    gradient_case g = draw(c);
    nrg_embed_backward_args args = gradient_args(c, &g, memory);
    nrg_status status = nrg_embed_backward_order(&args);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_embed_backward(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const spreads[] = {"", ", most in one row", ", counted"};
    gradient_case g = draw(c);
    sweep_append(text, " %zux%zu into %zu rows%s, times %g%s", g.tokens, g.dim, g.rows, spreads[g.spread], (double)g.scale,
                 g.accumulate ? ", accumulate" : "");
}

const sweep_family sweep_family_embed_backward = {count, make, fill, run, describe, names};
