/* What this CPU has, and what the operating system has switched on.
 *
 * On x86 a feature counts when CPUID has it and XCR0 says that the operating system saves its registers (Intel SDM vol. 1,
 * 13.2 and 14.3 for AVX, 15.2 to 15.4 for AVX-512). On AArch64 AT_HWCAP counts where there is one (Linux); elsewhere Advanced
 * SIMD is part of the platform's ABI.
 *
 * SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "internal.h"

#if defined(__x86_64__) && !defined(_MSC_VER)
#include <cpuid.h>
#elif NRG_X86_64
#include <intrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

const char *nrg_cpu_feature_name(unsigned i)
{
    static const char *const names[] = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "neon"};
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

#if defined(__x86_64__) && !defined(_MSC_VER)
/* 0 where there is no such leaf. */
static int cpuid(unsigned leaf, unsigned part, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    return __get_cpuid_count(leaf, part, a, b, c, d);
}

static unsigned long long read_xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}
#elif NRG_X86_64
static int cpuid(unsigned leaf, unsigned part, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    int registers[4];
    __cpuid(registers, (int)(leaf & 0x80000000u));
    if ((unsigned)registers[0] < leaf)
        return 0;
    __cpuidex(registers, (int)leaf, (int)part);
    *a = (unsigned)registers[0];
    *b = (unsigned)registers[1];
    *c = (unsigned)registers[2];
    *d = (unsigned)registers[3];
    return 1;
}

static unsigned long long read_xcr0(void) { return _xgetbv(0); }
#endif

#if NRG_X86_64
/* CPUID leaf 1, ECX, and leaf 7, EBX (Intel SDM vol. 2A, CPUID). */
enum {
    BIT_FMA = 1 << 12,
    BIT_OSXSAVE = 1 << 27,
    BIT_F16C = 1 << 29,
    BIT_AVX2 = 1 << 5,
    BIT_AVX512F = 1 << 16,
    BIT_AVX512DQ = 1 << 17,
    BIT_AVX512BW = 1 << 30
};
static const unsigned BIT_AVX512VL = 1u << 31;

static unsigned read_features(void)
{
    unsigned a, b, c, d, found = 0;
    if (!cpuid(1, 0, &a, &b, &c, &d) || !(c & BIT_OSXSAVE))
        return 0;
    unsigned long long xcr0 = read_xcr0();
    if ((xcr0 & 0x6) != 0x6) /* XMM and YMM state */
        return 0;
    found |= (c & BIT_FMA ? NRG_CPU_FMA : 0) | (c & BIT_F16C ? NRG_CPU_F16C : 0);
    if (!cpuid(7, 0, &a, &b, &c, &d))
        return found;
    found |= b & BIT_AVX2 ? NRG_CPU_AVX2 : 0;
    if ((xcr0 & 0xe6) == 0xe6) /* and opmask, the upper halves of ZMM0-15, and ZMM16-31 */
        found |= (b & BIT_AVX512F ? NRG_CPU_AVX512F : 0) | (b & BIT_AVX512BW ? NRG_CPU_AVX512BW : 0) |
                 (b & BIT_AVX512DQ ? NRG_CPU_AVX512DQ : 0) | (b & BIT_AVX512VL ? NRG_CPU_AVX512VL : 0);
    return found;
}

/* CPUID leaf 4 (Intel) and leaf 0x8000001D (AMD) share a layout: one sub-leaf a cache, its level in EAX[7:5]. */
enum { INTEL_CACHES = 4 };
static const unsigned amd_caches = 0x8000001Du;

static size_t cache_from_leaf(unsigned leaf, unsigned level)
{
    unsigned a, b, c, d;
    for (unsigned i = 0; i < 8 && cpuid(leaf, i, &a, &b, &c, &d) && (a & 31); i++)
        if ((a >> 5 & 7) == level)
            return (size_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((size_t)c + 1);
    return 0;
}

static size_t read_l2_bytes(void)
{
    size_t bytes = cache_from_leaf(INTEL_CACHES, 2);
    return bytes ? bytes : cache_from_leaf(amd_caches, 2);
}

/* AMD's, which belongs to a few cores. Intel's servers spread theirs over the chip: of 480 MB on a Granite Rapids, ordinary
 * stores take 1.5 to 1.6 times as long as streamed ones from 4 MB on (rotations of 4 to 32 MB). */
static size_t read_near_l3_bytes(void) { return cache_from_leaf(INTEL_CACHES, 2) ? 0 : cache_from_leaf(amd_caches, 3); }
#elif defined(__aarch64__)
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
static size_t read_near_l3_bytes(void) { return 0; }
#else
static unsigned read_features(void) { return 0; }
static size_t read_l2_bytes(void) { return 0; }
static size_t read_near_l3_bytes(void) { return 0; }
#endif

/* All are read once: in a guest CPUID traps to the hypervisor and takes tens of microseconds. Any number of threads may find
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

size_t nrg_near_l3_bytes(void)
{
    enum { KNOWN = 1 };
    static _Atomic size_t cache;
    size_t bytes = atomic_load_explicit(&cache, memory_order_relaxed);
    if (!bytes) {
        bytes = read_near_l3_bytes() | KNOWN;
        atomic_store_explicit(&cache, bytes, memory_order_relaxed);
    }
    return bytes & ~(size_t)KNOWN;
}
