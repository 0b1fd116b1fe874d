/* SPDX-License-Identifier: MIT */
#include "../../src/operands/embed.h"
#include "sound_norm_spec.h"

enum {
    ARGS = NRG_EMBED_ARGS,
    TERMS = NRG_EMBED_TERMS_PART,
    SPEC = NRG_EMBED_NORM_SPEC,
    NORM = NRG_EMBED_NORM_ARGS,
    TOKENS = 5,
    DIM = 6,
    ENTRIES = 4
};

/* ---- forward ---- */

/* One table, of the tokens' ids; x, three tables, of which one is counted, and 16 bits; two tables with ids, of which one repeats
 * its own, and one that is counted and repeats. */
static uint32_t set_up(void *const *part, int variant)
{
    nrg_embed_args *args = part[ARGS];
    nrg_embed_terms *terms = part[TERMS];
    *args = nrg_embed_args_init(variant == 1 ? NRG_BF16 : NRG_F32, TOKENS, DIM, NULL);
    *terms = nrg_embed_terms_of(NULL);
    args->tables = terms->table;
    args->table_count = NRG_EMBED_TABLES;
    args->store = NRG_STORE_KEEP;
    terms->table[0].rows = ENTRIES;
    if (!variant)
        return NRG_BIT(NRG_EMBED_TABLE) | NRG_BIT(NRG_EMBED_IDS);
    if (variant == 2) {
        terms->table[1].rows = ENTRIES;
        terms->table[1].period = 2;
        terms->table[2].rows = ENTRIES;
        terms->table[2].first_position = 1;
        terms->table[2].period = 3;
        return NRG_BIT(NRG_EMBED_TABLE) | NRG_BIT(NRG_EMBED_TABLE + 1) | NRG_BIT(NRG_EMBED_TABLE + 2) | NRG_BIT(NRG_EMBED_IDS) |
               NRG_BIT(NRG_EMBED_IDS + 1);
    }
    args->table_dtype = NRG_F32;
    terms->table[1].rows = TOKENS + 2;
    terms->table[1].first_position = 2;
    terms->table[2].rows = 1;
    terms->table[2].scale = -3;
    return NRG_BIT(NRG_EMBED_X) | NRG_BIT(NRG_EMBED_TABLE) | NRG_BIT(NRG_EMBED_TABLE + 1) | NRG_BIT(NRG_EMBED_TABLE + 2) |
           NRG_BIT(NRG_EMBED_IDS) | NRG_BIT(NRG_EMBED_IDS + 2);
}

static void fill_ids(const int32_t *ids, size_t tokens, size_t entries)
{
    int32_t *own = own_memory(ids);
    for (size_t t = 0; own && entries && t < tokens; t++)
        own[t] = (int32_t)(t % entries);
}

static void fill(void *const *part)
{
    const nrg_embed_args *args = part[ARGS];
    const nrg_embed_terms *terms = part[TERMS];
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        fill_ids(terms->table[k].ids, nrg_embed_ids_count(args->rows, terms->table[k].period), terms->table[k].rows);
}

static nrg_status spoil(void *const *part, int n)
{
    const nrg_embed_args *args = part[ARGS];
    const nrg_embed_terms *terms = part[TERMS];
    static const int32_t wrong_ids[] = {-1, INT32_MIN, ENTRIES, INT32_MAX};
    size_t id = (size_t)n / 4;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const size_t count = terms->table[k].ids ? nrg_embed_ids_count(args->rows, terms->table[k].period) : 0;
        if (id < count) {
            int32_t *ids = own_memory(terms->table[k].ids);
            ids[id] = wrong_ids[n % 4];
            return NRG_ERR_POSITION;
        }
        id -= count;
    }
    return NRG_OK;
}

/* The args with the tables of the other part, unless theirs are missing or too many. */
static nrg_status bind_tables(void *const *part)
{
    nrg_embed_args *args = part[ARGS];
    if (args && args->size >= sizeof *args && args->tables)
        args->tables = ((nrg_embed_terms *)part[TERMS])->table;
    if (args && args->size >= sizeof *args && args->table_count < NRG_EMBED_TABLES)
        args->table_count = NRG_EMBED_TABLES;
    return NRG_OK;
}

/* Ids have to be rows of a table; a counted table that repeats has fewer of them. */
#define WRONG_ROWS(type, k, value, status) WRONG_U64(TERMS, type, table[k].rows, value, status)
#define WITH_PERIOD(k, value) WITH_U64(TERMS, nrg_embed_terms, table[k].period, value)
#define WRONG_TABLES                                                                                                             \
    WRONG_ROWS(nrg_embed_terms, 0, ENTRIES - 1, NRG_ERR_POSITION), WRONG_ROWS(nrg_embed_terms, 0, 0, NRG_ERR_POSITION),          \
        WRONG_VARIANT(1), WITH_PERIOD(1, 3), WRONG_ROWS(nrg_embed_terms, 1, 4, NRG_ERR_POSITION), WITH_PERIOD(1, 3),             \
        WRONG_ROWS(nrg_embed_terms, 1, 5, NRG_OK)
static const sound_wrong wrong[] = {WRONG_TABLES};

/* ---- with the norm ---- */

static uint32_t set_up_norm(void *const *part, int variant)
{
    nrg_norm_spec *spec = part[SPEC];
    nrg_norm_args *norm = part[NORM];
    const uint32_t there = set_up(part, variant);
    ((nrg_embed_args *)part[ARGS])->store = NRG_STORE_AUTO;
    *spec = nrg_norm_spec_layer(((const nrg_embed_args *)part[ARGS])->dtype, DIM, 1e-12);
    spec->r_dtype = variant ? NRG_F32 : NRG_DTYPE_SAME;
    if (variant == 2)
        sound_constants(spec);
    *norm = nrg_norm_args_init(TOKENS, NULL, NULL, NULL);
    norm->store = NRG_STORE_KEEP;
    return there | NRG_BIT(NRG_EMBED_NORM_W) | NRG_BIT(NRG_EMBED_NORM_B) | NRG_BIT(NRG_EMBED_NORM_R) |
           (variant ? NRG_BIT(NRG_EMBED_NORM_MEAN) | NRG_BIT(NRG_EMBED_NORM_RSTD) : 0);
}

/* rows and dim stand in two structs each, and may not differ. */
static const sound_wrong wrong_norm[] = {WITH_U64(ARGS, nrg_embed_args, rows, 0), WRONG_U64(NORM, nrg_norm_args, rows, 0, NRG_OK),
                                         WRONG_TABLES};

/* ---- backward ---- */

/* The first table by ids; the second, counted, and 16 bits; all of them, by ids that repeat, by others and counted; the last by
 * ids. */
static uint32_t set_up_backward(void *const *part, int variant)
{
    enum { IDS = NRG_EMBED_BACKWARD_IDS, D_TABLE = NRG_EMBED_BACKWARD_D_TABLE };
    nrg_embed_backward_args *args = part[ARGS];
    nrg_embed_gradients *gradients = part[TERMS];
    nrg_embed_gradient *t = gradients->table;
    *args = nrg_embed_backward_args_init(variant == 1 ? NRG_F16 : NRG_F32, TOKENS, DIM, NULL);
    *gradients = nrg_embed_gradients_of(NULL);
    args->tables = gradients->table;
    args->table_count = NRG_EMBED_TABLES;
    args->store = NRG_STORE_KEEP;
    if (variant == 1) {
        t[1].rows = TOKENS + 3;
        t[1].first_position = 3;
        return NRG_BIT(D_TABLE + 1);
    }
    if (variant == 2) {
        t[0].rows = ENTRIES;
        t[0].period = 2;
        t[0].accumulate = 1;
        t[1].rows = 2;
        t[2].rows = ENTRIES;
        t[2].first_position = 1;
        t[2].period = 3;
        return NRG_BIT(D_TABLE) | NRG_BIT(D_TABLE + 1) | NRG_BIT(D_TABLE + 2) | NRG_BIT(IDS) | NRG_BIT(IDS + 1);
    }
    t[variant ? 2 : 0].rows = ENTRIES;
    return variant ? NRG_BIT(D_TABLE + 2) | NRG_BIT(IDS + 2) : NRG_BIT(D_TABLE) | NRG_BIT(IDS);
}

static size_t ids_of(const nrg_embed_backward_args *args, const nrg_embed_gradients *gradients, int k)
{
    return gradients->table[k].ids ? nrg_embed_ids_count(args->rows, gradients->table[k].period) : 0;
}

static nrg_status bind_gradients(void *const *part)
{
    nrg_embed_backward_args *args = part[ARGS];
    if (args && args->size >= sizeof *args && args->tables)
        args->tables = ((nrg_embed_gradients *)part[TERMS])->table;
    if (args && args->size >= sizeof *args && args->table_count < NRG_EMBED_TABLES)
        args->table_count = NRG_EMBED_TABLES;
    return NRG_OK;
}

static void fill_order(void *const *part)
{
    const nrg_embed_backward_args *args = part[ARGS];
    const nrg_embed_gradients *gradients = part[TERMS];
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        fill_ids(gradients->table[k].ids, ids_of(args, gradients, k), gradients->table[k].rows);
}

static nrg_status spoil_order(void *const *part, int n)
{
    const nrg_embed_backward_args *args = part[ARGS];
    const nrg_embed_gradients *gradients = part[TERMS];
    size_t id = (size_t)n / 2;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        if (id < ids_of(args, gradients, k)) {
            int32_t *ids = own_memory(gradients->table[k].ids);
            ids[id] = n % 2 ? (int32_t)gradients->table[k].rows : -1;
            return NRG_ERR_POSITION;
        }
        id -= ids_of(args, gradients, k);
    }
    return NRG_OK;
}

/* Phase 2 wants phase 1 to have been there. */
static void fill_backward(void *const *part)
{
    fill_order(part);
    const nrg_status status = bind_gradients(part) == NRG_OK ? nrg_embed_backward_order(part[ARGS]) : NRG_OK;
    (void)status; /* wrong arguments have no order */
}

/* Of each table that has an order, another one. */
static nrg_status spoil_backward(void *const *part, int n)
{
    nrg_embed_backward_args *args = part[ARGS];
    const nrg_embed_gradients *gradients = part[TERMS];
    uint64_t *at = args->workspace;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        if (!gradients->table[k].ids)
            continue;
        if (n < 2) {
            at[n] ^= 1;
            return NRG_ERR_WORKSPACE;
        }
        n -= 2;
        at += nrg_embed_order_doubles(args->rows, gradients->table[k].rows);
    }
    return NRG_OK;
}

#define WITH_FIRST(value) WITH_U32(TERMS, nrg_embed_gradients, table[1].first_position, value)
#define WRONG_PERIOD(value, status) WRONG_U64(TERMS, nrg_embed_gradients, table[1].period, value, status)
static const sound_wrong wrong_order[] = {WRONG_ROWS(nrg_embed_gradients, 0, ENTRIES - 1, NRG_ERR_POSITION), WRONG_VARIANT(2),
                                          WRONG_ROWS(nrg_embed_gradients, 1, 1, NRG_ERR_POSITION)};

/* Another call's order is none. */
static const sound_wrong wrong_backward[] = {WRONG_ROWS(nrg_embed_gradients, 0, ENTRIES - 1, NRG_ERR_WORKSPACE),
                                             WRONG_U64(ARGS, nrg_embed_backward_args, rows, TOKENS - 1, NRG_ERR_WORKSPACE),
                                             WRONG_VARIANT(1),
                                             WITH_FIRST(TOKENS + 1),
                                             WRONG_PERIOD(2, NRG_OK),
                                             WITH_FIRST(TOKENS + 1),
                                             WRONG_PERIOD(3, NRG_ERR_POSITION),
                                             WRONG_VARIANT(2),
                                             WRONG_ROWS(nrg_embed_gradients, 1, 1, NRG_ERR_WORKSPACE),
                                             WRONG_ROWS(nrg_embed_gradients, 0, ENTRIES - 1, NRG_ERR_WORKSPACE)};

/* Only rows, those of the tables and ids are looked at; the most of them for which a workspace's bytes are a number. */
#define WITH_ROWS(value) WITH_U64(ARGS, nrg_embed_backward_args, rows, value)
static const sound_wrong wrong_workspace[] = {
    WITH_ROWS(0),
    WRONG_ROWS(nrg_embed_gradients, 0, UINT32_MAX, NRG_ERR_OVERFLOW),
    WITH_ROWS(UINT32_MAX - 1),
    WRONG_ROWS(nrg_embed_gradients, 0, UINT32_MAX - 1, SIZE_MAX > UINT32_MAX ? NRG_OK : NRG_ERR_OVERFLOW),
    WRONG_VARIANT(1),
    WITH_ROWS(SIZE_MAX),
    WRONG_ROWS(nrg_embed_gradients, 0, SIZE_MAX, NRG_OK)};

#define D_TABLES (((1u << NRG_EMBED_TABLES) - 1) << NRG_EMBED_BACKWARD_D_TABLE)
#define ALL_IDS (((1u << NRG_EMBED_TABLES) - 1) << NRG_EMBED_IDS)

static const sound_call calls[] = {
    {&invoke_embed_forward, 3, set_up, WRONG(wrong), .fill = fill, .spoil = spoil, .bind = bind_tables, .own = ALL_IDS},
    {&invoke_embed_norm_forward, 3, set_up_norm, WRONG(wrong_norm), .fill = fill, .spoil = spoil, .bind = bind_tables,
     .own = ALL_IDS},
    {&invoke_embed_backward_order, 4, set_up_backward, WRONG(wrong_order), .fill = fill_order, .spoil = spoil_order,
     .spared = D_TABLES, .bind = bind_gradients, NO_KERNEL},
    {&invoke_embed_backward, 4, set_up_backward, WRONG(wrong_backward), .fill = fill_backward, .spoil = spoil_backward,
     .spared = NRG_BIT(NRG_EMBED_BACKWARD_WORKSPACE), .bind = bind_gradients, .own = UINT32_MAX},
    {&invoke_embed_backward_workspace, 4, set_up_backward, WRONG(wrong_workspace), .like = &nrg_call_embed_backward,
     .bind = bind_gradients},
};

const sound_family sound_embed = {"embed", calls, NRG_COUNT(calls)};
