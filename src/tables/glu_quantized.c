/* SPDX-License-Identifier: MIT */
#define NRG_OP glu_quantized
#include "table.h"
