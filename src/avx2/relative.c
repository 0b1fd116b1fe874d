/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/relative/relative_backward.h"
#include "../template/relative/relative_scores.h"
#include "../template/relative/relative_values.h"
