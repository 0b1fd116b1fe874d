/* Rows of tensors in several dimensions: for the public layer, which walks them, and for the jobs whose rows have to stay in
 * order.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_PLANES_H
#define NRG_JOB_PLANES_H

#include <stddef.h>

/* Groups, rows, planes, volumes; and the tensors of one call. */
enum { NRG_PLANE_LEVELS = 4, NRG_PLANE_TENSORS = 8 };

/* Row n of all is row n mod count[0] of plane n / count[0], and so on. A stride of 0 repeats, or its tensor is not there. */
typedef struct nrg_planes {
    size_t count[NRG_PLANE_LEVELS];
    size_t stride[NRG_PLANE_TENSORS][NRG_PLANE_LEVELS]; /* bytes */
} nrg_planes;

#endif
