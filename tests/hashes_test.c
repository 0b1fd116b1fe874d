/* What nrg check --hash --quick prints on a path against the file that is kept of it: a release's bits stay.
 *
 *     hashes_test PATH FILE
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "../tools/commands.h"

/* The exit status of nrg check, whose output goes to the file. */
static int write_hashes(FILE *to, char *path)
{
    char quick[] = "--quick", hash[] = "--hash", isa[] = "--isa";
    char *arguments[] = {quick, hash, isa, path, NULL};
    const int terminal = dup(STDOUT_FILENO);
    if (terminal < 0 || dup2(fileno(to), STDOUT_FILENO) < 0)
        return EXIT_FAILURE;
    const int status = command_check(arguments);
    const int lost = fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    rewind(to);
    return status || lost;
}

/* How many lines of one file the other does not have at their place; what they are. */
static int compare(FILE *expected, FILE *got)
{
    char lines[2][128];
    int differences = 0;
    for (;;) {
        const int is_expected = fgets(lines[0], sizeof lines[0], expected) != NULL;
        const int is_there = fgets(lines[1], sizeof lines[1], got) != NULL;
        if (!is_expected && !is_there)
            return differences;
        if (is_expected && is_there && strcmp(lines[0], lines[1]) == 0)
            continue;
        printf("expected: %sgot:      %s", is_expected ? lines[0] : "nothing\n", is_there ? lines[1] : "nothing\n");
        differences++;
    }
}

int main(int argc, char **argv)
{
    nrg_isa isa;
    if (argc != 3 || nrg_isa_from_name(argv[1], &isa) != NRG_OK) {
        fprintf(stderr, "usage: hashes_test PATH FILE\n");
        return EXIT_FAILURE;
    }
    if (!nrg_isa_supported(isa)) {
        printf("SKIP %s: this machine cannot run it\n", argv[1]);
        return 77; /* meson's word for skipped */
    }
    FILE *expected = fopen(argv[2], "r"), *got = tmpfile();
    if (!expected || !got || write_hashes(got, argv[1]) != 0) {
        fprintf(stderr, "hashes_test: cannot read %s, or nrg check failed\n", argv[2]);
        return EXIT_FAILURE;
    }
    const int differences = compare(expected, got);
    printf("%s: %d lines differ\n", argv[1], differences);
    return differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
