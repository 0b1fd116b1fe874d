/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/channel_norm/channel_element_loops.h"
