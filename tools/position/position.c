/* nrg position: finds the kind of encoding and runs it. And the shapes and ids of the kinds' inputs.
 *
 * SPDX-License-Identifier: MIT */
#include "position.h"

#include <stdio.h>
#include <string.h>

#include "../commands.h"

static const char position_help[] = "usage: nrg position KIND [OPTION]...\n"
                                    "\n"
                                    "Positional encodings for NumPy .npy files. For rotations use nrg rope.\n"
                                    "\n"
#ifndef NRG_NO_ROPE
                                    "example: the table for 512 positions of 768 elements\n"
                                    "  nrg position sinusoidal --rows 512 --dim 768 --o table.npy\n"
                                    "\n"
#endif
    ,
                  help_end[] =
                      "\n"
                      "  nrg position KIND --help\n"
                      "\n"
                      "exit status: 0 done; 1 an output cannot be written, or no memory; 2 wrong arguments or a wrong input\n";

static const named_command kinds[] = {
    {"absolute", NULL, NULL},
#ifndef NRG_NO_ROPE
    {"sinusoidal", position_sinusoidal, "the table of sines and cosines, or x plus the table"},
#endif
#ifndef NRG_NO_EMBED
    {"learned", position_learned, "x plus rows of a table, or only the rows; backward: the gradient of the table"},
#ifndef NRG_NO_NORM
    {"embedding", position_embedding, "tokens + positions + types, then a norm"},
#endif
#endif
#ifndef NRG_NO_RECURRENT
    {"rnn", position_rnn, "a chain of vectors p_k = tanh(W p_(k-1) + b)"},
#endif
    {"relative", NULL, NULL},
#ifndef NRG_NO_SCORE_BIAS
    {"t5", position_t5, "bias of attention scores by buckets of distances; backward: the gradient of its table"},
    {"alibi", position_alibi, "bias of attention scores by slopes, or only the slopes"},
#endif
#ifndef NRG_NO_RELATIVE
    {"shaw", position_shaw, "terms of clipped relative positions in attention, for scores or for values"},
    {"shift", position_shift, "moves scores of distances to their keys: Transformer-XL, XLNet; backward: back"},
#endif
    {NULL, NULL, NULL},
};

static int print_help(void)
{
    fputs(position_help, stdout);
    for (const named_command *kind = kinds; kind->name; kind++)
        if (kind->run)
            printf("  %-12s %s\n", kind->name, kind->what);
        else
            puts(kind->name);
    fputs(help_end, stdout);
    return CLI_DONE;
}

int command_position(char **arguments)
{
    const char *name = arguments[0];
    if (!name && cli_only_lists()) {
        command_print_names(kinds);
        return CLI_DONE;
    }
    if (!name)
        return cli_refuse("expected a kind of encoding, got none; nrg position --help lists the kinds");
    if (command_is_help(name)) {
        if (arguments[1])
            return cli_refuse("%s takes no other arguments, got '%s'", name, arguments[1]);
        return print_help();
    }
    const named_command *found = command_find(kinds, name, "kind", "nrg position --help");
    return found ? found->run(arguments + 1) : CLI_REFUSED;
}

/* ---- inputs ---- */

int position_axes(const file_call *call, int input, int axes, file_axes *s)
{
    const npy_shape *shape = &call->in[input].shape;
    if (shape->ndim < axes)
        return file_wrong(call, input, "shape (..., %s)", axes == 2 ? "tokens, dim" : "heads, queries, keys or dim");
    *s = file_last_axes(shape, axes);
    return CLI_DONE;
}

/* Those of the file, in every batch anew where it has one row of them. */
static int take_ids(const file_call *call, int input, const npy_shape *shape, const file_axes *s, nrg_embed_table *t)
{
    const npy_array *from = &call->in[input];
    npy_shape all = *shape;
    char wants[NPY_SHAPE_ROOM];
    all.ndim--;
    t->ids = from->data;
    if (from->shape.ndim == 1 && from->count == s->rows) {
        t->period = s->rows ? s->rows : SIZE_MAX;
        return CLI_DONE;
    }
    if (from->shape.ndim == all.ndim && memcmp(from->shape.dims, all.dims, (size_t)all.ndim * sizeof all.dims[0]) == 0)
        return CLI_DONE;
    return file_wrong(call, input, "shape (%zu,)%s%s", s->rows, all.ndim > 1 ? " or " : "",
                      all.ndim > 1 ? npy_shape_text(wants, &all) : "");
}

int position_ids(const file_call *call, int input, const npy_shape *shape, const file_axes *s, int first, size_t table_rows,
                 nrg_embed_table *t)
{
    if (file_in(call, input)) {
        const int status = take_ids(call, input, shape, s, t);
        for (size_t i = 0; i < call->in[input].count && s->batch && status == CLI_DONE; i++)
            if (t->ids[i] < 0 || (size_t)t->ids[i] >= table_rows)
                return cli_refuse("%s: expected row numbers from 0 and below the %zu rows of the table, got %ld",
                                  file_in(call, input), table_rows, (long)t->ids[i]);
        return status;
    }
    if (s->batch && s->rows && (first < 0 || s->rows > table_rows || (size_t)first > table_rows - s->rows))
        return cli_refuse("expected positions below the %zu rows of the table, got positions %lld to %lld", table_rows,
                          (long long)first, first + (long long)s->rows - 1);
    t->first_position = first;
    t->period = s->rows ? s->rows : SIZE_MAX;
    return CLI_DONE;
}
