/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

size_t host_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

unsigned char *host_pages(size_t bytes, int shared)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    must(pages != MAP_FAILED, "mmap");
    return pages;
}

void host_protect(unsigned char *pages, size_t bytes, enum host_access access)
{
    static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
    must(mprotect(pages, bytes, protections[access]) == 0, "mprotect");
}

void host_free_pages(unsigned char *pages, size_t bytes) { munmap(pages, bytes); }

int host_in_process(int body(const void *data), const void *data)
{
    fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit */
        signal(SIGBUS, SIG_DFL);
        _exit(body(data));
    }
    int status = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    /* SIGSEGV, as Linux has it, or SIGBUS */
    return WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS ? HOST_CRASHED : HOST_LOST;
}

int host_run_self(const char *argument, const char *variable, const char *value, char *output, size_t room)
{
    int ends[2];
    fflush(stdout);
    must(pipe(ends) == 0, "pipe");
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        host_set_variable(variable, value);
        execl("/proc/self/exe", "this", argument, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while (length < room - 1 && (n = read(ends[0], output + length, room - 1 - length)) > 0)
        length += (size_t)n;
    output[length] = 0;
    close(ends[0]);
    int status = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

void host_set_variable(const char *variable, const char *value)
{
    must((value ? setenv(variable, value, 1) : unsetenv(variable)) == 0, "setenv");
}

void host_write_stderr(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}
