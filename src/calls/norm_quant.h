/* Bytes instead of o: where the calls of norms put them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_QUANT_H
#define NRG_CALLS_NORM_QUANT_H

#include "../job/norm.h"
#include "../job/quantize.h"
#include "call.h"
#include "planes.h"

/* Of a spec and of args, nrg_norm_args or nrg_norm_sandwich_args. */
#define NRG_NORM_QUANT(spec, a, q_stride_, scales_stride_)                                                                       \
    ((nrg_norm_quant){.q = (a)->packed,                                                                                          \
                      .scales = (char *)(a)->scales,                                                                             \
                      .q_stride = (q_stride_),                                                                                   \
                      .scales_stride = (scales_stride_),                                                                         \
                      .format = (spec)->format,                                                                                  \
                      .rounding = (spec)->rounding})

/* A share is of rows that lie together. */
static inline void quant_share(size_t *begin, size_t *end, nrg_quant_format format, size_t rows, int ith, int nth)
{
    const size_t together = nrg_format_rows(format);
    const size_t groups = together > 1 ? rows / together : rows;
    *begin = nrg_share(groups, ith, nth) * together;
    *end = nrg_share(groups, ith + 1, nth) * together;
}

/* Rows that lie together have to stay those of a plane. */
static inline void quant_planes(nrg_planes *p)
{
    planes_drop(p, 0);
    if (p->count[1] == 1)
        planes_drop(p, 1);
}

#endif
