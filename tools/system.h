/* tools/system.h: what the programs take from the operating system beyond C. system_posix.c has it for Unix, system_windows.c for
 * Windows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SYSTEM_H
#define NRG_TOOLS_SYSTEM_H

#include <stddef.h>
#include <stdio.h>

/* Standard input and output pass bytes as they are on every system. No file that is opened later takes the place of a standard
 * stream that is closed, and a write to a pipe that nothing reads fails like any other. */
void system_begin(void);

/* Memory that begins at a multiple of 64 bytes, as many bytes as are one; NULL: there is none. */
void *system_allocate(size_t bytes);
void system_free(void *memory);

int system_stderr_is_terminal(void);

/* Safe in a signal handler. */
void system_write_stderr(const char *text, size_t length);

/* Calls `tick` every second from now on, whatever the program does meanwhile: in a signal handler, or in a thread of its own.
 * 0: there is no timer. */
int system_start_ticks(void (*tick)(void));
void system_stop_ticks(void);

/* Signals that end a program wait until system_release_interrupts(); system_interrupted(): one does. A write past the largest
 * file that is allowed is an error like any other from then on. */
void system_hold_interrupts(void);
int system_interrupted(void);
void system_release_interrupts(void);

/* ---- files: names with '/' between their parts; where one fails, errno says why ---- */

/* The part of a name after its last separator. */
const char *system_base(const char *name);

/* The absolute name of a file or directory that exists, links resolved, to be freed; NULL. */
char *system_real_path(const char *name);

/* Whether two such are one file's. */
int system_same_path(const char *a, const char *b);

/* Whether something of that name exists, a link to nowhere too. */
int system_exists(const char *name);

/* Whether it is a device, a pipe or a socket, links followed. */
int system_is_special(const char *name);

/* Whether files may be created in a directory. */
int system_may_create_in(const char *directory);

/* Whether the file that stands there may be replaced; the sentence that says why not, or NULL. *mode: of system_new_file. */
const char *system_why_not_replaced(const char *path, int *mode);

/* A new file, open for writing bytes, of a name that nobody had; NULL, with errno EEXIST where somebody has. mode: of the file it
 * replaces, or -1. */
FILE *system_new_file(const char *path, int mode);

/* To the disk, where the file system can say so. 0: it was not written. */
int system_flush(FILE *file);

/* A second name for a file's contents, or a rename that replaces. 0: not done. */
int system_link(const char *path, const char *second);
int system_rename(const char *from, const char *to);
void system_remove(const char *path);

long system_process(void);

#endif
