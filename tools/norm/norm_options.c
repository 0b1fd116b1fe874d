/* The options of nrg norm.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../cli.h"
#include "../commands.h"
#include "../library.h"
#include "norm.h"

const char norm_help[] = "usage: nrg norm [OPTION]... X.npy --o O.npy\n"
                         "       nrg norm --backward [OPTION]... X.npy --do DO.npy --dx DX.npy\n"
                         "\n"
                         "Normalizes the rows of a NumPy array: its last axis is a row, the other axes count rows.\n"
                         "  r = x + y;  o = (c/sqrt(d)) * ((r - mean) / s) * (w + weight_offset) + b\n"
                         "With --backward: from do, the gradient of o, those of the inputs.\n"
                         "\n"
                         "inputs\n"
                         "  X.npy, -x, --x FILE   x: '<f4' or '<f2', in C order, at least one axis\n"
                         "  --y FILE              residual, of x's shape\n"
                         "  --z FILE              gate, of x's shape and dtype\n"
                         "  --w FILE, --b FILE    weight and bias, of shape (d,)\n"
                         "                        y, w and b each have the dtype of x or '<f4'\n"
                         "inputs of --backward\n"
                         "  --do FILE             gradient of o, of x's shape and dtype (required)\n"
                         "  --dr-in FILE          gradient that reaches r from elsewhere, of r's dtype: added to dx and dy\n"
                         "  --r-in FILE           r of the forward pass, instead of x and y; of do's dtype or '<f4'\n"
                         "  --mean-in FILE        mean of the forward pass, with --layer: changes no bit, saves time\n"
                         "outputs\n"
                         "  -o, --o FILE          the result, with the shape and dtype of x (required)\n"
                         "  --r FILE              the residual sum r\n"
                         "  --mean FILE           the mean of each row as '<f4' (0 for --rms, --l2), of shape x.shape[:-1],\n"
                         "                        with groups x.shape[:-1] + (G,)\n"
                         "  --rstd FILE           1/s of each row, likewise\n"
                         "outputs of --backward: at least one\n"
                         "  --dx, --dy, --dz FILE gradients of x, y and z, with their shapes and dtypes\n"
                         "  --dw, --db FILE       gradients of w and b, summed over all rows, as '<f4', of shape (d,)\n"
                         "                        dy, dw and db also where there is no y, w or b\n"
                         "options\n"
                         "  --rms                 do not subtract the mean (default)\n"
                         "  --layer               subtract it\n"
                         "  --l2                  rows of length 1: --rms with --eps-mode max and --c 1\n"
                         "  --eps E               default 1e-6; 1e-5 with --layer, 1e-12 with --l2\n"
                         "  --eps-mode MODE       mean:  s = sqrt(mean square + E) (default)\n"
                         "                        sum:   s = sqrt(sum of squares + E) / sqrt(d)\n"
                         "                        sigma: s = sqrt(mean square) + E\n"
                         "                        max:   s = max(sqrt(sum of squares), E) / sqrt(d)\n"
                         "                        none:  s = sqrt(mean square)\n"
                         "  --c C                 the constant c; 0, the default, stands for sqrt(d)\n"
                         "  --weight-offset W     added to every w, default 0\n"
                         "  --groups G            normalize every row in G equal parts; d is then the length of a part,\n"
                         "                        but w and b span the row\n"
                         "  --gate WHERE          pre: r * g(z) is normalized; post: the result is multiplied by g(z)\n"
                         "  --act G               g: identity (default), sigmoid, silu, relu, relu2, tanh, gelu, gelu_tanh or\n"
                         "                        softplus; without --gate: g of the result\n"
                         "  --residual WHERE      before: as above (default); after: r = x, and y is added to o\n"
                         "  --r-dtype TYPE        same (as x, default), f32 or f16: r is rounded to it, written or not\n"
                         "  --y-dtype TYPE        same (as x, default), f32 or f16: of dy, where no --y says it\n"
                         "  --store KIND          auto (default), keep or stream: how the kernel stores; changes no bit\n"
                         "  --isa NAME            scalar, avx2, avx512 or neon; default: see nrg info\n"
                         "\n"
                         "Outputs appear complete, all of them or none: they are written beside their targets and renamed at\n"
                         "the end. What they replace is left alone until then, so an output may also be an input; two outputs\n"
                         "may not be one file. A symbolic link is followed, a device or pipe is refused.\n"
                         "\n"
                         "exit status: 0 done; 1 an output cannot be written, or no memory; 2 refused: wrong arguments, or an\n"
                         "input that is no .npy file, is broken or truncated, or has another dtype, order or shape\n";

/* Files first, in the order of the two enumerations in norm.h. */
enum {
    OPT_INPUT = 0,
    OPT_OUTPUT = INPUTS,
    OPT_BACKWARD = INPUTS + OUTPUTS,
    OPT_RMS,
    OPT_LAYER,
    OPT_L2,
    OPT_EPS,
    OPT_EPS_MODE,
    OPT_C,
    OPT_WEIGHT_OFFSET,
    OPT_GROUPS,
    OPT_GATE,
    OPT_ACT,
    OPT_RESIDUAL,
    OPT_R_DTYPE,
    OPT_Y_DTYPE,
    OPT_STORE,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [OPT_INPUT + IN_X] = {"x", 'x', 1},
    [OPT_INPUT + IN_Y] = {"y", 0, 1},
    [OPT_INPUT + IN_Z] = {"z", 0, 1},
    [OPT_INPUT + IN_W] = {"w", 0, 1},
    [OPT_INPUT + IN_B] = {"b", 0, 1},
    [OPT_INPUT + IN_D_O] = {"do", 0, 1},
    [OPT_INPUT + IN_DR_IN] = {"dr-in", 0, 1},
    [OPT_INPUT + IN_R] = {"r-in", 0, 1},
    [OPT_INPUT + IN_MEAN] = {"mean-in", 0, 1},
    [OPT_OUTPUT + OUT_O] = {"o", 'o', 1},
    [OPT_OUTPUT + OUT_R] = {"r", 0, 1},
    [OPT_OUTPUT + OUT_MEAN] = {"mean", 0, 1},
    [OPT_OUTPUT + OUT_RSTD] = {"rstd", 0, 1},
    [OPT_OUTPUT + OUT_DX] = {"dx", 0, 1},
    [OPT_OUTPUT + OUT_DY] = {"dy", 0, 1},
    [OPT_OUTPUT + OUT_DZ] = {"dz", 0, 1},
    [OPT_OUTPUT + OUT_DW] = {"dw", 0, 1},
    [OPT_OUTPUT + OUT_DB] = {"db", 0, 1},
    [OPT_BACKWARD] = {"backward", 0, 0},
    [OPT_RMS] = {"rms", 0, 0},
    [OPT_LAYER] = {"layer", 0, 0},
    [OPT_L2] = {"l2", 0, 0},
    [OPT_EPS] = {"eps", 0, 1},
    [OPT_EPS_MODE] = {"eps-mode", 0, 1},
    [OPT_C] = {"c", 0, 1},
    [OPT_WEIGHT_OFFSET] = {"weight-offset", 0, 1},
    [OPT_GROUPS] = {"groups", 0, 1},
    [OPT_GATE] = {"gate", 0, 1},
    [OPT_ACT] = {"act", 0, 1},
    [OPT_RESIDUAL] = {"residual", 0, 1},
    [OPT_R_DTYPE] = {"r-dtype", 0, 1},
    [OPT_Y_DTYPE] = {"y-dtype", 0, 1},
    [OPT_STORE] = {"store", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

/* In the order of the library's enumerations. */
static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none", NULL};
static const char *const residual_modes[] = {"before", "after", NULL};
static const char *const dtypes[] = {"same", "f32", "f16", NULL};
static const char *const gates[] = {"pre", "post", NULL};

/* Of the options given; for those without a value, themselves. */
typedef const char *option_values[OPTIONS];

/* An option that the direction asked for has no use for. */
static int find_foreign(const option_values value, int backward)
{
    for (int i = OPT_INPUT + IN_D_O; i < OPT_INPUT + INPUTS; i++)
        if (value[i] && !backward)
            return i;
    for (int i = 0; i < OUTPUTS; i++)
        if (value[OPT_OUTPUT + i] && (i >= FIRST_GRADIENT) != backward)
            return OPT_OUTPUT + i;
    return value[OPT_Y_DTYPE] && !backward ? OPT_Y_DTYPE : -1;
}

static int has_gradient(const request *q)
{
    for (int i = FIRST_GRADIENT; i < OUTPUTS; i++)
        if (q->outputs[i])
            return 1;
    return 0;
}

static int require_forward(const request *q)
{
    if (!q->inputs[IN_X])
        complain("no input file; nrg norm --help");
    else if (!q->outputs[OUT_O])
        complain("no output file: --o FILE");
    else
        return 1;
    return 0;
}

static int require_backward(const request *q, const option_values value)
{
    if (!q->inputs[IN_X] && !q->inputs[IN_R])
        complain("no input file: x, or --r-in FILE; nrg norm --help");
    else if (q->inputs[IN_R] && (q->inputs[IN_X] || q->inputs[IN_Y]))
        complain("--r-in and %s exclude each other: r is the sum of x and y", q->inputs[IN_X] ? "x" : "--y");
    else if (!q->inputs[IN_D_O])
        complain("--backward needs --do FILE, the gradient of o");
    else if (!has_gradient(q))
        complain("no output file: --dx, --dy, --dz, --dw or --db FILE");
    else if (q->inputs[IN_MEAN] && !value[OPT_LAYER])
        complain("--mean-in is for --layer: other norms subtract no mean");
    else if (q->inputs[IN_R] && value[OPT_R_DTYPE])
        complain("--r-dtype and --r-in exclude each other: the file has a dtype");
    else if (value[OPT_Y_DTYPE] && !q->outputs[OUT_DY])
        complain("--y-dtype is for --dy");
    else if (value[OPT_Y_DTYPE] && q->inputs[IN_Y])
        complain("--y-dtype and --y exclude each other: the file has a dtype");
    else
        return 1;
    return 0;
}

static int require(const request *q, const option_values value)
{
    int foreign = find_foreign(value, q->backward);
    if (foreign >= 0)
        complain(q->backward ? "--%s is of the forward pass, and not for --backward" : "--%s is for --backward",
                 options[foreign].name);
    else if (!!value[OPT_RMS] + !!value[OPT_LAYER] + !!value[OPT_L2] > 1)
        complain("--rms, --layer and --l2 exclude each other");
    else
        return q->backward ? require_backward(q, value) : require_forward(q);
    return 0;
}

static int word(const option_values value, int option, const char *const *words)
{
    return cli_word_or_default(options[option].name, value[option], words);
}

static int read_words(const option_values value, nrg_norm_spec *s)
{
    int eps_mode = word(value, OPT_EPS_MODE, eps_modes), residual = word(value, OPT_RESIDUAL, residual_modes);
    int store = word(value, OPT_STORE, library_stores), r_dtype = word(value, OPT_R_DTYPE, dtypes);
    int y_dtype = word(value, OPT_Y_DTYPE, dtypes), gate = word(value, OPT_GATE, gates),
        act = word(value, OPT_ACT, library_activations);
    if (eps_mode < 0 || residual < 0 || store < 0 || r_dtype < 0 || y_dtype < 0 || gate < 0 || act < 0)
        return 0;
    if (value[OPT_EPS_MODE])
        s->eps_mode = (nrg_eps_mode)eps_mode;
    if (value[OPT_GATE])
        s->gate = (nrg_gate)(gate + 1); /* "none" is not to be said */
    s->residual_mode = (nrg_residual_mode)residual;
    s->store = (nrg_store)store;
    s->r_dtype = (nrg_dtype)r_dtype;
    s->y_dtype = (nrg_dtype)y_dtype;
    s->activation = (nrg_activation)act;
    return 1;
}

static int read_numbers(const option_values value, nrg_norm_spec *s)
{
    return (!value[OPT_EPS] || cli_double("eps", value[OPT_EPS], &s->eps)) &&
           (!value[OPT_C] || cli_double("c", value[OPT_C], &s->c)) &&
           (!value[OPT_WEIGHT_OFFSET] || cli_float("weight-offset", value[OPT_WEIGHT_OFFSET], &s->weight_offset)) &&
           (!value[OPT_GROUPS] || cli_count("groups", value[OPT_GROUPS], 1, &s->groups));
}

/* Files that the spec needs, or has no use for. */
static int check_combination(const request *q)
{
    const nrg_norm_spec *s = &q->spec;
    int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (after && !q->backward && !q->inputs[IN_Y])
        complain("--residual after needs --y");
    else if (after && q->outputs[OUT_R])
        complain("--r cannot be asked for with --residual after: the sum is o itself");
    else if (after && q->inputs[IN_R])
        complain("--r-in cannot be given with --residual after: r is x");
    else if (after && q->inputs[IN_DR_IN])
        complain("--dr-in cannot be given with --residual after: there is no r but x");
    else if (s->gate && !q->inputs[IN_Z])
        complain("--gate needs --z");
    else if (!s->gate && q->inputs[IN_Z])
        complain("--z needs --gate pre or --gate post");
    else if (!s->gate && q->outputs[OUT_DZ])
        complain("--dz needs --gate pre or --gate post");
    else
        return 1;
    return 0;
}

/* The library's own word on the spec and on the operands asked for, before files are read: no rows, so no pointer is followed. */
static int ask_library(const request *q)
{
    static float any;
    nrg_norm_spec spec = q->spec;
    nrg_norm_args args = nrg_norm_args_init(0, &any, &any);
    args.y = q->inputs[IN_Y] ? &any : NULL;
    args.z = q->inputs[IN_Z] ? &any : NULL;
    args.r = q->outputs[OUT_R] ? &any : NULL;
    spec.dim = spec.groups ? spec.groups : 1;
    nrg_status status = nrg_norm_forward(&spec, &args, 0, 1);
    /* the dtypes are known only when x has been read */
    if (status == NRG_OK || status == NRG_ERR_DTYPE)
        return CLI_DONE;
    complain("%s", nrg_status_string(status));
    return CLI_REFUSED;
}

int norm_parse(char **arguments, request *q)
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
    q->spec = value[OPT_LAYER] ? nrg_layer_norm_spec(1, 1e-5)
              : value[OPT_L2]  ? nrg_l2_norm_spec(1, 1e-12)
                               : nrg_rms_norm_spec(1, 1e-6);
    if (!require(q, value) || !read_words(value, &q->spec) || !read_numbers(value, &q->spec) || !check_combination(q))
        return CLI_REFUSED;
    status = value[OPT_ISA] ? library_set_isa(value[OPT_ISA]) : CLI_DONE;
    return status == CLI_DONE ? ask_library(q) : status;
}
