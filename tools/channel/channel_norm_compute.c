/* nrg channel-norm: from inputs to outputs, by the library.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../npy/arrays.h"
#include "channel_norm.h"
#include "../cli.h"
#include "../library.h"

/* The statistics of batch norm are those of channels, of layer norm those of samples; group and instance norm have both axes. */
static void describe_statistics(const channel_request *q, const channel_tensors *t, npy_array *out)
{
    out->shape.ndim = 0;
    if (q->over != OVER_BATCH)
        out->shape.dims[out->shape.ndim++] = t->n;
    if (q->over != OVER_LAYER)
        out->shape.dims[out->shape.ndim++] = q->over == OVER_BATCH ? t->c : q->spec.groups;
    out->count = 1;
    for (int i = 0; i < out->shape.ndim; i++)
        out->count *= out->shape.dims[i];
    out->dtype = NRG_F32;
}

/* Shape, dtype and number of elements of an output. */
static void describe(const channel_request *q, const channel_tensors *t, int which, npy_array *out)
{
    switch (which) {
    case OUT_O:
    case OUT_DX:
    case OUT_DY:
        out->shape = t->in[IN_X].shape;
        out->count = t->in[IN_X].count;
        out->dtype = q->spec.dtype;
        break;
    case OUT_MEAN:
    case OUT_RSTD:
        describe_statistics(q, t, out);
        break;
    default:
        out->shape.ndim = 1;
        out->shape.dims[0] = out->count = t->c;
        out->dtype = NRG_F32;
        break;
    }
}

/* Running statistics that are to be updated start as those that were read; without these, as a new batch norm has them. */
static void start_running(channel_tensors *t, int from, int to, float first)
{
    float *running = t->out[to].data;
    const float *before = t->in[from].data;
    for (size_t i = 0; i < t->c; i++)
        running[i] = before ? before[i] : first;
}

static int is_wanted(const channel_request *q, int which)
{
    return q->outputs[which] || (q->fold && (which == OUT_SCALE || which == OUT_SHIFT));
}

/* o takes x's place in memory, which the library allows. */
static int reserve(const channel_request *q, channel_tensors *t)
{
    for (int i = 0; i < OUTPUTS; i++) {
        npy_array *out = &t->out[i];
        if (!is_wanted(q, i))
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
    if (q->train) {
        start_running(t, IN_RUNNING_MEAN, OUT_RUNNING_MEAN, 0);
        start_running(t, IN_RUNNING_VAR, OUT_RUNNING_VAR, 1);
    }
    return CLI_DONE;
}

static nrg_channel_norm_args forward_args(const channel_request *q, const channel_tensors *t)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(t->n, t->s, t->out[OUT_O].data, t->out[OUT_O].data);
    args.y = t->in[IN_Y].data;
    args.w = t->in[IN_W].data;
    args.b = t->in[IN_B].data;
    args.mean = t->out[OUT_MEAN].data;
    args.rstd = t->out[OUT_RSTD].data;
    args.running_mean = q->train ? t->out[OUT_RUNNING_MEAN].data : t->in[IN_RUNNING_MEAN].data;
    args.running_var = q->train ? t->out[OUT_RUNNING_VAR].data : t->in[IN_RUNNING_VAR].data;
    args.batches = q->batches;
    return args;
}

/* Scale and shift, once; then these instead of statistics, w and b. */
static nrg_status fold(nrg_channel_norm_spec *spec, nrg_channel_norm_args *args, const channel_tensors *t)
{
    float *scale = t->out[OUT_SCALE].data, *shift = t->out[OUT_SHIFT].data;
    nrg_status status = nrg_channel_norm_fold(spec, args, scale, shift);
    spec->statistics = NRG_STATISTICS_FOLDED;
    spec->w_dtype = NRG_F32;
    args->w = scale;
    args->b = shift;
    args->running_mean = args->running_var = NULL;
    return status;
}

static int forward(const channel_request *q, const channel_tensors *t)
{
    nrg_channel_norm_spec spec = q->spec;
    nrg_channel_norm_args args = forward_args(q, t);
    nrg_status status = q->fold ? fold(&spec, &args, t) : NRG_OK;
    if (status == NRG_OK)
        status = nrg_channel_norm_forward(&spec, &args, 0, 1);
    return library_answer(status);
}

#ifndef NRG_NO_BACKWARD
static int backward(const channel_request *q, channel_tensors *t)
{
    nrg_channel_norm_backward_args args =
        nrg_channel_norm_backward_args_init(t->n, t->s, t->in[IN_X].data, t->in[IN_D_O].data, t->out[OUT_DX].data);
    args.y = t->in[IN_Y].data;
    args.w = t->in[IN_W].data;
    args.b = t->in[IN_B].data;
    args.running_mean = t->in[IN_RUNNING_MEAN].data;
    args.running_var = t->in[IN_RUNNING_VAR].data;
    args.dy = t->out[OUT_DY].data;
    args.dw = t->out[OUT_DW].data;
    args.db = t->out[OUT_DB].data;
    nrg_status status = nrg_channel_norm_backward_workspace(&q->spec, &args, &args.workspace_size);
    if (status == NRG_OK && args.workspace_size) {
        args.workspace = t->workspace = malloc(args.workspace_size);
        if (!args.workspace)
            return arrays_no_memory(args.workspace_size);
    }
    if (status == NRG_OK)
        status = nrg_channel_norm_backward(&q->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward_reduce(&q->spec, &args, 0, 1);
    return library_answer(status);
}
#endif

int channel_norm_compute(const channel_request *q, channel_tensors *t)
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
