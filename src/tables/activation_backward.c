/* SPDX-License-Identifier: MIT */
#define NRG_OP activation_backward
#include "table.h"
