/* SPDX-License-Identifier: MIT */
#define NRG_OP relative_shift
#include "table.h"
