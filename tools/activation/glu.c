/* nrg glu: nrg_glu_forward and nrg_glu_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../quantize/formats.h"

enum { TWO_TENSORS = -1, HALVES, SWAPPED, PAIRS };
static const char *const row_kinds[] = {"halves", "swapped", "pairs", NULL};

typedef struct request {
    nrg_glu_args args;
    int rows; /* TWO_TENSORS to PAIRS */
} request;

#define OPTIONS_DEF "activation/glu.def"
#define COMMAND "glu"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_glu
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    const int g =
        call->value[OPT_ACTIVATION] ? cli_word("activation", call->value[OPT_ACTIVATION], cli_activations) : NRG_ACT_SILU;
    if (g < 0)
        return CLI_REFUSED;
    q->args = nrg_glu_args_init((nrg_activation)g, NRG_F32, 0, 256, NULL, NULL, NULL); /* 256: a block of any format */
    q->rows = TWO_TENSORS;
    if (!read_fields(call, q) || formats_ask(call, &q->args.format, &q->args.rounding) != CLI_DONE)
        return CLI_REFUSED;
    if (q->rows == TWO_TENSORS)
        call->operand[IN_X] = "A";
    call->function = call->value[OPT_BACKWARD] ? FILE_BACKWARD(glu_backward) : &invoke_glu_forward;
    call->part[0] = &q->args;
    return file_ask(call);
}

/* Halves of x are operands by themselves. */
static void halve(nrg_glu_args *a, int is_swapped)
{
    const size_t half = a->dim * nrg_dtype_size(a->dtype), at_a = is_swapped ? half : 0, at_b = half - at_a;
    const char *x = a->x;
    char *dx = a->dx;
    a->a = x + at_a;
    a->b = x + at_b;
    a->a_stride[0] = a->b_stride[0] = 2 * half;
    if (dx) {
        a->da = dx + at_a;
        a->db = dx + at_b;
        a->da_stride[0] = a->db_stride[0] = 2 * half;
    }
    a->x = a->dx = NULL;
}

static int compute(file_call *call)
{
    request *q = call->request;
    nrg_glu_args *a = &q->args;
    const npy_array *x = &call->in[IN_X];
    const int both = q->rows != TWO_TENSORS;
    npy_shape shape = x->shape;
    int status = file_rows(call, IN_X, &a->rows, &a->dim);
    if (status != CLI_DONE)
        return status;
    if (both && a->dim % 2)
        return file_wrong(call, IN_X, "a last axis with an even number of elements");
    shape.dims[shape.ndim - 1] = a->dim /= both ? 2 : 1;
    a->dtype = x->dtype;
    if (a->format)
        status = formats_reserve(call, a->format, &shape, file_in(call, IN_X));
    if (status == CLI_DONE)
        status = file_bind(call, IN_X);
    if (status == CLI_DONE && (q->rows == HALVES || q->rows == SWAPPED))
        halve(a, q->rows == SWAPPED);
    return status == CLI_DONE ? file_invoke(call) : status;
}
