/* The embedding layer, alone and with the norm after it, and its gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "embed.h"

#include "check.h"

/* Tables as structs of this version, and `none` behind the last. All have the size of the first. */
static void copy_tables(void *copies, const void *none, size_t known, const void *tables, size_t count)
{
    const nrg_part part = {.size = (uint16_t)known, .least = (uint16_t)known};
    const unsigned char *from = tables;
    unsigned char *copy = copies;
    if (!tables || count > NRG_EMBED_TABLES)
        count = 0;
    for (size_t k = count; k < NRG_EMBED_TABLES; k++)
        memcpy(copy + k * known, none, known);
    const size_t size = count ? nrg_size_at(from, 0) : 0;
    if (size == known) { /* nrg_embed_check_tables reads the size of each */
        memcpy(copy, from, count * size);
        return;
    }
    for (size_t k = 0; k < count; k++, copy += known, from += size)
        if (nrg_size_at(from, 0) != size || !nrg_copy_struct(copy, from, &part)) {
            memset(copy, 0, sizeof size);
            return;
        }
}

nrg_embed_terms nrg_embed_terms_of(const nrg_embed_args *args)
{
    const nrg_embed_table none = nrg_embed_table_init(0, NULL, NULL);
    const int is_read = args && args->size >= sizeof *args;
    nrg_embed_terms terms;
    copy_tables(terms.table, &none, sizeof none, is_read ? args->tables : NULL, is_read ? args->table_count : 0);
    return terms;
}

nrg_embed_gradients nrg_embed_gradients_of(const nrg_embed_backward_args *args)
{
    const nrg_embed_gradient none = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
    const int is_read = args && args->size >= sizeof *args;
    nrg_embed_gradients gradients;
    copy_tables(gradients.table, &none, sizeof none, is_read ? args->tables : NULL, is_read ? args->table_count : 0);
    return gradients;
}

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

nrg_status nrg_embed_check_terms_of(const nrg_embed_gradients *gradients)
{
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients->table[k];
        if (t->reserved)
            return NRG_ERR_STRUCT_SIZE;
        if (!nrg_embed_is_term(t->scale, t->period))
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
