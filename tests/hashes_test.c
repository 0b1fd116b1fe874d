/* What nrg check --hash --quick prints on a path against hashes.txt: a release's bits stay.
 *
 *     hashes_test PATH FILE OP ...    of these ops; without one, of all
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "../tools/commands.h"
#include "../tools/system.h"

/* The exit status of nrg check, whose output goes to the end of the file. op: NULL for all. */
static int write_hashes(FILE *to, char *path, char *op)
{
    char quick[] = "--quick", hash[] = "--hash", isa[] = "--isa", only[] = "--op";
    char *arguments[] = {quick, hash, isa, path, op ? only : NULL, op, NULL};
    const int terminal = dup(STDOUT_FILENO);
    if (terminal < 0 || dup2(fileno(to), STDOUT_FILENO) < 0)
        return EXIT_FAILURE;
    const int status = command_check(arguments);
    const int lost = fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    return status || lost;
}

/* A line begins with "OP_DTYPE CASES HASH"; a dtype may end in -exact. */
static int is_of(const char *line, const char *op)
{
    static const char *const dtypes[] = {"_f32 ", "_f16 ", "_bf16 ", "_f32-exact "};
    const size_t n = strlen(op);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strncmp(line, op, n) == 0 && strncmp(line + n, dtypes[i], strlen(dtypes[i])) == 0)
            return 1;
    return 0;
}

enum { MOST = 256, ROOM = 128 };

/* Lines that are of one of the ops, in order: those of one op stand in a file beside each other only where it has one grade. */
typedef struct lines {
    char line[MOST][ROOM];
    size_t count;
} lines;

static int by_line(const void *a, const void *b) { return strcmp(a, b); }

static void read_lines(lines *to, FILE *from, char **ops)
{
    while (to->count < MOST && fgets(to->line[to->count], ROOM, from)) {
        char *line = to->line[to->count];
        int is_wanted = !*ops;
        for (int i = 0; ops[i]; i++)
            is_wanted |= is_of(line, ops[i]);
        /* after these three words, the file has those of a run without --quick */
        for (int words = 0; words < 3; words++)
            line += strcspn(line, " \n") + 1;
        memcpy(line - 1, "\n", 2);
        to->count += is_wanted;
    }
    qsort(to->line, to->count, ROOM, by_line);
}

/* How many lines one has and the other has not; what they are. */
static int compare(const lines *expected, const lines *got)
{
    int differences = 0;
    size_t i = 0, j = 0;
    while (i < expected->count || j < got->count) {
        const int order = i == expected->count ? 1 : j == got->count ? -1 : strcmp(expected->line[i], got->line[j]);
        if (order)
            printf("%s %s", order < 0 ? "expected:" : "got:     ", order < 0 ? expected->line[i] : got->line[j]);
        differences += order != 0;
        i += order <= 0;
        j += order >= 0;
    }
    return differences;
}

int main(int argc, char **argv)
{
    nrg_isa isa;
    system_begin();
    if (argc < 3 || nrg_isa_from_name(argv[1], &isa) != NRG_OK) {
        fprintf(stderr, "usage: hashes_test PATH FILE OP ...\n");
        return EXIT_FAILURE;
    }
    if (!nrg_isa_supported(isa)) {
        printf("SKIP %s: this machine cannot run it\n", argv[1]);
        return 77; /* meson's word for skipped */
    }
    char **ops = argv + 3;
    FILE *expected = fopen(argv[2], "r"), *got = tmpfile();
    int is_written = expected && got && (*ops || write_hashes(got, argv[1], NULL) == 0);
    for (int i = 0; is_written && ops[i]; i++)
        is_written = write_hashes(got, argv[1], ops[i]) == 0;
    if (!is_written) {
        fprintf(stderr, "hashes_test: cannot read %s, or nrg check failed\n", argv[2]);
        return EXIT_FAILURE;
    }
    rewind(got);
    static lines of_file, of_path;
    read_lines(&of_file, expected, ops);
    read_lines(&of_path, got, ops);
    const int differences = compare(&of_file, &of_path);
    printf("%s: %d of %zu lines differ\n", argv[1], differences, of_file.count);
    return differences || !of_file.count || of_file.count == MOST ? EXIT_FAILURE : EXIT_SUCCESS;
}
