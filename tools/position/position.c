/* nrg position: finds the kind of encoding and runs it.
 *
 * SPDX-License-Identifier: MIT */
#include "position.h"

#include <stdio.h>
#include <string.h>

#include "../commands.h"

static const char position_help[] =
    "usage: nrg position KIND [OPTION]...\n"
    "\n"
    "Positional encodings for NumPy .npy files. For rotations use nrg rope.\n"
    "\n"
#ifndef NRG_NO_ROPE
    "example: the table for 512 positions of 768 elements\n"
    "  nrg position sinusoidal --rows 512 --dim 768 --o table.npy\n"
    "\n"
#endif
    "absolute\n"
#ifndef NRG_NO_ROPE
    "  sinusoidal   the table of sines and cosines, or x plus the table\n"
#endif
#ifndef NRG_NO_EMBED
    "  learned      x plus rows of a table, or only the rows; backward: the gradient of the table\n"
#ifndef NRG_NO_NORM
    "  embedding    tokens + positions + types, then a norm\n"
#endif
#endif
#ifndef NRG_NO_RECURRENT
    "  rnn          a chain of vectors p_k = tanh(W p_(k-1) + b)\n"
#endif
    "relative\n"
#ifndef NRG_NO_SCORE_BIAS
    "  t5           bias of attention scores by buckets of distances; backward: the gradient of its table\n"
    "  alibi        bias of attention scores by slopes, or only the slopes\n"
#endif
#ifndef NRG_NO_RELATIVE
    "  shaw         terms of clipped relative positions in attention, for scores or for values\n"
    "  shift        moves scores of distances to their keys: Transformer-XL, XLNet; backward: back\n"
#endif
    "\n"
    "  nrg position KIND --help\n"
    "\n"
    "exit status: 0 done; 1 an output cannot be written, or no memory; 2 wrong arguments or a wrong input\n";

static const named_command kinds[] = {
#ifndef NRG_NO_ROPE
    {"sinusoidal", position_sinusoidal},
#endif
#ifndef NRG_NO_EMBED
    {"learned", position_learned},
#ifndef NRG_NO_NORM
    {"embedding", position_embedding},
#endif
#endif
#ifndef NRG_NO_RECURRENT
    {"rnn", position_rnn},
#endif
#ifndef NRG_NO_SCORE_BIAS
    {"t5", position_t5},
    {"alibi", position_alibi},
#endif
#ifndef NRG_NO_RELATIVE
    {"shaw", position_shaw},
    {"shift", position_shift},
#endif
    {NULL, NULL},
};

static int list_kinds(void)
{
    for (size_t i = 0; kinds[i].name; i++)
        puts(kinds[i].name);
    return CLI_DONE;
}

int command_position(char **arguments)
{
    const char *name = arguments[0];
    if (cli_only_lists() && !name)
        return list_kinds();
    if (!name) {
        complain("expected a kind of encoding, got none; nrg position --help lists the kinds");
        return CLI_REFUSED;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        if (arguments[1]) {
            complain("%s takes no other arguments, got '%s'", name, arguments[1]);
            return CLI_REFUSED;
        }
        fputs(position_help, stdout);
        return CLI_DONE;
    }
    const named_command *found = command_find(kinds, name, "kind", "nrg position --help");
    return found ? found->run(arguments + 1) : CLI_REFUSED;
}
