/* nrg channel-norm: nrg_channel_norm_forward and nrg_channel_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

/* What a set is, in the words of --over. */
typedef enum channel_over { OVER_BATCH, OVER_GROUP, OVER_INSTANCE, OVER_LAYER } channel_over;

typedef struct channel_request {
    int is_backward, train, fold;
    channel_over over;
    nrg_store store;
    size_t batches;             /* that the running statistics have seen */
    nrg_channel_norm_spec spec; /* its channels and dtypes come from the files, and so do the groups of instance norm */
    union {
        nrg_channel_norm_args forward;
        nrg_channel_norm_backward_args backward;
    } args; /* which begin alike */
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

static int ask(file_call *call)
{
    channel_request *q = call->request;
    nrg_channel_norm_spec *s = &q->spec;
    *s = nrg_channel_norm_spec_batch(NRG_F32, 1, 1e-5);
    s->centred = !call->value[OPT_RMS];
    s->accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    if (!read_fields(call, q))
        return CLI_REFUSED;
    s->source = file_in(call, IN_RUNNING_MEAN) && !q->train ? NRG_STATISTICS_RUNNING : NRG_STATISTICS_COMPUTE;
    s->over = q->over == OVER_BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    s->channels = s->groups;
    call->function = q->is_backward ? FILE_BACKWARD(channel_norm_backward) : &invoke_channel_norm_forward;
    call->part[0] = s;
    call->part[1] = &q->args;
    if (q->is_backward) {
        q->args.backward = nrg_channel_norm_backward_args_init(0, 1, NULL, NULL, NULL, NULL);
        q->args.backward.store = q->store;
        if (!s->activation) /* then the gradients do not depend on them */
            call->operand[IN_B] = call->operand[IN_Y] = "";
    } else {
        const int starts = q->train && !file_in(call, IN_RUNNING_MEAN);
        nrg_channel_norm_args *a = &q->args.forward;
        *a = nrg_channel_norm_args_init(0, 1, NULL, NULL, NULL, NULL);
        a->store = q->store;
        a->batches = q->batches;
        a->running_mean_in = a->running_var_in = starts ? NRG_UNALLOCATED : NULL;
        call->operand[IN_RUNNING_MEAN] = starts ? "" : "RUNNING_MEAN_IN";
        call->operand[IN_RUNNING_VAR] = starts ? "" : "RUNNING_VAR_IN";
        call->operand[INPUTS + OUT_SCALE] = call->operand[INPUTS + OUT_SHIFT] = "";
    }
    if (q->over != OVER_BATCH && q->over != OVER_INSTANCE && (q->train || file_in(call, IN_RUNNING_MEAN)))
        return cli_refuse("running statistics need --over batch or --over instance, got --over %s", overs[q->over]);
    if (s->segment > 4096)
        return cli_refuse("--segment: expected at most 4096, got %zu", s->segment);
    return file_ask(call);
}

/* Splits x's shape into samples, channels and positions. */
static int split_shape(const file_call *call, channel_request *q)
{
    const npy_shape *shape = &call->in[IN_X].shape;
    const int nhwc = q->spec.layout == NRG_LAYOUT_NHWC;
    size_t positions = 1;
    if (shape->ndim < 2)
        return file_wrong(call, IN_X, "at least two axes (samples, channels)");
    const size_t n = shape->dims[0], c = shape->dims[nhwc ? shape->ndim - 1 : 1];
    for (int i = nhwc ? 1 : 2; i < shape->ndim - nhwc; i++)
        positions *= shape->dims[i];
    q->args.forward.samples = n;
    q->args.forward.positions = positions;
    q->spec.channels = c;
    if (q->over == OVER_INSTANCE)
        q->spec.groups = c;
    if (!c || !positions)
        return file_wrong(call, IN_X, "at least one %s", c ? "position" : "channel");
    if (q->over == OVER_GROUP && c % q->spec.groups)
        return cli_refuse("--groups: expected a divisor of the %zu channels of %s, got %zu", c, file_in(call, IN_X),
                          q->spec.groups);
    /* the library would leave them as they are, which here is nothing */
    if (!n && (q->train || (q->over == OVER_BATCH && (file_out(call, OUT_MEAN) || file_out(call, OUT_RSTD)))))
        return file_wrong(call, IN_X, "at least one sample to compute statistics");
    return CLI_DONE;
}

/* Running statistics that no file has start as a new batch norm has them. */
static void start_running(channel_request *q)
{
    nrg_channel_norm_args *a = &q->args.forward;
    for (size_t i = 0; i < q->spec.channels; i++) {
        a->running_mean[i] = 0;
        a->running_var[i] = 1;
    }
    a->running_mean_in = a->running_mean;
    a->running_var_in = a->running_var;
}

/* Scale and shift, once; then these instead of statistics, w and b. */
static int fold(file_call *call, channel_request *q, const npy_shape *line)
{
    nrg_channel_norm_args *a = &q->args.forward;
    int status = file_reserve(call, OUT_SCALE, NRG_F32, line);
    if (status == CLI_DONE)
        status = file_reserve(call, OUT_SHIFT, NRG_F32, line);
    if (status == CLI_DONE)
        status = file_answer(call, nrg_channel_norm_fold(&q->spec, a, call->out[OUT_SCALE].data, call->out[OUT_SHIFT].data));
    q->spec.source = NRG_STATISTICS_FOLDED;
    q->spec.w_dtype = NRG_F32;
    a->w = call->out[OUT_SCALE].data;
    a->b = call->out[OUT_SHIFT].data;
    a->running_mean_in = a->running_var_in = NULL;
    return status;
}

/* o takes x's place in memory, which the library allows. */
static int compute(file_call *call)
{
    channel_request *q = call->request;
    int status = split_shape(call, q);
    if (status != CLI_DONE)
        return status;
    /* the statistics of batch norm are those of channels, of layer norm those of samples; the others have both axes */
    const size_t sets[2] = {q->args.forward.samples, q->spec.groups};
    const npy_shape line = file_shape(1, &q->spec.channels),
                    statistics = q->over == OVER_BATCH ? line : file_shape(q->over == OVER_LAYER ? 1 : 2, sets);
    for (int i = IN_W; i < IN_D_O; i++)
        call->shape[i] = &line;
    call->shape[INPUTS + OUT_MEAN] = call->shape[INPUTS + OUT_RSTD] = &statistics;
    q->spec.dtype = call->in[IN_X].dtype;
    if (file_out(call, OUT_O))
        file_reuse(call, OUT_O, IN_X);
    status = file_bind(call, IN_X);
    if (status == CLI_DONE && q->fold)
        status = fold(call, q, &line);
    if (status == CLI_DONE && q->train && !file_in(call, IN_RUNNING_MEAN))
        start_running(q);
    return status == CLI_DONE ? file_invoke(call) : status;
}
