/* The options of nrg channel-norm.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "channel_norm.h"
#include "../cli.h"
#include "../commands.h"
#include "../library.h"

const char channel_norm_help[] =
    "usage: nrg channel-norm [OPTION]... X.npy --o O.npy\n"
    "       nrg channel-norm --backward [OPTION]... X.npy --do DO.npy --dx DX.npy\n"
    "\n"
    "Normalizes a NumPy array of n samples with c channels, of shape (n, c, ...), or (n, ..., c) with\n"
    "--layout nhwc; the other axes, which may be none, count positions.\n"
    "  o = g(((x - mean) / sqrt(variance + eps)) * w + b + y)\n"
    "mean and variance are those of the set an element is in, w and b those of its channel.\n"
    "With --backward: from do, the gradient of o, those of the inputs.\n"
    "\n"
    "inputs\n"
    "  X.npy, -x, --x FILE   x: '<f4' or '<f2', in C order, at least two axes\n"
    "  --y FILE              residual, of x's shape and dtype\n"
    "  --w FILE, --b FILE    weight and bias, of shape (c,), each of the dtype of x or '<f4'\n"
    "  --running-mean FILE, --running-var FILE\n"
    "                        running statistics, '<f4' of shape (c,), with --over batch or instance: used\n"
    "                        instead of those of x; with --train updated, and by default 0 and 1\n"
    "  --do FILE             with --backward: gradient of o, of x's shape and dtype (required)\n"
    "outputs\n"
    "  -o, --o FILE          the result, with the shape and dtype of x (required)\n"
    "  --mean FILE           the mean of each set as '<f4' (0 for --rms), of shape (c,) for batch, (n, G) for\n"
    "                        group, (n, c) for instance and (n,) for layer\n"
    "  --rstd FILE           1/sqrt(variance + eps) of each set, likewise\n"
    "  --running-mean-out FILE, --running-var-out FILE\n"
    "                        with --train: the running statistics, updated\n"
    "  --scale FILE, --shift FILE\n"
    "                        with --fold: scale and shift, '<f4' of shape (c,)\n"
    "outputs of --backward: at least one\n"
    "  --dx, --dy FILE       gradients of x and y, with the shape and dtype of x\n"
    "  --dw, --db FILE       gradients of w and b, as '<f4', of shape (c,)\n"
    "                        dy, dw and db also where there is no y, w or b\n"
    "options\n"
    "  --over SETS           batch:    a channel, in all samples (default)\n"
    "                        group:    c/G channels of a sample\n"
    "                        instance: a channel of a sample\n"
    "                        layer:    a sample\n"
    "  --groups G            with --over group: how many, a divisor of c\n"
    "  --layout LAYOUT       nchw (default) or nhwc\n"
    "  --rms                 do not subtract the mean, nor take it off the variance\n"
    "  --eps E               default 1e-5\n"
    "  --act G               g: identity (default), sigmoid, silu, relu, relu2, tanh, gelu, gelu_tanh or\n"
    "                        softplus\n"
    "  --train               update running statistics with those of x: the variance is the unbiased one;\n"
    "                        those of instance norm are averaged over the samples\n"
    "  --momentum M          with --train: running = (1 - M) * running + M * of x; default 0.1\n"
    "  --cumulative          with --train: M is 1/(K + 1), so that running is the average of all batches\n"
    "  --batches K           with --cumulative: how many there were before, default 0\n"
    "  --fold                inference with o = g(x * scale + shift + y), scale and shift made once of\n"
    "                        the running statistics, w and b\n"
    "  --segment L           add x up in segments of about L elements, at most 4096 (default); changes\n"
    "                        last bits\n"
    "  --store KIND          auto (default), keep or stream: how the kernel stores; changes no bit\n"
    "  --isa NAME            scalar, avx2, avx512 or neon; default: see nrg info\n"
    "\n"
    "Outputs appear complete, all of them or none: they are written beside their targets and renamed at\n"
    "the end. What they replace is left alone until then, so an output may also be an input; two outputs\n"
    "may not be one file. A symbolic link is followed, a device or pipe is refused.\n"
    "\n"
    "exit status: 0 done; 1 an output cannot be written, or no memory; 2 refused: wrong arguments, or an\n"
    "input that is no .npy file, is broken or truncated, or has another dtype, order or shape\n";

/* Files first, in the order of the two enumerations in channel_norm.h. */
enum {
    OPT_INPUT = 0,
    OPT_OUTPUT = INPUTS,
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
    OPT_STORE,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [OPT_INPUT + IN_X] = {"x", 'x', 1},
    [OPT_INPUT + IN_Y] = {"y", 0, 1},
    [OPT_INPUT + IN_W] = {"w", 0, 1},
    [OPT_INPUT + IN_B] = {"b", 0, 1},
    [OPT_INPUT + IN_RUNNING_MEAN] = {"running-mean", 0, 1},
    [OPT_INPUT + IN_RUNNING_VAR] = {"running-var", 0, 1},
    [OPT_INPUT + IN_D_O] = {"do", 0, 1},
    [OPT_OUTPUT + OUT_O] = {"o", 'o', 1},
    [OPT_OUTPUT + OUT_MEAN] = {"mean", 0, 1},
    [OPT_OUTPUT + OUT_RSTD] = {"rstd", 0, 1},
    [OPT_OUTPUT + OUT_RUNNING_MEAN] = {"running-mean-out", 0, 1},
    [OPT_OUTPUT + OUT_RUNNING_VAR] = {"running-var-out", 0, 1},
    [OPT_OUTPUT + OUT_SCALE] = {"scale", 0, 1},
    [OPT_OUTPUT + OUT_SHIFT] = {"shift", 0, 1},
    [OPT_OUTPUT + OUT_DX] = {"dx", 0, 1},
    [OPT_OUTPUT + OUT_DY] = {"dy", 0, 1},
    [OPT_OUTPUT + OUT_DW] = {"dw", 0, 1},
    [OPT_OUTPUT + OUT_DB] = {"db", 0, 1},
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
    [OPT_STORE] = {"store", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

/* In the order of their enumerations. */
static const char *const overs[] = {"batch", "group", "instance", "layer", NULL};
static const char *const layouts[] = {"nchw", "nhwc", NULL};

/* Of the options given; for those without a value, themselves. */
typedef const char *option_values[OPTIONS];

/* An option that the direction asked for has no use for. */
static int find_foreign(const option_values value, int backward)
{
    if (value[OPT_INPUT + IN_D_O] && !backward)
        return OPT_INPUT + IN_D_O;
    for (int i = 0; i < OUTPUTS; i++)
        if (value[OPT_OUTPUT + i] && (i >= FIRST_GRADIENT) != backward)
            return OPT_OUTPUT + i;
    for (int i = OPT_TRAIN; i <= OPT_FOLD; i++)
        if (value[i] && backward)
            return i;
    return -1;
}

/* An option whose other one is missing, and that other one. */
static int find_lonely(const option_values value, int *needed)
{
    static const struct {
        int option, needed;
    } pairs[] = {
        {OPT_INPUT + IN_RUNNING_MEAN, OPT_INPUT + IN_RUNNING_VAR},
        {OPT_INPUT + IN_RUNNING_VAR, OPT_INPUT + IN_RUNNING_MEAN},
        {OPT_OUTPUT + OUT_RUNNING_MEAN, OPT_TRAIN},
        {OPT_OUTPUT + OUT_RUNNING_VAR, OPT_TRAIN},
        {OPT_MOMENTUM, OPT_TRAIN},
        {OPT_CUMULATIVE, OPT_TRAIN},
        {OPT_TRAIN, OPT_OUTPUT + OUT_RUNNING_MEAN},
        {OPT_TRAIN, OPT_OUTPUT + OUT_RUNNING_VAR},
        {OPT_BATCHES, OPT_CUMULATIVE},
        {OPT_OUTPUT + OUT_SCALE, OPT_FOLD},
        {OPT_OUTPUT + OUT_SHIFT, OPT_FOLD},
        {OPT_FOLD, OPT_INPUT + IN_RUNNING_MEAN},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (value[pairs[i].option] && !value[pairs[i].needed]) {
            *needed = pairs[i].needed;
            return pairs[i].option;
        }
    return -1;
}

static int has_gradient(const option_values value)
{
    for (int i = FIRST_GRADIENT; i < OUTPUTS; i++)
        if (value[OPT_OUTPUT + i])
            return 1;
    return 0;
}

/* What excludes what. */
static int check_combination(const channel_request *q, const option_values value)
{
    int running = q->train || q->inputs[IN_RUNNING_MEAN];
    if (q->over == OVER_GROUP && !value[OPT_GROUPS])
        complain("--over group needs --groups");
    else if (q->over != OVER_GROUP && value[OPT_GROUPS])
        complain("--groups is for --over group");
    else if (running && q->over != OVER_BATCH && q->over != OVER_INSTANCE)
        complain("running statistics are those of channels: for --over batch or instance");
    else if (running && value[OPT_RMS])
        complain("--rms has no running statistics");
    else if (q->train && q->fold)
        complain("--train and --fold exclude each other: scale and shift are for inference");
    else if (q->fold && (q->outputs[OUT_MEAN] || q->outputs[OUT_RSTD]))
        complain("--%s cannot be asked for with --fold", q->outputs[OUT_MEAN] ? "mean" : "rstd");
    else if (value[OPT_CUMULATIVE] && value[OPT_MOMENTUM])
        complain("--momentum and --cumulative exclude each other");
    else if (!(q->spec.momentum >= 0 && q->spec.momentum <= 1))
        complain("--momentum: '%s' is not from 0 to 1", value[OPT_MOMENTUM]);
    else if (q->spec.segment > 4096)
        complain("--segment: %zu is more than 4096", q->spec.segment);
    else
        return 1;
    return 0;
}

static int require(const channel_request *q, const option_values value)
{
    int foreign = find_foreign(value, q->backward), needed = 0, lonely = find_lonely(value, &needed);
    if (foreign >= 0)
        complain(q->backward ? "--%s is of the forward pass, and not for --backward" : "--%s is for --backward",
                 options[foreign].name);
    else if (!q->inputs[IN_X])
        complain("no input file; nrg channel-norm --help");
    else if (q->backward && !q->inputs[IN_D_O])
        complain("--backward needs --do FILE, the gradient of o");
    else if (q->backward && !has_gradient(value))
        complain("no output file: --dx, --dy, --dw or --db FILE");
    else if (!q->backward && !q->outputs[OUT_O])
        complain("no output file: --o FILE");
    else if (lonely >= 0)
        complain("--%s needs --%s", options[lonely].name, options[needed].name);
    else
        return 1;
    return 0;
}

static int word(const option_values value, int option, const char *const *words)
{
    return cli_word_or_default(options[option].name, value[option], words);
}

static int read_words(const option_values value, channel_request *q)
{
    int over = word(value, OPT_OVER, overs), layout = word(value, OPT_LAYOUT, layouts);
    int act = word(value, OPT_ACT, library_activations), store = word(value, OPT_STORE, library_stores);
    if (over < 0 || layout < 0 || act < 0 || store < 0)
        return 0;
    q->over = (channel_over)over;
    q->spec.over = q->over == OVER_BATCH ? NRG_OVER_BATCH : NRG_OVER_GROUP;
    q->spec.layout = (nrg_channel_layout)layout;
    q->spec.activation = (nrg_activation)act;
    q->spec.store = (nrg_store)store;
    return 1;
}

static int read_numbers(const option_values value, channel_request *q)
{
    nrg_channel_norm_spec *s = &q->spec;
    size_t batches = 0;
    if ((value[OPT_GROUPS] && !cli_count("groups", value[OPT_GROUPS], 1, &s->groups)) ||
        (value[OPT_EPS] && !cli_double("eps", value[OPT_EPS], &s->eps)) ||
        (value[OPT_MOMENTUM] && !cli_double("momentum", value[OPT_MOMENTUM], &s->momentum)) ||
        (value[OPT_BATCHES] && !cli_count("batches", value[OPT_BATCHES], 0, &batches)) ||
        (value[OPT_SEGMENT] && !cli_count("segment", value[OPT_SEGMENT], 1, &s->segment)))
        return 0;
    q->batches = batches;
    return 1;
}

/* The library's own word on the numbers, before files are read: no samples, so no pointer is followed. */
static int ask_library(const channel_request *q)
{
    static float any;
    nrg_channel_norm_spec spec = q->spec;
    nrg_channel_norm_args args = nrg_channel_norm_args_init(0, 1, &any, &any);
    spec.statistics = NRG_STATISTICS_COMPUTE;
    spec.channels = spec.groups ? spec.groups : 1;
    return library_answer(nrg_channel_norm_forward(&spec, &args, 0, 1));
}

int channel_norm_parse(char **arguments, channel_request *q)
{
    option_values value = {NULL};
    memset(q, 0, sizeof *q);
    int status = cli_collect(arguments, options, OPT_INPUT + IN_X, OPT_HELP, value);
    if (status != CLI_DONE)
        return status;
    for (int i = 0; i < INPUTS; i++)
        q->inputs[i] = value[OPT_INPUT + i];
    for (int i = 0; i < OUTPUTS; i++)
        q->outputs[i] = value[OPT_OUTPUT + i];
    q->backward = value[OPT_BACKWARD] != NULL;
    if (q->backward && !library_holds("--backward", "backward"))
        return CLI_REFUSED;
    q->train = value[OPT_TRAIN] != NULL;
    q->fold = value[OPT_FOLD] != NULL;
    q->spec = nrg_batch_norm_spec(1, 1e-5);
    q->spec.centred = !value[OPT_RMS];
    q->spec.cumulative = value[OPT_CUMULATIVE] != NULL;
    if (q->inputs[IN_RUNNING_MEAN] && !q->train)
        q->spec.statistics = NRG_STATISTICS_RUNNING;
    if (!require(q, value) || !read_words(value, q) || !read_numbers(value, q) || !check_combination(q, value))
        return CLI_REFUSED;
    status = value[OPT_ISA] ? library_set_isa(value[OPT_ISA]) : CLI_DONE;
    return status == CLI_DONE ? ask_library(q) : status;
}
