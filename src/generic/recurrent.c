/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/recurrent/recurrent_kernels.h"
