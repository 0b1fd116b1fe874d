/* nrg position sinusoidal: the table, or a tensor plus it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

typedef struct request {
    size_t rows, dim;
    long long first;
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
    if (file_in(call, IN_X) && !library_holds("--x", "embed"))
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
    args.first_position = (int32_t)q->first;
    nrg_status status = nrg_sinusoidal_frequencies(&spec, frequencies);
    if (status == NRG_ERR_CONSTANT) {
        complain("--base: expected at most 2^18 turns of a pair from one position to the next, got more with '%s'",
                 call->value[OPT_BASE]);
        return CLI_REFUSED;
    }
    return file_answer(call, status == NRG_OK ? nrg_sinusoidal_table(&spec, &args, 0, 1) : status);
}

/* Rows as many as positions, where there are any; a row is of an even length but for the paper's. */
static int make_table(const file_call *call, const request *q, void *table)
{
    const npy_array *p = &call->in[IN_POSITIONS];
    char text[NPY_SHAPE_ROOM];
    if (p->data && (p->shape.ndim != 1 || p->count != q->rows)) {
        const npy_shape expected = file_shape(1, &q->rows);
        return file_wrong_shape(call, IN_POSITIONS, npy_shape_text(text, &expected));
    }
    if (!q->dim || (q->dim % 2 && (q->layout || call->value[OPT_TO_BASE]))) {
        complain("--dim: expected an even number with --layout concatenated, --layout cosines-first or --to-base, got %zu",
                 q->dim);
        return CLI_REFUSED;
    }
    double *frequencies = malloc((q->dim + 1) * sizeof *frequencies);
    if (!frequencies)
        return arrays_no_memory((q->dim + 1) * sizeof *frequencies);
    int status = fill_table(call, q, frequencies, table);
    free(frequencies);
    return status;
}

#ifndef NRG_NO_EMBED
static int add(file_call *call, const request *q, const position_shape *s)
{
    size_t bytes = q->rows * q->dim * sizeof(float);
    float *table = malloc(bytes ? bytes : 1);
    if (!table)
        return arrays_no_memory(bytes);
    int status = make_table(call, q, table);
    npy_array *o = &call->out[OUT_O];
    file_reuse(call, OUT_O, IN_X);
    nrg_embed_args args = nrg_embed_args_init(o->dtype, s->batch * s->rows, s->columns, o->data);
    args.x = args.o;
    args.table_dtype = NRG_F32;
    nrg_embed_table term = nrg_embed_table_counted(s->rows, table, 0);
    args.tables = &term;
    args.table_count = 1;
    term.period = s->rows ? s->rows : SIZE_MAX;
    if (status == CLI_DONE)
        status = file_answer(call, nrg_embed_forward(&args, 0, 1));
    free(table);
    return status;
}
#endif

static int compute(file_call *call)
{
    request *q = call->request;
    position_shape s;
    if (file_in(call, IN_X)) {
        int status = position_rows(call, IN_X, &s);
        q->rows = s.rows;
        q->dim = s.columns;
        if (status != CLI_DONE)
            return status;
#ifndef NRG_NO_EMBED
        if (s.batch && s.rows && s.columns)
            return add(call, q, &s);
#endif
        file_reuse(call, OUT_O, IN_X); /* there is nothing to add */
        return CLI_DONE;
    }
    if (file_in(call, IN_POSITIONS))
        q->rows = call->in[IN_POSITIONS].count;
    const size_t dims[2] = {q->rows, q->dim};
    const npy_shape shape = file_shape(2, dims);
    int status = file_reserve(call, OUT_O, (q->is_f16 ? NRG_F16 : NRG_F32), &shape);
    return status == CLI_DONE ? make_table(call, q, call->out[OUT_O].data) : status;
}
