/* Which path runs: CPU features, NRG_ISA, and one atomic that names it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const struct {
    const char *name;
    unsigned needs;
} paths[NRG_ISA_COUNT] = {
    [NRG_ISA_SCALAR] = {"scalar", 0},
    [NRG_ISA_GENERIC] = {"generic", 0},
    [NRG_ISA_AVX2] = {"avx2", NRG_CPU_AVX2 | NRG_CPU_FMA | NRG_CPU_F16C},
    [NRG_ISA_AVX512] = {"avx512", NRG_CPU_AVX2 | NRG_CPU_FMA | NRG_CPU_F16C | NRG_CPU_AVX512F | NRG_CPU_AVX512BW |
                                      NRG_CPU_AVX512DQ | NRG_CPU_AVX512VL},
    [NRG_ISA_NEON] = {"neon", NRG_CPU_NEON},
};

#define ISA_OF(path, isa, unused) isa,
static const nrg_isa built[NRG_PATHS] = {NRG_EACH_PATH(ISA_OF, )};

/* The row of a path in the kernel tables; NRG_PATHS: it is not in this build. */
static unsigned row_of(nrg_isa isa)
{
    unsigned row = 0;
    while (row < NRG_PATHS && built[row] != isa)
        row++;
    return row;
}

static int is_path(nrg_isa isa) { return (unsigned)isa < NRG_ISA_COUNT; }

static int can_run(nrg_isa isa, unsigned features) { return nrg_isa_built(isa) && (paths[isa].needs & ~features) == 0; }

nrg_isa nrg_best_isa(unsigned features)
{
    static const nrg_isa best_first[] = {NRG_ISA_AVX512, NRG_ISA_AVX2, NRG_ISA_NEON, NRG_ISA_GENERIC};
    for (size_t i = 0; i < sizeof best_first / sizeof best_first[0]; i++)
        if (can_run(best_first[i], features))
            return best_first[i];
    return NRG_ISA_SCALAR;
}

nrg_isa nrg_choose_isa(const char *env, unsigned features, const char **reason)
{
    nrg_isa isa;
    *reason = "the best path this machine can run";
    if (!env || !*env)
        return nrg_best_isa(features);
    if (nrg_isa_from_name(env, &isa) != NRG_OK)
        *reason = "the best path this machine can run: NRG_ISA is ignored, because no path has this name";
    else if (!can_run(isa, features))
        *reason = "the best path this machine can run: NRG_ISA is ignored, because this machine cannot run that path";
    else {
        *reason = "selected by NRG_ISA";
        return isa;
    }
    return nrg_best_isa(features);
}

/* The row is what calls need, here as row + 1, and 0 before there is a choice. The reason is for people, and may lag behind it
 * for an instant when two threads set paths. */
static _Atomic unsigned active;
static _Atomic(const char *) active_reason;

/* Before the constructor has run, and where there are no constructors: chosen here. Two threads at once choose the same; neither
 * replaces what a third has set meanwhile. */
static unsigned choose(void)
{
    const char *reason;
    unsigned chosen = row_of(nrg_choose_isa(getenv("NRG_ISA"), nrg_cpu_features(), &reason)) + 1, expected = 0;
    if (!atomic_compare_exchange_strong(&active, &expected, chosen))
        return expected - 1;
    const char *no_reason = NULL;
    atomic_compare_exchange_strong(&active_reason, &no_reason, reason);
    return chosen - 1;
}

unsigned nrg_active_path(void)
{
    const unsigned row = atomic_load_explicit(&active, memory_order_acquire);
    return row ? row - 1 : choose();
}

#if defined(__GNUC__)
__attribute__((constructor)) static void at_load(void)
{
    nrg_active_path();
    nrg_l2_bytes();
    nrg_near_l3_bytes();
}
#endif

void nrg_dispatch_forget(void)
{
    atomic_store(&active_reason, NULL);
    atomic_store(&active, 0);
}

const char *nrg_isa_name(nrg_isa isa) { return is_path(isa) ? paths[isa].name : NULL; }

nrg_status nrg_isa_from_name(const char *name, nrg_isa *isa)
{
    if (!name || !isa)
        return NRG_ERR_NULL;
    for (int i = 0; i < NRG_ISA_COUNT; i++)
        if (strcmp(name, paths[i].name) == 0) {
            *isa = (nrg_isa)i;
            return NRG_OK;
        }
    return NRG_ERR_ISA_UNKNOWN;
}

int nrg_isa_built(nrg_isa isa) { return row_of(isa) < NRG_PATHS; }

int nrg_isa_supported(nrg_isa isa) { return is_path(isa) && can_run(isa, nrg_cpu_features()); }

nrg_isa nrg_isa_active(void) { return built[nrg_active_path()]; }

nrg_status nrg_isa_set(nrg_isa isa)
{
    if (!is_path(isa))
        return NRG_ERR_ISA_UNKNOWN;
    if (!can_run(isa, nrg_cpu_features()))
        return NRG_ERR_ISA_UNSUPPORTED;
    atomic_store(&active_reason, "set by nrg_isa_set()");
    atomic_store_explicit(&active, row_of(isa) + 1, memory_order_release);
    return NRG_OK;
}

const char *nrg_isa_reason(void)
{
    nrg_active_path();
    const char *reason = atomic_load(&active_reason);
    return reason ? reason : "being chosen";
}
