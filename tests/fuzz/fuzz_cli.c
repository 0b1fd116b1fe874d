/* The command line: any arguments are obeyed or refused. What is refused leaves every file as it was.
 *
 * Input: the arguments, a line each. Those with a slash are left out, since the fuzzer may write nothing but its own directory;
 * and nrg check, which takes seconds and no input.
 *
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "../../tools/cli.h"
#include "../../tools/commands.h"

enum { ARGUMENTS_MOST = 40, TEXT_MOST = 2000 };

static const struct {
    const char *name, *descr, *shape;
    size_t bytes;
} files[] = {
    {"x", "<f4", "(3, 8)", 96},  {"y", "<f4", "(3, 8)", 96},    {"h", "<f2", "(3, 8)", 48},       {"w", "<f4", "(8,)", 32},
    {"i", "<i4", "(3,)", 12},    {"c", "<f4", "(2, 3, 4)", 96}, {"s", "<f4", "(1, 2, 3, 3)", 72}, {"b", "<f4", "(32, 2)", 256},
    {"m", "<f4", "(8, 8)", 256}, {"q", "|u1", "(3, 34)", 102},
};
enum { FILES = sizeof files / sizeof files[0] };

static void write_files(void)
{
    for (int i = 0; i < FILES; i++) {
        char name[16], all[128 + 256], *body = all + 128;
        snprintf(name, sizeof name, "%s.npy", files[i].name);
        memset(all, ' ', 128);
        memcpy(all, "\x93NUMPY\1\0v\0", 10);
        const int length =
            snprintf(all + 10, 117, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", files[i].descr, files[i].shape);
        all[10 + length] = ' ';
        all[127] = '\n';
        for (size_t at = 0; at < files[i].bytes; at++)
            body[at] = (char)(strcmp(files[i].descr, "<i4") == 0 ? at % 4 == 0
                              : at % 4 == 3                      ? 0x3c
                              : at % 4 == 1                      ? 0x3c
                                                                 : (char)at);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || write(fd, all, 128 + files[i].bytes) != (ssize_t)(128 + files[i].bytes) || close(fd) != 0)
            abort();
    }
}

/* How many files there are; they go where `remove_them`. */
static int list_files(int remove_them)
{
    DIR *directory = opendir(".");
    int count = 0;
    if (!directory)
        abort();
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2) {
            count++;
            if (remove_them)
                unlink(entry->d_name);
        }
    closedir(directory);
    return count;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char in_memory[] = "/dev/shm/nrg-fuzz-XXXXXX", elsewhere[] = "/tmp/nrg-fuzz-XXXXXX";
    const struct rlimit a_megabyte = {1 << 20, 1 << 20};
    (void)argc;
    (void)argv;
    /* artifacts and the corpus have absolute names; and no file of gigabytes */
    if ((!mkdtemp(in_memory) || chdir(in_memory) != 0) && (!mkdtemp(elsewhere) || chdir(elsewhere) != 0))
        abort();
    signal(SIGXFSZ, SIG_IGN);
    /* a file named - */
    if (!freopen("/dev/null", "rb", stdin) || !freopen("/dev/null", "wb", stdout))
        abort();
    if (setrlimit(RLIMIT_FSIZE, &a_megabyte) != 0)
        abort();
    write_files();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MOST + 1], *arguments[ARGUMENTS_MOST + 1];
    int count = 0;
    if (size > TEXT_MOST || memchr(data, '/', size))
        return -1;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text; *at && count < ARGUMENTS_MOST;) {
        arguments[count++] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = '\0';
    }
    arguments[count] = NULL;
    if (count && strcmp(arguments[0], "check") == 0)
        return -1;
    cli_set_command(NULL);
    nrg_isa_set(NRG_ISA_SCALAR);
    const int status = nrg_command(arguments);
    if (status != CLI_DONE && status != CLI_FAILED && status != CLI_REFUSED)
        abort();
    if (status != CLI_DONE && list_files(0) != FILES)
        abort(); /* something was left */
    if (status == CLI_DONE) {
        list_files(1);
        write_files();
    }
    return 0;
}
