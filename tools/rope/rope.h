/* tools/rope/rope.h: what the parts of nrg rope share: rope_options.c reads the arguments into a request, rope.c does what it
 * asks for.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_ROPE_ROPE_H
#define NRG_TOOLS_ROPE_ROPE_H

#include <nrg/nrg.h>

#include "../file_command.h"

enum { ROPE_X, ROPE_POSITIONS, ROPE_FREQ_FACTORS, ROPE_W, ROPE_B, ROPE_INPUTS };
enum { ROPE_O, ROPE_OUTPUTS };

typedef struct rope_request {
    nrg_rope_spec spec; /* n_dims 0: all of a row from rotate_from on */
    nrg_norm_spec norm; /* its dim and dtypes come from the files */
    nrg_store store;
    size_t rotate_from, tokens;
    int32_t first;
    int has_norm, is_table, backward, heads_first;
} rope_request;

/* As in file_command. */
int rope_compute(file_call *call);

#endif
