/* --instances in a build with quick_rivals, which is for tests and has no time for another copy of the kernels.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "modes.h"

int bench_instances_mode(const bench_args *args)
{
    (void)args;
    fputs("nrg-bench: --instances: not in a build with -Dquick_rivals=true\n", stderr);
    return 1;
}
