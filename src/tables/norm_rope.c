/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_rope
#include "table.h"
