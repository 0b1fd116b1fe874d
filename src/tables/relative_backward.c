/* SPDX-License-Identifier: MIT */
#define NRG_OP relative_backward
#include "table.h"
