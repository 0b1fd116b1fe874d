/* SPDX-License-Identifier: MIT */
#define NRG_OP score_bias
#include "table.h"
