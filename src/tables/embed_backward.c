/* SPDX-License-Identifier: MIT */
#define NRG_OP embed_backward
#include "table.h"
