/* SPDX-License-Identifier: MIT */
#define NRG_OP score_bias_backward
#include "table.h"
