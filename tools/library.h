/* tools/library.h: the library's enumerations as words, and its statuses as exit statuses.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_LIBRARY_H
#define NRG_TOOLS_LIBRARY_H

#include <nrg/nrg.h>

/* In the order of the enumerations, for cli_word. */
extern const char *const library_stores[], *const library_activations[];

/* Selects a path. Returns CLI_DONE, or CLI_REFUSED after a complaint. */
int library_set_isa(const char *name);

/* Returns 1 if this build contains `what` (a family, or "backward"), which an option requires; otherwise 0, after a complaint. */
int library_holds(const char *option, const char *what);

/* The exit status of a call: CLI_DONE, or CLI_REFUSED after the sentence of its status. file_answer adds the options. */
int library_answer(nrg_status status);

#endif
