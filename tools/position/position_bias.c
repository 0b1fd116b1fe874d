/* Code that nrg position t5 and nrg position alibi share.
 *
 * SPDX-License-Identifier: MIT */
#include "position_bias.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

int bias_read(const file_call *call, bias_request *q)
{
    long long first_position = 0;
    q->scale = 1;
    if (!file_count(call, BIAS_QUERIES, 0, &q->spec.queries) || !file_count(call, BIAS_KEYS, 0, &q->spec.keys) ||
        !file_integer(call, BIAS_FIRST_POSITION, INT32_MIN, INT32_MAX, &first_position) ||
        !file_float(call, BIAS_SCALE, &q->scale))
        return 0;
    q->spec.first_position = first_position;
    q->spec.causal = call->value[BIAS_CAUSAL] != NULL;
    if (isfinite(q->scale))
        return 1;
    complain("--scale: expected a finite number, got '%s'", call->value[BIAS_SCALE]);
    return 0;
}

int bias_require(const file_call *call)
{
    if (file_excludes(call, BIAS_SCORES, BIAS_QUERIES) != CLI_DONE || file_excludes(call, BIAS_SCORES, BIAS_KEYS) != CLI_DONE ||
        file_needs(call, BIAS_QUERIES, BIAS_KEYS) != CLI_DONE || file_needs(call, BIAS_KEYS, BIAS_QUERIES) != CLI_DONE ||
        file_needs(call, BIAS_SCALE, BIAS_SCORES) != CLI_DONE)
        return CLI_REFUSED;
    if (!file_in(call, BIAS_SCORES) && !call->value[BIAS_QUERIES])
        complain("expected --scores, or --queries and --keys, got none; see nrg %s --help", call->command->name);
    else if (!file_out(call, BIAS_O))
        file_missing(call, BIAS_INPUTS + BIAS_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

int bias_shape(const file_call *call, bias_request *q, size_t *batch)
{
    position_shape s = {1, q->spec.heads, q->spec.queries, q->spec.keys};
    int status = file_in(call, BIAS_SCORES) ? position_heads(call, BIAS_SCORES, &s) : CLI_DONE;
    *batch = s.batch;
    q->spec.heads = s.heads;
    q->spec.queries = s.rows;
    q->spec.keys = s.columns;
    if (!call->value[BIAS_FIRST_POSITION])
        q->spec.first_position = (int64_t)s.columns - (int64_t)s.rows;
    return status;
}

void *bias_diagonals(const bias_request *q, size_t element)
{
    size_t count = q->spec.queries > SIZE_MAX - q->spec.keys ? SIZE_MAX : nrg_score_bias_diagonals(q->spec.queries, q->spec.keys);
    void *diagonals = NULL;
    if (!count || q->spec.heads <= SIZE_MAX / element / count)
        diagonals = malloc(count && q->spec.heads ? count * q->spec.heads * element : 1);
    if (!diagonals)
        arrays_no_memory(SIZE_MAX);
    return diagonals;
}

int bias_add(file_call *call, const bias_request *q, size_t batch, const float *diagonals)
{
    const nrg_score_bias_spec *s = &q->spec;
    npy_array *o = &call->out[BIAS_O];
    if (file_in(call, BIAS_SCORES))
        file_reuse(call, BIAS_O, BIAS_SCORES);
    else {
        const size_t dims[3] = {s->heads, s->queries, s->keys};
        const npy_shape shape = file_shape(3, dims);
        int status = file_reserve(call, BIAS_O, NRG_F32, &shape);
        if (status != CLI_DONE)
            return status;
        memset(o->data, 0, o->count * sizeof(float));
    }
    nrg_score_bias_args args =
        nrg_score_bias_args_init(o->dtype, batch, s->heads, s->queries, s->keys, o->data, diagonals, o->data);
    args.scale = q->scale;
    return file_answer(call, nrg_score_bias_forward(&args, 0, 1));
}
