/* Errors of results.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_TRUTH_ERROR_H
#define NRG_BENCH_TRUTH_ERROR_H

#include "../cases.h"
#include "../rival.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest error of a case's results, or of a rival's (loop; NULL: nrg's), in ulps (truth.h says of what), over the
 * benchmark's numbers. It does not depend on the shape. 0: no truth is here for it. */
double bench_error_of(const bench_case *c, const rival_loop *loop);

#ifdef __cplusplus
}
#endif

#endif
