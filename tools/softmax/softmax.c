/* nrg softmax: nrg_softmax_forward and nrg_softmax_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"

#define OPTIONS_DEF "softmax/softmax.def"
#define COMMAND "softmax"
#define OPERAND IN_X
#define REQUEST nrg_softmax_args
#define RUN command_softmax
#include "../options.h"

static int ask(file_call *call)
{
    nrg_softmax_args *a = call->request;
    long long first = 0;
    *a = nrg_softmax_args_init(NRG_F32, 0, 0, 0, 0, NULL, NULL);
    const char *text = call->value[OPT_FIRST_POSITION];
    if (!read_fields(call, a) ||
        (text && !cli_integer("first-position", text, -((long long)1 << 60), (long long)1 << 60, &first)))
        return CLI_REFUSED;
    a->first_position = first;
    const nrg_status status = nrg_softmax_forward(a, 0, 1);
    return file_answer(call, status);
}

/* Axes from the last to the first; those that there are not are 1. */
static void read_shape(const npy_shape *shape, nrg_softmax_args *a)
{
    size_t *const sizes[] = {&a->keys, &a->queries, &a->heads, &a->batch};
    size_t axis = (size_t)shape->ndim;
    for (int i = 0; i < 4; i++)
        *sizes[i] = axis ? shape->dims[--axis] : 1;
    while (axis)
        a->batch *= shape->dims[--axis];
}

static int compute(file_call *call)
{
    nrg_softmax_args *a = call->request;
    const npy_array *x = &call->in[IN_X], *mask = &call->in[IN_MASK];
    read_shape(&x->shape, a);
    if (!call->value[OPT_FIRST_POSITION])
        a->first_position = (int64_t)a->keys - (int64_t)a->queries;
    a->dtype = x->dtype;
    a->mask_dtype = mask->dtype;
    a->mask_repeat = NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3;
    if (mask->data && (mask->shape.ndim != 2 || mask->shape.dims[0] != a->queries || mask->shape.dims[1] != a->keys)) {
        char text[NPY_SHAPE_ROOM];
        complain("%s: expected shape (%zu, %zu), queries x keys, got %s", file_in(call, IN_MASK), a->queries, a->keys,
                 npy_shape_text(text, &mask->shape));
        return CLI_REFUSED;
    }
    int status = file_check(call, IN_D_O, &x->shape, FILE_SAME, IN_X);
    for (int i = 0; i < OUTPUTS && status == CLI_DONE; i++)
        if (file_out(call, i))
            status = file_reserve(call, i, x->dtype, &x->shape);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (call->value[OPT_BACKWARD]) {
        nrg_softmax_backward_args back = nrg_softmax_backward_args_init(a->dtype, a->batch, a->heads, a->queries, a->keys,
                                                                        x->data, call->in[IN_D_O].data, call->out[OUT_DX].data);
        back.log = a->log;
        back.scale = a->scale;
        back.causal = a->causal;
        back.window = a->window;
        back.first_position = a->first_position;
        return file_answer(call, nrg_softmax_backward(&back, 0, 1));
    }
#endif
    a->x = x->data;
    a->mask = mask->data;
    a->o = call->out[OUT_O].data;
    return file_answer(call, nrg_softmax_forward(a, 0, 1));
}
