/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_activation NRG_TABLE
#include "table.h"
