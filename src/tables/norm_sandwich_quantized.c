/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_sandwich_quantized
#include "table.h"
