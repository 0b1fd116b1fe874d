/* The public layer of the sinusoidal table.
 *
 * SPDX-License-Identifier: MIT */
#include "checks.h"

enum { ARGS_SIZE_MIN = sizeof(nrg_sinusoidal_args) };

enum operand { FREQUENCIES = 1, POSITIONS = 2, TABLE = 4 };

nrg_status nrg_sinusoidal_table(const nrg_sinusoidal_args *args, int ith, int nth)
{
    if (!args)
        return NRG_ERR_NULL;
    nrg_sinusoidal_args copy;
    const nrg_sinusoidal_args *a = read_struct(args, &copy, sizeof copy, ARGS_SIZE_MIN);
    if (!a || a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if (!is_dtype(a->dtype) || (unsigned)a->layout > NRG_SINUSOIDAL_CONCATENATED)
        return NRG_ERR_ENUM;
    if (a->dim == 0 || (a->layout == NRG_SINUSOIDAL_CONCATENATED && a->dim % 2))
        return NRG_ERR_DIM;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if (a->rows && (!a->frequencies || !a->table))
        return NRG_ERR_NULL;
    if (!a->positions && a->rows && a->rows - 1 > (size_t)((int64_t)INT32_MAX - a->first))
        return NRG_ERR_POSITION;

    const size_t pairs = a->dim / 2 + a->dim % 2, once = a->rows ? 1 : 0;
    size_t none = 0, table_stride = a->table_stride;
    nrg_status status;
    extent operands[3];
    extents all = {0, operands};
    if (pairs > SIZE_MAX / 2)
        return NRG_ERR_OVERFLOW;
    if ((status = add_words(&all, FREQUENCIES, ANY_OPERAND, a->frequencies, once ? 2 * pairs : 0, sizeof(double))) != NRG_OK ||
        (status = add_operand(&all, POSITIONS, ANY_OPERAND, a->positions, NRG_F32, a->rows, once, &none)) != NRG_OK ||
        (status = add_operand(&all, TABLE, 0, a->table, a->dtype, a->dim, a->rows, &table_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const nrg_position_table_job job = {
        .high = a->frequencies,
        .low = a->rows ? a->frequencies + pairs : NULL,
        .magnitude = 1,
        .positions = a->positions,
        .first = a->first,
        .mode = NRG_ROPE_NORMAL,
        .order = a->layout == NRG_SINUSOIDAL_INTERLEAVED ? NRG_TABLE_INTERLEAVED : NRG_TABLE_SIN_COS,
        .pairs = pairs,
        .dim = a->dim,
        .table = a->table,
        .table_stride = table_stride,
        .begin = share(a->rows, ith, nth),
        .end = share(a->rows, ith + 1, nth),
    };
    if (job.begin >= job.end)
        return NRG_OK;
    NRG_ACTIVE_KERNEL(position_table, a->dtype)(&job);
    return NRG_OK;
}
