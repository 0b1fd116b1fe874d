/* What the calls of nrg/cross_entropy.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CROSS_ENTROPY_H
#define NRG_OPERANDS_CROSS_ENTROPY_H

#include "../../include/nrg/cross_entropy.h"
#include "describe.h"

#define NRG_OF NRG_CROSS_ENTROPY
#define NRG_NAME cross_entropy_forward
#include "names.h"

#define NRG_OF NRG_CROSS_ENTROPY_BACKWARD
#define NRG_NAME cross_entropy_backward
#include "names.h"

#endif
