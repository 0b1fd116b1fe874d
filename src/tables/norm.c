/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_norm NRG_TABLE
#include "table.h"
