/* SPDX-License-Identifier: MIT */
#define NRG_OP activation
#include "table.h"
