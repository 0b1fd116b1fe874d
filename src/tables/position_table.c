/* SPDX-License-Identifier: MIT */
#define NRG_OP position_table
#include "table.h"
