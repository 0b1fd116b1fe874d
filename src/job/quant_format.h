/* What nrg/quantize.h says of formats, inline, for calls and kernels: of a format that a call has checked, not NRG_QUANT_NONE.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_QUANT_FORMAT_H
#define NRG_JOB_QUANT_FORMAT_H

#include "../../include/nrg/quantize.h"

static inline int nrg_format_has_scales(nrg_quant_format format) { return format >= NRG_QUANT_INT8; }

static inline size_t nrg_format_rows(nrg_quant_format format)
{
    const int of_five = format >= NRG_QUANT_Q8_K ? (int)format - NRG_QUANT_Q8_K : (int)format - NRG_QUANT_Q8_0;
    return nrg_format_has_scales(format) || of_five <= 0 ? 1 : of_five <= 2 ? 4 : 8;
}

static inline size_t nrg_format_block(nrg_quant_format format)
{
    if (nrg_format_has_scales(format))
        return format == NRG_QUANT_INT8 ? 0 : (size_t)32 << (format - NRG_QUANT_INT8_32);
    return format >= NRG_QUANT_Q8_K ? 256 : 32;
}

static inline size_t nrg_format_bytes(nrg_quant_format format, size_t dim)
{
    if (nrg_format_has_scales(format))
        return dim;
    return nrg_format_rows(format) * (format >= NRG_QUANT_Q8_K ? dim / 256 * 292 : dim / 32 * 34);
}

static inline size_t nrg_format_scales(nrg_quant_format format, size_t dim)
{
    const size_t block = nrg_format_block(format);
    return !nrg_format_has_scales(format) ? 0 : block ? dim / block + (dim % block != 0) : 1;
}

#endif
