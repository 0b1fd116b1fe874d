/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/relative/relative_shift_kernels.h"
