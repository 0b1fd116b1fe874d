/* Tensors [tokens, heads, dim] with two strides, for the public functions: their checks, as rows that are as long as possible.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOKEN_HEADS_H
#define NRG_TOKEN_HEADS_H

#include "calls/checks.h"

/* Adds such a tensor, if it is there; strides of 0 become the real ones. It is seen as rows from the first byte of a token to its
 * last one, a token stride apart; or, where heads are further apart than tokens, the other way round; or as all its heads, where
 * they lie at equal distances. */
static inline nrg_status add_token_heads(extents *all, unsigned name, unsigned in_place, const void *pointer, nrg_dtype dtype,
                                         size_t tokens, size_t heads, size_t dim, size_t *token_stride, size_t *head_stride)
{
    const size_t element = dtype == NRG_F32 ? 4 : 2;
    size_t bytes, span, inner, outer, inner_stride, outer_stride;
    if (!product(dim, element, &bytes))
        return NRG_ERR_OVERFLOW;
    *head_stride = *head_stride ? *head_stride : bytes;
    if (!*token_stride && !product(heads, *head_stride, token_stride))
        return NRG_ERR_OVERFLOW;
    if (!tokens || !heads)
        return NRG_OK;
    /* a stride that nothing takes says nothing about the layout */
    const int by_token = heads == 1 || (tokens > 1 && *token_stride >= *head_stride);
    inner = by_token ? heads : tokens;
    outer = by_token ? tokens : heads;
    inner_stride = by_token ? *head_stride : *token_stride;
    outer_stride = by_token ? *token_stride : *head_stride;
    if (inner > 1 && outer > 1 && outer_stride % inner == 0 && outer_stride / inner == inner_stride && inner_stride >= bytes &&
        product(outer, inner, &span)) {
        /* all rows at equal distances: each by itself, so that others may lie in the gaps */
        outer = span;
        inner = 1;
        outer_stride = inner_stride;
    }
    if ((inner > 1 && inner_stride < bytes))
        return NRG_ERR_STRIDE;
    if (((uintptr_t)pointer | (inner > 1 ? inner_stride : 0) | (outer > 1 ? outer_stride : 0)) & (element - 1))
        return NRG_ERR_ALIGNMENT;
    if (!product(inner - 1, inner_stride, &span) || span > SIZE_MAX - bytes)
        return NRG_ERR_OVERFLOW;
    span += bytes;
    if (outer == 1)
        outer_stride = span;
    return add_operand(all, name, in_place, pointer, dtype, span / element, outer, &outer_stride);
}

#endif
