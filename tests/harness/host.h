/* What the suites take from the operating system beyond C. host_posix.c has it for Unix, host_windows.c for Windows.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_HOST_H
#define NRG_TESTS_HARNESS_HOST_H

#include <stddef.h>

enum host_access { HOST_NONE, HOST_READ, HOST_WRITE };

size_t host_page(void);

/* Whole pages, zeroed, that may be read and written; the program ends where there are none. shared: with the processes of tests.
 */
unsigned char *host_pages(size_t bytes, int shared);
void host_protect(unsigned char *pages, size_t bytes, enum host_access access);
void host_free_pages(unsigned char *pages, size_t bytes);

/* What body(data) returns in a process of its own, from 0 to 255; HOST_CRASHED: that died of touching memory that it may not, or
 * HOST_LOST: of something else. */
enum { HOST_CRASHED = -1, HOST_LOST = -2 };
int host_in_process(int body(const void *data), const void *data);

/* Runs this program again, with one argument, and a variable of the environment set, or where value is NULL not there. What it
 * prints goes to `output`. 1 if it ended with EXIT_SUCCESS. */
int host_run_self(const char *argument, const char *variable, const char *value, char *output, size_t room);

/* A variable of this process's environment; value NULL: it goes. */
void host_set_variable(const char *variable, const char *value);

void host_write_stderr(const char *text);

#endif
