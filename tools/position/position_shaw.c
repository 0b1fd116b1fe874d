/* nrg position shaw: attention's two terms of relative positions.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "position.h"

typedef struct request {
    nrg_relative_args args;
    long long first_position, p_min;
} request;

static const long long far = 1LL << 40;

#define OPTIONS_DEF "position/position_shaw.def"
#define COMMAND "position shaw"
#define OPERAND IN_Q
#define REQUEST request
#define RUN position_shaw
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    const int are_scores = file_in(call, IN_Q) != NULL;
    q->args = nrg_relative_args_init(NRG_F32, 1, 1, 1, 1, 1, 0, 0);
    call->function = are_scores ? &invoke_relative_scores : &invoke_relative_values;
    call->part[0] = &q->args;
    call->operand[INPUTS + OUT_O] = call->operand[IN_ADD] = are_scores ? "SCORES" : "O";
    return read_fields(call, q) ? file_ask(call) : CLI_REFUSED;
}

/* The table is (classes, dim), or one for each head. */
static int compute(file_call *call)
{
    request *q = call->request;
    nrg_relative_args *a = &q->args;
    const int are_scores = file_in(call, IN_Q) != NULL, input = are_scores ? IN_Q : IN_A;
    npy_shape table = call->in[IN_TABLE].shape;
    const int has_heads = table.ndim == 3;
    const size_t classes = table.ndim >= 2 ? table.dims[table.ndim - 2] : 0,
                 dim = table.ndim >= 2 ? table.dims[table.ndim - 1] : 0;
    file_axes s;
    int status = position_axes(call, input, 3, &s);
    if (status == CLI_DONE && (table.ndim > 3 || !classes || !dim || (has_heads && table.dims[0] != s.heads)))
        return file_wrong(call, IN_TABLE, "shape (classes, dim) or (%zu, classes, dim)", s.heads);
    if (status != CLI_DONE)
        return status;
    const long long p_min = call->value[OPT_P_MIN] ? q->p_min : -(long long)((classes - 1) / 2);
    const size_t keys = are_scores ? a->keys : s.columns;
    *a = nrg_relative_args_init(call->in[input].dtype, s.batch, s.heads, s.rows, keys, are_scores ? s.columns : dim, p_min,
                                p_min + (long long)(classes - 1));
    if (call->value[OPT_FIRST_POSITION])
        a->first_position = q->first_position;
    a->table_per_head = has_heads;
    a->accumulate = file_in(call, IN_ADD) != NULL;
    if (a->accumulate)
        file_reuse(call, OUT_O, IN_ADD);
    table.dims[table.ndim - 1] = a->dim;
    call->shape[IN_TABLE] = &table;
    return file_run(call, input);
}
