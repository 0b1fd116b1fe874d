/* SPDX-License-Identifier: MIT */
#include "../../src/avx512/vec.h"

#include "instances_template.h"
