/* Which loops belong to which path.
 *
 * SPDX-License-Identifier: MIT */
#include "limits.h"

#include "paths.h"

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
#define LOOPS_OF(path, isa, unused) [isa] = limit_loops_##path,
static const limit_loop *const loops[NRG_ISA_COUNT] = {NRG_EACH_PATH(LOOPS_OF, )};

const limit_loop *limit_loops_of(nrg_isa isa) { return (unsigned)isa < NRG_ISA_COUNT ? loops[isa] : NULL; }
