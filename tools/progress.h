/* tools/progress.h: a line on stderr while a command works, so that none is silent for long.
 *
 * On a terminal it comes after a second, is rewritten every second, and is wiped when the work is done. In a pipe or a log it
 * comes after 10 seconds, 20, 40 and so on: what takes less leaves stderr empty. A timer writes it, because one call of the
 * library may take all the time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_PROGRESS_H
#define NRG_TOOLS_PROGRESS_H

#include <stdint.h>

/* Begins, for a command: "norm"; what is done: "reading", and to what: "x.npy" or "". */
void progress_begin(const char *command);
void progress_step(const char *doing, const char *what);

/* How much of the step is done. */
void progress_part(uint64_t done, uint64_t of);

/* Wipes a line that stands on the terminal, before something else is printed. */
void progress_wipe(void);

/* No more lines. May be called twice, or where nothing has begun. */
void progress_end(void);

#endif
