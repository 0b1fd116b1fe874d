/* nrg position shift: scores of distances moved to the keys at those distances, and back.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

static const char help[] =
    "usage: nrg position shift X.npy [OPTION]... --o SCORES.npy\n"
    "       nrg position shift --backward DSCORES.npy [OPTION]... --o DX.npy\n"
    "\n"
    "Moves scores of distances to the keys at these distances. It computes 0 where x has no such column:\n"
    "\n"
    "  scores[i, j] = x[i, j - i + shift]\n"
    "\n"
    "example: the relative shift of Transformer-XL\n"
    "  nrg position shift x.npy --o scores.npy\n"
    "\n"
    "  X.npy, -x, --x FILE    of shape (..., heads, queries, rel): a column for each distance, in descending order\n"
    "  -o, --o FILE           of shape (..., heads, queries, keys), with the dtype of x (required)\n"
    "  --add FILE             added to the result, with its shape and dtype\n"
    "  --kind KIND            transformer-xl (default): shift = queries - 1, rel = keys\n"
    "                         xlnet: shift = queries, rel = queries + keys\n"
    "  --shift S              another shift\n"
    "  --keys K               number of keys; default: from the kind\n"
    "  --backward             x is the gradient of the scores; the result is the gradient of x, of shape\n"
    "                         (..., heads, queries, rel)\n"
    "  --rel R                with --backward: columns of x; default: from the kind\n" POSITION_HELP_END;

enum { IN_X, IN_ADD, INPUTS };
enum { OUT_O, OUTPUTS };
enum { OPT_KIND = INPUTS + OUTPUTS, OPT_SHIFT, OPT_KEYS, OPT_BACKWARD, OPT_REL, OPT_ISA, OPT_HELP, OPTIONS };

static const cli_option options[OPTIONS + 1] = {
    [IN_X] = {"x", 'x', 1},
    [IN_ADD] = {"add", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [OPT_KIND] = {"kind", 0, 1},
    [OPT_SHIFT] = {"shift", 0, 1},
    [OPT_KEYS] = {"keys", 0, 1},
    [OPT_BACKWARD] = {"backward", 0, 0},
    [OPT_REL] = {"rel", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

enum { TRANSFORMER_XL, XLNET };
static const char *const kinds[] = {"transformer-xl", "xlnet", NULL};

typedef struct request {
    int kind;
    long long shift;
    size_t columns; /* of the result, where it was said */
} request;

static int ask(file_call *call)
{
    const long long far = 1LL << 40;
    request *q = call->request;
    q->kind = file_word(call, OPT_KIND, kinds);
    if (call->value[OPT_BACKWARD] && !library_holds("--backward", "backward"))
        return CLI_REFUSED;
    if (q->kind < 0 || file_excludes(call, OPT_KEYS, OPT_BACKWARD) != CLI_DONE ||
        file_needs(call, OPT_REL, OPT_BACKWARD) != CLI_DONE || !file_integer(call, OPT_SHIFT, -far, far, &q->shift) ||
        !file_count(call, OPT_KEYS, 0, &q->columns) || !file_count(call, OPT_REL, 0, &q->columns))
        return CLI_REFUSED;
    if (!file_in(call, IN_X))
        file_missing(call, IN_X, "");
    else if (!file_out(call, OUT_O))
        file_missing(call, INPUTS + OUT_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

/* As many columns as the kind has for those of x. */
static int find_columns(const file_call *call, request *q, const position_shape *s)
{
    int is_backward = call->value[OPT_BACKWARD] != NULL;
    if (call->value[OPT_KEYS] || call->value[OPT_REL])
        return CLI_DONE;
    q->columns = s->columns;
    if (q->kind == XLNET && is_backward)
        q->columns += s->rows;
    if (q->kind == TRANSFORMER_XL || is_backward)
        return CLI_DONE;
    if (s->columns < s->rows) {
        complain("%s: expected at least %zu columns (queries + keys) for --kind xlnet, got %zu; set --keys", file_in(call, IN_X),
                 s->rows, s->columns);
        return CLI_REFUSED;
    }
    q->columns -= s->rows;
    return CLI_DONE;
}

static int compute(file_call *call)
{
    request *q = call->request;
    position_shape s;
    int is_backward = call->value[OPT_BACKWARD] != NULL;
    int status = position_heads(call, IN_X, &s);
    if (status == CLI_DONE)
        status = find_columns(call, q, &s);
    if (status == CLI_DONE)
        status = position_place_result(call, IN_X, IN_ADD, OUT_O, q->columns);
    if (status != CLI_DONE)
        return status;
    long long shift = call->value[OPT_SHIFT] ? q->shift : (long long)s.rows - (q->kind == TRANSFORMER_XL);
    nrg_relative_shift_args args =
        nrg_relative_shift_args_init(call->in[IN_X].dtype, s.batch, s.heads, s.rows, is_backward ? s.columns : q->columns,
                                     is_backward ? q->columns : s.columns, shift);
    args.accumulate = file_in(call, IN_ADD) != NULL;
#ifndef NRG_NO_BACKWARD
    if (is_backward) {
        args.d_scores = call->in[IN_X].data;
        args.dx = call->out[OUT_O].data;
        return file_answer(call, nrg_relative_shift_backward(&args, 0, 1));
    }
#endif
    args.x = call->in[IN_X].data;
    args.scores = call->out[OUT_O].data;
    return file_answer(call, nrg_relative_shift_forward(&args, 0, 1));
}

int position_shift(char **arguments)
{
    static const file_command command = {"position shift", help, options, INPUTS, OUTPUTS, OPTIONS, IN_X, 0, ask, compute};
    request q = {0};
    return file_command_run(&command, &q, arguments);
}
