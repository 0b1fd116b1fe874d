/* nrg channel-norm: nrg_channel_norm_forward and nrg_channel_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../library.h"
#include "../npy/arrays.h"

/* What a set is, in the words of --over. */
typedef enum channel_over { OVER_BATCH, OVER_GROUP, OVER_INSTANCE, OVER_LAYER } channel_over;

typedef struct channel_request {
    int backward, train, fold;
    channel_over over;
    nrg_store store;
    size_t batches;             /* that the running statistics have seen */
    nrg_channel_norm_spec spec; /* its channels and dtypes come from the files, and so do the groups of instance norm */
    size_t n, c, s;             /* samples, channels, positions */
} channel_request;

/* In the order of their enumerations. */
static const char *const overs[] = {"batch", "group", "instance", "layer", NULL};
static const char *const layouts[] = {"nchw", "nhwc", NULL};

#define OPTIONS_DEF "channel_norm/channel_norm.def"
#define COMMAND "channel-norm"
#define OPERAND IN_X
#define REQUEST channel_request
#define RUN command_channel_norm
#include "../options.h"

/* ---- options ---- */

/* The library validates the numbers before files are read. It reads no pointer, since there are no samples. */
static int ask_library(const file_call *call, const channel_request *q)
{
    static float any;
    nrg_channel_norm_spec spec = q->spec;
    nrg_channel_norm_args args = nrg_channel_norm_args_init(0, 1, &any, NULL, NULL, &any);
    spec.source = NRG_STATISTICS_COMPUTE;
    spec.channels = spec.groups;
    if (spec.cumulative) /* requires running statistics */
        args.running_mean_in = args.running_var_in = args.running_mean = args.running_var = &any;
    return file_answer(call, nrg_channel_norm_forward(&spec, &args, 0, 1));
}

static int ask(file_call *call)
{
    channel_request *q = call->request;
    q->spec = nrg_channel_norm_spec_batch(NRG_F32, 1, 1e-5);
    q->spec.centred = !call->value[OPT_RMS];
    q->spec.accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    if (!read_fields(call, q))
        return CLI_REFUSED;
    if (file_in(call, IN_RUNNING_MEAN) && !q->train)
        q->spec.source = NRG_STATISTICS_RUNNING;
    q->spec.over = q->over == OVER_BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    if (q->over != OVER_BATCH && q->over != OVER_INSTANCE && (q->train || file_in(call, IN_RUNNING_MEAN)))
        complain("running statistics need --over batch or --over instance, got --over %s", overs[q->over]);
    else if (!(q->spec.momentum >= 0 && q->spec.momentum <= 1))
        complain("--momentum: expected a number from 0 to 1, got '%s'", call->value[OPT_MOMENTUM]);
    else if (q->spec.segment > 4096)
        complain("--segment: expected at most 4096, got %zu", q->spec.segment);
    else
        return ask_library(call, q);
    return CLI_REFUSED;
}

/* ---- files ---- */

/* Splits x's shape into samples, channels and positions. */
static int split_shape(const file_call *call, channel_request *q)
{
    const char *name = file_in(call, IN_X);
    const npy_shape *shape = &call->in[IN_X].shape;
    char text[NPY_SHAPE_ROOM];
    if (shape->ndim < 2) {
        complain("%s: expected at least two axes (samples, channels), got shape %s", name, npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    int nhwc = q->spec.layout == NRG_LAYOUT_NHWC;
    q->n = shape->dims[0];
    q->c = shape->dims[nhwc ? shape->ndim - 1 : 1];
    q->s = 1;
    for (int i = nhwc ? 1 : 2; i < shape->ndim - nhwc; i++)
        q->s *= shape->dims[i];
    if (!q->c || !q->s) {
        complain("%s: expected at least one %s, got shape %s", name, q->c ? "position" : "channel", npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    if (q->over == OVER_GROUP && q->c % q->spec.groups) {
        complain("--groups: expected a divisor of the %zu channels of %s, got %zu", q->c, name, q->spec.groups);
        return CLI_REFUSED;
    }
    /* the library would leave them as they are, which here is nothing */
    if (!q->n && (q->train || (q->over == OVER_BATCH && (file_out(call, OUT_MEAN) || file_out(call, OUT_RSTD))))) {
        complain("%s: expected at least one sample to compute statistics, got shape %s", name, npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    return CLI_DONE;
}

static int read_spec(file_call *call, channel_request *q)
{
    nrg_channel_norm_spec *s = &q->spec;
    const npy_shape *rows = &call->in[IN_X].shape;
    int status = split_shape(call, q);
    const npy_shape line = file_shape(1, &q->c);
    if (status == CLI_DONE)
        status = file_check(call, IN_Y, rows, FILE_SAME, IN_X);
    if (status == CLI_DONE)
        status = file_check_weights(call, IN_W, IN_B, q->c, IN_X);
    if (status == CLI_DONE)
        status = file_check(call, IN_RUNNING_MEAN, &line, FILE_F32, IN_X);
    if (status == CLI_DONE)
        status = file_check(call, IN_RUNNING_VAR, &line, FILE_F32, IN_X);
    if (status == CLI_DONE)
        status = file_check(call, IN_D_O, rows, FILE_SAME, IN_X);
    s->channels = q->c;
    if (q->over == OVER_INSTANCE)
        s->groups = q->c;
    s->dtype = call->in[IN_X].dtype;
    s->w_dtype = call->in[IN_W].data ? call->in[IN_W].dtype : call->in[IN_B].dtype;
    return status;
}

/* The statistics of batch norm are those of channels, of layer norm those of samples; group and instance norm have both axes. */
static npy_shape statistics_shape(const channel_request *q)
{
    const size_t sets[2] = {q->n, q->spec.groups};
    return q->over == OVER_BATCH ? file_shape(1, &q->c) : file_shape(q->over == OVER_LAYER ? 1 : 2, sets);
}

/* Running statistics that are to be updated start as those that were read; without these, as a new batch norm has them. */
static void start_running(file_call *call, size_t channels, int from, int to, float first)
{
    float *running = call->out[to].data;
    const float *before = call->in[from].data;
    for (size_t i = 0; i < channels; i++)
        running[i] = before ? before[i] : first;
}

static int is_wanted(const file_call *call, const channel_request *q, int which)
{
    return file_out(call, which) || (q->fold && (which == OUT_SCALE || which == OUT_SHIFT));
}

/* o takes x's place in memory, which the library allows. */
static int reserve(file_call *call, const channel_request *q)
{
    const npy_shape shape = call->in[IN_X].shape, statistics = statistics_shape(q), line = file_shape(1, &q->c);
    if (file_out(call, OUT_O))
        file_reuse(call, OUT_O, IN_X);
    for (int i = OUT_O + 1; i < OUTPUTS; i++) {
        const int is_tensor = i == OUT_DX || i == OUT_DY, is_statistic = i == OUT_MEAN || i == OUT_RSTD;
        const npy_shape *wanted = is_tensor ? &shape : is_statistic ? &statistics : &line;
        int status = is_wanted(call, q, i) ? file_reserve(call, i, is_tensor ? q->spec.dtype : NRG_F32, wanted) : CLI_DONE;
        if (status != CLI_DONE)
            return status;
    }
    if (q->train) {
        start_running(call, q->c, IN_RUNNING_MEAN, OUT_RUNNING_MEAN, 0);
        start_running(call, q->c, IN_RUNNING_VAR, OUT_RUNNING_VAR, 1);
    }
    return CLI_DONE;
}

static nrg_channel_norm_args forward_args(const file_call *call, const channel_request *q)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(q->n, q->s, call->out[OUT_O].data, call->in[IN_W].data,
                                                            call->in[IN_B].data, call->out[OUT_O].data);
    args.y = call->in[IN_Y].data;
    args.store = q->store;
    args.mean = call->out[OUT_MEAN].data;
    args.rstd = call->out[OUT_RSTD].data;
    args.running_mean = call->out[OUT_RUNNING_MEAN].data;
    args.running_var = call->out[OUT_RUNNING_VAR].data;
    args.running_mean_in = q->train ? args.running_mean : call->in[IN_RUNNING_MEAN].data;
    args.running_var_in = q->train ? args.running_var : call->in[IN_RUNNING_VAR].data;
    args.batches = q->batches;
    return args;
}

/* Scale and shift, once; then these instead of statistics, w and b. */
static nrg_status fold(nrg_channel_norm_spec *spec, nrg_channel_norm_args *args, const file_call *call)
{
    float *scale = call->out[OUT_SCALE].data, *shift = call->out[OUT_SHIFT].data;
    nrg_status status = nrg_channel_norm_fold(spec, args, scale, shift);
    spec->source = NRG_STATISTICS_FOLDED;
    spec->w_dtype = NRG_F32;
    args->w = scale;
    args->b = shift;
    args->running_mean_in = args->running_var_in = NULL;
    return status;
}

static int forward(const file_call *call, const channel_request *q)
{
    nrg_channel_norm_spec spec = q->spec;
    nrg_channel_norm_args args = forward_args(call, q);
    nrg_status status = q->fold ? fold(&spec, &args, call) : NRG_OK;
    if (status == NRG_OK)
        status = nrg_channel_norm_forward(&spec, &args, 0, 1);
    return file_answer(call, status);
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const channel_request *q)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(
        q->n, q->s, call->in[IN_X].data, call->in[IN_W].data, call->in[IN_D_O].data, call->out[OUT_DX].data);
    if (q->spec.activation) { /* otherwise the gradients do not depend on them */
        args.b = call->in[IN_B].data;
        args.y = call->in[IN_Y].data;
    }
    args.store = q->store;
    args.running_mean = call->in[IN_RUNNING_MEAN].data;
    args.running_var = call->in[IN_RUNNING_VAR].data;
    args.dy = call->out[OUT_DY].data;
    args.dw = call->out[OUT_DW].data;
    args.db = call->out[OUT_DB].data;
    nrg_status status = nrg_channel_norm_backward_workspace(&q->spec, &args, &args.workspace_size);
    int taken = file_workspace(call, status, args.workspace_size, &args.workspace);
    if (taken != CLI_DONE)
        return taken;
    return file_answer(call, nrg_channel_norm_backward(&q->spec, &args, 0, 1));
}
#endif

static int compute(file_call *call)
{
    channel_request *q = call->request;
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
