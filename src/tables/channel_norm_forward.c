/* SPDX-License-Identifier: MIT */
#define NRG_OP channel_norm_forward
#include "table.h"
