/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_recurrent NRG_TABLE
#include "table.h"
