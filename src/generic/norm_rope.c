/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/norm_rope.h"
