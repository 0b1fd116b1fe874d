/* nrg softmax: nrg_softmax_forward and nrg_softmax_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include <nrg/nrg.h>

#include "../commands.h"
#include "../file_command.h"
#include "../library.h"
#include "../npy/arrays.h"

static const char softmax_help[] =
    "usage: nrg softmax [OPTION]... X.npy --o O.npy\n"
    "       nrg softmax --backward --do DO.npy [OPTION]... O.npy --dx DX.npy\n"
    "\n"
    "Computes the softmax of the last axis, the keys. The axis before it counts queries, the one before\n"
    "that heads. All other axes count samples.\n"
    "\n"
    "example: attention scores of heads of 64 elements, scaled by 1/sqrt(64), with a causal mask\n"
    "  nrg softmax --scale 0.125 --causal scores.npy --o p.npy\n"
    "\n"
    "files, '<f4' or '<f2', in C order\n"
    "  X.npy, -x, --x FILE    scores; with --backward, the result of the forward pass\n"
    "  --mask FILE            queries x keys, added to the scores of all heads\n"
    "  -o, --o FILE           the result, with the shape of X\n"
    "  --do FILE              with --backward: the gradient of o\n"
    "  --dx FILE              with --backward: the gradient of x\n"
    "options\n"
    "  --log                  log-softmax\n"
    "  --scale S              multiplies the scores; default 1\n"
    "  --cap C                soft cap: C * tanh(x * S / C); default: none\n"
    "  --causal               query i sees key j only if j <= i + first position\n"
    "  --window W             and only if j > i + first position - W; default: no limit\n"
    "  --first-position N     position of the first query; default: keys - queries\n"
    "  --backward             compute the gradient; not with --mask or --cap\n"
    "  --isa NAME             scalar, avx2, avx512, neon or generic; default: see nrg info\n";

enum { IN_X, IN_MASK, IN_D_O, INPUTS };
enum { OUT_O, OUT_DX, OUTPUTS };
enum {
    OPT_LOG = INPUTS + OUTPUTS,
    OPT_SCALE,
    OPT_CAP,
    OPT_CAUSAL,
    OPT_WINDOW,
    OPT_FIRST_POSITION,
    OPT_BACKWARD,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [IN_X] = {"x", 'x', 1},
    [IN_MASK] = {"mask", 0, 1},
    [IN_D_O] = {"do", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [INPUTS + OUT_DX] = {"dx", 0, 1},
    [OPT_LOG] = {"log", 0, 0},
    [OPT_SCALE] = {"scale", 0, 1},
    [OPT_CAP] = {"cap", 0, 1},
    [OPT_CAUSAL] = {"causal", 0, 0},
    [OPT_WINDOW] = {"window", 0, 1},
    [OPT_FIRST_POSITION] = {"first-position", 0, 1},
    [OPT_BACKWARD] = {"backward", 0, 0},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

static int check_files(const file_call *call)
{
    const int backward = call->value[OPT_BACKWARD] != NULL;
    const struct {
        int option, wanted, taken;
    } files[] = {{IN_X, 1, 1},
                 {IN_MASK, 0, !backward},
                 {IN_D_O, backward, backward},
                 {INPUTS + OUT_O, !backward, !backward},
                 {INPUTS + OUT_DX, backward, backward},
                 {OPT_CAP, 0, !backward}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const int there = call->value[files[i].option] != NULL;
        if (there && !files[i].taken)
            return file_unusable(call, files[i].option, backward ? " with --backward" : " without --backward");
        if (!there && files[i].wanted)
            return file_missing(call, files[i].option, backward ? " with --backward" : "");
    }
    return CLI_DONE;
}

static int ask(file_call *call)
{
    nrg_softmax_args *a = call->request;
    long long first = 0;
    *a = nrg_softmax_args_init(NRG_F32, 0, 0, 0, 0, NULL, NULL);
    a->log = call->value[OPT_LOG] != NULL;
    a->causal = call->value[OPT_CAUSAL] != NULL;
    if (!file_float(call, OPT_SCALE, &a->scale) || !file_float(call, OPT_CAP, &a->cap) ||
        !file_count(call, OPT_WINDOW, 1, &a->window) ||
        !file_integer(call, OPT_FIRST_POSITION, -((long long)1 << 60), (long long)1 << 60, &first) ||
        (call->value[OPT_BACKWARD] && !library_holds("--backward", "backward")))
        return CLI_REFUSED;
    a->first_position = first;
    const nrg_status status = nrg_softmax_forward(a, 0, 1);
    return status == NRG_OK ? check_files(call) : file_answer(call, status);
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
    const npy_array *x = &call->in[IN_X], *mask = &call->in[IN_MASK], *d_o = &call->in[IN_D_O];
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
    int status = d_o->data ? array_check_shape(d_o, file_in(call, IN_D_O), &x->shape, file_in(call, IN_X)) : CLI_DONE;
    if (status == CLI_DONE && d_o->data && d_o->dtype != x->dtype)
        return file_wrong_dtype(call, IN_D_O, x->dtype, file_in(call, IN_X));
    for (int i = 0; i < OUTPUTS && status == CLI_DONE; i++)
        if (file_out(call, i))
            status = file_reserve(call, i, x->dtype, &x->shape);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (d_o->data) {
        nrg_softmax_backward_args back = nrg_softmax_backward_args_init(a->dtype, a->batch, a->heads, a->queries, a->keys,
                                                                        x->data, d_o->data, call->out[OUT_DX].data);
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

int command_softmax(char **arguments)
{
    static const file_command command = {.name = "softmax",
                                         .help = softmax_help,
                                         .options = options,
                                         .inputs = INPUTS,
                                         .outputs = OUTPUTS,
                                         .count = OPTIONS,
                                         .operand = IN_X,
                                         .ask = ask,
                                         .compute = compute};
    nrg_softmax_args args;
    memset(&args, 0, sizeof args);
    return file_command_run(&command, &args, arguments);
}
