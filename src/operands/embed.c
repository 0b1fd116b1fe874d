/* The embedding layer, alone and with the norm after it, and its gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "embed.h"

#include <float.h>
#include <math.h>

#include "check.h"

/* ---- the tables ---- */

/* One after the other, all of the size of the first. */
static void copy_tables(unsigned char *copy, const nrg_part *part, const void *tables, size_t count)
{
    const unsigned char *from = tables;
    const size_t size = count ? nrg_size_at(from, 0) : 0;
    if (size == part->size) { /* nrg_embed_check_tables reads the size of each */
        memcpy(copy, from, count * size);
        return;
    }
    for (size_t k = 0; k < count; k++, copy += part->size, from += size)
        if (nrg_size_at(from, 0) != size || !nrg_copy_struct(copy, from, part)) {
            memset(copy, 0, sizeof size);
            return;
        }
}

/* The tables that can be read: none of args whose size or number of tables is wrong. */
static inline size_t readable_tables(const void *tables, size_t count) { return tables && count <= NRG_EMBED_TABLES ? count : 0; }

nrg_status nrg_embed_check_tables(const void *tables, size_t count, const void *copies, size_t size)
{
    if (count > NRG_EMBED_TABLES)
        return NRG_ERR_COUNT;
    if (count && !tables)
        return NRG_ERR_NULL;
    for (size_t k = 0; k < NRG_EMBED_TABLES; k++)
        if (nrg_size_at((const unsigned char *)copies + k * size, 0) != size)
            return NRG_ERR_STRUCT_SIZE;
    return NRG_OK;
}

nrg_embed_terms nrg_embed_terms_of(const nrg_embed_args *args)
{
    static const nrg_part part = {.size = sizeof(nrg_embed_table), .least = sizeof(nrg_embed_table)};
    nrg_embed_terms terms;
    const size_t count = args && args->size >= sizeof *args ? readable_tables(args->tables, args->table_count) : 0;
    for (size_t k = count; k < NRG_EMBED_TABLES; k++)
        terms.table[k] = nrg_embed_table_init(0, NULL, NULL);
    copy_tables((unsigned char *)terms.table, &part, count ? args->tables : NULL, count);
    return terms;
}

nrg_embed_gradients nrg_embed_gradients_of(const nrg_embed_backward_args *args)
{
    static const nrg_part part = {.size = sizeof(nrg_embed_gradient), .least = sizeof(nrg_embed_gradient)};
    nrg_embed_gradients gradients;
    const size_t count = args && args->size >= sizeof *args ? readable_tables(args->tables, args->table_count) : 0;
    for (size_t k = count; k < NRG_EMBED_TABLES; k++)
        gradients.table[k] = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
    copy_tables((unsigned char *)gradients.table, &part, count ? args->tables : NULL, count);
    return gradients;
}

nrg_status nrg_embed_check_terms(const nrg_embed_args *a, const nrg_embed_terms *terms)
{
    const nrg_status status = nrg_embed_check_tables(a->tables, a->table_count, terms, sizeof terms->table[0]);
    if (status != NRG_OK)
        return status;
    if (a->dim == 0)
        return NRG_ERR_DIM;
    if (!nrg_is_beside(nrg_own_dtype(a->table_dtype, a->dtype), a->dtype))
        return NRG_ERR_DTYPE;
    for (int k = 0; k < NRG_EMBED_TABLES; k++)
        if (!(fabsf(terms->table[k].scale) <= FLT_MAX) || !terms->table[k].period)
            return NRG_ERR_CONSTANT;
    return NRG_OK;
}

nrg_status nrg_embed_check_terms_of(const nrg_embed_gradients *gradients)
{
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients->table[k];
        if (t->reserved)
            return NRG_ERR_STRUCT_SIZE;
        if (!(fabsf(t->scale) <= FLT_MAX) || !t->period)
            return NRG_ERR_CONSTANT;
    }
    return NRG_OK;
}

size_t nrg_embed_space(const nrg_embed_backward_args *a, const nrg_embed_gradients *gradients)
{
    uint64_t doubles = 0;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients->table[k];
        if (!t->ids)
            continue;
        if (a->rows >= UINT32_MAX || t->rows >= UINT32_MAX)
            return SIZE_MAX;
        doubles += nrg_embed_order_doubles(a->rows, t->rows);
    }
    return doubles <= SIZE_MAX / sizeof(double) ? (size_t)doubles : SIZE_MAX;
}
