/* SPDX-License-Identifier: MIT */
#define NRG_OP glu
#include "table.h"
