/* nrg position shift: scores of distances moved to the keys at those distances, and back.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "position.h"

typedef struct request {
    int kind;
    long long shift;
    size_t columns; /* of the result, where it was said */
    nrg_relative_shift_args args;
} request;

enum { TRANSFORMER_XL, XLNET };
static const char *const kinds[] = {"transformer-xl", "xlnet", NULL};
static const long long far = 1LL << 40;

#define OPTIONS_DEF "position/position_shift.def"
#define COMMAND "position shift"
#define OPERAND IN_X
#define REQUEST request
#define RUN position_shift
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    const int is_backward = call->value[OPT_BACKWARD] != NULL;
    q->args = nrg_relative_shift_args_init(NRG_F32, 1, 1, 1, 1, 1, 0);
    call->function = is_backward ? FILE_BACKWARD(relative_shift_backward) : &invoke_relative_shift_forward;
    call->part[0] = &q->args;
    call->operand[IN_X] = is_backward ? "D_SCORES" : "X";
    call->operand[INPUTS + OUT_O] = call->operand[IN_ADD] = is_backward ? "DX" : "SCORES";
    return read_fields(call, q) ? file_ask(call) : CLI_REFUSED;
}

static int compute(file_call *call)
{
    request *q = call->request;
    file_axes s;
    const int is_backward = call->value[OPT_BACKWARD] != NULL, is_xlnet = q->kind == XLNET;
    const int status = position_axes(call, IN_X, 3, &s);
    if (status != CLI_DONE)
        return status;
    if (!call->value[OPT_KEYS] && !call->value[OPT_REL]) { /* as many columns as the kind has for those of x */
        if (is_xlnet && !is_backward && s.columns < s.rows)
            return cli_refuse("%s: expected at least %zu columns (queries + keys) for --kind xlnet, got %zu; set --keys",
                              file_in(call, IN_X), s.rows, s.columns);
        q->columns = !is_xlnet ? s.columns : is_backward ? s.columns + s.rows : s.columns - s.rows;
    }
    const long long shift = call->value[OPT_SHIFT] ? q->shift : (long long)s.rows - !is_xlnet;
    q->args = nrg_relative_shift_args_init(call->in[IN_X].dtype, s.batch, s.heads, s.rows, is_backward ? s.columns : q->columns,
                                           is_backward ? q->columns : s.columns, shift);
    q->args.accumulate = file_in(call, IN_ADD) != NULL;
    if (q->args.accumulate)
        file_reuse(call, OUT_O, IN_ADD);
    return file_run(call, IN_X);
}
