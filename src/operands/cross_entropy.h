/* What the calls of nrg/cross_entropy.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CROSS_ENTROPY_H
#define NRG_OPERANDS_CROSS_ENTROPY_H

#include "../../include/nrg/cross_entropy.h"
#include "describe.h"

#define NRG_MAKE "names.h"
#include "cross_entropy_calls.def"

#endif
