/* SPDX-License-Identifier: MIT */
#define NRG_OP channel_norm_backward
#include "table.h"
