/* What the calls of nrg/quantize.h take.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_QUANTIZE_H
#define NRG_OPERANDS_QUANTIZE_H

#include "../job/quant_format.h"
#include "operand.h"

/* nrg_quantize */
enum { NRG_QUANTIZE_X, NRG_QUANTIZE_PACKED, NRG_QUANTIZE_SCALES, NRG_QUANTIZE_OPERANDS };
extern const nrg_call nrg_call_quantize;

/* nrg_dequantize */
enum { NRG_DEQUANTIZE_PACKED, NRG_DEQUANTIZE_SCALES, NRG_DEQUANTIZE_O, NRG_DEQUANTIZE_OPERANDS };
extern const nrg_call nrg_call_dequantize;

/* Numbers of a quantized tensor of rows of dim elements: bytes of a row (of all that lie together), rows of such, scales. */
typedef struct nrg_quant_sizes {
    size_t bytes, rows, scales;
} nrg_quant_sizes;

/* NRG_ERR_DIM, NRG_ERR_OVERFLOW or NRG_OK; dim is not 0. */
static inline nrg_status nrg_measure_quant(nrg_quant_format format, size_t dim, size_t rows, nrg_quant_sizes *s)
{
    const size_t together = nrg_format_rows(format), block = nrg_format_has_scales(format) ? 1 : nrg_format_block(format);
    size_t most;
    *s = (nrg_quant_sizes){0};
    if (dim % block || rows % together)
        return NRG_ERR_DIM;
    if (!nrg_product(dim, 16, &most))
        return NRG_ERR_OVERFLOW;
    s->bytes = nrg_format_bytes(format, dim);
    s->rows = rows / together;
    s->scales = nrg_format_scales(format, dim);
    return NRG_OK;
}

#endif
