/* Which loop is held against which case.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "rival.h"

#include "paths.h"

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
#define NAIVE_OF(path, isa, unused) [isa] = naive_loops_##path,
#define SLEEF_OF(path, isa, unused) [isa] = sleef_loops_##path,
static const rival_loop *const loops[BENCH_RIVALS][NRG_ISA_COUNT] = {
    [BENCH_NAIVE] = {NRG_EACH_PATH(NAIVE_OF, )}, [BENCH_SLEEF] = {NRG_EACH_PATH(SLEEF_OF, )}};

const char *bench_rival_name(bench_rival rival) { return rival == BENCH_SLEEF ? "sleef" : "naive"; }

static int same_op(const char *op, const char *of_case)
{
    const size_t length = strlen(op);
    return strncmp(op, of_case, length) == 0 && (of_case[length] == '\0' || strcmp(of_case + length, "-exact") == 0);
}

const rival_loop *bench_rival_loop(bench_rival rival, nrg_isa isa, const char *kernel, const char *op, nrg_dtype dtype)
{
    for (const rival_loop *l = loops[rival][isa]; l && l->kernel; l++)
        if (l->dtype == dtype && strcmp(l->kernel, kernel) == 0 && same_op(l->op, op))
            return l;
    return NULL;
}
