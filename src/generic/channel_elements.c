/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/channel/channel_element_loops.h"
