/* tools/npy/output.h: files that appear whole, all of them or none; one may be standard output.
 *
 * Each is written beside its target under another name, flushed to the disk, and renamed when all of them are complete. What
 * stood at the targets stays until then, and comes back if a later rename fails.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_NPY_OUTPUT_H
#define NRG_TOOLS_NPY_OUTPUT_H

#include <stddef.h>

enum { OUTPUT_MAX = 11 };

typedef struct output {
    const char *name; /* as the user gave it, for complaints */
    char *target;     /* where it goes, links resolved; NULL: standard output */
    char *temporary;  /* NULL: not written yet, or already renamed */
    char *saved;      /* what stood at the target; NULL: nothing did, or it has not been put aside */
    int replaces;     /* a file stands at the target */
    int mode;         /* of that file, or -1 */
} output;

typedef struct output_set {
    int count, next_name;
    output outputs[OUTPUT_MAX];
} output_set;

void output_begin(output_set *set);

/* Adds a file, its index in the order of calls; "-" is standard output. CLI_FAILED: it is no regular file, or cannot be written.
 * CLI_REFUSED: it has no name, or is in the set already. Touches nothing. This and the following return CLI_DONE, or complain and
 * return the exit status; end the set then. */
int output_add(output_set *set, const char *path);

/* Writes a head and a body to a file's temporary, or to standard output. From the first temporary to output_end, interrupts
 * (SIGINT, SIGTERM, SIGHUP) wait; they end the writing as an error would. */
int output_write(output_set *set, int index, const void *head, size_t head_size, const void *body, size_t body_size);

/* Puts all files in place. */
int output_commit(output_set *set);

/* Removes what has been written and not been put in place. To be called at the end in any case. */
void output_end(output_set *set);

#endif
