/* The CPU as it is, and AVX-512 wherever there is AVX2: what that path needs is emulated in this build.
 *
 * SPDX-License-Identifier: MIT */
#include "../../include/nrg/isa.h"

static unsigned real_cpu_features(void);
#define nrg_cpu_features real_cpu_features
#include "../../src/cpu.c"
#undef nrg_cpu_features

unsigned nrg_cpu_features(void)
{
    const unsigned avx2 = NRG_CPU_AVX2 | NRG_CPU_FMA | NRG_CPU_F16C;
    unsigned features = real_cpu_features();
    if ((features & avx2) == avx2)
        features |= NRG_CPU_AVX512F | NRG_CPU_AVX512BW | NRG_CPU_AVX512DQ | NRG_CPU_AVX512VL;
    return features;
}
