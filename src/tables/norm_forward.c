/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_forward
#include "table.h"
