/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/channel_norm/fallback.h"
