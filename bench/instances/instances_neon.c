/* SPDX-License-Identifier: MIT */
#include "../../src/neon/vec.h"

#include "instances_template.h"
