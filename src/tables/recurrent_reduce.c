/* SPDX-License-Identifier: MIT */
#define NRG_OP recurrent_reduce
#include "table.h"
