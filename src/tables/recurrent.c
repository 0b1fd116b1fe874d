/* SPDX-License-Identifier: MIT */
#define NRG_OP recurrent
#include "table.h"
