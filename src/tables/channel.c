/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_channel NRG_TABLE
#include "table.h"
