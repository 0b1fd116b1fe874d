/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/rope.h"
