/* Which loops belong to which path.
 *
 * SPDX-License-Identifier: MIT */
#include "limits.h"

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
_Static_assert(NRG_ISA_COUNT == 4, "a new path: its limit loops belong into this list");

static const limit_loop *const loops[NRG_ISA_COUNT] = {
    [NRG_ISA_SCALAR] = limit_loops_scalar,
#if defined(__x86_64__)
    [NRG_ISA_AVX2] = limit_loops_avx2,
    [NRG_ISA_AVX512] = limit_loops_avx512,
#elif defined(__aarch64__)
    [NRG_ISA_NEON] = limit_loops_neon,
#endif
};

const limit_loop *limit_loops_of(nrg_isa isa) { return (unsigned)isa < NRG_ISA_COUNT ? loops[isa] : NULL; }
