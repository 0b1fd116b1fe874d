/* nrg position: finds the kind of encoding and runs it.
 *
 * SPDX-License-Identifier: MIT */
#include "position.h"

#include <stdio.h>

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
