/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_quantized
#include "table.h"
