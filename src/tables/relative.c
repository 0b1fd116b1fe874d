/* SPDX-License-Identifier: MIT */
#define NRG_TABLES_relative NRG_TABLE
#include "table.h"
