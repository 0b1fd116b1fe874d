/* SPDX-License-Identifier: MIT */
#define NRG_OP softmax_backward
#include "table.h"
