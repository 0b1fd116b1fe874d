/* nrg: the program. All else is in nrg.c, where the fuzzer of the command line finds it too.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "system.h"

int main(int argc, char **argv)
{
    system_begin();
    int status = nrg_command(argc ? argv + 1 : argv);
    /* a report that could not be written is no success: a full disk shows only here */
    int broken = ferror(stdout);
    if (fclose(stdout) != 0 || broken)
        return cli_fail("cannot write to standard output");
    return status;
}
