/* SPDX-License-Identifier: MIT */
#define NRG_OP recurrent_backward
#include "table.h"
