/* The options of nrg channel-norm.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "channel_norm.h"
#include "../commands.h"
#include "../library.h"

static const char channel_norm_help[] =
    "usage: nrg channel-norm [OPTION]... X.npy --o O.npy\n"
    "       nrg channel-norm --backward [OPTION]... X.npy --do DO.npy --dx DX.npy\n"
    "\n"
    "Normalizes a NumPy array of n samples with c channels. Its shape is (n, c, ...), or (n, ..., c) with\n"
    "--layout nhwc. The other axes count positions; there may be none.\n"
    "  o = g(((x - mean) / sqrt(variance + eps)) * w + b + y)\n"
    "Each set of elements has one mean and variance (--over). Each channel has one w and b.\n"
    "With --backward, computes the gradients of the inputs from do, the gradient of o.\n"
    "\n"
    "example: GroupNorm with 32 groups, then SiLU\n"
    "  nrg channel-norm --over group --groups 32 --act silu x.npy --w w.npy --b b.npy --o o.npy\n"
    "\n"
    "inputs\n"
    "  X.npy, -x, --x FILE   x: '<f4' or '<f2', in C order, at least two axes\n"
    "  --y FILE              residual, with the shape and dtype of x\n"
    "  --w FILE, --b FILE    weight and bias, of shape (c,), each of the dtype of x or '<f4'\n"
    "  --running-mean FILE, --running-var FILE\n"
    "                        running statistics, '<f4', of shape (c,), with --over batch or instance;\n"
    "                        used instead of the statistics of x. With --train nrg updates them, and\n"
    "                        without these files starts from 0 and 1\n"
    "  --do FILE             with --backward: gradient of o, with the shape and dtype of x (required)\n"
    "outputs\n"
    "  -o, --o FILE          the result, with the shape and dtype of x (required)\n"
    "  --mean FILE           the mean of each set as '<f4' (0 for --rms), of shape (c,) for batch, (n, G) for\n"
    "                        group, (n, c) for instance and (n,) for layer\n"
    "  --rstd FILE           1/sqrt(variance + eps) of each set, with the shape of the mean\n"
    "  --running-mean-out FILE, --running-var-out FILE\n"
    "                        with --train: the updated running statistics\n"
    "  --scale FILE, --shift FILE\n"
    "                        with --fold: scale and shift, '<f4', of shape (c,)\n"
    "outputs of --backward: at least one\n"
    "  --dx, --dy FILE       gradients of x and y, with the shape and dtype of x\n"
    "  --dw, --db FILE       gradients of w and b, as '<f4', of shape (c,)\n"
    "                        dy, dw and db do not require y, w or b\n"
    "options\n"
    "  --over SETS           the sets that are normalized:\n"
    "                        batch:    a channel of all samples (default)\n"
    "                        group:    c/G channels of a sample\n"
    "                        instance: a channel of a sample\n"
    "                        layer:    a sample\n"
    "  --groups G            with --over group: the number of groups, a divisor of c\n"
    "  --layout LAYOUT       nchw (default) or nhwc\n"
    "  --rms                 do not subtract the mean, from x or from the variance\n"
    "  --eps E               default 1e-5\n"
    "  --act G               g: identity (default), sigmoid, silu, relu, relu2, tanh, gelu, gelu_tanh,\n"
    "                        softplus, gelu_quick, hard_swish, hard_sigmoid, elu, leaky_relu, mish, exp,\n"
    "                        expm1 or softsign\n"
    "  --train               update the running statistics with the statistics of x. The variance is\n"
    "                        unbiased; instance norm averages over the samples\n"
    "  --momentum M          with --train: running = (1 - M) * running + M * of x; default 0.1\n"
    "  --cumulative          with --train: M is 1/(K + 1), so that running is the average of all batches\n"
    "  --batches K           with --cumulative: the number of earlier batches; default 0\n"
    "  --fold                inference with o = g(x * scale + shift + y), where scale and shift come from\n"
    "                        the running statistics, w and b\n"
    "  --segment L           add x up in segments of about L elements, at most 4096 (default); changes\n"
    "                        the last bits\n"
    "  --exact               exact grade: within 1 ulp in f32; default: fast grade, 3 ulp on the stress set\n"
    "  --store KIND          auto (default), keep or stream: how the kernel stores; changes no bit\n"
    "  --isa NAME            scalar, avx2, avx512, neon or generic; default: see nrg info\n";

/* Files first, in the order of the two enumerations in channel_norm.h. */
enum {
    OPT_BACKWARD = INPUTS + OUTPUTS,
    OPT_OVER,
    OPT_GROUPS,
    OPT_LAYOUT,
    OPT_RMS,
    OPT_EPS,
    OPT_ACT,
    OPT_TRAIN,
    OPT_MOMENTUM,
    OPT_CUMULATIVE,
    OPT_BATCHES,
    OPT_FOLD,
    OPT_SEGMENT,
    OPT_EXACT,
    OPT_STORE,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [IN_X] = {"x", 'x', 1},
    [IN_Y] = {"y", 0, 1},
    [IN_W] = {"w", 0, 1},
    [IN_B] = {"b", 0, 1},
    [IN_RUNNING_MEAN] = {"running-mean", 0, 1},
    [IN_RUNNING_VAR] = {"running-var", 0, 1},
    [IN_D_O] = {"do", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [INPUTS + OUT_MEAN] = {"mean", 0, 1},
    [INPUTS + OUT_RSTD] = {"rstd", 0, 1},
    [INPUTS + OUT_RUNNING_MEAN] = {"running-mean-out", 0, 1},
    [INPUTS + OUT_RUNNING_VAR] = {"running-var-out", 0, 1},
    [INPUTS + OUT_SCALE] = {"scale", 0, 1},
    [INPUTS + OUT_SHIFT] = {"shift", 0, 1},
    [INPUTS + OUT_DX] = {"dx", 0, 1},
    [INPUTS + OUT_DY] = {"dy", 0, 1},
    [INPUTS + OUT_DW] = {"dw", 0, 1},
    [INPUTS + OUT_DB] = {"db", 0, 1},
    [OPT_BACKWARD] = {"backward", 0, 0},
    [OPT_OVER] = {"over", 0, 1},
    [OPT_GROUPS] = {"groups", 0, 1},
    [OPT_LAYOUT] = {"layout", 0, 1},
    [OPT_RMS] = {"rms", 0, 0},
    [OPT_EPS] = {"eps", 0, 1},
    [OPT_ACT] = {"act", 0, 1},
    [OPT_TRAIN] = {"train", 0, 0},
    [OPT_MOMENTUM] = {"momentum", 0, 1},
    [OPT_CUMULATIVE] = {"cumulative", 0, 0},
    [OPT_BATCHES] = {"batches", 0, 1},
    [OPT_FOLD] = {"fold", 0, 0},
    [OPT_SEGMENT] = {"segment", 0, 1},
    [OPT_EXACT] = {"exact", 0, 0},
    [OPT_STORE] = {"store", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

/* In the order of their enumerations. */
static const char *const overs[] = {"batch", "group", "instance", "layer", NULL};
static const char *const layouts[] = {"nchw", "nhwc", NULL};

/* An option that belongs to the other direction, or -1. */
static int find_foreign(const file_call *call, int backward)
{
    if (call->value[IN_D_O] && !backward)
        return IN_D_O;
    for (int i = 0; i < OUTPUTS; i++)
        if (call->value[INPUTS + i] && (i >= FIRST_GRADIENT) != backward)
            return INPUTS + i;
    for (int i = OPT_TRAIN; i <= OPT_FOLD; i++)
        if (call->value[i] && backward)
            return i;
    return -1;
}

/* An option whose other one is missing. */
static int needs_another(const file_call *call)
{
    static const struct {
        int option, needed;
    } pairs[] = {
        {IN_RUNNING_MEAN, IN_RUNNING_VAR},
        {IN_RUNNING_VAR, IN_RUNNING_MEAN},
        {INPUTS + OUT_RUNNING_MEAN, OPT_TRAIN},
        {INPUTS + OUT_RUNNING_VAR, OPT_TRAIN},
        {OPT_MOMENTUM, OPT_TRAIN},
        {OPT_CUMULATIVE, OPT_TRAIN},
        {OPT_TRAIN, INPUTS + OUT_RUNNING_MEAN},
        {OPT_TRAIN, INPUTS + OUT_RUNNING_VAR},
        {OPT_BATCHES, OPT_CUMULATIVE},
        {INPUTS + OUT_SCALE, OPT_FOLD},
        {INPUTS + OUT_SHIFT, OPT_FOLD},
        {OPT_FOLD, IN_RUNNING_MEAN},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (file_needs(call, pairs[i].option, pairs[i].needed) != CLI_DONE)
            return 1;
    return 0;
}

static int has_gradient(const file_call *call)
{
    for (int i = FIRST_GRADIENT; i < OUTPUTS; i++)
        if (call->value[INPUTS + i])
            return 1;
    return 0;
}

/* What excludes what. */
static int check_combination(const file_call *call, const channel_request *q)
{
    int running = q->train || file_in(call, IN_RUNNING_MEAN);
    if (q->over == OVER_GROUP && !call->value[OPT_GROUPS])
        complain("--over group needs --groups");
    else if (q->over != OVER_GROUP && call->value[OPT_GROUPS])
        complain("--groups needs --over group");
    else if (running && q->over != OVER_BATCH && q->over != OVER_INSTANCE)
        complain("running statistics need --over batch or --over instance, got --over %s", overs[q->over]);
    else if (running && call->value[OPT_RMS])
        complain("--rms cannot be used with running statistics");
    else if (q->train && q->fold)
        complain("--train and --fold cannot be combined: scale and shift are for inference");
    else if (q->fold && (file_out(call, OUT_MEAN) || file_out(call, OUT_RSTD)))
        complain("--%s cannot be used with --fold", file_out(call, OUT_MEAN) ? "mean" : "rstd");
    else if (call->value[OPT_CUMULATIVE] && call->value[OPT_MOMENTUM])
        complain("--momentum and --cumulative cannot be combined");
    else if (!(q->spec.momentum >= 0 && q->spec.momentum <= 1))
        complain("--momentum: expected a number from 0 to 1, got '%s'", call->value[OPT_MOMENTUM]);
    else if (q->spec.segment > 4096)
        complain("--segment: expected at most 4096, got %zu", q->spec.segment);
    else
        return 1;
    return 0;
}

static int require(const file_call *call, const channel_request *q)
{
    int foreign = find_foreign(call, q->backward);
    if (foreign >= 0)
        complain(q->backward ? "--%s cannot be used with --backward" : "--%s needs --backward", options[foreign].name);
    else if (!file_in(call, IN_X))
        file_missing(call, IN_X, "");
    else if (q->backward && !file_in(call, IN_D_O))
        complain("--backward needs --do, the gradient of o");
    else if (q->backward && !has_gradient(call))
        complain("--dx, --dy, --dw or --db: expected at least one file with --backward, got none");
    else if (!q->backward && !file_out(call, OUT_O))
        file_missing(call, INPUTS + OUT_O, "");
    else
        return !needs_another(call);
    return 0;
}

static int read_words(const file_call *call, channel_request *q)
{
    int over = file_word(call, OPT_OVER, overs), layout = file_word(call, OPT_LAYOUT, layouts);
    int act = file_word(call, OPT_ACT, library_activations), store = file_word(call, OPT_STORE, library_stores);
    if (over < 0 || layout < 0 || act < 0 || store < 0)
        return 0;
    q->over = (channel_over)over;
    q->spec.over = q->over == OVER_BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    q->spec.layout = (nrg_layout)layout;
    q->spec.activation = (nrg_activation)act;
    q->store = (nrg_store)store;
    return 1;
}

static int read_numbers(const file_call *call, channel_request *q)
{
    nrg_channel_norm_spec *s = &q->spec;
    size_t batches = 0;
    if (!file_count(call, OPT_GROUPS, 1, &s->groups) || !file_double(call, OPT_EPS, &s->eps) ||
        !file_double(call, OPT_MOMENTUM, &s->momentum) || !file_count(call, OPT_BATCHES, 0, &batches) ||
        !file_count(call, OPT_SEGMENT, 1, &s->segment))
        return 0;
    q->batches = batches;
    return 1;
}

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

static int channel_norm_ask(file_call *call)
{
    channel_request *q = call->request;
    memset(q, 0, sizeof *q);
    q->backward = call->value[OPT_BACKWARD] != NULL;
    if (q->backward && !library_holds("--backward", "backward"))
        return CLI_REFUSED;
    q->train = call->value[OPT_TRAIN] != NULL;
    q->fold = call->value[OPT_FOLD] != NULL;
    q->spec = nrg_channel_norm_spec_batch(NRG_F32, 1, 1e-5);
    q->spec.centred = !call->value[OPT_RMS];
    q->spec.accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    q->spec.cumulative = call->value[OPT_CUMULATIVE] != NULL;
    if (file_in(call, IN_RUNNING_MEAN) && !q->train)
        q->spec.source = NRG_STATISTICS_RUNNING;
    if (!require(call, q) || !read_words(call, q) || !read_numbers(call, q) || !check_combination(call, q))
        return CLI_REFUSED;
    return ask_library(call, q);
}

int command_channel_norm(char **arguments)
{
    static const file_command command = {"channel-norm",   channel_norm_help,   options, INPUTS, OUTPUTS, OPTIONS, IN_X, 0,
                                         channel_norm_ask, channel_norm_compute};
    channel_request q;
    return file_command_run(&command, &q, arguments);
}
