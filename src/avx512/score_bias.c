/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/score_bias/score_bias_kernels.h"
