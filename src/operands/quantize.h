/* What the calls of nrg/quantize.h and nrg/hadamard.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_QUANTIZE_H
#define NRG_OPERANDS_QUANTIZE_H

#include "../../include/nrg/hadamard.h"
#include "../job/quant_format.h"
#include "describe.h"

/* NRG_ERR_DIM, NRG_ERR_OVERFLOW or NRG_OK for rows of a format; dim is not 0. */
static inline nrg_status nrg_check_quant(nrg_quant_format format, size_t dim, size_t rows)
{
    const size_t block = nrg_format_has_scales(format) ? 1 : nrg_format_block(format);
    size_t most;
    if (dim % block || rows % nrg_format_rows(format))
        return NRG_ERR_DIM;
    return nrg_product(dim, 16, &most) ? NRG_OK : NRG_ERR_OVERFLOW;
}

/* The same where there need be no format, and in a build that has none. */
static inline nrg_status nrg_check_quant_if_any(nrg_quant_format format, size_t dim, size_t rows)
{
#ifdef NRG_NO_QUANTIZE
    (void)dim, (void)rows;
    return format ? NRG_ERR_ENUM : NRG_OK;
#else
    return format ? nrg_check_quant(format, dim, rows) : NRG_OK;
#endif
}

/* Bytes of a row, or of rows that lie together; 0 without a format. */
static inline size_t nrg_packed_bytes(nrg_quant_format format, size_t dim) { return format ? nrg_format_bytes(format, dim) : 0; }

static inline int nrg_hadamard_has(size_t dim) { return dim >= 64 && dim <= 512 && (dim & (dim - 1)) == 0; }

#include "quantize_calls.def"
#define NRG_CALL NRG_HADAMARD, hadamard
#include "description.h"

#endif
