/* SPDX-License-Identifier: MIT */
#define NRG_OP embed
#include "table.h"
