/* Which loops belong to which path.
 *
 * SPDX-License-Identifier: MIT */
#include "limits.h"

const limit_loop *limit_loops_of(nrg_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case NRG_ISA_AVX2:
        return limit_loops_avx2;
    case NRG_ISA_AVX512:
        return limit_loops_avx512;
#elif defined(__aarch64__)
    case NRG_ISA_NEON:
        return limit_loops_neon;
#endif
    default:
        return limit_loops_scalar;
    }
}
