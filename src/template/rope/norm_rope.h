/* RMSNorm of every head and its rotation in one pass: norm_rope_row.h has a row, norm_rope_rows.h the walk over them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_NORM_ROPE_H
#define NRG_TEMPLATE_ROPE_NORM_ROPE_H

#include "norm_rope_row.h"

#define NORM_ROPE_DTYPE f32
#define NORM_ROPE_D NRG_F32
#include "norm_rope_rows.h"
#define NORM_ROPE_DTYPE f16
#define NORM_ROPE_D NRG_F16
#include "norm_rope_rows.h"
#define NORM_ROPE_DTYPE bf16
#define NORM_ROPE_D NRG_BF16
#include "norm_rope_rows.h"

NRG_PATH_KERNEL(norm_rope, f32, norm_rope, norm_rope_f32(job))
NRG_PATH_KERNEL(norm_rope, f16, norm_rope, norm_rope_f16(job))
NRG_PATH_KERNEL(norm_rope, bf16, norm_rope, norm_rope_bf16(job))

#endif
