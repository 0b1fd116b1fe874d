/* SPDX-License-Identifier: MIT */
#define NRG_OP quantize
#include "table.h"
