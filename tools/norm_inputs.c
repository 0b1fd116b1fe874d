/* The input files of nrg norm, and what they have to be beside each other.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "norm.h"

/* What gives shape and dtype: x, or do where r stands for x. */
static int leader(const request *q) { return q->inputs[IN_X] ? IN_X : IN_D_O; }

static int refuse_shape(const request *q, const tensors *t, int input, const npy_shape *wanted)
{
    char has[NPY_SHAPE_ROOM], wants[NPY_SHAPE_ROOM];
    complain("%s: shape %s, but with %s it has to be %s", q->inputs[input], npy_shape_text(has, &t->in[input].shape),
             q->inputs[leader(q)], npy_shape_text(wants, wanted));
    return CLI_REFUSED;
}

static int same_shape(const npy_shape *a, const npy_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

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
    return same_shape(&t->in[input].shape, &wanted) ? CLI_DONE : refuse_shape(q, t, input, &wanted);
}

static const char *descr(nrg_dtype dtype) { return dtype == NRG_F32 ? "<f4" : "<f2"; }

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
        complain("%s: '%s', but r is '%s', and dr_in has the dtype of r", q->inputs[input], descr(dtype), descr(wanted));
    else if (input == IN_Z || input == IN_D_O)
        complain("%s: '%s' beside '%s' in %s; z and do have the dtype of x", q->inputs[input], descr(dtype), descr(first),
                 q->inputs[leader(q)]);
    else if (dtype != NRG_F32)
        complain("%s: '<f2' beside '<f4' in %s; y, w, b and r have the dtype of x or '<f4'", q->inputs[input],
                 q->inputs[leader(q)]);
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

static float widen(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    float magnitude = exponent == 31  ? mantissa ? NAN : INFINITY
                      : exponent == 0 ? ldexpf((float)mantissa, -24)
                                      : ldexpf((float)(mantissa + 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* w and b are of one dtype for the library; of two that differ, the 16-bit one is widened, which changes no value. */
static int match_weights(tensors *t)
{
    npy_array *w = &t->in[IN_W], *b = &t->in[IN_B];
    if (!w->data || !b->data || w->dtype == b->dtype)
        return CLI_DONE;
    npy_array *narrow = w->dtype == NRG_F16 ? w : b;
    const uint16_t *halves = narrow->data;
    float *wide = narrow->count <= SIZE_MAX / sizeof *wide ? malloc(narrow->count * sizeof *wide) : NULL;
    if (!wide) {
        complain("no memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < narrow->count; i++)
        wide[i] = widen(halves[i]);
    free(narrow->data);
    narrow->data = wide;
    narrow->dtype = NRG_F32;
    return CLI_DONE;
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
        status = match_weights(t);
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
