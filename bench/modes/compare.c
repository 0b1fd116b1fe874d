/* Cases against each other.
 *
 * SPDX-License-Identifier: MIT */
#include "compare.h"
#include "../workload.h"

static int alike(const bench_case *a, const bench_case *b)
{
    return a->family == b->family && a->dtype == b->dtype && bench_shape_equal(a->shape, b->shape);
}

static const char *measure(const bench_case *c, size_t n, double seconds, bench_contender *result, bench_memory *memory,
                           bench_call *call)
{
    int shared = 1;
    for (size_t i = 1; i < n; i++)
        shared = shared && alike(&c[0], &c[i]);
    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || !shared) && !bench_memory_make(&memory[i], &c[i], shared ? n : 1))
            return "not enough memory";
        const char *wrong = bench_call_bind(&call[i], &c[i], &memory[shared ? 0 : i]);
        if (wrong)
            return wrong;
        result[i] = (bench_contender){.before = bench_call_before, .run = bench_call_run, .ctx = &call[i]};
    }
    bench_measure(result, n, seconds, bench_case_bytes(&c[0]));
    return NULL;
}

const char *bench_compare(const bench_case *c, size_t n, double seconds, bench_contender *result)
{
    bench_memory memory[BENCH_COMPARE_MAX] = {0};
    bench_call call[BENCH_COMPARE_MAX] = {0};
    const char *wrong = measure(c, n, seconds, result, memory, call);
    for (size_t i = 0; i < n; i++) {
        bench_call_free(&call[i]);
        bench_memory_free(&memory[i]);
    }
    return wrong;
}
