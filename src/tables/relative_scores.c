/* SPDX-License-Identifier: MIT */
#define NRG_OP relative_scores
#include "table.h"
