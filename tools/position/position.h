/* tools/position/position.h: the kinds of nrg position, and what they share.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_POSITION_POSITION_H
#define NRG_TOOLS_POSITION_POSITION_H

#include <nrg/nrg.h>

#include "../file_command.h"

/* Each takes the arguments behind its name and returns the exit status. */
int position_sinusoidal(char **arguments);
int position_learned(char **arguments);
int position_embedding(char **arguments);
int position_t5(char **arguments);
int position_alibi(char **arguments);
int position_shaw(char **arguments);
int position_shift(char **arguments);
int position_rnn(char **arguments);

/* The last lines of every kind's help. */
#define POSITION_HELP_END                                                                                                        \
    "  --isa NAME             scalar, avx2, avx512, neon or generic; default: see nrg info\n"                                    \
    "\n"                                                                                                                         \
    "Positions and ids are '<i4' or '<i8', all other files '<f4' or '<f2', in C order.\n"

/* The last two axes of an input, or the last three; CLI_REFUSED after a complaint where there are fewer. */
int position_axes(const file_call *call, int input, int axes, file_axes *s);

/* Which row of a table of `table_rows` each of batch · rows tokens takes: as the input has it, of shape (rows,) or of all axes
 * but the last of `shape`; or, where it is absent, first, first + 1, … anew in every batch. Fills ids, first and period of *t. */
int position_ids(const file_call *call, int input, const npy_shape *shape, const file_axes *s, int first, size_t table_rows,
                 nrg_embed_table *t);

#endif
