/* What the calls of nrg/glu.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_GLU_H
#define NRG_OPERANDS_GLU_H

#include "../../include/nrg/glu.h"
#include "activation.h"
#include "quantize.h"

#define NRG_MAKE "names.h"
#include "glu_calls.def"

#endif
