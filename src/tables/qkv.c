/* SPDX-License-Identifier: MIT */
#define NRG_OP qkv
#include "table.h"
