/* A command that reads .npy files, computes, and writes .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include "file_command.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

const char *file_in(const file_call *call, int input) { return cli_file_name(call->value[input], "standard input"); }

const char *file_out(const file_call *call, int which)
{
    return cli_file_name(call->value[call->command->inputs + which], "standard output");
}

static const char *option_name(const file_call *call, int option) { return call->command->options[option].name; }

int file_option(const file_call *call, const char *name)
{
    for (int i = 0; i < call->command->count; i++)
        if (strcmp(option_name(call, i), name) == 0)
            return i;
    return -1;
}

int file_needs(const file_call *call, int option, int other)
{
    if (!call->value[option] || call->value[other])
        return CLI_DONE;
    return cli_refuse("--%s needs --%s", option_name(call, option), option_name(call, other));
}

int file_excludes(const file_call *call, int option, int other)
{
    if (!call->value[option] || !call->value[other])
        return CLI_DONE;
    return cli_refuse("--%s and --%s cannot be combined", option_name(call, option), option_name(call, other));
}

int file_has_gradient(const file_call *call, int which)
{
    while (which < call->command->outputs && !file_out(call, which))
        which++;
    return which < call->command->outputs;
}

int file_missing(const file_call *call, int option, const char *when)
{
    return cli_refuse("--%s: expected a file%s, got none; see nrg %s --help", option_name(call, option), when,
                      call->command->name);
}

int file_unusable(const file_call *call, int option, const char *when)
{
    return cli_refuse("--%s cannot be used%s", option_name(call, option), when);
}

int file_wrong(const file_call *call, int input, const char *format, ...)
{
    char expected[256], text[NPY_SHAPE_ROOM];
    va_list values;
    va_start(values, format);
    vsnprintf(expected, sizeof expected, format, values);
    va_end(values);
    return cli_refuse("%s: expected %s, got %s%s", file_in(call, input), expected,
                      strncmp(format, "shape", 5) == 0 ? "" : "shape ", npy_shape_text(text, &call->in[input].shape));
}

int file_wrong_dtype(const file_call *call, int input, nrg_dtype expected, const char *beside)
{
    return cli_refuse("%s: expected dtype '%s'%s%s, got '%s'", file_in(call, input), npy_descr(expected), beside ? " as in " : "",
                      beside ? beside : "", npy_descr(call->in[input].dtype));
}

/* Names all options but files and --isa. */
int file_answer(const file_call *call, nrg_status status)
{
    const file_command *command = call->command;
    char given[256] = "";
    if (status == NRG_OK)
        return CLI_DONE;
    for (int i = command->inputs + command->outputs; i < command->count - 2; i++) {
        const cli_option *option = &command->options[i];
        const char *value = call->value[i];
        const size_t used = strlen(given);
        if (!value)
            continue;
        snprintf(given + used, sizeof given - used, " --%s%s%s", option->name, option->takes_value ? " " : "",
                 option->takes_value ? value : "");
    }
    return cli_refuse("%s%s%s", nrg_status_string(status), *given ? "; got" : "", given);
}

npy_shape file_shape(int ndim, const size_t *dims)
{
    npy_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.ndim = ndim;
    memcpy(shape.dims, dims, (size_t)ndim * sizeof *dims);
    return shape;
}

file_axes file_last_axes(const npy_shape *shape, int axes)
{
    file_axes s = {1, 1, 1, 1};
    size_t *const size[] = {&s.columns, &s.rows, &s.heads};
    for (int i = 0; i < shape->ndim; i++)
        *(i < axes ? size[i] : &s.batch) *= shape->dims[shape->ndim - 1 - i];
    return s;
}

int file_rows(const file_call *call, int input, size_t *rows, size_t *dim)
{
    const npy_array *x = &call->in[input];
    *dim = x->shape.ndim ? x->shape.dims[x->shape.ndim - 1] : 0;
    if (!*dim)
        return file_wrong(call, input, "a last axis with at least one element");
    *rows = x->count / *dim;
    return CLI_DONE;
}

int file_reserve(file_call *call, int which, nrg_dtype dtype, const npy_shape *shape)
{
    npy_array *out = &call->out[which];
    char text[NPY_SHAPE_ROOM];
    out->dtype = dtype;
    out->shape = *shape;
    return npy_count(shape, &out->count) ? npy_reserve(out)
                                         : cli_refuse("a result of shape %s does not fit in memory", npy_shape_text(text, shape));
}

void file_reuse(file_call *call, int which, int input)
{
    call->out[which] = call->in[input];
    call->in[input].is_lent = 1;
}

/* The library validates the spec before files are read. It reads no pointer, since there are no rows. */
int file_norm(const file_call *call, int norm, int eps, nrg_norm_spec *spec)
{
    static const char *const norms[] = {"rms", "layer", "l2", NULL};
    int kind = call->value[norm] ? cli_word(option_name(call, norm), call->value[norm], norms) : 0;
    if (kind < 0)
        return 0;
    *spec = kind == 0   ? nrg_norm_spec_rms(NRG_F32, 1, 1e-6)
            : kind == 1 ? nrg_norm_spec_layer(NRG_F32, 1, 1e-5)
                        : nrg_norm_spec_l2(NRG_F32, 1, 1e-12);
    if (call->value[eps] && !cli_nonnegative(option_name(call, eps), call->value[eps], &spec->eps))
        return 0;
#ifdef NRG_NO_NORM
    return !call->value[norm] || cli_build_has("--norm", "norm");
#else
    static float any;
    nrg_norm_args args = nrg_norm_args_init(0, &any, NULL, &any);
    return file_answer(call, nrg_norm_forward(spec, &args, 0, 1)) == CLI_DONE;
#endif
}

static int read_input(file_call *call, int i)
{
    static int (*const read[])(const char *, npy_array *) = {
        [CLI_VALUE] = npy_read, [CLI_INTEGERS] = npy_read_integers, [CLI_BYTES] = npy_read_bytes};
    progress_step("reading", file_in(call, i));
    return read[(int)call->command->options[i].takes_value](call->value[i], &call->in[i]);
}

static int write_array(const npy_array *array, int index, output_set *set)
{
    char header[NPY_HEADER_ROOM];
    progress_step("writing", set->outputs[index].name);
    const size_t length = npy_header(header, array->dtype, &array->shape);
    return output_write(set, index, header, length, array->data, array->count * npy_size(array->dtype));
}

/* Checks the targets first: an output that cannot be written is reported before gigabytes are read. */
static int run(file_call *call, output_set *set)
{
    const int inputs = call->command->inputs, files = inputs + call->command->outputs;
    int status = CLI_DONE, standard = 0;
    for (int i = inputs; i < files && status == CLI_DONE; i++)
        status = call->value[i] ? output_add(set, call->value[i]) : CLI_DONE;
    for (int i = 0; i < inputs; i++)
        standard += call->value[i] && cli_is_standard(call->value[i]);
    if (status == CLI_DONE && standard > 1)
        status = cli_refuse("standard input: given for two inputs");
    for (int i = 0; i < inputs && status == CLI_DONE; i++)
        status = call->value[i] ? read_input(call, i) : CLI_DONE;
    if (status == CLI_DONE) {
        progress_step("computing", "");
        status = call->command->compute(call);
    }
    /* standard output comes last, since nothing can be taken back from there */
    for (int is_standard = 0; is_standard < 2; is_standard++)
        for (int i = inputs, index = 0; i < files && status == CLI_DONE; i++)
            if (call->value[i] && (index++, cli_is_standard(call->value[i]) == is_standard))
                status = write_array(&call->in[i], index - 1, set);
    return status == CLI_DONE ? output_commit(set) : status;
}

static const char help_end[] =
    "\n"
    "'<f4' is float32 and '<f2' is float16. NumPy's default is float64: convert it with x.astype('<f4').\n"
    "A file named - is standard input or output, for at most one file each. nrg writes all outputs or none:\n"
    "it writes new files next to the targets and renames them at the end. So an output may replace an input,\n"
    "but two outputs cannot be one file. nrg follows symbolic links and writes to no other device or pipe.\n"
    "\n"
    "exit status: 0 done; 1 an output cannot be written, or no memory; 2 wrong arguments, or an input that is\n"
    "not a .npy file, is truncated, or has another dtype, order or shape\n";

int file_command_run(const file_command *command, void *request, char **arguments)
{
    enum { ISA_FROM_END = 2 };
    npy_array arrays[FILE_INPUTS + FILE_OUTPUTS];
    file_call call;
    output_set set;
    assert(command->inputs <= FILE_INPUTS && command->outputs <= FILE_OUTPUTS && command->count <= FILE_OPTIONS);
    memset(arrays, 0, sizeof arrays);
    memset(&call, 0, sizeof call);
    call.in = arrays;
    call.out = arrays + command->inputs;
    call.command = command;
    call.request = request;
    cli_set_command(command->name);
    int status = cli_collect(arguments, command->options, command->operand, call.value);
    if (status == CLI_HELP_GIVEN) {
        fputs(command->help, stdout);
        fputs(help_end, stdout);
        return CLI_DONE;
    }
    const char *isa = call.value[command->count - ISA_FROM_END];
    nrg_isa path = NRG_ISA_SCALAR;
    const int backward = file_option(&call, "backward");
    if (status == CLI_DONE && backward >= 0 && call.value[backward] && !cli_build_has("--backward", "backward"))
        status = CLI_REFUSED;
    if (status == CLI_DONE)
        status = command->ask(&call);
    if (status == CLI_DONE && isa && (!cli_isa(isa, &path) || file_answer(&call, nrg_isa_set(path)) != CLI_DONE))
        status = CLI_REFUSED;
    if (status != CLI_DONE)
        return status;
    output_begin(&set);
    progress_begin(command->name);
    status = run(&call, &set);
    progress_end();
    output_end(&set);
    for (int i = 0; i < command->inputs + command->outputs; i++)
        if (!arrays[i].is_lent)
            free(arrays[i].data);
    free(call.workspace);
    return status;
}
