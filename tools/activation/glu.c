/* nrg glu: nrg_glu_forward and nrg_glu_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"
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

/* Checks which files the options need and allow. */
static int check_files(const file_call *call, const request *q)
{
    const int backward = call->value[OPT_BACKWARD] != NULL, two = q->rows == TWO_TENSORS;
    const struct {
        int option, wanted;
        const char *needed, *unusable; /* when */
    } files[] = {
        {IN_X, 1, "", ""},
        {IN_B, two, " without --rows", " with --rows"},
        {IN_D_O, backward, " with --backward", " without --backward"},
        {INPUTS + OUT_O, !backward && !q->args.format, "", " with --backward"},
        {INPUTS + OUT_DA, backward && two, " with --backward", backward ? " with --rows" : " without --backward"},
        {INPUTS + OUT_DB, backward && two, " with --backward", backward ? " with --rows" : " without --backward"},
        {INPUTS + OUT_DX, backward && !two, " with --backward and --rows", backward ? " without --rows" : " without --backward"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (!call->value[files[i].option] != !files[i].wanted)
            return files[i].wanted ? file_missing(call, files[i].option, files[i].needed)
                                   : file_unusable(call, files[i].option, files[i].unusable);
    return CLI_DONE;
}

static int ask(file_call *call)
{
    static const format_options quantized = {OUT_PACKED, OUT_SCALES, OUT_O, OPT_FORMAT, OPT_AWAY, OPT_BACKWARD};
    request *q = call->request;
    nrg_quant_format format = NRG_QUANT_NONE;
    nrg_quant_rounding rounding = NRG_QUANT_ROUND_TO_EVEN;
    const int g =
        call->value[OPT_ACTIVATION] ? cli_word("activation", call->value[OPT_ACTIVATION], library_activations) : NRG_ACT_SILU;
    if (g < 0)
        return CLI_REFUSED;
    q->args = nrg_glu_args_init((nrg_activation)g, NRG_F32, 0, 1, NULL, NULL, NULL);
    q->rows = TWO_TENSORS;
    if (!read_fields(call, q) || formats_ask(call, &quantized, &format, &rounding) != CLI_DONE)
        return CLI_REFUSED;
    /* the library validates the numbers before files are read; it reads no pointer, since there are no rows */
    const nrg_status status = nrg_glu_forward(&q->args, 0, 1);
    q->args.format = format;
    q->args.rounding = rounding;
    return status == NRG_OK ? check_files(call, q) : file_answer(call, status);
}

/* Rows of a and of o, from the shape of a or x. */
static int read_shape(const file_call *call, request *q, npy_shape *shape)
{
    const npy_array *x = &call->in[IN_X];
    char text[NPY_SHAPE_ROOM];
    *shape = x->shape;
    size_t *last = shape->ndim ? &shape->dims[shape->ndim - 1] : NULL;
    const int both = q->rows != TWO_TENSORS;
    if (!last || !*last || (both && *last % 2)) {
        complain("%s: expected a last axis with %s, got shape %s", file_in(call, IN_X),
                 both ? "an even number of elements" : "at least one element", npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    q->args.rows = x->count / *last;
    *last /= both ? 2 : 1;
    q->args.dim = *last;
    q->args.dtype = x->dtype;
    return CLI_DONE;
}

/* Where a and b are in x, and da and db in dx. */
static void bind(const file_call *call, request *q)
{
    nrg_glu_args *a = &q->args;
    const char *x = call->in[IN_X].data;
    char *dx = call->out[OUT_DX].data;
    const size_t half = a->dim * nrg_dtype_size(a->dtype), at_a = q->rows == SWAPPED ? half : 0, at_b = half - at_a;
    a->d_o = call->in[IN_D_O].data;
    a->o = call->out[OUT_O].data;
    a->packed = call->out[OUT_PACKED].data;
    a->scales = call->out[OUT_SCALES].data;
    if (q->rows == PAIRS) {
        a->x = x;
        a->dx = dx;
    } else if (q->rows == TWO_TENSORS) {
        a->a = x;
        a->b = call->in[IN_B].data;
        a->da = call->out[OUT_DA].data;
        a->db = call->out[OUT_DB].data;
    } else {
        a->a = x + at_a;
        a->b = x + at_b;
        a->a_stride[0] = a->b_stride[0] = 2 * half;
        if (dx) {
            a->da = dx + at_a;
            a->db = dx + at_b;
            a->da_stride[0] = a->db_stride[0] = 2 * half;
        }
    }
}

static int compute(file_call *call)
{
    request *q = call->request;
    npy_shape shape;
    int status = read_shape(call, q, &shape);
    if (status == CLI_DONE)
        status = file_check(call, IN_B, &shape, FILE_SAME, IN_X);
    if (status == CLI_DONE)
        status = file_check(call, IN_D_O, &shape, FILE_SAME, IN_X);
    for (int i = 0; i < OUTPUTS && status == CLI_DONE; i++)
        if (file_out(call, i) && i != OUT_PACKED && i != OUT_SCALES)
            status = file_reserve(call, i, q->args.dtype, i == OUT_DX ? &call->in[IN_X].shape : &shape);
    if (status == CLI_DONE && q->args.format)
        status = formats_reserve(call, OUT_PACKED, OUT_SCALES, q->args.format, &shape, file_in(call, IN_X));
    if (status != CLI_DONE)
        return status;
    bind(call, q);
#ifndef NRG_NO_BACKWARD
    if (q->args.d_o)
        return file_answer(call, nrg_glu_backward(&q->args, 0, 1));
#endif
    return file_answer(call, nrg_glu_forward(&q->args, 0, 1));
}
