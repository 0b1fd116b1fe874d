/* SPDX-License-Identifier: MIT */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* A closed standard stream is replaced by one that refuses every read or write, as it did itself. Otherwise the next file that is
 * opened would take its number, and a complaint would be written into an output. */
void system_begin(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) {
            const int is_replaced = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd;
            (void)is_replaced; /* without /dev/null it stays closed */
        }
    signal(SIGPIPE, SIG_IGN);
}

void *system_allocate(size_t bytes) { return aligned_alloc(64, bytes); }
void system_free(void *memory) { free(memory); }

int system_stderr_is_terminal(void) { return isatty(STDERR_FILENO); }

void system_write_stderr(const char *text, size_t length)
{
    const ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* nobody listens: the work goes on */
}

/* ---- ticks ---- */

static void (*on_tick)(void);
static struct sigaction before_ticks;

static void on_alarm(int signal_number)
{
    const int error = errno;
    (void)signal_number;
    on_tick();
    errno = error;
}

int system_start_ticks(void (*tick)(void))
{
    const struct itimerval every_second = {{1, 0}, {1, 0}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    on_tick = tick;
    return sigaction(SIGALRM, &action, &before_ticks) == 0 && setitimer(ITIMER_REAL, &every_second, NULL) == 0;
}

void system_stop_ticks(void)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before_ticks, NULL);
}

/* ---- interrupts ---- */

static sigset_t before_held;
static int are_held;

void system_hold_interrupts(void)
{
    if (are_held)
        return;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    are_held = sigprocmask(SIG_BLOCK, &signals, &before_held) == 0;
    /* a file larger than ulimit -f allows is a write error like any other */
    signal(SIGXFSZ, SIG_IGN);
}

int system_interrupted(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGHUP) == 1;
}

void system_release_interrupts(void)
{
    if (are_held)
        sigprocmask(SIG_SETMASK, &before_held, NULL);
    are_held = 0;
}

/* ---- files ---- */

const char *system_base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

char *system_real_path(const char *name) { return realpath(name, NULL); }

int system_same_path(const char *a, const char *b) { return strcmp(a, b) == 0; }

int system_exists(const char *name)
{
    struct stat found;
    return lstat(name, &found) == 0;
}

int system_is_special(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

int system_may_create_in(const char *directory) { return access(directory, W_OK | X_OK) == 0; }

/* In a directory such as /tmp nobody can rename another user's file, nor remove a link to it. */
static int is_protected(const char *path, uid_t owner)
{
    const size_t length = (size_t)(system_base(path) - path);
    char *directory = malloc(length + 1);
    struct stat found;
    if (directory) {
        memcpy(directory, path, length);
        directory[length] = 0;
    }
    const int is_sticky = directory && stat(directory, &found) == 0 && (found.st_mode & S_ISVTX);
    free(directory);
    return is_sticky && geteuid() != 0 && geteuid() != owner && geteuid() != found.st_uid;
}

const char *system_why_not_replaced(const char *path, int *mode)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return strerror(errno);
    /* a rename would put a file in the place of a device such as /dev/null */
    if (!S_ISREG(found.st_mode))
        return "exists and is not a regular file";
    if (access(path, W_OK) != 0)
        return strerror(errno);
    if (is_protected(path, found.st_uid))
        return "belongs to another user, in a directory with the sticky bit";
    *mode = (int)(found.st_mode & 0777);
    return NULL;
}

FILE *system_new_file(const char *path, int mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return NULL;
    /* where that mode cannot be had, the usual mode will do */
    const int is_set = mode < 0 || fchmod(fd, (mode_t)mode) == 0;
    (void)is_set;
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        const int error = errno;
        close(fd);
        unlink(path);
        errno = error;
    }
    return file;
}

int system_flush(FILE *file) { return fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP); }

int system_link(const char *path, const char *second) { return link(path, second) == 0; }
int system_rename(const char *from, const char *to) { return rename(from, to) == 0; }
void system_remove(const char *path) { unlink(path); }

long system_process(void) { return (long)getpid(); }
