/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/softmax/softmax.h"
#include "../template/softmax/softmax_backward.h"
