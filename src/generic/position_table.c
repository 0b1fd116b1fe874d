/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/position_table.h"
