/* The options of nrg norm.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../commands.h"
#include "../library.h"
#include "../quantize/formats.h"
#include "norm.h"

static const char norm_help[] =
    "usage: nrg norm [OPTION]... X.npy --o O.npy\n"
    "       nrg norm --backward [OPTION]... X.npy --do DO.npy --dx DX.npy\n"
    "\n"
    "Normalizes the rows of a NumPy array. The last axis is a row; the other axes count rows.\n"
    "  r = x + y;  o = (c/sqrt(d)) * ((r - mean) / s) * (w + weight_offset) + b\n"
    "With --backward, computes the gradients of the inputs from do, the gradient of o.\n"
    "\n"
    "example: RMSNorm of x + y with a weight; r.npy receives x + y\n"
    "  nrg norm x.npy --y y.npy --w w.npy --eps 1e-6 --r r.npy --o o.npy\n"
    "\n"
    "inputs\n"
    "  X.npy, -x, --x FILE   x: '<f4' or '<f2', in C order, at least one axis\n"
    "  --y FILE              residual, with the shape of x\n"
    "  --z FILE              gate, with the shape and dtype of x\n"
    "  --w FILE, --b FILE    weight and bias, of shape (d,)\n"
    "                        y, w and b each have the dtype of x or '<f4'\n"
    "inputs of --backward\n"
    "  --do FILE             gradient of o, with the shape and dtype of x (required)\n"
    "  --dr-in FILE          another gradient of r, with the dtype of r; added to dx and dy\n"
    "  --r-in FILE           r of the forward pass, instead of x and y; of do's dtype or '<f4'\n"
    "  --mean-in FILE        mean of the forward pass, with --layer: saves time, changes no bit\n"
    "outputs\n"
    "  -o, --o FILE          the result, with the shape and dtype of x (required)\n"
    "  --r FILE              the residual sum r\n"
    "  --mean FILE           the mean of each row as '<f4' (0 for --rms, --l2), of shape x.shape[:-1];\n"
    "                        with groups, x.shape[:-1] + (G,)\n"
    "  --rstd FILE           1/s of each row, with the shape of the mean\n"
    "  --packed FILE         instead of o, with --format: the bytes that nrg quantize writes\n"
    "  --scales FILE         their scales, for int8 formats\n"
    "outputs of --backward: at least one\n"
    "  --dx, --dy, --dz FILE gradients of x, y and z, with their shapes and dtypes\n"
    "  --dw, --db FILE       gradients of w and b, summed over all rows, as '<f4', of shape (d,)\n"
    "                        dy, dw and db do not require y, w or b\n"
    "options\n"
    "  --rms                 do not subtract the mean (default)\n"
    "  --layer               subtract the mean\n"
    "  --l2                  rows of length 1: --rms with --eps-mode max and --c 1\n"
    "  --eps E               default 1e-6; 1e-5 with --layer, 1e-12 with --l2\n"
    "  --eps-mode MODE       mean:  s = sqrt(mean square + E) (default)\n"
    "                        sum:   s = sqrt(sum of squares + E) / sqrt(d)\n"
    "                        sigma: s = sqrt(mean square) + E\n"
    "                        max:   s = max(sqrt(sum of squares), E) / sqrt(d)\n"
    "                        none:  s = sqrt(mean square)\n"
    "  --c C                 the constant c; default sqrt(d)\n"
    "  --weight-offset W     added to every w; default 0\n"
    "  --groups G            normalize G equal groups of each row; d is then the length of a group,\n"
    "                        but w and b have the length of the row\n"
    "  --gate WHERE          pre: normalizes r * g(z); post: multiplies the result by g(z)\n"
    "  --act G               g: identity (default), sigmoid, silu, relu, relu2, tanh, gelu, gelu_tanh,\n"
    "                        softplus, gelu_quick, hard_swish, hard_sigmoid, elu, leaky_relu, mish,\n"
    "                        exp, expm1 or softsign; without --gate: g of the result\n"
    "  --residual WHERE      before: as above (default); after: r = x, and y is added to o\n"
    "  --r-dtype TYPE        same (as x, default), f32 or f16: the dtype that r is rounded to\n"
    "  --y-dtype TYPE        same (as x, default), f32 or f16: the dtype of dy, if --y is absent\n"
    "  --exact               exact grade: within 1 ulp in f32; default: fast grade, 5.5 ulp (centred 12)\n"
    "  --store KIND          auto (default), keep or stream: how the kernel stores; changes no bit\n"
    "  --format F            write bytes instead of o: a format of nrg quantize\n"
    "  --away                with --format: round ties away from zero; default: to even\n"
    "  --isa NAME            scalar, avx2, avx512, neon or generic; default: see nrg info\n";

/* Files first, in the order of the two enumerations in norm.h. */
enum {
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
    OPT_EXACT,
    OPT_STORE,
    OPT_FORMAT,
    OPT_AWAY,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [IN_X] = {"x", 'x', 1},
    [IN_Y] = {"y", 0, 1},
    [IN_Z] = {"z", 0, 1},
    [IN_W] = {"w", 0, 1},
    [IN_B] = {"b", 0, 1},
    [IN_D_O] = {"do", 0, 1},
    [IN_DR_IN] = {"dr-in", 0, 1},
    [IN_R] = {"r-in", 0, 1},
    [IN_MEAN] = {"mean-in", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [INPUTS + OUT_R] = {"r", 0, 1},
    [INPUTS + OUT_MEAN] = {"mean", 0, 1},
    [INPUTS + OUT_RSTD] = {"rstd", 0, 1},
    [INPUTS + OUT_PACKED] = {"packed", 0, 1},
    [INPUTS + OUT_SCALES] = {"scales", 0, 1},
    [INPUTS + OUT_DX] = {"dx", 0, 1},
    [INPUTS + OUT_DY] = {"dy", 0, 1},
    [INPUTS + OUT_DZ] = {"dz", 0, 1},
    [INPUTS + OUT_DW] = {"dw", 0, 1},
    [INPUTS + OUT_DB] = {"db", 0, 1},
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
    [OPT_EXACT] = {"exact", 0, 0},
    [OPT_STORE] = {"store", 0, 1},
    [OPT_FORMAT] = {"format", 0, 1},
    [OPT_AWAY] = {"away", 0, 0},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

/* In the order of the library's enumerations. */
static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none", NULL};
static const char *const residual_modes[] = {"before", "after", NULL};
static const char *const dtypes[] = {"same", "f32", "f16", NULL};
static const char *const gates[] = {"pre", "post", NULL};

/* An option that belongs to the other direction, or -1. */
static int find_foreign(const file_call *call, int backward)
{
    for (int i = IN_D_O; i < INPUTS; i++)
        if (call->value[i] && !backward)
            return i;
    for (int i = 0; i < OUTPUTS; i++)
        if (call->value[INPUTS + i] && (i >= FIRST_GRADIENT) != backward)
            return INPUTS + i;
    return call->value[OPT_Y_DTYPE] && !backward ? OPT_Y_DTYPE : -1;
}

static int has_gradient(const file_call *call)
{
    for (int i = FIRST_GRADIENT; i < OUTPUTS; i++)
        if (file_out(call, i))
            return 1;
    return 0;
}

static int require_forward(const file_call *call)
{
    if (!file_in(call, IN_X))
        file_missing(call, IN_X, "");
    else if (!file_out(call, OUT_O) && !call->value[OPT_FORMAT])
        file_missing(call, INPUTS + OUT_O, "");
    else
        return 1;
    return 0;
}

static int require_backward(const file_call *call)
{
    if (!file_in(call, IN_X) && !file_in(call, IN_R))
        complain("--x or --r-in: expected a file, got none; see nrg norm --help");
    else if (file_in(call, IN_R) && (file_in(call, IN_X) || file_in(call, IN_Y)))
        complain("--r-in and --%s cannot be combined: r is the sum of x and y", file_in(call, IN_X) ? "x" : "y");
    else if (!file_in(call, IN_D_O))
        complain("--backward needs --do, the gradient of o");
    else if (!has_gradient(call))
        complain("--dx, --dy, --dz, --dw or --db: expected at least one file with --backward, got none");
    else if (file_in(call, IN_MEAN) && !call->value[OPT_LAYER])
        complain("--mean-in needs --layer: other norms subtract no mean");
    else if (file_in(call, IN_R) && call->value[OPT_R_DTYPE])
        complain("--r-dtype and --r-in cannot be combined: the file has a dtype");
    else if (call->value[OPT_Y_DTYPE] && !file_out(call, OUT_DY))
        complain("--y-dtype needs --dy");
    else if (call->value[OPT_Y_DTYPE] && file_in(call, IN_Y))
        complain("--y-dtype and --y cannot be combined: the file has a dtype");
    else
        return 1;
    return 0;
}

static int require(const file_call *call, const request *q)
{
    int foreign = find_foreign(call, q->backward);
    if (foreign >= 0)
        complain(q->backward ? "--%s cannot be used with --backward" : "--%s needs --backward", options[foreign].name);
    else if (!!call->value[OPT_RMS] + !!call->value[OPT_LAYER] + !!call->value[OPT_L2] > 1)
        complain("--rms, --layer and --l2 cannot be combined");
    else
        return q->backward ? require_backward(call) : require_forward(call);
    return 0;
}

static int read_words(const file_call *call, request *q)
{
    nrg_norm_spec *s = &q->spec;
    int eps_mode = file_word(call, OPT_EPS_MODE, eps_modes), residual = file_word(call, OPT_RESIDUAL, residual_modes);
    int store = file_word(call, OPT_STORE, library_stores), r_dtype = file_word(call, OPT_R_DTYPE, dtypes);
    int y_dtype = file_word(call, OPT_Y_DTYPE, dtypes), gate = file_word(call, OPT_GATE, gates),
        act = file_word(call, OPT_ACT, library_activations);
    if (eps_mode < 0 || residual < 0 || store < 0 || r_dtype < 0 || y_dtype < 0 || gate < 0 || act < 0)
        return 0;
    if (call->value[OPT_EPS_MODE])
        s->eps_mode = (nrg_eps_mode)eps_mode;
    if (s->eps_mode == NRG_EPS_NONE)
        s->eps = 0;
    if (call->value[OPT_C])
        s->c_mode = NRG_C_GIVEN;
    if (call->value[OPT_GATE])
        s->gate = (nrg_gate)(gate + 1); /* "none" is not to be said */
    s->residual_mode = (nrg_residual_mode)residual;
    q->store = (nrg_store)store;
    s->accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    s->r_dtype = (nrg_dtype)r_dtype;
    s->y_dtype = (nrg_dtype)y_dtype;
    s->activation = (nrg_activation)act;
    return 1;
}

static int read_numbers(const file_call *call, nrg_norm_spec *s)
{
    return file_double(call, OPT_EPS, &s->eps) && file_double(call, OPT_C, &s->c) &&
           file_float(call, OPT_WEIGHT_OFFSET, &s->weight_offset) && file_count(call, OPT_GROUPS, 1, &s->groups);
}

/* Files that the spec needs, or has no use for. */
static int check_combination(const file_call *call, const request *q)
{
    const nrg_norm_spec *s = &q->spec;
    int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (after && !q->backward && !file_in(call, IN_Y))
        complain("--residual after needs --y");
    else if (after && file_out(call, OUT_R))
        complain("--r cannot be used with --residual after: the sum is o");
    else if (after && file_in(call, IN_R))
        complain("--r-in cannot be used with --residual after: r is x");
    else if (after && file_in(call, IN_DR_IN))
        complain("--dr-in cannot be used with --residual after: r is x");
    else if (s->gate && !file_in(call, IN_Z))
        complain("--gate needs --z");
    else if (!s->gate && file_in(call, IN_Z))
        complain("--z needs --gate pre or --gate post");
    else if (!s->gate && file_out(call, OUT_DZ))
        complain("--dz needs --gate pre or --gate post");
    else
        return 1;
    return 0;
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

static int norm_ask(file_call *call)
{
    static const format_options quantized = {OUT_PACKED, OUT_SCALES, OUT_O, OPT_FORMAT, OPT_AWAY, OPT_BACKWARD};
    request *q = call->request;
    memset(q, 0, sizeof *q);
    q->backward = call->value[OPT_BACKWARD] != NULL;
    if (q->backward && !library_holds("--backward", "backward"))
        return CLI_REFUSED;
    q->spec = call->value[OPT_LAYER] ? nrg_norm_spec_layer(NRG_F32, 1, 1e-5)
              : call->value[OPT_L2]  ? nrg_norm_spec_l2(NRG_F32, 1, 1e-12)
                                     : nrg_norm_spec_rms(NRG_F32, 1, 1e-6);
    if (!require(call, q) || !read_words(call, q) || !read_numbers(call, &q->spec) || !check_combination(call, q) ||
        formats_ask(call, &quantized, &q->spec.format, &q->spec.rounding) != CLI_DONE)
        return CLI_REFUSED;
    return ask_library(call, q);
}

int command_norm(char **arguments)
{
    static const file_command command = {"norm", norm_help, options, INPUTS, OUTPUTS, OPTIONS, IN_X, 0, norm_ask, norm_compute};
    request q;
    return file_command_run(&command, &q, arguments);
}
