/* Files that appear whole, all of them or none; one may be standard output.
 *
 * SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"
#include "../progress.h"
#include "../system.h"

static int cannot_be_written(const char *name, const char *why) { return cli_fail("%s: %s", name, why); }

static int fail(const char *name, const char *what) { return cli_fail("%s: %s: %s", name, what, strerror(errno)); }

/* Where a file that does not exist yet will be: its directory with links resolved, and its name. */
static int resolve_new(output *out)
{
    if (system_exists(out->name))
        return cannot_be_written(out->name, "a symbolic link to nowhere");
    const char *base = system_base(out->name);
    if (!*base)
        return *out->name ? cannot_be_written(out->name, "no such directory")
                          : cli_refuse("output file: expected a name, got ''");
    /* "/name" is in the root, "name" in the current directory */
    const size_t length = (size_t)(base - out->name);
    char *directory = malloc(length + 2), *resolved = NULL;
    if (directory) {
        memcpy(directory, out->name, length);
        strcpy(directory + length, length ? "" : ".");
        resolved = system_real_path(directory);
        free(directory);
    }
    if (!resolved)
        return cannot_be_written(out->name, strerror(errno));
    int status = CLI_DONE;
    const size_t room = strlen(resolved) + strlen(base) + 2;
    if (!system_may_create_in(resolved))
        status = cannot_be_written(out->name, strerror(errno));
    else if (!(out->target = malloc(room)))
        status = cli_fail("%s: no memory", out->name);
    else
        snprintf(out->target, room, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, base);
    free(resolved);
    return status;
}

static int resolve(output *out)
{
    out->mode = -1;
    if (system_is_special(out->name))
        return cannot_be_written(out->name, "not a regular file; a file named - is standard output");
    out->target = system_real_path(out->name);
    if (!out->target)
        return errno == ENOENT ? resolve_new(out) : cannot_be_written(out->name, strerror(errno));
    const char *why_not = system_why_not_replaced(out->target, &out->mode);
    if (why_not)
        return cannot_be_written(out->name, why_not);
    out->replaces = 1;
    return CLI_DONE;
}

void output_begin(output_set *set) { memset(set, 0, sizeof *set); }

int output_add(output_set *set, const char *path)
{
    output *out = &set->outputs[set->count++];
    out->name = cli_file_name(path, "standard output");
    int status = cli_is_standard(path) ? CLI_DONE : resolve(out);
    for (int i = 0; status == CLI_DONE && i + 1 < set->count; i++) {
        const char *other = set->outputs[i].target;
        if (other && out->target ? system_same_path(other, out->target) : other == out->target)
            status = cli_refuse("%s: given for two outputs", out->name);
    }
    return status;
}

/* A name in the target's directory that nobody has; *file is a new file of this name, or the name is for a link (file NULL). */
static char *new_name(output_set *set, const output *out, FILE **file)
{
    enum { ROOM = 64 };
    const size_t length = (size_t)(system_base(out->target) - out->target);
    char *path = malloc(length + ROOM);
    if (!path)
        return NULL;
    memcpy(path, out->target, length);
    for (int tries = 0; tries < 1000; tries++) {
        snprintf(path + length, ROOM, ".nrg-%ld-%d.tmp", system_process(), set->next_name++);
        if (file ? (*file = system_new_file(path, out->mode)) || errno != EEXIST : !system_exists(path))
            return path;
    }
    free(path);
    return NULL;
}

static int write_all(FILE *file, const char *bytes, size_t size)
{
    enum { CHUNK = 1 << 20 };
    for (size_t at = 0; at < size;) {
        size_t part = size - at < CHUNK ? size - at : CHUNK;
        progress_part(at, size);
        if (system_interrupted()) {
            errno = EINTR;
            return 0;
        }
        if (fwrite(bytes + at, 1, part, file) != part)
            return 0;
        at += part;
    }
    progress_part(size, size);
    return 1;
}

/* Without a buffer, which would keep what could not be written and fail again at the end of the program. */
static int write_standard(output *out, const void *head, size_t head_size, const void *body, size_t body_size)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (write_all(stdout, head, head_size) && write_all(stdout, body, body_size))
        return CLI_DONE;
    const int status = fail(out->name, "cannot write");
    clearerr(stdout); /* one complaint is enough */
    return status;
}

int output_write(output_set *set, int index, const void *head, size_t head_size, const void *body, size_t body_size)
{
    output *out = &set->outputs[index];
    FILE *file = NULL;
    if (!out->target)
        return write_standard(out, head, head_size, body, body_size);
    system_hold_interrupts();
    out->temporary = new_name(set, out, &file);
    if (!file) {
        const int status = fail(out->name, "cannot create a file in its directory");
        free(out->temporary);
        out->temporary = NULL;
        return status;
    }
    int written = write_all(file, head, head_size) && write_all(file, body, body_size) && system_flush(file);
    int error = errno;
    if (fclose(file) != 0 && written) {
        written = 0;
        error = errno;
    }
    errno = error;
    return written ? CLI_DONE : fail(out->name, "cannot write");
}

/* Puts what stands at the target aside: by a second link, so that the target never is missing, or where there are no links by
 * another name. */
static int save(output_set *set, output *out)
{
    if (!out->replaces)
        return 1;
    out->saved = new_name(set, out, NULL);
    if (out->saved && (system_link(out->target, out->saved) || system_rename(out->target, out->saved)))
        return 1;
    free(out->saved);
    out->saved = NULL;
    return 0;
}

static void restore(output *out)
{
    if (!out->saved) {
        if (!out->temporary && !out->replaces)
            system_remove(out->target);
        return;
    }
    if (!system_rename(out->saved, out->target))
        complain("%s: the previous file is now %s", out->name, out->saved);
    else
        system_remove(out->saved); /* still there where both were links to one file: rename then does nothing */
    free(out->saved);
    out->saved = NULL;
}

int output_commit(output_set *set)
{
    int status = CLI_DONE, i;
    for (i = 0; i < set->count && status == CLI_DONE; i++) {
        output *out = &set->outputs[i];
        if (!out->target)
            continue;
        if (system_interrupted()) {
            errno = EINTR;
            status = fail(out->name, "cannot be put in place");
        } else if (!save(set, out) || !system_rename(out->temporary, out->target)) {
            status = fail(out->name, "cannot be put in place");
        } else {
            free(out->temporary);
            out->temporary = NULL;
        }
    }
    while (status != CLI_DONE && i-- > 0)
        if (set->outputs[i].target)
            restore(&set->outputs[i]);
    return status;
}

void output_end(output_set *set)
{
    for (int i = 0; i < set->count; i++) {
        output *out = &set->outputs[i];
        if (out->temporary)
            system_remove(out->temporary);
        if (out->saved)
            system_remove(out->saved);
        free(out->temporary);
        free(out->saved);
        free(out->target);
    }
    set->count = 0;
    system_release_interrupts();
}
