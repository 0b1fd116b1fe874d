/* SPDX-License-Identifier: MIT */
#define NRG_OP norm_sandwich
#include "table.h"
