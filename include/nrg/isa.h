/* nrg/isa.h: which path runs, and why.
 *
 * Every kernel exists on the scalar path, which defines the bits, and on SIMD paths, which return the same bits. The library
 * selects the best path for this CPU and its operating system when it is loaded. The environment variable NRG_ISA (scalar,
 * generic, avx2, avx512, neon), read at that moment, selects another one. A name that is unknown or that this machine cannot
 * run is ignored, and nrg_isa_reason() reports that.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ISA_H
#define NRG_ISA_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_isa {
    NRG_ISA_SCALAR = 0,  /* C11: any CPU */
    NRG_ISA_GENERIC = 1, /* vectors of GNU C, as the compiler's target has them: any CPU */
    NRG_ISA_AVX2 = 2,    /* AVX2, FMA, F16C */
    NRG_ISA_AVX512 = 3,  /* AVX-512 F, BW, DQ, VL */
    NRG_ISA_NEON = 4     /* AArch64 Advanced SIMD; no extension beyond ARMv8.0-A */
} nrg_isa;

/* Bits of nrg_cpu_features(): features that the CPU has and the operating system supports (XCR0 on x86, HWCAP on Arm). */
#define NRG_CPU_AVX2 0x01u
#define NRG_CPU_FMA 0x02u
#define NRG_CPU_F16C 0x04u
#define NRG_CPU_AVX512F 0x08u
#define NRG_CPU_AVX512BW 0x10u
#define NRG_CPU_AVX512DQ 0x20u
#define NRG_CPU_AVX512VL 0x40u
#define NRG_CPU_NEON 0x80u

NRG_API unsigned nrg_cpu_features(void);

/* The name of feature bit i, counted from 0: "avx2", …; NULL beyond the last: iterate from 0 until NULL. */
NRG_API const char *nrg_cpu_feature_name(unsigned i);

/* "scalar", "generic", …; NULL for unknown values: iterate from 0 until NULL. */
NRG_API const char *nrg_isa_name(nrg_isa isa);

/* Sets *isa to the path of that name. On error, returns NRG_ERR_NULL or NRG_ERR_ISA_UNKNOWN and leaves *isa as it is. */
NRG_NODISCARD NRG_API nrg_status nrg_isa_from_name(const char *name, nrg_isa *isa);

/* 1 if this build has the path, else 0. */
NRG_API int nrg_isa_built(nrg_isa isa);

/* 1 if this build has the path and this machine can run it, else 0. */
NRG_API int nrg_isa_supported(nrg_isa isa);

/* The path that calls take now. */
NRG_API nrg_isa nrg_isa_active(void);

/* Selects the path for later calls of this process, in all its threads. Calls that already run finish on their path. On error,
 * returns NRG_ERR_ISA_UNKNOWN or NRG_ERR_ISA_UNSUPPORTED and changes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_isa_set(nrg_isa isa);

/* A sentence in static storage that gives the reason for the active path: the best one, NRG_ISA, nrg_isa_set(), or the best one
 * because NRG_ISA was ignored. */
NRG_API const char *nrg_isa_reason(void);

/* Bits of nrg_fp_environment(): how arithmetic of the calling thread differs from the default environment. */
#define NRG_FP_FLUSHES_RESULTS 0x1u  /* results below 2^-126 become 0: FTZ of x86, FZ of Arm */
#define NRG_FP_FLUSHES_OPERANDS 0x2u /* operands below 2^-126 count as 0: DAZ of x86, FZ of Arm */
#define NRG_FP_ROUNDS_OTHERWISE 0x4u /* not to nearest */

/* 0 if all guarantees of nrg hold in this thread. An object that was linked with -ffast-math or -Ofast may switch FTZ and DAZ
 * on for the process (gcc's crtfastmath.o), and threads inherit that from the thread that creates them. Then bits of subnormals
 * differ between paths; nothing else does, and no call crashes (docs/reproducibility.md). To get the bits back, clear FTZ and
 * DAZ in each thread: _mm_setcsr(_mm_getcsr() & ~0x8040u) on x86. */
NRG_API unsigned nrg_fp_environment(void);

/* A sentence in static storage that describes a result of nrg_fp_environment(); "?" for other numbers. */
NRG_API const char *nrg_fp_environment_string(unsigned environment);

#ifdef __cplusplus
}
#endif
#endif
