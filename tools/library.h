/* tools/library.h: what the commands that compute need of the library: its enumerations as words, its statuses as exit statuses.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_LIBRARY_H
#define NRG_TOOLS_LIBRARY_H

#include <nrg/nrg.h>

/* In the order of the enumerations, for cli_word. */
extern const char *const library_stores[], *const library_activations[];

/* Of the path that is to run. Returns CLI_DONE, or CLI_REFUSED after a complaint; so does the next one. */
int library_set_isa(const char *name);

/* Whether this build of the library holds what an option or operand asks for: a family, or "backward". Complains where it does
 * not. */
int library_holds(const char *option, const char *what);

/* What a call has said. */
int library_answer(nrg_status status);

#endif
