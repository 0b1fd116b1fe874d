/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/score_bias/score_bias.h"
#include "../template/score_bias/score_bias_backward.h"
