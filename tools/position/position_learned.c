/* nrg position learned: rows of a table, added to a tensor or alone; and the gradient of the table.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../../src/operands/embed.h"
#include "position.h"

typedef struct request {
    int first; /* position */
    size_t rows;
    float scale;
    union {
        nrg_embed_args forward;
        nrg_embed_backward_args backward;
    } args; /* which begin alike */
    union {
        nrg_embed_terms forward;
        nrg_embed_gradients backward;
    } tables;
} request;

#define OPTIONS_DEF "position/position_learned.def"
#define COMMAND "position learned"
#define OPERAND IN_X
#define REQUEST request
#define RUN position_learned
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    q->scale = 1;
    return read_fields(call, q) ? CLI_DONE : CLI_REFUSED;
}

/* What the call is made of, but for x, o and the memory of the table, of which rows are *t. */
static void fill_request(file_call *call, request *q, const nrg_embed_table *t, size_t tokens, size_t dim, nrg_dtype dtype)
{
    const nrg_embed_table none = nrg_embed_table_init(0, NULL, NULL);
    const int is_backward = call->value[OPT_BACKWARD] != NULL;
    for (int i = 0; i < NRG_EMBED_TABLES; i++)
        if (is_backward)
            q->tables.backward.table[i] = nrg_embed_gradient_init(i ? none : *t, NULL);
        else
            q->tables.forward.table[i] = i ? none : *t;
    if (is_backward) {
        q->args.backward = nrg_embed_backward_args_init(dtype, tokens, dim, NULL);
        q->args.backward.table_dtype = NRG_F32;
        q->args.backward.tables = q->tables.backward.table;
        q->args.backward.table_count = 1;
    } else {
        q->args.forward = nrg_embed_args_init(dtype, tokens, dim, NULL);
        q->args.forward.tables = q->tables.forward.table;
        q->args.forward.table_count = 1;
    }
    call->function = is_backward ? FILE_BACKWARD(embed_backward_order) : &invoke_embed_forward;
    call->then = is_backward ? FILE_BACKWARD(embed_backward) : NULL;
    call->part[0] = &q->args;
    call->part[1] = &q->tables;
    call->operand[IN_X] = is_backward ? "D_O" : "X";
    call->operand[IN_TABLE] = "TABLES[0].TABLE";
    call->operand[IN_POSITIONS] = "TABLES[0].IDS";
    call->operand[INPUTS + OUT_O] = is_backward ? "TABLES[0].D_TABLE" : "O";
}

/* x takes the place of o, or positions.shape + (dim,) stands for its shape. */
static int compute(file_call *call)
{
    request *q = call->request;
    const int has_x = file_in(call, IN_X) != NULL, is_backward = call->value[OPT_BACKWARD] != NULL;
    const int first = has_x ? IN_X : IN_TABLE;
    const npy_array *positions = &call->in[IN_POSITIONS];
    const npy_shape *table = &call->in[IN_TABLE].shape;
    npy_shape shape = call->in[has_x ? IN_X : IN_POSITIONS].shape;
    file_axes s = {1, 1, positions->count, table->dims[1]};
    int status = has_x ? position_axes(call, IN_X, 2, &s) : CLI_DONE;
    if (!is_backward && table->ndim != 2)
        status = file_wrong(call, IN_TABLE, "shape (rows, dim)");
    else if (!has_x && (shape.ndim < 1 || shape.ndim == NPY_MAX_NDIM))
        status = file_wrong(call, IN_POSITIONS, "shape (tokens,) or (..., tokens)");
    else if (!has_x)
        shape.dims[shape.ndim++] = s.columns;
    if (status == CLI_DONE && !s.columns)
        return cli_refuse("%s: expected rows with at least one element, got none", file_in(call, first));
    nrg_embed_table t = nrg_embed_table_init(is_backward ? q->rows : table->dims[0], NULL, NULL);
    t.scale = q->scale;
    if (status == CLI_DONE)
        status = position_ids(call, IN_POSITIONS, &shape, &s, q->first, t.rows, &t);
    if (status != CLI_DONE)
        return status;
    fill_request(call, q, &t, s.batch * s.rows, s.columns, call->in[first].dtype);
    call->shape[IN_POSITIONS] = &positions->shape;
    if (!is_backward)
        call->shape[INPUTS + OUT_O] = &shape;
    if (!is_backward && has_x)
        file_reuse(call, OUT_O, IN_X);
    return file_run(call, first);
}
