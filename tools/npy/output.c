/* Files that appear whole, all of them or none.
 *
 * SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cli.h"
#include "../progress.h"

static int no_memory(const char *name)
{
    complain("%s: no memory", name);
    return CLI_FAILED;
}

static int refuse(const char *name, const char *why)
{
    complain("%s: %s", name, why);
    return CLI_REFUSED;
}

static int fail(const char *name, const char *what)
{
    complain("%s: %s: %s", name, what, strerror(errno));
    return CLI_FAILED;
}

/* directory/name */
static char *join(const char *directory, const char *name)
{
    size_t room = strlen(directory) + strlen(name) + 2;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
    return path;
}

/* The directory of an absolute path. */
static char *directory_of(const char *path)
{
    size_t length = (size_t)(strrchr(path, '/') - path);
    char *directory = malloc(length + 2);
    if (directory) {
        memcpy(directory, path, length);
        strcpy(directory + length, length ? "" : "/");
    }
    return directory;
}

/* Where a file that does not exist yet will be: its directory with links resolved, and its name. */
static int resolve_new(output *out)
{
    struct stat found;
    if (lstat(out->name, &found) == 0)
        return refuse(out->name, "a symbolic link to nowhere");
    const char *slash = strrchr(out->name, '/'), *base = slash ? slash + 1 : out->name;
    if (!*base)
        return refuse(out->name, *out->name ? "no such directory" : "a file needs a name");
    size_t length = slash ? (size_t)(slash - out->name) : 0;
    char *directory = malloc(length + 2), *resolved = NULL;
    if (directory) {
        memcpy(directory, out->name, length);
        /* "/name" is in the root, "name" in the current directory */
        strcpy(directory + length, length ? "" : slash ? "/" : ".");
        resolved = realpath(directory, NULL);
        free(directory);
    }
    if (!resolved)
        return refuse(out->name, strerror(errno));
    int status = CLI_DONE;
    if (access(resolved, W_OK | X_OK) != 0)
        status = refuse(out->name, strerror(errno));
    else if (!(out->target = join(resolved, base)))
        status = no_memory(out->name);
    free(resolved);
    return status;
}

/* In a directory such as /tmp nobody can rename another user's file, nor remove a link to it. */
static int is_protected(const char *path, uid_t owner)
{
    char *directory = directory_of(path);
    struct stat found;
    int is_sticky = directory && stat(directory, &found) == 0 && (found.st_mode & S_ISVTX);
    free(directory);
    return is_sticky && geteuid() != 0 && geteuid() != owner && geteuid() != found.st_uid;
}

static int resolve(output *out)
{
    struct stat found;
    out->target = realpath(out->name, NULL);
    if (!out->target)
        return errno == ENOENT ? resolve_new(out) : refuse(out->name, strerror(errno));
    if (stat(out->target, &found) != 0)
        return refuse(out->name, strerror(errno));
    /* a rename would put a file in the place of a device such as /dev/null */
    if (!S_ISREG(found.st_mode))
        return refuse(out->name, "exists and is not a regular file");
    if (access(out->target, W_OK) != 0)
        return refuse(out->name, strerror(errno));
    if (is_protected(out->target, found.st_uid))
        return refuse(out->name, "belongs to another user, in a directory with the sticky bit");
    out->replaces = 1;
    out->mode = found.st_mode & 0777;
    return CLI_DONE;
}

void output_begin(output_set *set) { memset(set, 0, sizeof *set); }

int output_add(output_set *set, const char *path)
{
    output *out = &set->outputs[set->count++];
    out->name = path;
    int status = resolve(out);
    for (int i = 0; status == CLI_DONE && i + 1 < set->count; i++)
        if (strcmp(set->outputs[i].target, out->target) == 0)
            status = refuse(path, "given for two outputs");
    return status;
}

/* A name in the target's directory that nobody has; *fd is a new file of this name, or the name is for a link (fd NULL). */
static char *new_name(output_set *set, const output *out, int *fd)
{
    char name[64], *directory = directory_of(out->target), *path = NULL;
    if (!directory)
        return NULL;
    for (int tries = 0; tries < 1000; tries++) {
        snprintf(name, sizeof name, ".nrg-%ld-%d.tmp", (long)getpid(), set->next_name++);
        path = join(directory, name);
        struct stat found;
        if (!path)
            break;
        if (fd) {
            *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (*fd >= 0 || errno != EEXIST)
                break;
        } else if (lstat(path, &found) != 0) {
            break;
        }
        free(path);
        path = NULL;
    }
    free(directory);
    return path;
}

static void hold_signals(output_set *set)
{
    if (set->signals_held)
        return;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    set->signals_held = sigprocmask(SIG_BLOCK, &signals, &set->signals_before) == 0;
    /* a file larger than ulimit -f allows is a write error like any other */
    signal(SIGXFSZ, SIG_IGN);
}

static int interrupted(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGHUP) == 1;
}

static int write_all(FILE *file, const char *bytes, size_t size)
{
    enum { CHUNK = 1 << 20 };
    for (size_t at = 0; at < size;) {
        size_t part = size - at < CHUNK ? size - at : CHUNK;
        progress_part(at, size);
        if (interrupted()) {
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

/* To the disk, where the file system can say so. */
static int flush(FILE *file) { return fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP); }

int output_write(output_set *set, int index, const void *head, size_t head_size, const void *body, size_t body_size)
{
    output *out = &set->outputs[index];
    int fd = -1;
    hold_signals(set);
    out->temporary = new_name(set, out, &fd);
    if (fd < 0) {
        int error = errno;
        free(out->temporary);
        out->temporary = NULL;
        errno = error;
        return fail(out->name, "cannot create a file in its directory");
    }
    /* the mode of the file it replaces; where that cannot be had, the usual mode will do */
    if (out->replaces && fchmod(fd, out->mode) != 0)
        errno = 0;
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        int error = errno;
        close(fd);
        errno = error;
        return fail(out->name, "cannot write");
    }
    int written = write_all(file, head, head_size) && write_all(file, body, body_size) && flush(file);
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
    if (out->saved && (link(out->target, out->saved) == 0 || rename(out->target, out->saved) == 0))
        return 1;
    free(out->saved);
    out->saved = NULL;
    return 0;
}

static void restore(output *out)
{
    if (!out->saved) {
        if (!out->temporary && !out->replaces)
            unlink(out->target);
        return;
    }
    if (rename(out->saved, out->target) != 0)
        complain("%s: what it was before is now in %s", out->name, out->saved);
    else
        unlink(out->saved); /* still there where both were links to one file: rename then does nothing */
    free(out->saved);
    out->saved = NULL;
}

int output_commit(output_set *set)
{
    int status = CLI_DONE, i;
    for (i = 0; i < set->count && status == CLI_DONE; i++) {
        output *out = &set->outputs[i];
        if (interrupted()) {
            errno = EINTR;
            status = fail(out->name, "cannot be put in place");
        } else if (!save(set, out) || rename(out->temporary, out->target) != 0) {
            status = fail(out->name, "cannot be put in place");
        } else {
            free(out->temporary);
            out->temporary = NULL;
        }
    }
    while (status != CLI_DONE && i-- > 0)
        restore(&set->outputs[i]);
    return status;
}

void output_end(output_set *set)
{
    for (int i = 0; i < set->count; i++) {
        output *out = &set->outputs[i];
        if (out->temporary)
            unlink(out->temporary);
        if (out->saved)
            unlink(out->saved);
        free(out->temporary);
        free(out->saved);
        free(out->target);
    }
    set->count = 0;
    if (set->signals_held)
        sigprocmask(SIG_SETMASK, &set->signals_before, NULL);
    set->signals_held = 0;
}
