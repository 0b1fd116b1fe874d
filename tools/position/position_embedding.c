/* nrg position embedding: tokens, positions and types, and the norm after them.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../../src/operands/embed.h"
#include "position.h"

typedef struct request {
    int first; /* position */
    float scale;
    nrg_norm_spec norm;
    nrg_norm_args norm_args;
    nrg_embed_args args;
    nrg_embed_terms tables; /* of tokens, positions and types */
} request;

#define OPTIONS_DEF "position/position_embedding.def"
#define COMMAND "position embedding"
#define OPERAND IN_IDS
#define REQUEST request
#define RUN position_embedding
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    q->scale = 1;
    return file_norm(call, OPT_NORM, OPT_EPS, &q->norm) && read_fields(call, q) ? CLI_DONE : CLI_REFUSED;
}

/* The rows of each table that the tokens take. */
static int read_tables(file_call *call, request *q, const npy_shape *shape, const file_axes *s)
{
    static const char *const names[][2] = {
        {"TABLES[0].IDS", "TABLES[0].TABLE"}, {"TABLES[1].IDS", "TABLES[1].TABLE"}, {"TABLES[2].IDS", "TABLES[2].TABLE"}};
    for (int i = 0; i < NRG_EMBED_TABLES; i++) {
        const npy_array *table = &call->in[IN_TABLE + i];
        nrg_embed_table *t = &q->tables.table[i];
        *t = nrg_embed_table_init(table->data && table->shape.ndim ? table->shape.dims[0] : 0, NULL, NULL);
        t->scale = i ? 1 : q->scale;
        const int status = table->data ? position_ids(call, IN_IDS + i, shape, s, q->first, t->rows, t) : CLI_DONE;
        if (status != CLI_DONE)
            return status;
        call->operand[IN_IDS + i] = names[i][0];
        call->operand[IN_TABLE + i] = names[i][1];
        call->shape[IN_IDS + i] = &call->in[IN_IDS + i].shape;
    }
    return CLI_DONE;
}

static int compute(file_call *call)
{
    request *q = call->request;
    const npy_array *ids = &call->in[IN_IDS], *table = &call->in[IN_TABLE];
    npy_shape shape = ids->shape;
    if (table->shape.ndim != 2 || !table->shape.dims[1])
        return file_wrong(call, IN_TABLE, "shape (rows, dim)");
    if (!shape.ndim || shape.ndim == NPY_MAX_NDIM)
        return file_wrong(call, IN_IDS, "shape (tokens,) or (..., tokens)");
    file_axes s = {0, 1, shape.dims[shape.ndim - 1], table->shape.dims[1]};
    s.batch = s.rows ? ids->count / s.rows : 0;
    shape.dims[shape.ndim++] = s.columns;
    call->shape[INPUTS + OUT_O] = &shape;
    const int status = read_tables(call, q, &shape, &s);
    if (status != CLI_DONE)
        return status;
    q->args = nrg_embed_args_init(table->dtype, s.batch * s.rows, s.columns, NULL);
    q->args.table_dtype = table->dtype;
    q->args.tables = q->tables.table;
    q->args.table_count = NRG_EMBED_TABLES;
    q->norm_args = nrg_norm_args_init(q->args.rows, NULL, NULL, NULL);
    q->norm.dim = s.columns;
    q->norm.dtype = table->dtype;
    call->function = call->value[OPT_NORM] ? &invoke_embed_norm_forward : &invoke_embed_forward;
    call->part[0] = &q->args;
    call->part[1] = &q->tables;
    call->part[2] = &q->norm;
    call->part[3] = &q->norm_args;
    return file_run(call, IN_TABLE);
}
