/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/quantize/hadamard.h"
