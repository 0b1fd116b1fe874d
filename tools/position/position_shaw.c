/* nrg position shaw: attention's two terms of relative positions.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

typedef struct request {
    size_t keys;
    long long first_position, p_min;
} request;

static const long long far = 1LL << 40;

#define OPTIONS_DEF "position/position_shaw.def"
#define COMMAND "position shaw"
#define OPERAND IN_Q
#define REQUEST request
#define RUN position_shaw
#include "../options.h"

static int ask(file_call *call) { return read_fields(call, call->request) ? CLI_DONE : CLI_REFUSED; }

/* (classes, dim), or one for each head. */
static int check_table(const file_call *call, int input, const position_shape *s, size_t *classes, size_t *dim)
{
    const npy_array *table = &call->in[IN_TABLE];
    const npy_shape *shape = &table->shape;
    char text[NPY_SHAPE_ROOM];
    int has_heads = shape->ndim == 3;
    *classes = shape->ndim >= 2 ? shape->dims[shape->ndim - 2] : 0;
    *dim = shape->ndim >= 2 ? shape->dims[shape->ndim - 1] : 0;
    if (shape->ndim < 2 || shape->ndim > 3 || !*classes || !*dim || (has_heads && shape->dims[0] != s->heads))
        complain("%s: expected shape (classes, dim) or (%zu, classes, dim), got %s", file_in(call, IN_TABLE), s->heads,
                 npy_shape_text(text, shape));
    else if (input == IN_Q && *dim != s->columns)
        complain("%s: expected rows of %zu elements as in %s, got %zu", file_in(call, IN_TABLE), s->columns, file_in(call, input),
                 *dim);
    else if (table->dtype != NRG_F32 && table->dtype != call->in[input].dtype)
        file_wrong_dtype(call, IN_TABLE, call->in[input].dtype, file_in(call, input));
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

static int compute(file_call *call)
{
    request *q = call->request;
    int input = file_in(call, IN_Q) ? IN_Q : IN_VALUES;
    position_shape s;
    size_t classes, dim;
    int status = position_heads(call, input, &s);
    if (status == CLI_DONE)
        status = check_table(call, input, &s, &classes, &dim);
    if (status == CLI_DONE)
        status = position_place_result(call, input, IN_ADD, OUT_O, input == IN_Q ? q->keys : dim);
    if (status != CLI_DONE)
        return status;
    long long p_min = call->value[OPT_P_MIN] ? q->p_min : -(long long)((classes - 1) / 2);
    nrg_relative_args args =
        nrg_relative_args_init(call->in[input].dtype, s.batch, s.heads, s.rows, input == IN_Q ? q->keys : s.columns, dim, p_min,
                               p_min + (long long)(classes - 1));
    if (call->value[OPT_FIRST_POSITION])
        args.first_position = q->first_position;
    args.table_dtype = call->in[IN_TABLE].dtype;
    args.table = call->in[IN_TABLE].data;
    args.table_per_head = call->in[IN_TABLE].shape.ndim == 3;
    args.accumulate = file_in(call, IN_ADD) != NULL;
    if (input == IN_Q) {
        args.q = call->in[IN_Q].data;
        args.scores = call->out[OUT_O].data;
        return file_answer(call, nrg_relative_scores(&args, 0, 1));
    }
    args.a = call->in[IN_VALUES].data;
    args.o = call->out[OUT_O].data;
    return file_answer(call, nrg_relative_values(&args, 0, 1));
}
