/* The input files of nrg channel-norm, and what they have to be beside each other.
 *
 * SPDX-License-Identifier: MIT */
#include "../npy/arrays.h"
#include "channel_norm.h"
#include "../cli.h"

/* Splits x's shape into samples, channels and positions. */
static int split_shape(const channel_request *q, channel_tensors *t)
{
    const char *name = q->inputs[IN_X];
    const npy_shape *shape = &t->in[IN_X].shape;
    char text[NPY_SHAPE_ROOM];
    if (shape->ndim < 2) {
        complain("%s: shape %s: samples and channels are two axes at least", name, npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    int nhwc = q->spec.layout == NRG_NHWC;
    t->n = shape->dims[0];
    t->c = shape->dims[nhwc ? shape->ndim - 1 : 1];
    t->s = 1;
    for (int i = nhwc ? 1 : 2; i < shape->ndim - nhwc; i++)
        t->s *= shape->dims[i];
    if (!t->c || !t->s) {
        complain("%s: shape %s: its %s", name, npy_shape_text(text, shape),
                 t->c ? "channels have no elements" : "samples have no channels");
        return CLI_REFUSED;
    }
    if (q->over == OVER_GROUP && t->c % q->spec.groups) {
        complain("%s: %zu channels cannot be divided by --groups %zu", name, t->c, q->spec.groups);
        return CLI_REFUSED;
    }
    /* the library would leave them as they are, which here is nothing */
    if (!t->n && (q->train || (q->over == OVER_BATCH && (q->outputs[OUT_MEAN] || q->outputs[OUT_RSTD])))) {
        complain("%s: shape %s: without samples a channel has no statistics", name, npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    return CLI_DONE;
}

static int is_of_channels(int input) { return input >= IN_W && input <= IN_RUNNING_VAR; }

static int check_shape(const channel_request *q, const channel_tensors *t, int input)
{
    npy_shape wanted = t->in[IN_X].shape;
    if (is_of_channels(input)) {
        wanted.ndim = 1;
        wanted.dims[0] = t->c;
    }
    return array_check_shape(&t->in[input], q->inputs[input], &wanted, q->inputs[IN_X]);
}

/* y and do have the dtype of x, w and b may be f32 beside f16, the running statistics always are. */
static int check_dtype(const channel_request *q, const channel_tensors *t, int input)
{
    nrg_dtype dtype = t->in[input].dtype, x_dtype = t->in[IN_X].dtype;
    const char *name = q->inputs[input];
    if (input == IN_RUNNING_MEAN || input == IN_RUNNING_VAR) {
        if (dtype == NRG_F32)
            return CLI_DONE;
        complain("%s: '<f2'; running statistics are '<f4'", name);
    } else if (dtype == x_dtype || (is_of_channels(input) && dtype == NRG_F32)) {
        return CLI_DONE;
    } else {
        complain("%s: '%s' beside '%s' in %s; %s", name, npy_descr(dtype), npy_descr(x_dtype), q->inputs[IN_X],
                 is_of_channels(input) ? "w and b have the dtype of x or '<f4'" : "y and do have the dtype of x");
    }
    return CLI_REFUSED;
}

static int read_others(const channel_request *q, channel_tensors *t)
{
    for (int i = IN_X + 1; i < INPUTS; i++) {
        if (!q->inputs[i])
            continue;
        int status = npy_read(q->inputs[i], &t->in[i]);
        if (status == CLI_DONE)
            status = check_shape(q, t, i);
        if (status == CLI_DONE)
            status = check_dtype(q, t, i);
        if (status != CLI_DONE)
            return status;
    }
    return CLI_DONE;
}

int channel_norm_read(channel_request *q, channel_tensors *t)
{
    nrg_channel_norm_spec *s = &q->spec;
    int status = npy_read(q->inputs[IN_X], &t->in[IN_X]);
    if (status == CLI_DONE)
        status = split_shape(q, t);
    if (status == CLI_DONE)
        status = read_others(q, t);
    if (status == CLI_DONE)
        status = arrays_match_weights(&t->in[IN_W], &t->in[IN_B]);
    if (status != CLI_DONE)
        return status;
    s->channels = t->c;
    if (q->over == OVER_INSTANCE)
        s->groups = t->c;
    s->dtype = t->in[IN_X].dtype;
    s->w_dtype = t->in[IN_W].data ? t->in[IN_W].dtype : t->in[IN_B].dtype;
    return CLI_DONE;
}
