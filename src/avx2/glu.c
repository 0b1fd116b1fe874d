/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/activation/glu.h"
