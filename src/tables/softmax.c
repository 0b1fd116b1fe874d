/* SPDX-License-Identifier: MIT */
#define NRG_OP softmax
#include "table.h"
