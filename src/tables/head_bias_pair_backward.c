/* SPDX-License-Identifier: MIT */
#define NRG_OP head_bias_pair_backward
#include "table.h"
