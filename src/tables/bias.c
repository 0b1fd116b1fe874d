/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_bias NRG_TABLE
#include "table.h"
