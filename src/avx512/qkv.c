/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/qkv.h"
