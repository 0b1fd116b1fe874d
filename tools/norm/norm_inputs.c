/* The input files of nrg norm, and what they have to be beside each other.
 *
 * SPDX-License-Identifier: MIT */
#include "../npy/arrays.h"
#include "../cli.h"
#include "norm.h"

/* What gives shape and dtype: x, or do where r stands for x. */
static int leader(const request *q) { return q->inputs[IN_X] ? IN_X : IN_D_O; }

/* Splits the shape into rows and dim. */
static int split_shape(const request *q, tensors *t)
{
    const char *name = q->inputs[leader(q)];
    const npy_array *array = &t->in[leader(q)];
    if (!array->shape.ndim) {
        complain("%s: a scalar (0 axes); at least one axis is needed", name);
        return CLI_REFUSED;
    }
    t->shape = array->shape;
    t->dim = t->shape.dims[t->shape.ndim - 1];
    if (!t->dim) {
        char text[NPY_SHAPE_ROOM];
        complain("%s: shape %s: its rows have no elements", name, npy_shape_text(text, &t->shape));
        return CLI_REFUSED;
    }
    if (q->spec.groups && t->dim % q->spec.groups) {
        complain("%s: rows of %zu elements cannot be divided by --groups %zu", name, t->dim, q->spec.groups);
        return CLI_REFUSED;
    }
    t->rows = array->count / t->dim;
    return CLI_DONE;
}

npy_shape norm_statistics_shape(const request *q, const tensors *t)
{
    npy_shape shape = t->shape;
    shape.ndim--;
    if (q->spec.groups > 1)
        shape.dims[shape.ndim++] = q->spec.groups;
    return shape;
}

static int check_shape(const request *q, const tensors *t, int input)
{
    npy_shape wanted = t->shape;
    if (input == IN_W || input == IN_B) {
        wanted.ndim = 1;
        wanted.dims[0] = t->dim;
    } else if (input == IN_MEAN) {
        wanted = norm_statistics_shape(q, t);
    }
    return array_check_shape(&t->in[input], q->inputs[input], &wanted, q->inputs[leader(q)]);
}

/* z and do have the dtype of x, dr_in that of r; the others may be f32 beside f16. */
static int check_dtype(const request *q, const tensors *t, int input)
{
    nrg_dtype dtype = t->in[input].dtype, first = t->in[leader(q)].dtype;
    nrg_dtype wanted = input == IN_DR_IN && q->spec.r_dtype ? q->spec.r_dtype : input == IN_MEAN ? NRG_F32 : first;
    if (dtype == wanted)
        return CLI_DONE;
    if (input == IN_MEAN)
        complain("%s: '<f2'; the mean is '<f4'", q->inputs[input]);
    else if (input == IN_DR_IN)
        complain("%s: '%s', but r is '%s', and dr_in has the dtype of r", q->inputs[input], npy_descr(dtype), npy_descr(wanted));
    else if (input == IN_Z || input == IN_D_O)
        complain("%s: '%s' beside '%s' in %s; z and do have the dtype of x", q->inputs[input], npy_descr(dtype), npy_descr(first),
                 q->inputs[leader(q)]);
    else if (dtype != NRG_F32)
        complain("%s: '<f2' beside '<f4' in %s; y, w, b and r have the dtype of x or '<f4'", q->inputs[input],
                 q->inputs[leader(q)]);
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

/* r before dr_in, which has its dtype; the leader has been read. */
static int read_others(request *q, tensors *t)
{
    static const int order[] = {IN_X, IN_Y, IN_Z, IN_W, IN_B, IN_D_O, IN_R, IN_DR_IN, IN_MEAN};
    for (int i = 0; i < INPUTS; i++) {
        int input = order[i], status = CLI_DONE;
        if (!q->inputs[input])
            continue;
        if (input != leader(q))
            status = npy_read(q->inputs[input], &t->in[input]);
        if (status == CLI_DONE)
            status = check_shape(q, t, input);
        if (status == CLI_DONE)
            status = check_dtype(q, t, input);
        if (status != CLI_DONE)
            return status;
        if (input == IN_R)
            q->spec.r_dtype = t->in[IN_R].dtype;
    }
    return CLI_DONE;
}

int norm_read(request *q, tensors *t)
{
    nrg_norm_spec *s = &q->spec;
    int status = npy_read(q->inputs[leader(q)], &t->in[leader(q)]);
    if (status == CLI_DONE)
        status = split_shape(q, t);
    if (status == CLI_DONE)
        status = read_others(q, t);
    if (status == CLI_DONE)
        status = arrays_match_weights(&t->in[IN_W], &t->in[IN_B]);
    if (status != CLI_DONE)
        return status;
    s->dim = t->dim;
    s->dtype = t->in[leader(q)].dtype;
    s->w_dtype = t->in[IN_W].data ? t->in[IN_W].dtype : t->in[IN_B].dtype;
    if (t->in[IN_Y].data)
        s->y_dtype = t->in[IN_Y].dtype;
    if (!s->y_dtype)
        s->y_dtype = s->dtype;
    if (!s->r_dtype)
        s->r_dtype = s->dtype;
    return CLI_DONE;
}
