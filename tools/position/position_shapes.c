/* Shapes and ids of the inputs of nrg position.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "position.h"

int position_axes(const file_call *call, int input, int axes, file_axes *s)
{
    const npy_shape *shape = &call->in[input].shape;
    if (shape->ndim < axes)
        return file_wrong(call, input, "shape (..., %s)", axes == 2 ? "tokens, dim" : "heads, queries, keys or dim");
    *s = file_last_axes(shape, axes);
    return CLI_DONE;
}

/* Those of the file, in every batch anew where it has one row of them. */
static int take_ids(const file_call *call, int input, const npy_shape *shape, const file_axes *s, nrg_embed_table *t)
{
    const npy_array *from = &call->in[input];
    npy_shape all = *shape;
    char wants[NPY_SHAPE_ROOM];
    all.ndim--;
    t->ids = from->data;
    if (from->shape.ndim == 1 && from->count == s->rows) {
        t->period = s->rows ? s->rows : SIZE_MAX;
        return CLI_DONE;
    }
    if (from->shape.ndim == all.ndim && memcmp(from->shape.dims, all.dims, (size_t)all.ndim * sizeof all.dims[0]) == 0)
        return CLI_DONE;
    return file_wrong(call, input, "shape (%zu,)%s%s", s->rows, all.ndim > 1 ? " or " : "",
                      all.ndim > 1 ? npy_shape_text(wants, &all) : "");
}

int position_ids(const file_call *call, int input, const npy_shape *shape, const file_axes *s, int first, size_t table_rows,
                 nrg_embed_table *t)
{
    if (file_in(call, input)) {
        const int status = take_ids(call, input, shape, s, t);
        for (size_t i = 0; i < call->in[input].count && s->batch && status == CLI_DONE; i++)
            if (t->ids[i] < 0 || (size_t)t->ids[i] >= table_rows)
                return cli_refuse("%s: expected row numbers from 0 and below the %zu rows of the table, got %ld",
                                  file_in(call, input), table_rows, (long)t->ids[i]);
        return status;
    }
    if (s->batch && s->rows && (first < 0 || s->rows > table_rows || (size_t)first > table_rows - s->rows))
        return cli_refuse("expected positions below the %zu rows of the table, got positions %lld to %lld", table_rows,
                          (long long)first, first + (long long)s->rows - 1);
    t->first_position = first;
    t->period = s->rows ? s->rows : SIZE_MAX;
    return CLI_DONE;
}
