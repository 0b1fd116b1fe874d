/* SPDX-License-Identifier: MIT */
#define NRG_OP relative_values
#include "table.h"
