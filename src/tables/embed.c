/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_embed NRG_TABLE
#include "table.h"
