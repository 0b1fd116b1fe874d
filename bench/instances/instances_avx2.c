/* SPDX-License-Identifier: MIT */
#include "../../src/avx2/vec.h"

#include "instances_template.h"
