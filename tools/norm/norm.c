/* nrg norm: nrg_norm_forward and nrg_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"
#include "../quantize/formats.h"

typedef struct request {
    int backward;
    nrg_norm_spec spec; /* its dim and dtypes come from the files, but for r_dtype and y_dtype where they are asked for */
    size_t rows;
    nrg_store store;
    int gate; /* index of its word */
} request;

/* In the order of the library's enumerations. */
static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none", NULL};
static const char *const residual_modes[] = {"before", "after", NULL};
static const char *const dtypes[] = {"same", "f32", "f16", NULL};
static const char *const gates[] = {"pre", "post", NULL};

#define OPTIONS_DEF "norm/norm.def"
#define COMMAND "norm"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_norm
#include "../options.h"

/* ---- options ---- */

static int read_options(const file_call *call, request *q)
{
    nrg_norm_spec *s = &q->spec;
    if (!read_fields(call, q))
        return 0;
    if (s->eps_mode == NRG_EPS_NONE && !call->value[OPT_EPS])
        s->eps = 0;
    if (call->value[OPT_C])
        s->c_mode = NRG_C_GIVEN;
    if (call->value[OPT_GATE])
        s->gate = (nrg_gate)(q->gate + 1); /* "none" is not to be said */
    s->accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    return 1;
}

/* The library validates spec and operands before files are read. It reads no pointer, since there are no rows. */
static int ask_library(const file_call *call, const request *q)
{
    static float any;
    nrg_norm_spec spec = q->spec;
    nrg_norm_args args = nrg_norm_args_init(0, &any, file_in(call, IN_W) ? &any : NULL, spec.format ? NULL : &any);
    args.y = file_in(call, IN_Y) ? &any : NULL;
    args.z = file_in(call, IN_Z) ? &any : NULL;
    args.r = file_out(call, OUT_R) ? &any : NULL;
    args.packed = spec.format ? &any : NULL;
    args.scales = nrg_quant_has_scales(spec.format) ? &any : NULL;
    spec.dim = spec.groups * (spec.format ? 256 : 1); /* a block of any format */
    nrg_status status = nrg_norm_forward(&spec, &args, 0, 1);
    /* the dtypes are known only when x has been read */
    if (status == NRG_OK || status == NRG_ERR_DTYPE)
        return CLI_DONE;
    return file_answer(call, status);
}

static int ask(file_call *call)
{
    static const format_options quantized = {OUT_PACKED, OUT_SCALES, OUT_O, OPT_FORMAT, OPT_AWAY, OPT_BACKWARD};
    request *q = call->request;
    q->spec = call->value[OPT_LAYER] ? nrg_norm_spec_layer(NRG_F32, 1, 1e-5)
              : call->value[OPT_L2]  ? nrg_norm_spec_l2(NRG_F32, 1, 1e-12)
                                     : nrg_norm_spec_rms(NRG_F32, 1, 1e-6);
    if (!read_options(call, q) || formats_ask(call, &quantized, &q->spec.format, &q->spec.rounding) != CLI_DONE)
        return CLI_REFUSED;
    return ask_library(call, q);
}

/* ---- files ---- */

/* What gives shape and dtype: x, or do where r stands for x. */
static int leader(const file_call *call) { return file_in(call, IN_X) ? IN_X : IN_D_O; }

/* Splits the shape into rows and dim. */
static int split_shape(const file_call *call, request *q)
{
    const char *name = file_in(call, leader(call));
    const npy_array *array = &call->in[leader(call)];
    if (!array->shape.ndim) {
        complain("%s: expected at least one axis, got a scalar", name);
        return CLI_REFUSED;
    }
    const size_t dim = array->shape.dims[array->shape.ndim - 1];
    if (!dim) {
        char text[NPY_SHAPE_ROOM];
        complain("%s: expected a last axis with at least one element, got shape %s", name, npy_shape_text(text, &array->shape));
        return CLI_REFUSED;
    }
    if (q->spec.groups && dim % q->spec.groups) {
        complain("--groups: expected a divisor of the row length %zu of %s, got %zu", dim, name, q->spec.groups);
        return CLI_REFUSED;
    }
    q->spec.dim = dim;
    q->spec.dtype = array->dtype;
    q->rows = array->count / dim;
    return CLI_DONE;
}

/* Of mean and rstd: without the last axis; the groups of a row are an axis of their own. */
static npy_shape statistics_shape(const file_call *call, const request *q)
{
    npy_shape shape = call->in[leader(call)].shape;
    shape.ndim--;
    if (q->spec.groups > 1)
        shape.dims[shape.ndim++] = q->spec.groups;
    return shape;
}

/* z and do have the dtype of x, dr_in that of r; the others may be f32 beside f16. */
static int check_inputs(file_call *call, request *q)
{
    const int first = leader(call);
    const npy_shape *rows = &call->in[first].shape, line = file_shape(1, &q->spec.dim), statistics = statistics_shape(call, q);
    const struct {
        int input;
        const npy_shape *shape;
        file_dtype dtype;
    } inputs[] = {{IN_Y, rows, FILE_SAME_OR_F32},  {IN_Z, rows, FILE_SAME},   {IN_W, &line, FILE_SAME_OR_F32},
                  {IN_B, &line, FILE_SAME_OR_F32}, {IN_D_O, rows, FILE_SAME}, {IN_R, rows, FILE_SAME_OR_F32},
                  {IN_MEAN, &statistics, FILE_F32}};
    const npy_array *dr_in = &call->in[IN_DR_IN];
    int status = CLI_DONE;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0] && status == CLI_DONE; i++)
        status = file_check(call, inputs[i].input, inputs[i].shape, inputs[i].dtype, first);
    if (call->in[IN_R].data)
        q->spec.r_dtype = call->in[IN_R].dtype;
    const nrg_dtype r_dtype = q->spec.r_dtype ? q->spec.r_dtype : call->in[first].dtype;
    if (status == CLI_DONE && dr_in->data)
        status = array_check_shape(dr_in, file_in(call, IN_DR_IN), rows, file_in(call, first));
    return status == CLI_DONE && dr_in->data && dr_in->dtype != r_dtype ? file_wrong_dtype(call, IN_DR_IN, r_dtype, "r") : status;
}

static int read_spec(file_call *call, request *q)
{
    nrg_norm_spec *s = &q->spec;
    int status = split_shape(call, q);
    if (status == CLI_DONE)
        status = check_inputs(call, q);
    if (status == CLI_DONE)
        status = arrays_match_weights(&call->in[IN_W], &call->in[IN_B]);
    s->w_dtype = call->in[IN_W].data ? call->in[IN_W].dtype : call->in[IN_B].dtype;
    if (call->in[IN_Y].data)
        s->y_dtype = call->in[IN_Y].dtype;
    if (!s->y_dtype)
        s->y_dtype = s->dtype;
    if (!s->r_dtype)
        s->r_dtype = s->dtype;
    return status;
}

/* o takes x's place in memory, which the library allows. */
static int reserve(file_call *call, const request *q)
{
    const npy_shape shape = call->in[leader(call)].shape, statistics = statistics_shape(call, q),
                    line = file_shape(1, &q->spec.dim);
    if (file_out(call, OUT_O))
        file_reuse(call, OUT_O, IN_X);
    for (int i = OUT_O + 1; i < OUTPUTS; i++) {
        const int is_statistic = i == OUT_MEAN || i == OUT_RSTD, is_line = i == OUT_DW || i == OUT_DB;
        const npy_shape *wanted = is_statistic ? &statistics : is_line ? &line : &shape;
        const int is_bytes = i == OUT_PACKED || i == OUT_SCALES;
        const nrg_norm_spec *s = &q->spec;
        const nrg_dtype dtype = wanted != &shape ? NRG_F32 : i == OUT_R ? s->r_dtype : i == OUT_DY ? s->y_dtype : s->dtype;
        int status = file_out(call, i) && !is_bytes ? file_reserve(call, i, dtype, wanted) : CLI_DONE;
        if (status != CLI_DONE)
            return status;
    }
    return q->spec.format ? formats_reserve(call, OUT_PACKED, OUT_SCALES, q->spec.format, &shape, file_in(call, IN_X)) : CLI_DONE;
}

static int forward(const file_call *call, const request *q)
{
    const void *x = q->spec.format ? call->in[IN_X].data : call->out[OUT_O].data;
    nrg_norm_args args = nrg_norm_args_init(q->rows, x, call->in[IN_W].data, call->out[OUT_O].data);
    args.store = q->store;
    args.packed = call->out[OUT_PACKED].data;
    args.scales = call->out[OUT_SCALES].data;
    args.y = call->in[IN_Y].data;
    args.z = call->in[IN_Z].data;
    args.b = call->in[IN_B].data;
    args.r = call->out[OUT_R].data;
    args.mean = call->out[OUT_MEAN].data;
    args.rstd = call->out[OUT_RSTD].data;
    return file_answer(call, nrg_norm_forward(&q->spec, &args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const request *q)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(q->rows, call->in[IN_X].data, call->in[IN_W].data,
                                                              call->in[IN_D_O].data, call->out[OUT_DX].data);
    args.store = q->store;
    args.dr_in = call->in[IN_DR_IN].data;
    args.y = call->in[IN_Y].data;
    args.r = call->in[IN_R].data;
    args.z = call->in[IN_Z].data;
    args.b = call->in[IN_B].data;
    args.mean = call->in[IN_MEAN].data;
    args.dy = call->out[OUT_DY].data;
    args.dz = call->out[OUT_DZ].data;
    args.dw = call->out[OUT_DW].data;
    args.db = call->out[OUT_DB].data;
    nrg_status status = nrg_norm_backward_workspace(&q->spec, &args, &args.workspace_size);
    int taken = file_workspace(call, status, args.workspace_size, &args.workspace);
    if (taken != CLI_DONE)
        return taken;
    status = nrg_norm_backward(&q->spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_norm_backward_reduce(&q->spec, &args, 0, 1);
    return file_answer(call, status);
}
#endif

static int compute(file_call *call)
{
    request *q = call->request;
    int status = read_spec(call, q);
    if (status == CLI_DONE)
        status = reserve(call, q);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (q->backward)
        return backward(call, q);
#endif
    return forward(call, q);
}
