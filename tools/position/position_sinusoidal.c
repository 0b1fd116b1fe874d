/* nrg position sinusoidal: the table, or a tensor plus it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <nrg/nrg.h>

#include "position.h"

typedef struct request {
    size_t rows, dim;
    int first; /* position */
    double base;
    int is_f16; /* the table, without x */
    nrg_sinusoidal_layout layout;
} request;

static const char *const layouts[] = {"interleaved", "concatenated", "cosines-first", NULL};
static const char *const dtypes[] = {"f32", "f16", NULL};

#define OPTIONS_DEF "position/position_sinusoidal.def"
#define COMMAND "position sinusoidal"
#define OPERAND IN_X
#define REQUEST request
#define RUN position_sinusoidal
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    q->base = 10000;
    if (file_in(call, IN_X) && !cli_build_has("--x", "embed"))
        return CLI_REFUSED;
    return read_fields(call, q) ? CLI_DONE : CLI_REFUSED;
}

static int fill_table(const file_call *call, const request *q, double *frequencies, void *table)
{
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(q->dim);
    spec.base = q->base;
    spec.spread = call->value[OPT_TO_BASE] ? NRG_SINUSOIDAL_TO_BASE : NRG_SINUSOIDAL_BELOW_BASE;
    spec.layout = q->layout;
    nrg_sinusoidal_args args = nrg_sinusoidal_args_init((q->is_f16 ? NRG_F16 : NRG_F32), q->rows, frequencies, table);
    args.positions = call->in[IN_POSITIONS].data;
    args.first_position = q->first;
    const nrg_status status = nrg_sinusoidal_frequencies(&spec, frequencies);
    if (status == NRG_ERR_CONSTANT)
        return cli_refuse("--base: expected at most 2^18 turns of a pair from one position to the next, got more with '%s'",
                          call->value[OPT_BASE]);
    return file_answer(call, status == NRG_OK ? nrg_sinusoidal_table(&spec, &args, 0, 1) : status);
}

#ifndef NRG_NO_EMBED
/* The result takes the place of x. */
static int add(file_call *call, const request *q, const file_axes *s, const float *table)
{
    const npy_array *o = &call->out[OUT_O];
    nrg_embed_args args = nrg_embed_args_init(o->dtype, s->batch * s->rows, q->dim, o->data);
    nrg_embed_table term = nrg_embed_table_counted(s->rows, table, 0);
    term.period = s->rows;
    args.x = args.o;
    args.table_dtype = NRG_F32;
    args.tables = &term;
    args.table_count = 1;
    return file_answer(call, nrg_embed_forward(&args, 0, 1));
}
#endif

/* Rows as many as positions, where there are any; a row is of an even length but for the paper's. */
static int compute(file_call *call)
{
    request *q = call->request;
    const npy_array *p = &call->in[IN_POSITIONS];
    const int has_x = file_in(call, IN_X) != NULL;
    file_axes s = {1, 1, p->data ? p->count : q->rows, q->dim};
    int status = has_x ? position_axes(call, IN_X, 2, &s) : CLI_DONE;
    q->rows = s.rows;
    q->dim = s.columns;
    const size_t dims[2] = {q->rows, q->dim};
    const npy_shape shape = file_shape(2, dims);
    if (has_x && status == CLI_DONE)
        file_reuse(call, OUT_O, IN_X);
    else if (status == CLI_DONE)
        status = file_reserve(call, OUT_O, (q->is_f16 ? NRG_F16 : NRG_F32), &shape);
    if (status != CLI_DONE || (has_x && !call->in[IN_X].count)) /* there is nothing to add */
        return status;
    if (p->data && (p->shape.ndim != 1 || p->count != q->rows))
        return file_wrong(call, IN_POSITIONS, "shape (%zu,)", q->rows);
    if (!q->dim || (q->dim % 2 && (q->layout || call->value[OPT_TO_BASE])))
        return cli_refuse(
            "--dim: expected an even number with --layout concatenated, --layout cosines-first or --to-base, got %zu", q->dim);
    /* frequencies, and the table where it is no result */
    const size_t bytes = (q->dim + 1) * sizeof(double), table_bytes = has_x ? q->rows * q->dim * sizeof(float) : 0;
    double *frequencies = call->workspace = malloc(bytes + table_bytes);
    if (!frequencies)
        return npy_no_memory(bytes + table_bytes);
    status = fill_table(call, q, frequencies, has_x ? (void *)(frequencies + q->dim + 1) : call->out[OUT_O].data);
#ifndef NRG_NO_EMBED
    if (status == CLI_DONE && has_x)
        status = add(call, q, &s, (const float *)(frequencies + q->dim + 1));
#endif
    return status;
}
