/* Reads the numbers of options. See commands.h. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands.h"

uint64_t option_count(const char *name, const char *value, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(value, &end, 10);
    if (errno == 0 && end != value && *end == '\0' && *value != '-' && n >= least && n <= most)
        return n;
    fprintf(stderr, "transformer: --%s is a number from %llu to %llu, and not %s\n", name, (unsigned long long)least,
            (unsigned long long)most, value);
    exit(2);
}

float option_number(const char *name, const char *value, float least, float most)
{
    char *end;
    const float x = strtof(value, &end);
    if (end != value && *end == '\0' && x >= least && x <= most)
        return x;
    fprintf(stderr, "transformer: --%s is a number from %g to %g, and not %s\n", name, (double)least, (double)most, value);
    exit(2);
}

int default_threads(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (int)n;
}
