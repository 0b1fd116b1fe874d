/* SPDX-License-Identifier: MIT */
#define NRG_OP rope
#include "table.h"
