/* nrg position alibi: slopes, and the bias of scores they make.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"
#include "position_bias.h"

static const char help[] =
    "usage: nrg position alibi --heads H --o SLOPES.npy\n"
    "       nrg position alibi (--heads H | --slopes F.npy) --queries Q --keys K [OPTION]... --o O.npy\n"
    "       nrg position alibi --scores S.npy [--slopes F.npy] [OPTION]... --o O.npy\n"
    "\n"
    "Adds the bias of ALiBi to attention scores, or writes the bias or its slopes. The bias of query i and key j\n"
    "is -slope[head] * |j - i|. If heads is a power of two, slope[h] = 2^(-max_bias * (h + 1) / heads);\n"
    "otherwise the slopes are those of the paper's code.\n"
    "\n"
    "example: add the bias to scores, with a causal mask\n"
    "  nrg position alibi --scores scores.npy --causal --o o.npy\n"
    "\n" BIAS_HELP
    "  --heads H              number of heads, without scores and slopes. Without --queries and --keys, the result is the\n"
    "                         slopes, '<f4', of shape (heads,)\n"
    "  --max-bias B           default 8\n"
    "  --slopes FILE          other slopes, '<f4', of shape (heads,)\n" POSITION_HELP_END;

enum { OPT_HEADS = BIAS_NEXT, OPT_MAX_BIAS, OPT_ISA, OPT_HELP, OPTIONS };

static const cli_option options[OPTIONS + 1] = {
    BIAS_OPTIONS,
    [BIAS_TABLE] = {"slopes", 0, 1},
    [OPT_HEADS] = {"heads", 0, 1},
    [OPT_MAX_BIAS] = {"max-bias", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

static int is_slopes_alone(const file_call *call) { return !file_in(call, BIAS_SCORES) && !call->value[BIAS_QUERIES]; }

static int ask(file_call *call)
{
    bias_request *q = call->request;
    q->spec = nrg_score_bias_spec_alibi(0, 0, 0);
    q->max_bias = 8;
    if (!bias_read(call, q) || !file_count(call, OPT_HEADS, 1, &q->spec.heads) ||
        !file_double(call, OPT_MAX_BIAS, &q->max_bias) || file_excludes(call, OPT_HEADS, BIAS_TABLE) != CLI_DONE ||
        file_excludes(call, OPT_HEADS, BIAS_SCORES) != CLI_DONE || file_excludes(call, OPT_MAX_BIAS, BIAS_TABLE) != CLI_DONE)
        return CLI_REFUSED;
    if (!(q->max_bias >= 0 && isfinite(q->max_bias)))
        complain("--max-bias: expected a finite number of at least 0, got '%s'", call->value[OPT_MAX_BIAS]);
    else if (!file_in(call, BIAS_SCORES) && !file_in(call, BIAS_TABLE) && !call->value[OPT_HEADS])
        complain("expected --heads, --slopes or --scores, got none; see nrg position alibi --help");
    else if (!is_slopes_alone(call) || call->value[BIAS_KEYS] || call->value[BIAS_SCALE])
        return bias_require(call);
    else if (file_in(call, BIAS_TABLE))
        complain("--slopes needs --scores, or --queries and --keys");
    else if (call->value[BIAS_FIRST_POSITION] || call->value[BIAS_CAUSAL])
        complain("--first-position and --causal need --scores, or --queries and --keys");
    else if (!file_out(call, BIAS_O))
        file_missing(call, BIAS_INPUTS + BIAS_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

/* Those of the file, or new ones; from malloc, or a complaint and NULL. */
static float *find_slopes(file_call *call, bias_request *q, int *status)
{
    npy_array *file = &call->in[BIAS_TABLE];
    size_t heads = q->spec.heads;
    if (file->data) {
        const npy_shape wanted = file_shape(1, &heads);
        if (!file_in(call, BIAS_SCORES))
            q->spec.heads = file->count;
        *status = file->shape.ndim == 1 && !file_in(call, BIAS_SCORES)
                      ? CLI_DONE
                      : array_check_shape(file, file_in(call, BIAS_TABLE), &wanted,
                                          file_in(call, BIAS_SCORES) ? file_in(call, BIAS_SCORES) : "the heads");
        if (*status == CLI_DONE && file->dtype != NRG_F32)
            *status = file_wrong_dtype(call, BIAS_TABLE, NRG_F32, NULL);
        float *slopes = *status == CLI_DONE ? file->data : NULL;
        if (slopes)
            file->data = NULL;
        return slopes;
    }
    float *slopes = heads <= SIZE_MAX / 8 ? malloc(heads ? heads * sizeof *slopes : 1) : NULL;
    if (!slopes) {
        *status = arrays_no_memory(heads);
        return NULL;
    }
    *status = file_answer(call, nrg_alibi_slopes(heads, q->max_bias, slopes));
    return slopes;
}

static int add(file_call *call, const bias_request *q, size_t batch, const float *slopes)
{
    float *diagonals = bias_diagonals(q, sizeof *diagonals);
    if (!diagonals)
        return CLI_FAILED;
    int status = file_answer(call, nrg_alibi_diagonals(&q->spec, slopes, diagonals, 0, 0, 1));
    if (status == CLI_DONE)
        status = bias_add(call, q, batch, diagonals);
    free(diagonals);
    return status;
}

static int compute(file_call *call)
{
    bias_request *q = call->request;
    size_t batch;
    if (is_slopes_alone(call)) {
        const npy_shape shape = file_shape(1, &q->spec.heads);
        int status = file_reserve(call, BIAS_O, NRG_F32, &shape);
        return status == CLI_DONE ? file_answer(call, nrg_alibi_slopes(q->spec.heads, q->max_bias, call->out[BIAS_O].data))
                                  : status;
    }
    int status = bias_shape(call, q, &batch);
    float *slopes = status == CLI_DONE ? find_slopes(call, q, &status) : NULL;
    if (status == CLI_DONE)
        status = add(call, q, batch, slopes);
    free(slopes);
    return status;
}

int position_alibi(char **arguments)
{
    static const file_command command = {"position alibi", help,        options, BIAS_INPUTS, BIAS_OUTPUTS,
                                         OPTIONS,          BIAS_SCORES, 0,       ask,         compute};
    bias_request q = {0};
    return file_command_run(&command, &q, arguments);
}
