/* nrg position embedding: tokens, positions and types, and the norm after them.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

/* Of tokens, positions and types. */
enum { TABLES = 3 };

typedef struct request {
    long long first;
    float scale;
    nrg_norm_spec norm;
    nrg_embed_table tables[TABLES];
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

static int add_and_normalize(file_call *call, request *q, const position_shape *s)
{
    npy_array *o = &call->out[OUT_O];
    nrg_embed_args args = nrg_embed_args_init(o->dtype, s->batch * s->rows, s->columns, call->value[OPT_NORM] ? NULL : o->data);
    args.table_dtype = o->dtype;
    args.tables = q->tables;
    args.table_count = TABLES;
    if (!call->value[OPT_NORM])
        return file_answer(call, nrg_embed_forward(&args, 0, 1));
    nrg_norm_args norm = nrg_norm_args_init(args.rows, NULL, call->in[IN_W].data, o->data);
    norm.b = call->in[IN_B].data;
    q->norm.dim = s->columns;
    q->norm.dtype = o->dtype;
    q->norm.w_dtype = norm.w ? call->in[IN_W].dtype : call->in[IN_B].dtype;
    return file_answer(call, nrg_embed_norm_forward(&q->norm, &args, &norm, 0, 1));
}

/* Tables of one dtype and width, and the rows of each that the tokens take. */
static int read_tables(file_call *call, request *q, const position_shape *s)
{
    const npy_array *first = &call->in[IN_TABLE];
    for (int i = 0; i < TABLES; i++) {
        const npy_array *table = &call->in[IN_TABLE + i];
        q->tables[i] = nrg_embed_table_init(0, NULL, NULL);
        if (!table->data)
            continue;
        int status = position_check_table(call, IN_TABLE + i, s->columns, first->dtype, file_in(call, IN_TABLE));
        if (status == CLI_DONE && table->dtype != first->dtype)
            status = file_wrong_dtype(call, IN_TABLE + i, first->dtype, file_in(call, IN_TABLE));
        if (status == CLI_DONE)
            status = position_ids(call, IN_IDS + i, &call->out[OUT_O].shape, s, q->first, table->shape.dims[0], &q->tables[i]);
        q->tables[i].table = table->data;
        q->tables[i].scale = i ? 1 : q->scale;
        q->tables[i].rows = table->shape.dims[0];
        if (status != CLI_DONE)
            return status;
    }
    return CLI_DONE;
}

static int compute(file_call *call)
{
    request *q = call->request;
    const npy_array *ids = &call->in[IN_IDS], *table = &call->in[IN_TABLE];
    npy_shape shape = ids->shape;
    if (table->shape.ndim != 2 || !table->shape.dims[1])
        return file_wrong_shape(call, IN_TABLE, "(rows, dim)");
    if (!shape.ndim || shape.ndim == NPY_MAX_NDIM)
        return file_wrong_shape(call, IN_IDS, "(tokens,) or (..., tokens)");
    position_shape s = {0, 1, shape.dims[shape.ndim - 1], table->shape.dims[1]};
    s.batch = s.rows ? ids->count / s.rows : 0;
    shape.dims[shape.ndim++] = s.columns;
    int status = file_reserve(call, OUT_O, table->dtype, &shape);
    if (status == CLI_DONE)
        status = read_tables(call, q, &s);
    if (status == CLI_DONE)
        status = file_check_weights(call, IN_W, IN_B, s.columns, IN_TABLE);
    if (status == CLI_DONE)
        status = add_and_normalize(call, q, &s);
    return status;
}
