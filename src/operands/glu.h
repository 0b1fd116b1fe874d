/* What the calls of nrg/glu.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_GLU_H
#define NRG_OPERANDS_GLU_H

#include "../../include/nrg/glu.h"
#include "activation.h"
#include "quantize.h"

/* Whether there can be bytes instead of o. */
static inline nrg_status nrg_glu_check_quant(const nrg_glu_args *a)
{
    if (a->format == NRG_QUANT_NONE)
        return NRG_OK;
#ifdef NRG_NO_QUANTIZE
    return NRG_ERR_ENUM;
#else
    return nrg_check_quant(a->format, a->dim, a->rows);
#endif
}

#define NRG_OF NRG_GLU
#define NRG_NAME glu_forward
#include "names.h"

#define NRG_OF NRG_GLU_BACKWARD
#define NRG_NAME glu_backward
#include "names.h"

#endif
