/* nrg norm: from inputs to outputs, by the library.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../npy/arrays.h"
#include "../cli.h"
#include "../library.h"
#include "norm.h"

/* Shape, dtype and number of elements of an output. */
static void describe(const request *q, const tensors *t, int which, npy_array *out)
{
    const nrg_norm_spec *s = &q->spec;
    out->shape = t->shape;
    out->count = t->rows * t->dim;
    out->dtype = s->dtype;
    switch (which) {
    case OUT_R:
        out->dtype = s->r_dtype;
        break;
    case OUT_DY:
        out->dtype = s->y_dtype;
        break;
    case OUT_MEAN:
    case OUT_RSTD:
        out->shape = norm_statistics_shape(q, t);
        out->count = t->rows * (s->groups ? s->groups : 1);
        out->dtype = NRG_F32;
        break;
    case OUT_DW:
    case OUT_DB:
        out->shape.ndim = 1;
        out->shape.dims[0] = t->dim;
        out->count = t->dim;
        out->dtype = NRG_F32;
        break;
    default:
        break;
    }
}

/* o takes x's place in memory, which the library allows. */
static int reserve(const request *q, tensors *t)
{
    for (int i = 0; i < OUTPUTS; i++) {
        npy_array *out = &t->out[i];
        if (!q->outputs[i])
            continue;
        describe(q, t, i, out);
        if (i == OUT_O) {
            out->data = t->in[IN_X].data;
            t->in[IN_X].data = NULL;
            continue;
        }
        int status = array_reserve(out);
        if (status != CLI_DONE)
            return status;
    }
    return CLI_DONE;
}

static int forward(const request *q, const tensors *t)
{
    nrg_norm_args args = nrg_norm_args_init(t->rows, t->out[OUT_O].data, t->out[OUT_O].data);
    args.y = t->in[IN_Y].data;
    args.z = t->in[IN_Z].data;
    args.w = t->in[IN_W].data;
    args.b = t->in[IN_B].data;
    args.r = t->out[OUT_R].data;
    args.mean = t->out[OUT_MEAN].data;
    args.rstd = t->out[OUT_RSTD].data;
    return library_answer(nrg_norm_forward(&q->spec, &args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static int backward(const request *q, tensors *t)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(t->rows, t->in[IN_X].data, t->in[IN_D_O].data, t->out[OUT_DX].data);
    args.dr_in = t->in[IN_DR_IN].data;
    args.y = t->in[IN_Y].data;
    args.r = t->in[IN_R].data;
    args.z = t->in[IN_Z].data;
    args.w = t->in[IN_W].data;
    args.b = t->in[IN_B].data;
    args.mean = t->in[IN_MEAN].data;
    args.dy = t->out[OUT_DY].data;
    args.dz = t->out[OUT_DZ].data;
    args.dw = t->out[OUT_DW].data;
    args.db = t->out[OUT_DB].data;
    nrg_status status = nrg_norm_backward_workspace(&q->spec, &args, &args.workspace_size);
    if (status == NRG_OK && args.workspace_size) {
        args.workspace = t->workspace = malloc(args.workspace_size);
        if (!args.workspace)
            return arrays_no_memory(args.workspace_size);
    }
    if (status == NRG_OK)
        status = nrg_norm_backward(&q->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&q->spec, &args, 0, 1);
    return library_answer(status);
}
#endif

int norm_compute(const request *q, tensors *t)
{
    int status = reserve(q, t);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (q->backward)
        return backward(q, t);
#endif
    return forward(q, t);
}
