/* nrg rope: the table and the rotation, for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include "rope.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "../npy/arrays.h"
#include "../library.h"

typedef struct shape {
    size_t tokens, heads, dim;
} shape;

static int read_shape(const file_call *call, const rope_request *q, shape *s)
{
    const npy_array *x = &call->in[ROPE_X];
    const size_t *dims = x->shape.dims;
    int wanted = q->heads_first ? 3 : 2;
    if (x->shape.ndim > 3 || x->shape.ndim < wanted)
        return file_wrong_shape(call, ROPE_X, q->heads_first ? "(heads, tokens, dim)" : "(tokens, heads, dim) or (tokens, dim)");
    s->tokens = dims[q->heads_first];
    s->heads = x->shape.ndim == 3 ? dims[!q->heads_first] : 1;
    s->dim = dims[x->shape.ndim - 1];
    return CLI_DONE;
}

/* Sets n_dims if no option does, and checks that a head has so many elements. */
static int fit_dims(const file_call *call, rope_request *q, const shape *s)
{
    size_t per_dim = q->spec.mode == NRG_ROPE_VISION ? 2 : 1;
    size_t room = s->dim > q->rotate_from ? s->dim - q->rotate_from : 0;
    if (!q->spec.n_dims && room && room % (2 * per_dim) == 0)
        q->spec.n_dims = room / per_dim;
    if (!q->spec.n_dims)
        complain("%s: expected a multiple of %zu elements from --rotate-from %zu on, got %zu of %zu; set --n-dims",
                 file_in(call, ROPE_X), 2 * per_dim, q->rotate_from, room, s->dim);
    else if (q->spec.n_dims > room / per_dim)
        complain("--n-dims: expected at most %zu for rows of %zu elements and --rotate-from %zu, got %zu", room / per_dim, s->dim,
                 q->rotate_from, q->spec.n_dims);
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

/* Axes that the library reads. */
static size_t axes_of(const nrg_rope_spec *s)
{
    size_t axes = 1;
    for (size_t i = 1; i < (s->mode == NRG_ROPE_IMROPE_TIME ? 3 : 4); i++)
        if (s->sections[i] || s->mode == NRG_ROPE_IMROPE)
            axes = i + 1;
    return axes;
}

/* Positions for all axes there are: those of the file, or its one row for each. */
static int read_positions(file_call *call, const rope_request *q, size_t tokens)
{
    npy_array *p = &call->in[ROPE_POSITIONS];
    char text[NPY_SHAPE_ROOM];
    size_t axes = axes_of(&q->spec), has = p->shape.ndim == 2 ? p->shape.dims[0] : 1;
    if (!p->data)
        return CLI_DONE;
    if (p->shape.ndim < 1 || p->shape.ndim > 2 || p->shape.dims[p->shape.ndim - 1] != tokens) {
        complain("%s: expected shape (%zu,) or (axes, %zu) for %zu tokens, got %s", file_in(call, ROPE_POSITIONS), tokens, tokens,
                 tokens, npy_shape_text(text, &p->shape));
        return CLI_REFUSED;
    }
    if (p->shape.ndim == 2 && (has < axes || has > 4 || (axes == 1 && has > 1 && !q->spec.sections[0]))) {
        complain("%s: expected shape (%zu, tokens) for this --mode and these --sections, got %s", file_in(call, ROPE_POSITIONS),
                 axes, npy_shape_text(text, &p->shape));
        return CLI_REFUSED;
    }
    if (p->shape.ndim == 2 || axes == 1 || !tokens)
        return CLI_DONE;
    if (tokens > SIZE_MAX / axes / sizeof(int32_t))
        return arrays_no_memory(SIZE_MAX);
    int32_t *all = malloc(axes * tokens * sizeof *all);
    if (!all)
        return arrays_no_memory(axes * tokens * sizeof *all);
    for (size_t i = 0; i < axes; i++)
        memcpy(all + i * tokens, p->data, tokens * sizeof *all);
    free(p->data);
    p->data = all;
    return CLI_DONE;
}

static int check_factors(file_call *call, nrg_rope_spec *s)
{
    const npy_array *factors = &call->in[ROPE_FREQ_FACTORS];
    const size_t pairs = nrg_rope_pairs(s);
    npy_shape wanted = file_shape(1, &pairs);
    if (!factors->data)
        return CLI_DONE;
    if (factors->dtype != NRG_F32)
        return file_wrong_dtype(call, ROPE_FREQ_FACTORS, NRG_F32, NULL);
    int status = array_check_shape(factors, file_in(call, ROPE_FREQ_FACTORS), &wanted, "--n-dims");
    s->freq_factors = factors->data;
    for (size_t i = 0; i < pairs && status == CLI_DONE; i++)
        if (!(s->freq_factors[i] > 0 && s->freq_factors[i] <= FLT_MAX)) {
            complain("%s: expected finite factors above 0, got %g at index %zu", file_in(call, ROPE_FREQ_FACTORS),
                     (double)s->freq_factors[i], i);
            status = CLI_REFUSED;
        }
    return status;
}

/* A row of the table for each token. */
static int fill_table(file_call *call, const rope_request *q, size_t tokens, double *frequencies, float *table)
{
    double magnitude;
    nrg_status status = nrg_rope_frequencies(&q->spec, frequencies, &magnitude);
    if (status == NRG_ERR_CONSTANT) {
        complain("--freq-base and --freq-scale: expected at most 2^18 turns of a pair from one position to the next, got more");
        return CLI_REFUSED;
    }
    if (status == NRG_ERR_DIM)
        complain("--scaling ntk: expected --n-dims of at least 4, got %zu", q->spec.n_dims);
    if (status != NRG_OK)
        return status == NRG_ERR_DIM ? CLI_REFUSED : file_answer(call, status);
    nrg_rope_table_args args = nrg_rope_table_args_init(tokens, frequencies, magnitude, table);
    args.positions = call->in[ROPE_POSITIONS].data;
    args.first_position = args.positions ? 0 : q->first;
    return file_answer(call, nrg_rope_table(&q->spec, &args, 0, 1));
}

static int make_table(file_call *call, rope_request *q, size_t tokens, float *table)
{
    size_t pairs = nrg_rope_pairs(&q->spec);
    double *frequencies = malloc(2 * pairs * sizeof *frequencies);
    if (!frequencies)
        return arrays_no_memory(2 * pairs * sizeof *frequencies);
    int status = fill_table(call, q, tokens, frequencies, table);
    free(frequencies);
    return status;
}

#ifndef NRG_NO_NORM
static int normalize_and_turn(file_call *call, rope_request *q, const shape *s, const nrg_rope_args *rope)
{
    const size_t rows = rope->batch * rope->tokens * rope->q_heads;
    nrg_norm_args norm = nrg_norm_args_init(rows, NULL, call->in[ROPE_W].data, NULL);
    norm.b = call->in[ROPE_B].data;
    q->norm.dim = s->dim;
    q->norm.dtype = rope->dtype;
    q->norm.w_dtype = norm.w ? call->in[ROPE_W].dtype : call->in[ROPE_B].dtype;
    return file_answer(call, nrg_norm_rope_forward(&q->norm, &q->spec, rope, &norm, NULL, 0, 1));
}
#endif

/* The result takes the place of x. */
static int turn(file_call *call, rope_request *q, const shape *s, const float *table)
{
    npy_array *o = &call->out[ROPE_O];
    file_reuse(call, ROPE_O, ROPE_X);
    nrg_rope_args args = nrg_rope_args_init(o->dtype, s->tokens, s->dim, table);
    size_t row = s->dim * nrg_dtype_size(o->dtype);
    args.rotate_from = q->rotate_from;
    args.store = q->store;
    args.q_heads = s->heads;
    args.q = o->data;
    args.q_strides.row = q->heads_first ? row : row * s->heads;
    args.q_strides.head = q->heads_first ? row * s->tokens : row;
#ifndef NRG_NO_NORM
    if (q->has_norm)
        return normalize_and_turn(call, q, s, &args);
#endif
#ifndef NRG_NO_BACKWARD
    if (q->backward)
        return file_answer(call, nrg_rope_backward(&q->spec, &args, 0, 1));
#endif
    return file_answer(call, nrg_rope_forward(&q->spec, &args, 0, 1));
}

static int compute_table(file_call *call, rope_request *q)
{
    const npy_array *p = &call->in[ROPE_POSITIONS];
    size_t tokens = p->data && p->shape.ndim ? p->shape.dims[p->shape.ndim - 1] : q->tokens;
    const size_t dims[2] = {tokens, 2 * nrg_rope_pairs(&q->spec)};
    const npy_shape wanted = file_shape(2, dims);
    int status = read_positions(call, q, tokens);
    if (status == CLI_DONE)
        status = check_factors(call, &q->spec);
    if (status == CLI_DONE)
        status = file_reserve(call, ROPE_O, NRG_F32, &wanted);
    return status == CLI_DONE ? make_table(call, q, tokens, call->out[ROPE_O].data) : status;
}

static int compute_rotation(file_call *call, rope_request *q)
{
    shape s = {0};
    int status = read_shape(call, q, &s);
    if (status == CLI_DONE)
        status = fit_dims(call, q, &s);
    if (status == CLI_DONE)
        status = read_positions(call, q, s.tokens);
    if (status == CLI_DONE)
        status = check_factors(call, &q->spec);
    if (status == CLI_DONE)
        status = file_check_weights(call, ROPE_W, ROPE_B, s.dim, ROPE_X);
    if (status != CLI_DONE)
        return status;
    if (!s.tokens || !s.heads) { /* then there may be more of the others than memory */
        file_reuse(call, ROPE_O, ROPE_X);
        return CLI_DONE;
    }
    size_t bytes = s.tokens * 2 * nrg_rope_pairs(&q->spec) * sizeof(float);
    float *table = malloc(bytes);
    if (!table)
        return arrays_no_memory(bytes);
    status = make_table(call, q, s.tokens, table);
    if (status == CLI_DONE)
        status = turn(call, q, &s, table);
    free(table);
    return status;
}

int rope_compute(file_call *call)
{
    rope_request *q = call->request;
    return q->is_table ? compute_table(call, q) : compute_rotation(call, q);
}
