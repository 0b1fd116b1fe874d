/* nrg info: what this machine has, and what the library makes of it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <nrg/nrg.h>

#include "cli.h"
#include "commands.h"

static const char info_help[] =
    "usage: nrg info\n"
    "\n"
    "Prints the version, the CPU features, the paths and the families of functions. A feature counts if\n"
    "the CPU has it and the operating system has enabled it. For paths, families and backward passes it\n"
    "prints whether this build contains them. The last line names the active path and the reason.\n"
    "\n"
    "example:\n"
    "  nrg info\n";

static const char *yes_no(int yes) { return yes ? "yes" : "no"; }

int command_info(char **arguments)
{
    static const cli_option options[] = {{"help", 'h', 0}, {NULL, 0, 0}};
    const char *value[sizeof options / sizeof options[0]] = {NULL};
    const int status = cli_collect(arguments, options, CLI_NO_OPERAND, value);
    if (status == CLI_HELP_GIVEN)
        fputs(info_help, stdout);
    if (status != CLI_DONE)
        return status == CLI_HELP_GIVEN ? CLI_DONE : status;

    printf("nrg %s, version %d of the numbers\n\nCPU features\n", nrg_version(), nrg_numbers_version());
    for (unsigned i = 0; nrg_cpu_feature_name(i); i++)
        printf("  %-9s %s\n", nrg_cpu_feature_name(i), yes_no(nrg_cpu_features() >> i & 1));
    printf("\nPaths       built  supported\n");
    for (int i = 0; nrg_isa_name((nrg_isa)i); i++)
        printf("  %-9s %-6s %s\n", nrg_isa_name((nrg_isa)i), yes_no(nrg_isa_built((nrg_isa)i)),
               yes_no(nrg_isa_supported((nrg_isa)i)));
    printf("\nFamilies    built\n");
    for (unsigned i = 0; nrg_family_name(i); i++)
        printf("  %-11s %s\n", nrg_family_name(i), yes_no(nrg_family_built(nrg_family_name(i))));
    printf("  %-11s %s\n", "backward", yes_no(nrg_backward_built()));
    printf("\nFloating point: %s\n", nrg_fp_environment_string(nrg_fp_environment()));
    printf("\nActive path %s: %s\n", nrg_isa_name(nrg_isa_active()), nrg_isa_reason());
    return CLI_DONE;
}
