/* nrg norm: nrg_norm_forward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "cli.h"
#include "commands.h"
#include "npy.h"
#include "output.h"

const char norm_help[] = "usage: nrg norm [OPTION]... X.npy --o O.npy\n"
                         "\n"
                         "Normalizes the rows of a NumPy array: its last axis is a row, the other axes count rows.\n"
                         "  r = x + y;  o = (c/sqrt(d)) * ((r - mean) / s) * (w + weight_offset) + b\n"
                         "\n"
                         "inputs\n"
                         "  X.npy, -x, --x FILE   x: '<f4' or '<f2', in C order, at least one axis\n"
                         "  --y FILE              residual, of x's shape\n"
                         "  --w FILE, --b FILE    weight and bias, of shape (d,)\n"
                         "                        y, w and b each have the dtype of x or '<f4'\n"
                         "outputs\n"
                         "  -o, --o FILE          the result, with the shape and dtype of x (required)\n"
                         "  --r FILE              the residual sum r\n"
                         "  --mean FILE           the mean of each row as '<f4' (0 for --rms, --l2), of shape x.shape[:-1]\n"
                         "  --rstd FILE           1/s of each row, likewise\n"
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
                         "  --residual WHERE      before: as above (default); after: r = x, and y is added to o\n"
                         "  --r-dtype TYPE        same (as x, default), f32 or f16: r is rounded to it, written or not\n"
                         "  --store KIND          auto (default), keep or stream: how the kernel stores; changes no bit\n"
                         "  --isa NAME            scalar, avx2, avx512 or neon; default: see nrg info\n"
                         "\n"
                         "Outputs appear complete, all of them or none: they are written beside their targets and renamed at\n"
                         "the end. What they replace is left alone until then, so an output may also be an input; two outputs\n"
                         "may not be one file. A symbolic link is followed, a device or pipe is refused.\n"
                         "\n"
                         "exit status: 0 done; 1 an output cannot be written, or no memory; 2 refused: wrong arguments, or an\n"
                         "input that is no .npy file, is broken or truncated, or has another dtype, order or shape\n";

enum { IN_X, IN_Y, IN_W, IN_B, INPUTS };
enum { OUT_O, OUT_R, OUT_MEAN, OUT_RSTD, OUTPUTS };

/* Files first, in the order of the two enumerations above. */
enum {
    OPT_INPUT = 0,
    OPT_OUTPUT = INPUTS,
    OPT_RMS = INPUTS + OUTPUTS,
    OPT_LAYER,
    OPT_L2,
    OPT_EPS,
    OPT_EPS_MODE,
    OPT_C,
    OPT_WEIGHT_OFFSET,
    OPT_RESIDUAL,
    OPT_R_DTYPE,
    OPT_STORE,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    {"x", 'x', 1},
    {"y", 0, 1},
    {"w", 0, 1},
    {"b", 0, 1},
    {"o", 'o', 1},
    {"r", 0, 1},
    {"mean", 0, 1},
    {"rstd", 0, 1},
    [OPT_RMS] = {"rms", 0, 0},
    [OPT_LAYER] = {"layer", 0, 0},
    [OPT_L2] = {"l2", 0, 0},
    [OPT_EPS] = {"eps", 0, 1},
    [OPT_EPS_MODE] = {"eps-mode", 0, 1},
    [OPT_C] = {"c", 0, 1},
    [OPT_WEIGHT_OFFSET] = {"weight-offset", 0, 1},
    [OPT_RESIDUAL] = {"residual", 0, 1},
    [OPT_R_DTYPE] = {"r-dtype", 0, 1},
    [OPT_STORE] = {"store", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

/* In the order of the library's enumerations. */
static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none", NULL};
static const char *const residual_modes[] = {"before", "after", NULL};
static const char *const stores[] = {"auto", "keep", "stream", NULL};
static const char *const dtypes[] = {"same", "f32", "f16", NULL};

typedef struct request {
    const char *inputs[INPUTS], *outputs[OUTPUTS]; /* file names; NULL: absent */
    const char *value[OPTIONS];                    /* of the options given; for those without a value, themselves */
    nrg_norm_spec spec;                            /* its dim and dtypes come from the files */
} request;

enum { HELP_GIVEN = -1 }; /* instead of an exit status */

/* Sorts the arguments; nothing may be given twice, since one of the two would have no effect. */
static int collect(char **arguments, request *q)
{
    cli_reader reader = {arguments, 0};
    for (;;) {
        const char *value;
        int found = cli_next(&reader, options, &value);
        if (found == CLI_END)
            break;
        if (found == CLI_ERROR)
            return CLI_REFUSED;
        if (found == OPT_HELP)
            return HELP_GIVEN;
        if (found == CLI_OPERAND)
            found = OPT_INPUT + IN_X;
        if (q->value[found]) {
            complain("%s is given twice", found == OPT_INPUT + IN_X ? "x" : options[found].name);
            return CLI_REFUSED;
        }
        q->value[found] = value;
    }
    for (int i = 0; i < INPUTS; i++)
        q->inputs[i] = q->value[OPT_INPUT + i];
    for (int i = 0; i < OUTPUTS; i++)
        q->outputs[i] = q->value[OPT_OUTPUT + i];
    return CLI_DONE;
}

static int require(const request *q)
{
    if (!q->inputs[IN_X])
        complain("no input file; nrg norm --help");
    else if (!q->outputs[OUT_O])
        complain("no output file: --o FILE");
    else if (!!q->value[OPT_RMS] + !!q->value[OPT_LAYER] + !!q->value[OPT_L2] > 1)
        complain("--rms, --layer and --l2 exclude each other");
    else
        return 1;
    return 0;
}

/* The value of an option as a word's index; 0 where it is not given, which is every list's default. */
static int word(const request *q, int option, const char *const *words)
{
    return q->value[option] ? cli_word(options[option].name, q->value[option], words) : 0;
}

static int make_spec(request *q)
{
    nrg_norm_spec *s = &q->spec;
    *s = q->value[OPT_LAYER] ? nrg_layer_norm_spec(1, 1e-5)
         : q->value[OPT_L2]  ? nrg_l2_norm_spec(1, 1e-12)
                             : nrg_rms_norm_spec(1, 1e-6);
    int eps_mode = word(q, OPT_EPS_MODE, eps_modes), residual = word(q, OPT_RESIDUAL, residual_modes);
    int store = word(q, OPT_STORE, stores), r_dtype = word(q, OPT_R_DTYPE, dtypes);
    if (eps_mode < 0 || residual < 0 || store < 0 || r_dtype < 0)
        return CLI_REFUSED;
    if (q->value[OPT_EPS_MODE])
        s->eps_mode = (nrg_eps_mode)eps_mode;
    s->residual_mode = (nrg_residual_mode)residual;
    s->store = (nrg_store)store;
    s->r_dtype = (nrg_dtype)r_dtype;
    if ((q->value[OPT_EPS] && !cli_double("eps", q->value[OPT_EPS], &s->eps)) ||
        (q->value[OPT_C] && !cli_double("c", q->value[OPT_C], &s->c)) ||
        (q->value[OPT_WEIGHT_OFFSET] && !cli_float("weight-offset", q->value[OPT_WEIGHT_OFFSET], &s->weight_offset)))
        return CLI_REFUSED;
    if (s->residual_mode == NRG_RESIDUAL_AFTER && !q->inputs[IN_Y]) {
        complain("--residual after needs --y");
        return CLI_REFUSED;
    }
    return CLI_DONE;
}

static int set_isa(const char *name)
{
    nrg_isa isa;
    nrg_status status = nrg_isa_from_name(name, &isa);
    if (status == NRG_OK)
        status = nrg_isa_set(isa);
    if (status == NRG_OK)
        return CLI_DONE;
    complain("--isa %s: %s", name, nrg_status_string(status));
    return CLI_REFUSED;
}

/* The library's own word on the spec and on the operands asked for, before files are read: no rows, so no pointer is followed. */
static int ask_library(const request *q)
{
    static float any;
    nrg_norm_args args = nrg_norm_args_init(0, &any, &any);
    args.y = q->inputs[IN_Y] ? &any : NULL;
    args.r = q->outputs[OUT_R] ? &any : NULL;
    nrg_status status = nrg_norm_forward(&q->spec, &args, 0, 1);
    /* the dtypes are known only when x has been read */
    if (status == NRG_OK || status == NRG_ERR_DTYPE)
        return CLI_DONE;
    complain("%s", nrg_status_string(status));
    return CLI_REFUSED;
}

static int parse(char **arguments, request *q)
{
    memset(q, 0, sizeof *q);
    int status = collect(arguments, q);
    if (status != CLI_DONE)
        return status;
    if (!require(q))
        return CLI_REFUSED;
    status = make_spec(q);
    if (status == CLI_DONE && q->value[OPT_ISA])
        status = set_isa(q->value[OPT_ISA]);
    return status == CLI_DONE ? ask_library(q) : status;
}

typedef struct tensors {
    npy_array in[INPUTS]; /* data NULL: absent */
    npy_shape leading;    /* x's shape without its last axis */
    size_t rows, dim;
    void *r;
    float *mean, *rstd;
} tensors;

static int refuse_shape(const request *q, const tensors *t, int input, const npy_shape *wanted)
{
    char has[NPY_SHAPE_ROOM], wants[NPY_SHAPE_ROOM];
    complain("%s: shape %s, but with %s it has to be %s", q->inputs[input], npy_shape_text(has, &t->in[input].shape),
             q->inputs[IN_X], npy_shape_text(wants, wanted));
    return CLI_REFUSED;
}

static int same_shape(const npy_shape *a, const npy_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

/* Splits x's shape into rows and dim. */
static int split_shape(const char *name, tensors *t)
{
    const npy_shape *shape = &t->in[IN_X].shape;
    if (!shape->ndim) {
        complain("%s: a scalar (0 axes); x needs at least one axis", name);
        return CLI_REFUSED;
    }
    t->leading = *shape;
    t->leading.ndim--;
    t->dim = shape->dims[shape->ndim - 1];
    if (!t->dim) {
        char text[NPY_SHAPE_ROOM];
        complain("%s: shape %s: its rows have no elements", name, npy_shape_text(text, shape));
        return CLI_REFUSED;
    }
    t->rows = t->in[IN_X].count / t->dim;
    return CLI_DONE;
}

static int check_operand(const request *q, const tensors *t, int input)
{
    npy_shape vector = {1, {t->dim}};
    const npy_shape *wanted = input == IN_Y ? &t->in[IN_X].shape : &vector;
    if (!same_shape(&t->in[input].shape, wanted))
        return refuse_shape(q, t, input, wanted);
    if (t->in[input].dtype != t->in[IN_X].dtype && t->in[input].dtype != NRG_F32) {
        complain("%s: '<f2' beside '<f4' in %s; y, w and b have the dtype of x or '<f4'", q->inputs[input], q->inputs[IN_X]);
        return CLI_REFUSED;
    }
    return CLI_DONE;
}

static int read_inputs(const request *q, tensors *t)
{
    for (int i = 0; i < INPUTS; i++) {
        if (!q->inputs[i])
            continue;
        int status = npy_read(q->inputs[i], &t->in[i]);
        if (status == CLI_DONE)
            status = i == IN_X ? split_shape(q->inputs[i], t) : check_operand(q, t, i);
        if (status != CLI_DONE)
            return status;
    }
    return CLI_DONE;
}

static float widen(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    float magnitude = exponent == 31  ? mantissa ? NAN : INFINITY
                      : exponent == 0 ? ldexpf((float)mantissa, -24)
                                      : ldexpf((float)(mantissa + 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* w and b are of one dtype for the library; of two that differ, the 16-bit one is widened, which changes no value. */
static int match_weights(tensors *t)
{
    npy_array *w = &t->in[IN_W], *b = &t->in[IN_B];
    if (!w->data || !b->data || w->dtype == b->dtype)
        return CLI_DONE;
    npy_array *narrow = w->dtype == NRG_F16 ? w : b;
    const uint16_t *halves = narrow->data;
    float *wide = narrow->count <= SIZE_MAX / sizeof *wide ? malloc(narrow->count * sizeof *wide) : NULL;
    if (!wide) {
        complain("no memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < narrow->count; i++)
        wide[i] = widen(halves[i]);
    free(narrow->data);
    narrow->data = wide;
    narrow->dtype = NRG_F32;
    return CLI_DONE;
}

/* Memory for an output that is asked for: *memory stays NULL where it is not. */
static int reserve(int wanted, size_t count, nrg_dtype dtype, void **memory)
{
    size_t element = nrg_dtype_size(dtype);
    if (!wanted)
        return CLI_DONE;
    *memory = count <= SIZE_MAX / element ? malloc(count ? count * element : 1) : NULL;
    if (*memory)
        return CLI_DONE;
    complain("no memory for %zu elements", count);
    return CLI_FAILED;
}

/* o takes x's place in memory, which the library allows. */
static int compute(request *q, tensors *t)
{
    nrg_norm_spec *s = &q->spec;
    const npy_array *in = t->in;
    s->dim = t->dim;
    s->dtype = in[IN_X].dtype;
    s->y_dtype = in[IN_Y].dtype;
    s->w_dtype = in[IN_W].data ? in[IN_W].dtype : in[IN_B].dtype;
    if (!s->r_dtype)
        s->r_dtype = s->dtype;
    void *mean = NULL, *rstd = NULL;
    int status = reserve(q->outputs[OUT_R] != NULL, in[IN_X].count, s->r_dtype, &t->r);
    if (status == CLI_DONE)
        status = reserve(q->outputs[OUT_MEAN] != NULL, t->rows, NRG_F32, &mean);
    if (status == CLI_DONE)
        status = reserve(q->outputs[OUT_RSTD] != NULL, t->rows, NRG_F32, &rstd);
    t->mean = mean;
    t->rstd = rstd;
    if (status != CLI_DONE)
        return status;
    nrg_norm_args args = nrg_norm_args_init(t->rows, in[IN_X].data, in[IN_X].data);
    args.y = in[IN_Y].data;
    args.w = in[IN_W].data;
    args.b = in[IN_B].data;
    args.r = t->r;
    args.mean = t->mean;
    args.rstd = t->rstd;
    nrg_status result = nrg_norm_forward(s, &args, 0, 1);
    if (result == NRG_OK)
        return CLI_DONE;
    complain("%s", nrg_status_string(result));
    return CLI_REFUSED;
}

static int write_outputs(const request *q, const tensors *t, output_set *set)
{
    const struct {
        const void *data;
        nrg_dtype dtype;
        const npy_shape *shape;
        size_t count;
    } arrays[OUTPUTS] = {
        [OUT_O] = {t->in[IN_X].data, q->spec.dtype, &t->in[IN_X].shape, t->in[IN_X].count},
        [OUT_R] = {t->r, q->spec.r_dtype, &t->in[IN_X].shape, t->in[IN_X].count},
        [OUT_MEAN] = {t->mean, NRG_F32, &t->leading, t->rows},
        [OUT_RSTD] = {t->rstd, NRG_F32, &t->leading, t->rows},
    };
    int index = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        if (!q->outputs[i])
            continue;
        char header[NPY_HEADER_ROOM];
        size_t length = npy_header(header, arrays[i].dtype, arrays[i].shape);
        size_t bytes = arrays[i].count * nrg_dtype_size(arrays[i].dtype);
        int status = output_write(set, index++, header, length, arrays[i].data, bytes);
        if (status != CLI_DONE)
            return status;
    }
    return output_commit(set);
}

/* Targets are looked at first: reading gigabytes to find that nothing can be written would be unkind. */
static int normalize(request *q, tensors *t, output_set *set)
{
    for (int i = 0; i < OUTPUTS; i++) {
        int status = q->outputs[i] ? output_add(set, q->outputs[i]) : CLI_DONE;
        if (status != CLI_DONE)
            return status;
    }
    int status = read_inputs(q, t);
    if (status == CLI_DONE)
        status = match_weights(t);
    if (status == CLI_DONE)
        status = compute(q, t);
    return status == CLI_DONE ? write_outputs(q, t, set) : status;
}

int command_norm(char **arguments)
{
    request q;
    int status = parse(arguments, &q);
    if (status == HELP_GIVEN) {
        fputs(norm_help, stdout);
        return CLI_DONE;
    }
    if (status != CLI_DONE)
        return status;
    tensors t;
    output_set set;
    memset(&t, 0, sizeof t);
    output_begin(&set);
    status = normalize(&q, &t, &set);
    output_end(&set);
    for (int i = 0; i < INPUTS; i++)
        free(t.in[i].data);
    free(t.r);
    free(t.mean);
    free(t.rstd);
    return status;
}
