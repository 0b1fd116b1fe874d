/* nrg/isa.h: reports and selects the path.
 *
 * Every kernel exists on the scalar path, the oracle, which defines every bit. The SIMD paths are bit-identical to it. The
 * library selects the best path for this CPU and its operating system when it is loaded (dispatch). At that moment it reads
 * the environment variable NRG_ISA (scalar, generic, avx2, avx512, neon), which selects another path. The library ignores a
 * name that is unknown or that this machine cannot run; nrg_isa_reason() then reports that.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ISA_H
#define NRG_ISA_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Paths. */
typedef enum nrg_isa {
    NRG_ISA_SCALAR = 0,  /* C11: any CPU */
    NRG_ISA_GENERIC = 1, /* vectors of GNU C, compiled for the target of the build: any CPU */
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

/* Returns the NRG_CPU_ bits of this machine. */
NRG_API unsigned nrg_cpu_features(void);

/* Returns the name of a feature bit: "avx2", "fma", ….
 *
 * Parameters:
 * - i: index of the bit, from 0. The function returns NULL beyond the last one, so a loop from 0 ends there. */
NRG_API const char *nrg_cpu_feature_name(unsigned i);

/* Returns the name of a path: "scalar", "generic", …. Returns NULL for unknown values, so a loop from 0 ends there.
 *
 * Parameters:
 * - isa: any value. */
NRG_API const char *nrg_isa_name(nrg_isa isa);

/* Finds a path by its name.
 *
 * Parameters:
 * - name: one of the names that nrg_isa_name returns.
 * - isa: output: the path.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: name or isa is NULL.
 * - NRG_ERR_ISA_UNKNOWN: no path has this name. */
NRG_NODISCARD NRG_API nrg_status nrg_isa_from_name(const char *name, nrg_isa *isa);

/* Returns 1 if this build has the path, else 0.
 *
 * Parameters:
 * - isa: any value; unknown ones return 0. */
NRG_API int nrg_isa_built(nrg_isa isa);

/* Returns 1 if this build has the path and this machine can run it, else 0.
 *
 * Parameters:
 * - isa: any value; unknown ones return 0. */
NRG_API int nrg_isa_supported(nrg_isa isa);

/* Returns the active path: the one that calls take now. */
NRG_API nrg_isa nrg_isa_active(void);

/* Selects the path for later calls of this process, in all its threads. Calls that already run finish on their path.
 *
 * Parameters:
 * - isa: the path.
 *
 * Returns NRG_OK. On error, returns one of these and changes nothing:
 * - NRG_ERR_ISA_UNKNOWN: no path has this number.
 * - NRG_ERR_ISA_UNSUPPORTED: this build lacks the path, or this CPU or its operating system cannot run it. */
NRG_NODISCARD NRG_API nrg_status nrg_isa_set(nrg_isa isa);

/* Returns a sentence in static storage that gives the reason for the active path. There are four reasons:
 * - It is the best path.
 * - NRG_ISA selected it.
 * - nrg_isa_set() selected it.
 * - It is the best path, because the library ignored NRG_ISA. */
NRG_API const char *nrg_isa_reason(void);

/* Bits of nrg_fp_environment(): differences of the calling thread's arithmetic from the default environment. */
#define NRG_FP_FLUSHES_RESULTS 0x1u  /* results below 2^-126 become 0: FTZ of x86, FZ of Arm */
#define NRG_FP_FLUSHES_OPERANDS 0x2u /* operands below 2^-126 count as 0: DAZ of x86, FZ of Arm */
#define NRG_FP_ROUNDS_OTHERWISE 0x4u /* rounds in another direction than to nearest */

/* Returns the NRG_FP_ bits of the calling thread. 0 means that all guarantees of nrg hold in this thread.
 *
 * An object that was linked with -ffast-math or -Ofast may switch on FTZ and DAZ for the process (gcc's crtfastmath.o).
 * Threads inherit that from the thread that creates them. Then subnormals are not bit-identical between paths. Nothing else
 * changes, and no call crashes (docs/reproducibility.md). To restore the bits, clear FTZ and DAZ in each thread, on x86 with
 *
 *     _mm_setcsr(_mm_getcsr() & ~0x8040u); */
NRG_API unsigned nrg_fp_environment(void);

/* Returns a sentence in static storage that describes a result of nrg_fp_environment().
 *
 * Parameters:
 * - environment: a combination of NRG_FP_ bits. For other numbers, the function returns "?". */
NRG_API const char *nrg_fp_environment_string(unsigned environment);

#ifdef __cplusplus
}
#endif
#endif
