/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/bias/score_bias_kernels.h"
