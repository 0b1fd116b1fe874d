/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_rope NRG_TABLE
#include "table.h"
