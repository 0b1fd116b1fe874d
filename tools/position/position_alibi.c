/* nrg position alibi: slopes, and the bias of scores they make.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../npy/arrays.h"
#include "../library.h"
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
    if (!(q->max_bias >= 0 && isfinite(q->max_bias)))
        complain("--max-bias: expected a finite number of at least 0, got '%s'", call->value[OPT_MAX_BIAS]);
    else if (!file_in(call, IN_SCORES) && !file_in(call, IN_TABLE) && !call->value[OPT_HEADS])
        complain("expected --heads, --slopes or --scores, got none; see nrg position alibi --help");
    else if (!is_slopes_alone(call) || call->value[OPT_KEYS] || call->value[OPT_SCALE])
        return bias_require(call);
    else if (file_in(call, IN_TABLE))
        complain("--slopes needs --scores, or --queries and --keys");
    else if (call->value[OPT_FIRST_POSITION] || call->value[OPT_CAUSAL])
        complain("--first-position and --causal need --scores, or --queries and --keys");
    else if (!file_out(call, OUT_O))
        file_missing(call, INPUTS + OUT_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

/* Those of the file, or new ones; from malloc, or a complaint and NULL. */
static float *find_slopes(file_call *call, bias_request *q, int *status)
{
    npy_array *file = &call->in[IN_TABLE];
    size_t heads = q->spec.heads;
    if (file->data) {
        const npy_shape wanted = file_shape(1, &heads);
        if (!file_in(call, IN_SCORES))
            q->spec.heads = file->count;
        *status = file->shape.ndim == 1 && !file_in(call, IN_SCORES)
                      ? CLI_DONE
                      : array_check_shape(file, file_in(call, IN_TABLE), &wanted,
                                          file_in(call, IN_SCORES) ? file_in(call, IN_SCORES) : "the heads");
        if (*status == CLI_DONE && file->dtype != NRG_F32)
            *status = file_wrong_dtype(call, IN_TABLE, NRG_F32, NULL);
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
        int status = file_reserve(call, OUT_O, NRG_F32, &shape);
        return status == CLI_DONE ? file_answer(call, nrg_alibi_slopes(q->spec.heads, q->max_bias, call->out[OUT_O].data))
                                  : status;
    }
    int status = bias_shape(call, q, &batch);
    float *slopes = status == CLI_DONE ? find_slopes(call, q, &status) : NULL;
    if (status == CLI_DONE)
        status = add(call, q, batch, slopes);
    free(slopes);
    return status;
}
