/* What nrg check --hash --quick prints on a path against the file that is kept of it: a release's bits stay.
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

/* A line of the file is "OP_DTYPE CASES HASH". */
static int is_of(const char *line, const char *op)
{
    static const char *const dtypes[] = {"_f32 ", "_f16 ", "_bf16 "};
    const size_t n = strlen(op);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strncmp(line, op, n) == 0 && strncmp(line + n, dtypes[i], strlen(dtypes[i])) == 0)
            return 1;
    return 0;
}

/* The next line that is of one of the ops. */
static int next_line(FILE *from, char *line, int room, char **ops)
{
    while (fgets(line, room, from)) {
        int is_wanted = !*ops;
        for (int i = 0; ops[i]; i++)
            is_wanted |= is_of(line, ops[i]);
        if (is_wanted)
            return 1;
    }
    return 0;
}

/* How many lines of one file the other does not have at their place; what they are. */
static int compare(FILE *expected, FILE *got, char **ops, int *count)
{
    char lines[2][128];
    int differences = 0;
    for (;;) {
        const int is_expected = next_line(expected, lines[0], sizeof lines[0], ops);
        const int is_there = fgets(lines[1], sizeof lines[1], got) != NULL;
        if (!is_expected && !is_there)
            return differences;
        ++*count;
        if (is_expected && is_there && strcmp(lines[0], lines[1]) == 0)
            continue;
        printf("expected: %sgot:      %s", is_expected ? lines[0] : "nothing\n", is_there ? lines[1] : "nothing\n");
        differences++;
    }
}

int main(int argc, char **argv)
{
    nrg_isa isa;
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
    int count = 0;
    const int differences = compare(expected, got, ops, &count);
    printf("%s: %d of %d lines differ\n", argv[1], differences, count);
    return differences || !count ? EXIT_FAILURE : EXIT_SUCCESS;
}
