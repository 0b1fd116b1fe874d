/* SPDX-License-Identifier: MIT */
#define NRG_OP head_bias_pair
#include "table.h"
