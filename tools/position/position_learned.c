/* nrg position learned: rows of a table, added to a tensor or alone; and the gradient of the table.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

typedef struct request {
    long long first;
    size_t rows;
    float scale;
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

/* The rows of the table that the tokens take; and x, if it is there, whose memory is the result's. */
static int forward(file_call *call, const request *q, const position_shape *s, const nrg_embed_table *rows)
{
    const npy_array *table = &call->in[IN_TABLE];
    npy_array *o = &call->out[OUT_O];
    int has_x = file_in(call, IN_X) != NULL;
    if (has_x)
        file_reuse(call, OUT_O, IN_X);
    nrg_embed_args args = nrg_embed_args_init(o->dtype, s->batch * s->rows, s->columns, o->data);
    args.x = has_x ? o->data : NULL;
    args.table_dtype = table->dtype;
    nrg_embed_table term = *rows;
    args.tables = &term;
    args.table_count = 1;
    term.table = table->data;
    term.rows = table->shape.dims[0];
    term.scale = q->scale;
    return file_answer(call, nrg_embed_forward(&args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const request *q, const position_shape *s, const nrg_embed_table *rows)
{
    const npy_array *d_o = &call->in[IN_X];
    nrg_embed_backward_args args = nrg_embed_backward_args_init(d_o->dtype, s->batch * s->rows, s->columns, d_o->data);
    args.table_dtype = NRG_F32;
    nrg_embed_gradient table = nrg_embed_gradient_init(*rows, call->out[OUT_O].data);
    args.tables = &table;
    args.table_count = 1;
    table.rows = q->rows;
    table.scale = q->scale;
    nrg_status status = nrg_embed_backward_workspace(&args, &args.workspace_size);
    int taken = file_workspace(call, status, args.workspace_size, &args.workspace);
    if (taken != CLI_DONE)
        return taken;
    status = nrg_embed_backward_order(&args);
    if (status == NRG_OK)
        status = nrg_embed_backward(&args, 0, 1);
    return file_answer(call, status);
}
#endif

/* What stands for x where there is none: positions.shape + (dim,). */
static int reserve_rows(file_call *call)
{
    const npy_array *positions = &call->in[IN_POSITIONS], *table = &call->in[IN_TABLE];
    npy_shape shape = positions->shape;
    if (shape.ndim < 1 || shape.ndim == NPY_MAX_NDIM || table->shape.ndim != 2) {
        return table->shape.ndim != 2 ? file_wrong_shape(call, IN_TABLE, "(rows, dim)")
                                      : file_wrong_shape(call, IN_POSITIONS, "(tokens,) or (..., tokens)");
    }
    shape.dims[shape.ndim++] = table->shape.dims[1];
    return file_reserve(call, OUT_O, table->dtype, &shape);
}

static int compute(file_call *call)
{
    request *q = call->request;
    position_shape s;
    int has_x = file_in(call, IN_X) != NULL, is_backward = call->value[OPT_BACKWARD] != NULL;
    int status = has_x ? position_rows(call, IN_X, &s) : reserve_rows(call);
    if (status != CLI_DONE)
        return status;
    const npy_array *x = has_x ? &call->in[IN_X] : &call->out[OUT_O];
    const npy_shape *shape = &x->shape;
    if (!has_x) {
        s.columns = shape->dims[shape->ndim - 1];
        s.rows = call->in[IN_POSITIONS].count;
        s.batch = 1;
    }
    if (!s.columns) {
        complain("%s: expected rows with at least one element, got none", file_in(call, has_x ? IN_X : IN_TABLE));
        return CLI_REFUSED;
    }
    const size_t dims[2] = {q->rows, s.columns};
    const npy_shape table_shape = file_shape(2, dims);
    if (is_backward)
        status = file_reserve(call, OUT_O, NRG_F32, &table_shape);
    else
        status = position_check_table(call, IN_TABLE, s.columns, x->dtype, file_in(call, has_x ? IN_X : IN_POSITIONS));
    if (status != CLI_DONE)
        return status;
    nrg_embed_table rows = nrg_embed_table_init(0, NULL, NULL);
    status =
        position_ids(call, IN_POSITIONS, shape, &s, q->first, is_backward ? q->rows : call->in[IN_TABLE].shape.dims[0], &rows);
#ifndef NRG_NO_BACKWARD
    if (status == CLI_DONE && is_backward)
        status = backward(call, q, &s, &rows);
#endif
    if (status == CLI_DONE && !is_backward)
        status = forward(call, q, &s, &rows);
    return status;
}
