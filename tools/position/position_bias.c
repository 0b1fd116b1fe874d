/* Code that nrg position t5 and nrg position alibi share.
 *
 * SPDX-License-Identifier: MIT */
#include "position_bias.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "position.h"

/* The first rows of both kinds, so that they have the same names in the same places. */
#define OPTIONS_DEF "position/position_bias.def"
#include "../options.h"

int bias_require(const file_call *call)
{
    if (!file_in(call, IN_SCORES) && !call->value[OPT_QUERIES])
        return cli_refuse("expected --scores, or --queries and --keys, got none; see nrg %s --help", call->command->name);
    return file_out(call, OUT_O) ? CLI_DONE : file_missing(call, INPUTS + OUT_O, "");
}

int bias_shape(const file_call *call, bias_request *q, size_t *batch)
{
    file_axes s = {1, q->spec.heads, q->spec.queries, q->spec.keys};
    int status = file_in(call, IN_SCORES) ? position_axes(call, IN_SCORES, 3, &s) : CLI_DONE;
    *batch = s.batch;
    q->spec.heads = s.heads;
    q->spec.queries = s.rows;
    q->spec.keys = s.columns;
    if (!call->value[OPT_FIRST_POSITION])
        q->spec.first_position = (int64_t)s.columns - (int64_t)s.rows;
    return status;
}

void *bias_diagonals(file_call *call, const bias_request *q, size_t element)
{
    const size_t count =
        q->spec.queries > SIZE_MAX - q->spec.keys ? SIZE_MAX : nrg_score_bias_diagonals(q->spec.queries, q->spec.keys);
    if (!count || q->spec.heads <= SIZE_MAX / element / count)
        call->workspace = malloc(count && q->spec.heads ? count * q->spec.heads * element : 1);
    if (!call->workspace)
        npy_no_memory(SIZE_MAX);
    return call->workspace;
}

int bias_add(file_call *call, const bias_request *q, size_t batch, const float *diagonals)
{
    const nrg_score_bias_spec *s = &q->spec;
    npy_array *o = &call->out[OUT_O];
    if (file_in(call, IN_SCORES))
        file_reuse(call, OUT_O, IN_SCORES);
    else {
        const size_t dims[3] = {s->heads, s->queries, s->keys};
        const npy_shape shape = file_shape(3, dims);
        int status = file_reserve(call, OUT_O, NRG_F32, &shape);
        if (status != CLI_DONE)
            return status;
        memset(o->data, 0, o->count * sizeof(float));
    }
    nrg_score_bias_args args =
        nrg_score_bias_args_init(o->dtype, batch, s->heads, s->queries, s->keys, o->data, diagonals, o->data);
    args.scale = q->scale;
    return file_answer(call, nrg_score_bias_forward(&args, 0, 1));
}
