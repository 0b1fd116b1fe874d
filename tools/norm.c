/* nrg norm: nrg_norm_forward and nrg_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "output.h"

static int write_outputs(const request *q, const tensors *t, output_set *set)
{
    int index = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        const npy_array *out = &t->out[i];
        if (!q->outputs[i])
            continue;
        char header[NPY_HEADER_ROOM];
        size_t length = npy_header(header, out->dtype, &out->shape);
        int status = output_write(set, index++, header, length, out->data, out->count * nrg_dtype_size(out->dtype));
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
    int status = norm_read(q, t);
    if (status == CLI_DONE)
        status = norm_compute(q, t);
    return status == CLI_DONE ? write_outputs(q, t, set) : status;
}

int command_norm(char **arguments)
{
    request q;
    int status = norm_parse(arguments, &q);
    if (status == NORM_HELP_GIVEN) {
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
    for (int i = 0; i < OUTPUTS; i++)
        free(t.out[i].data);
    free(t.workspace);
    return status;
}
