/* nrg position alibi: slopes, and the bias of scores they make.
 *
 * SPDX-License-Identifier: MIT */
#include "position.h"
#include "position_bias.h"

#define BIAS_TABLE "slopes"
#define OPTIONS_DEF "position/position_alibi.def"
#define COMMAND "position alibi"
#define OPERAND IN_SCORES
#define REQUEST bias_request
#define RUN position_alibi
#include "../options.h"

static int is_slopes_alone(const file_call *call) { return !file_in(call, IN_SCORES) && !call->value[OPT_QUERIES]; }

static int ask(file_call *call)
{
    bias_request *q = call->request;
    q->spec = nrg_score_bias_spec_alibi(0, 0, 0);
    q->max_bias = 8;
    q->scale = 1;
    if (!read_fields(call, q))
        return CLI_REFUSED;
    if (!file_in(call, IN_SCORES) && !file_in(call, IN_TABLE) && !call->value[OPT_HEADS])
        return cli_refuse("expected --heads, --slopes or --scores, got none; see nrg position alibi --help");
    if (!is_slopes_alone(call) || call->value[OPT_KEYS] || call->value[OPT_SCALE])
        return bias_require(call);
    if (file_in(call, IN_TABLE))
        return cli_refuse("--slopes needs --scores, or --queries and --keys");
    if (call->value[OPT_FIRST_POSITION] || call->value[OPT_CAUSAL])
        return cli_refuse("--first-position and --causal need --scores, or --queries and --keys");
    if (!file_out(call, OUT_O))
        return file_missing(call, INPUTS + OUT_O, "");
    return CLI_DONE;
}

/* Those of a file are for the heads of the scores, where there are any. */
static int check_slopes(const file_call *call, bias_request *q)
{
    const npy_array *slopes = &call->in[IN_TABLE];
    const char *scores = file_in(call, IN_SCORES);
    if (!scores)
        q->spec.heads = slopes->count;
    const npy_shape wanted = file_shape(1, &q->spec.heads);
    const int status = npy_check_shape(slopes, file_in(call, IN_TABLE), &wanted, scores ? scores : "the heads");
    return status == CLI_DONE && slopes->dtype != NRG_F32 ? file_wrong_dtype(call, IN_TABLE, NRG_F32, NULL) : status;
}

static int make_slopes(file_call *call, const bias_request *q)
{
    npy_array *slopes = &call->in[IN_TABLE];
    slopes->dtype = NRG_F32;
    slopes->shape = file_shape(1, &q->spec.heads);
    slopes->count = q->spec.heads;
    const int status = slopes->count <= SIZE_MAX / 8 ? npy_reserve(slopes) : npy_no_memory(slopes->count);
    return status == CLI_DONE ? file_answer(call, nrg_alibi_slopes(slopes->count, q->max_bias, slopes->data)) : status;
}

static int compute(file_call *call)
{
    bias_request *q = call->request;
    const int is_alone = is_slopes_alone(call);
    float *diagonals;
    size_t batch;
    int status = is_alone ? CLI_DONE : bias_shape(call, q, &batch);
    if (status == CLI_DONE)
        status = file_in(call, IN_TABLE) ? check_slopes(call, q) : make_slopes(call, q);
    if (is_alone)
        file_reuse(call, OUT_O, IN_TABLE);
    if (is_alone || status != CLI_DONE)
        return status;
    if (!(diagonals = bias_diagonals(call, q, sizeof *diagonals)))
        return CLI_FAILED;
    status = file_answer(call, nrg_alibi_diagonals(&q->spec, call->in[IN_TABLE].data, diagonals, 0, 0, 1));
    return status == CLI_DONE ? bias_add(call, q, batch, diagonals) : status;
}
