/* nrg/isa.h: which path runs, and why.
 *
 * Every kernel exists as a scalar path (the reference: it defines the bits) and as SIMD paths that give the same bits.
 * The best path this CPU and its operating system can run is chosen when the library is loaded. The environment variable
 * NRG_ISA (scalar, avx2, avx512, neon, generic), read at that moment, picks another one; a name that is unknown or that this
 * machine cannot run is ignored, and nrg_isa_reason() says so.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ISA_H
#define NRG_ISA_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_isa {
    NRG_ISA_SCALAR = 0,  /* plain C11 */
    NRG_ISA_AVX2 = 1,    /* AVX2, FMA, F16C */
    NRG_ISA_AVX512 = 2,  /* AVX-512 F, BW, DQ, VL */
    NRG_ISA_NEON = 3,    /* AArch64 Advanced SIMD; no extension beyond ARMv8.0-A */
    NRG_ISA_GENERIC = 4, /* vectors of GNU C, as the compiler's target has them: any CPU */
    NRG_ISA_COUNT = 5
} nrg_isa;

/* Bits of nrg_cpu_features(): what the CPU has and the operating system has switched on (XCR0 on x86, HWCAP on Arm). */
#define NRG_CPU_AVX2 0x01u
#define NRG_CPU_FMA 0x02u
#define NRG_CPU_F16C 0x04u
#define NRG_CPU_AVX512F 0x08u
#define NRG_CPU_AVX512BW 0x10u
#define NRG_CPU_AVX512DQ 0x20u
#define NRG_CPU_AVX512VL 0x40u
#define NRG_CPU_NEON 0x80u

NRG_API unsigned nrg_cpu_features(void);

/* Name of feature bit i (0-based, "avx2" …), or NULL past the last: iterate from 0 until NULL. */
NRG_API const char *nrg_cpu_feature_name(unsigned i);

/* "scalar", "avx2", …; "?" for a value that is no path. */
NRG_API const char *nrg_isa_name(nrg_isa isa);

/* The path of a name. NRG_ERR_NULL, or NRG_ERR_ISA_UNKNOWN; *isa is then left alone. */
NRG_API nrg_status nrg_isa_from_name(const char *name, nrg_isa *isa);

/* 1 if this build holds the path's code, else 0. */
NRG_API int nrg_isa_built(nrg_isa isa);

/* 1 if this build holds it and this machine can run it, else 0. */
NRG_API int nrg_isa_supported(nrg_isa isa);

/* The path calls go through now. */
NRG_API nrg_isa nrg_isa_active(void);

/* Sends the calls of this process through another path from now on. Atomic: calls already running finish on the path
 * they began with. NRG_ERR_ISA_UNKNOWN or NRG_ERR_ISA_UNSUPPORTED, and nothing changes. */
NRG_API nrg_status nrg_isa_set(nrg_isa isa);

/* Why the active path is the active one, as a sentence in static storage: chosen as the best one, asked for by NRG_ISA,
 * set by nrg_isa_set(), or NRG_ISA refused. */
NRG_API const char *nrg_isa_reason(void);

/* Bits of nrg_fp_environment(): what arithmetic of the calling thread does otherwise than nrg is made for. */
#define NRG_FP_FLUSHES_RESULTS 0x1u  /* results below 2^-126 become 0: FTZ of x86, FZ of Arm */
#define NRG_FP_FLUSHES_OPERANDS 0x2u /* operands below 2^-126 count as 0: DAZ of x86, FZ of Arm */
#define NRG_FP_ROUNDS_OTHERWISE 0x4u /* not to nearest */

/* 0 where everything nrg promises holds in this thread. An object that was linked with -ffast-math or -Ofast may switch FTZ and
 * DAZ on for the whole process (gcc's crtfastmath.o), and a new thread begins with what its maker has. Then bits of subnormals
 * differ between paths and from those elsewhere; nothing else does, and no call crashes (docs/reproducibility.md). A host that
 * wants the bits clears FTZ and DAZ in its threads: _mm_setcsr(_mm_getcsr() & ~0x8040u) on x86. */
NRG_API unsigned nrg_fp_environment(void);

/* A sentence on what nrg_fp_environment() has returned, in static storage; "?" for other numbers. */
NRG_API const char *nrg_fp_environment_string(unsigned environment);

#ifdef __cplusplus
}
#endif
#endif
