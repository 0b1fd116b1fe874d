/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_forward
#include "table.h"
NRG_TABLE(norm_rms, f32)
NRG_TABLE(norm_rms, f16)
NRG_TABLE(norm_rms, bf16)
