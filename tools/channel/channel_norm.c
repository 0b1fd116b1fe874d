/* nrg channel-norm: nrg_channel_norm_forward and nrg_channel_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_norm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../npy/arrays.h"
#include "../cli.h"
#include "../commands.h"

/* Targets are looked at first, as in nrg norm. */
static int normalize(channel_request *q, channel_tensors *t, output_set *set)
{
    int status = arrays_add(q->outputs, OUTPUTS, set);
    if (status == CLI_DONE)
        status = channel_norm_read(q, t);
    if (status == CLI_DONE)
        status = channel_norm_compute(q, t);
    return status == CLI_DONE ? arrays_write(t->out, q->outputs, OUTPUTS, set) : status;
}

int command_channel_norm(char **arguments)
{
    channel_request q;
    int status = channel_norm_parse(arguments, &q);
    if (status == CLI_HELP_GIVEN) {
        fputs(channel_norm_help, stdout);
        return CLI_DONE;
    }
    if (status != CLI_DONE)
        return status;
    channel_tensors t;
    output_set set;
    memset(&t, 0, sizeof t);
    output_begin(&set);
    status = normalize(&q, &t, &set);
    output_end(&set);
    arrays_free(t.in, INPUTS);
    arrays_free(t.out, OUTPUTS);
    free(t.workspace);
    return status;
}
