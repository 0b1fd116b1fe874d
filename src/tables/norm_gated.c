/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_gated
#include "table.h"
