/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/relative/head_bias.h"
#include "../template/relative/relative_shift.h"
