/* SPDX-License-Identifier: MIT */
#define NRG_OP dequantize
#include "table.h"
