/* Which path runs: CPU features, NRG_ISA, and one atomic that names it.
 *
 * On x86 a feature counts when CPUID has it and XCR0 says that the operating system saves its registers (Intel SDM vol. 1,
 * 13.2 and 14.3 for AVX, 15.2 to 15.4 for AVX-512). On AArch64 AT_HWCAP counts where there is one (Linux); elsewhere Advanced
 * SIMD is part of the platform's ABI.
 *
 * SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#if defined(__x86_64__)
#define NRG_X86 1
#include <cpuid.h>
#elif defined(__aarch64__)
#define NRG_ARM64 1
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

static const struct {
    const char *name;
    unsigned needs;
} paths[NRG_ISA_COUNT] = {
    [NRG_ISA_SCALAR] = {"scalar", 0},
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

const char *nrg_cpu_feature_name(unsigned i)
{
    static const char *const names[] = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "neon"};
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

#ifdef NRG_X86
static unsigned long long read_xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}

static unsigned read_features(void)
{
    unsigned a, b, c, d, found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    unsigned long long xcr0 = read_xcr0();
    if ((xcr0 & 0x6) != 0x6) /* XMM and YMM state */
        return 0;
    found |= (c & bit_FMA ? NRG_CPU_FMA : 0) | (c & bit_F16C ? NRG_CPU_F16C : 0);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return found;
    found |= b & bit_AVX2 ? NRG_CPU_AVX2 : 0;
    if ((xcr0 & 0xe6) == 0xe6) /* and opmask, the upper halves of ZMM0-15, and ZMM16-31 */
        found |= (b & bit_AVX512F ? NRG_CPU_AVX512F : 0) | (b & bit_AVX512BW ? NRG_CPU_AVX512BW : 0) |
                 (b & bit_AVX512DQ ? NRG_CPU_AVX512DQ : 0) | (b & bit_AVX512VL ? NRG_CPU_AVX512VL : 0);
    return found;
}

/* CPUID leaf 4 (Intel) and leaf 0x8000001D (AMD) share a layout: one sub-leaf a cache, its level in EAX[7:5]. */
static size_t l2_from_leaf(unsigned leaf)
{
    unsigned a, b, c, d;
    for (unsigned i = 0; i < 8 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31); i++)
        if ((a >> 5 & 7) == 2)
            return (size_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((size_t)c + 1);
    return 0;
}

static size_t read_l2_bytes(void)
{
    size_t bytes = l2_from_leaf(4);
    return bytes ? bytes : l2_from_leaf(0x8000001Du);
}
#elif defined(NRG_ARM64)
static unsigned read_features(void)
{
#if defined(__linux__)
    enum { HWCAP_ASIMD_BIT = 1 << 1 };
    return getauxval(AT_HWCAP) & HWCAP_ASIMD_BIT ? NRG_CPU_NEON : 0;
#else
    return NRG_CPU_NEON;
#endif
}

static size_t read_l2_bytes(void) { return 0; }
#else
static unsigned read_features(void) { return 0; }
static size_t read_l2_bytes(void) { return 0; }
#endif

/* Both are read once: in a guest CPUID traps to the hypervisor and takes tens of microseconds. Any number of threads may find
 * nothing and store the same. */
unsigned nrg_cpu_features(void)
{
    enum { KNOWN = 1 << 30 };
    static _Atomic unsigned cache;
    unsigned features = atomic_load_explicit(&cache, memory_order_relaxed);
    if (!features) {
        features = read_features() | KNOWN;
        atomic_store_explicit(&cache, features, memory_order_relaxed);
    }
    return features & ~(unsigned)KNOWN;
}

size_t nrg_l2_bytes(void)
{
    static _Atomic size_t cache;
    size_t bytes = atomic_load_explicit(&cache, memory_order_relaxed);
    if (!bytes) {
        bytes = read_l2_bytes();
        if (bytes < (size_t)64 << 10 || bytes > (size_t)256 << 20)
            bytes = (size_t)1 << 20;
        atomic_store_explicit(&cache, bytes, memory_order_relaxed);
    }
    return bytes;
}

static int can_run(nrg_isa isa, unsigned features) { return nrg_isa_built(isa) && (paths[isa].needs & ~features) == 0; }

nrg_isa nrg_best_isa(unsigned features)
{
    static const nrg_isa best_first[] = {NRG_ISA_AVX512, NRG_ISA_AVX2, NRG_ISA_NEON};
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
        *reason = "the best path this machine can run: NRG_ISA holds a name that is no path, and is ignored";
    else if (!can_run(isa, features))
        *reason = "the best path this machine can run: NRG_ISA asks for a path it cannot run, and is ignored";
    else {
        *reason = "asked for by NRG_ISA";
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
}
#endif

void nrg_dispatch_forget(void)
{
    atomic_store(&active_reason, NULL);
    atomic_store(&active, 0);
}

const char *nrg_isa_name(nrg_isa isa) { return is_path(isa) ? paths[isa].name : "?"; }

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
