/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/norm/norm_sandwich.h"
