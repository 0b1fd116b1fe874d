/* tools/library.h: the library's enumerations as words, its paths and what it was built with.
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

#endif
