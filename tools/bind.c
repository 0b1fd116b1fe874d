/* Files and the operands of a call, as the library describes it (src/operands/operand.h): an option is named after its operand.
 *
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../src/operands/check.h"
#include "file_command.h"

/* Whether a file, D_O, is for an operand, d_o. */
static int is_name(const char *file, const char *operand)
{
    while (*file && tolower((unsigned char)*file) == *operand)
        file++, operand++;
    return !*file && !*operand;
}

/* The operand of a file, or NULL. An input may be what a result is added to, which is an operand that is read and written. */
static const nrg_operand *operand_of(const file_call *call, int file)
{
    const file_command *command = call->command;
    const nrg_call *d = call->function->call;
    const char *name = call->operand[file] ? call->operand[file] : command->files[file].name;
    for (const nrg_operand *o = d->operands; o < d->operands + d->operand_count; o++)
        if ((file < command->inputs ? o->role == NRG_IN || o->role == NRG_INOUT : o->role != NRG_IN) && is_name(name, o->name))
            return o;
    return NULL;
}

static void set_pointer(const file_call *call, const nrg_operand *o, const void *pointer)
{
    memcpy((char *)call->part[o->part] + o->at, &pointer, sizeof pointer);
}

/* What the call makes of its operands, told which of them there will be; those without a file are the command's. */
static nrg_status measure(const file_call *call, nrg_sizes *s)
{
    nrg_checked c;
    for (int i = 0; i < call->command->inputs + call->command->outputs; i++) {
        const nrg_operand *o = operand_of(call, i);
        if (o)
            set_pointer(call, o, call->value[i] ? NRG_UNALLOCATED : NULL);
    }
    const nrg_status status = nrg_check_options(&c, call->function->call, (const void *const *)call->part);
    *s = c.sizes;
    return status;
}

int file_ask(const file_call *call)
{
    const int backward = file_option(call, "backward"), is_backward = backward >= 0 && call->value[backward],
              format = file_option(call, "format"), has_format = format >= 0 && call->value[format],
              count = call->command->inputs + call->command->outputs;
    nrg_sizes s;
    const nrg_status status = measure(call, &s);
    if (status != NRG_OK)
        return file_answer(call, status);
    for (int i = 0; i < count; i++)
        if (call->value[i] && !call->operand[i] && !operand_of(call, i))
            return file_unusable(call, i, is_backward ? " with --backward" : " without --backward");
    for (int i = 0; i < count; i++) {
        const nrg_operand *o = operand_of(call, i);
        const uint32_t bit = o ? NRG_BIT(o - call->function->call->operands) : 0;
        const int is_needed = ((s.needed | s.always) & bit) != 0;
        if (call->value[i] && s.refused & bit)
            return file_answer(call, NRG_ERR_COMBINATION);
        if (!call->value[i] && o && (o->role != NRG_INOUT || i >= call->command->inputs) && (!o->may_be_absent || is_needed))
            return file_missing(call, i,
                                is_backward && i != call->command->operand ? " with --backward"
                                : is_needed && has_format                  ? " with --format"
                                                                           : "");
    }
    return CLI_DONE;
}

/* Tells the request which dtypes of their own its inputs have: that of the first, or '<f4'; this too where two that share one
 * differ. */
static int read_dtypes(const file_call *call, int first)
{
    for (int i = 0; i < call->command->inputs; i++) {
        const size_t at = call->command->files[i].dtype_at;
        const nrg_dtype dtype = call->in[i].dtype;
        if (!at || !call->in[i].data)
            continue;
        if (dtype != NRG_F32 && dtype != call->in[first].dtype)
            return file_wrong_dtype(call, i, call->in[first].dtype, file_in(call, first));
        nrg_dtype *own = (nrg_dtype *)((char *)call->request + at);
        if (*own != NRG_F32)
            *own = dtype;
    }
    return CLI_DONE;
}

/* The axes of an operand: those of the first input's file, and perhaps another row, where it has as many rows; no axis of what
 * repeats. */
static npy_shape shape_of(const file_call *call, int first, const nrg_sizes *s, const nrg_operand *o)
{
    const nrg_operand *leader = operand_of(call, first);
    npy_shape shape = call->in[first].shape;
    const uint32_t repeated = nrg_repeated(o, call->part[o->part]);
    int is_alike = o->levels && !repeated;
    for (unsigned k = 0; k < o->levels; k++)
        is_alike &= o->level[k].count == leader->level[k].count;
    if (!is_alike) {
        shape.ndim = 1;
        for (unsigned k = o->levels; k-- > 0;)
            if (o->level[k].count != NRG_ONE && !(repeated >> k & 1))
                shape.dims[shape.ndim++ - 1] = s->n[o->level[k].count];
    }
    /* without rows the library looks at no line, which still has to be as long as one */
    if (shape.ndim && (!is_alike || o->dim != leader->dim))
        shape.dims[shape.ndim - 1] = s->n[o->dim] || o->levels ? s->n[o->dim] : s->n[leader->dim];
    return shape;
}

/* An input has its operand's shape and dtype, and an output takes them. */
static int take(file_call *call, int first, const nrg_sizes *s, const nrg_operand *o, int option)
{
    npy_array *array = &call->in[option];
    const npy_shape own = shape_of(call, first, s, o), *shape = call->shape[option] ? call->shape[option] : &own;
    const int is_chosen = o->element >= NRG_ELEMENT_CHOSEN;
    const nrg_dtype dtype = is_chosen                       ? s->type[o->element - NRG_ELEMENT_CHOSEN]
                            : o->element == NRG_ELEMENT_F32 ? NRG_F32
                                                            : array->dtype;
    if (option >= call->command->inputs)
        return array->data ? CLI_DONE : file_reserve(call, option - call->command->inputs, dtype, shape);
    const int status = npy_check_shape(array, file_in(call, option), shape, file_in(call, first));
    if (status != CLI_DONE || array->dtype == dtype)
        return status;
    if (call->command->files[option].dtype_at)
        return npy_widen(array);
    return file_wrong_dtype(call, option, dtype, is_chosen && dtype == call->in[first].dtype ? file_in(call, first) : NULL);
}

static int take_workspace(file_call *call, const nrg_sizes *s, const nrg_operand *o)
{
    const size_t bytes = s->n[o->dim] * nrg_element_bytes(o->element, s);
    call->workspace = malloc(bytes ? bytes : 1);
    memcpy((char *)call->part[o->part] + o->room, &bytes, sizeof bytes);
    set_pointer(call, o, call->workspace);
    return call->workspace ? CLI_DONE : npy_no_memory(bytes);
}

int file_bind(file_call *call, int first)
{
    const nrg_call *d = call->function->call;
    nrg_sizes s;
    int status = read_dtypes(call, first);
    const nrg_status answer = status == CLI_DONE ? measure(call, &s) : NRG_OK;
    if (answer != NRG_OK)
        return file_answer(call, answer);
    for (int i = 0; i < call->command->inputs + call->command->outputs && status == CLI_DONE; i++) {
        const nrg_operand *o = call->value[i] ? operand_of(call, i) : NULL;
        if (!o)
            continue;
        status = take(call, first, &s, o, i);
        set_pointer(call, o, call->in[i].data);
    }
    for (const nrg_operand *o = d->operands; o < d->operands + d->operand_count && status == CLI_DONE; o++)
        if (o->role == NRG_SCRATCH)
            status = take_workspace(call, &s, o);
    return status;
}

int file_invoke(const file_call *call)
{
    nrg_status status = call->function->run(call->part, 0, 1);
    if (status == NRG_OK && call->then)
        status = call->then->run(call->part, 0, 1);
    return file_answer(call, status);
}

int file_run(file_call *call, int first)
{
    const int status = file_bind(call, first);
    return status == CLI_DONE ? file_invoke(call) : status;
}
