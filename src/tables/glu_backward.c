/* SPDX-License-Identifier: MIT */
#define NRG_OP glu_backward
#include "table.h"
