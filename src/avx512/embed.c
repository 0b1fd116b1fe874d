/* SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/embed/embed.h"
#include "../template/embed/embed_backward.h"
