/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/recurrent/recurrent.h"
#include "../template/recurrent/recurrent_backward.h"
