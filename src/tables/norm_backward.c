/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_backward
#include "table.h"
