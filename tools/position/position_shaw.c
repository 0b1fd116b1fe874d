/* nrg position shaw: attention's two terms of relative positions.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

static const char help[] =
    "usage: nrg position shaw Q.npy --table R.npy --keys K [OPTION]... --o SCORES.npy\n"
    "       nrg position shaw --values A.npy --table R.npy [OPTION]... --o O.npy\n"
    "\n"
    "Computes the terms of clipped relative positions in attention, for scores or for values:\n"
    "\n"
    "  scores[i, j] = q[i] . R[class(i, j)],   o[i] = sum over j of a[i, j] * R[class(i, j)]\n"
    "  class(i, j) = clip(first_position + i - j, p_min, p_max) - p_min\n"
    "\n"
    "example: scores of queries and 16 keys\n"
    "  nrg position shaw q.npy --table r.npy --keys 16 --o scores.npy\n"
    "\n"
    "  Q.npy, --q FILE        of shape (..., heads, queries, dim)\n"
    "  --values FILE          weights instead of q, of shape (..., heads, queries, keys)\n"
    "  --table FILE           R, of shape (classes, dim) or (heads, classes, dim), with their dtype or '<f4'\n"
    "  --add FILE             added to the result, with its shape and dtype\n"
    "  -o, --o FILE           of shape (..., heads, queries, keys) or (..., heads, queries, dim), with the dtype of q\n"
    "                         or the weights (required)\n"
    "  --keys K               number of keys, with q\n"
    "  --first-position N     position of the first query, if the first key is at 0; default: keys - queries\n"
    "  --p-min P              smallest distance; default -(classes - 1)/2; p_max is p_min + classes - 1\n"
    "\n"
    "Each is the gradient of the other: the gradient of q follows from the gradient of the scores as o does\n"
    "from the weights.\n" POSITION_HELP_END;

enum { IN_Q, IN_VALUES, IN_TABLE, IN_ADD, INPUTS };
enum { OUT_O, OUTPUTS };
enum { OPT_KEYS = INPUTS + OUTPUTS, OPT_FIRST_POSITION, OPT_P_MIN, OPT_ISA, OPT_HELP, OPTIONS };

static const cli_option options[OPTIONS + 1] = {
    [IN_Q] = {"q", 0, 1},
    [IN_VALUES] = {"values", 0, 1},
    [IN_TABLE] = {"table", 0, 1},
    [IN_ADD] = {"add", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [OPT_KEYS] = {"keys", 0, 1},
    [OPT_FIRST_POSITION] = {"first-position", 0, 1},
    [OPT_P_MIN] = {"p-min", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

typedef struct request {
    size_t keys;
    long long first_position, p_min;
} request;

static const long long far = 1LL << 40;

static int ask(file_call *call)
{
    request *q = call->request;
    if (file_excludes(call, IN_Q, IN_VALUES) != CLI_DONE || file_excludes(call, IN_VALUES, OPT_KEYS) != CLI_DONE ||
        !file_count(call, OPT_KEYS, 0, &q->keys) || !file_integer(call, OPT_FIRST_POSITION, -far, far, &q->first_position) ||
        !file_integer(call, OPT_P_MIN, -far, far, &q->p_min))
        return CLI_REFUSED;
    if (!file_in(call, IN_Q) && !file_in(call, IN_VALUES))
        complain("--q or --values: expected a file, got none; see nrg position shaw --help");
    else if (!file_in(call, IN_TABLE))
        file_missing(call, IN_TABLE, "");
    else if (file_in(call, IN_Q) && !call->value[OPT_KEYS])
        complain("--keys: expected the number of keys with --q, got none; see nrg position shaw --help");
    else if (!file_out(call, OUT_O))
        file_missing(call, INPUTS + OUT_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

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

int position_shaw(char **arguments)
{
    static const file_command command = {"position shaw", help, options, INPUTS, OUTPUTS, OPTIONS, IN_Q, 0, ask, compute};
    request q = {0};
    return file_command_run(&command, &q, arguments);
}
