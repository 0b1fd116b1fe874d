/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/embed/embed_kernels.h"
