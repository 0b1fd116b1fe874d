/* nrg rope: the table and the rotation, for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../../src/operands/rope.h"

typedef struct rope_request {
    nrg_rope_spec spec; /* n_dims 0: all of a row from rotate_from on */
    nrg_norm_spec norm; /* its dim and dtypes come from the files */
    nrg_norm_args heads;
    nrg_rope_args args; /* its rotate_from is an option's */
    nrg_store store;
    size_t tokens;
    int first; /* position */
    int mode, is_table, backward, heads_first;
} rope_request;

static const char *const mode_names[] = {"normal", "neox", "mrope", "vision", "imrope", "imrope-time", NULL};
static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX,   NRG_ROPE_MROPE,
                                      NRG_ROPE_VISION, NRG_ROPE_IMROPE, NRG_ROPE_IMROPE_TIME};
static const char *const scalings[] = {"none", "ntk", "llama3", NULL};

#define OPTIONS_DEF "rope/rope.def"
#define COMMAND "rope"
#define OPERAND IN_X
#define REQUEST rope_request
#define RUN command_rope
#include "../options.h"

/* ---- options ---- */

static int read_sections(const file_call *call, nrg_rope_spec *s)
{
    long long sections[4] = {0, 0, 0, 0};
    const char *given = call->value[OPT_SECTIONS], *mode = call->value[OPT_MODE] ? call->value[OPT_MODE] : mode_names[0];
    const int has_sections = s->mode != NRG_ROPE_NORMAL && s->mode != NRG_ROPE_NEOX;
    if (has_sections && !given)
        return cli_refuse("--mode %s needs --sections", mode);
    if (!has_sections)
        return given ? cli_refuse("--sections and --mode %s cannot be combined", mode) : CLI_DONE;
    if (!cli_integers("sections", given, 4, 0, INT32_MAX, sections))
        return CLI_REFUSED;
    for (int i = 0; i < 4; i++)
        s->sections[i] = (int)sections[i];
    return sections[0] | sections[1] | sections[2] | sections[3]
               ? CLI_DONE
               : cli_refuse("--sections: expected at least one pair, got '%s'", given);
}

static int ask(file_call *call)
{
    rope_request *q = call->request;
    nrg_rope_spec *s = &q->spec;
    *s = nrg_rope_spec_init(0, NRG_ROPE_NORMAL, 10000);
    q->args = nrg_rope_args_init(NRG_F32, 0, 0, NULL);
    if (!file_norm(call, OPT_NORM, OPT_EPS, &q->norm) || !read_fields(call, q))
        return CLI_REFUSED;
    s->mode = modes[q->mode];
    s->yarn = (call->value[OPT_NO_TRUNCATE] ? NRG_ROPE_YARN_NO_TRUNCATE : 0u) |
              (call->value[OPT_NO_MSCALE] ? NRG_ROPE_YARN_NO_MSCALE : 0u);
    if (read_sections(call, s) != CLI_DONE)
        return CLI_REFUSED;
    if (s->n_dims % 2 || s->n_dims > (size_t)1 << 31)
        return cli_refuse("--n-dims: expected an even number up to 2^31, got %zu", s->n_dims);
    if (s->scaling == NRG_ROPE_SCALING_LLAMA3 &&
        !(s->low_freq_factor >= 0 && s->low_freq_factor < s->high_freq_factor && s->high_freq_factor <= 0x1p400))
        return cli_refuse("--low-freq-factor: expected at least 0 and less than --high-freq-factor (%g), got %g",
                          s->high_freq_factor, s->low_freq_factor);
    return CLI_DONE;
}

/* ---- files ---- */

/* Tokens, heads and elements of x. Sets n_dims if no option does, and checks that a head has so many elements. */
static int read_shape(const file_call *call, rope_request *q)
{
    const npy_shape *x = &call->in[IN_X].shape;
    nrg_rope_args *a = &q->args;
    if (x->ndim > 3 || x->ndim < (q->heads_first ? 3 : 2))
        return file_wrong(call, IN_X, "shape %s",
                          q->heads_first ? "(heads, tokens, dim)" : "(tokens, heads, dim) or (tokens, dim)");
    a->tokens = x->dims[q->heads_first];
    a->q_heads = x->ndim == 3 ? x->dims[!q->heads_first] : 1;
    a->dim = x->dims[x->ndim - 1];
    const size_t per_dim = q->spec.mode == NRG_ROPE_VISION ? 2 : 1, room = a->dim > a->rotate_from ? a->dim - a->rotate_from : 0;
    if (!q->spec.n_dims && room && room % (2 * per_dim) == 0)
        q->spec.n_dims = room / per_dim;
    if (!q->spec.n_dims)
        return cli_refuse("%s: expected a multiple of %zu elements from --rotate-from %zu on, got %zu of %zu; set --n-dims",
                          file_in(call, IN_X), 2 * per_dim, a->rotate_from, room, a->dim);
    if (q->spec.n_dims > room / per_dim)
        return cli_refuse("--n-dims: expected at most %zu for rows of %zu elements and --rotate-from %zu, got %zu",
                          room / per_dim, a->dim, a->rotate_from, q->spec.n_dims);
    return CLI_DONE;
}

/* Positions for all axes there are: those of the file, or its one row for each. */
static int read_positions(file_call *call, const rope_request *q, size_t tokens)
{
    npy_array *p = &call->in[IN_POSITIONS];
    size_t axes = nrg_rope_axes(&q->spec), has = p->shape.ndim == 2 ? p->shape.dims[0] : 1;
    if (!p->data)
        return CLI_DONE;
    if (p->shape.ndim < 1 || p->shape.ndim > 2 || p->shape.dims[p->shape.ndim - 1] != tokens)
        return file_wrong(call, IN_POSITIONS, "shape (%zu,) or (axes, %zu) for %zu tokens", tokens, tokens, tokens);
    if (p->shape.ndim == 2 && (has < axes || has > 4 || (axes == 1 && has > 1 && !q->spec.sections[0])))
        return file_wrong(call, IN_POSITIONS, "shape (%zu, tokens) for this --mode and these --sections", axes);
    if (p->shape.ndim == 2 || axes == 1 || !tokens)
        return CLI_DONE;
    if (tokens > SIZE_MAX / axes / sizeof(int32_t))
        return npy_no_memory(SIZE_MAX);
    int32_t *all = realloc(p->data, axes * tokens * sizeof *all);
    if (!all)
        return npy_no_memory(axes * tokens * sizeof *all);
    p->data = all;
    for (size_t i = 1; i < axes; i++)
        memcpy(all + i * tokens, all, tokens * sizeof *all);
    return CLI_DONE;
}

static int check_factors(file_call *call, nrg_rope_spec *s)
{
    const npy_array *factors = &call->in[IN_FREQ_FACTORS];
    const size_t pairs = nrg_rope_pairs(s);
    npy_shape wanted = file_shape(1, &pairs);
    if (!factors->data)
        return CLI_DONE;
    if (factors->dtype != NRG_F32)
        return file_wrong_dtype(call, IN_FREQ_FACTORS, NRG_F32, NULL);
    const int status = npy_check_shape(factors, file_in(call, IN_FREQ_FACTORS), &wanted, "--n-dims");
    s->freq_factors = factors->data;
    for (size_t i = 0; i < pairs && status == CLI_DONE; i++)
        if (!(s->freq_factors[i] > 0 && s->freq_factors[i] <= FLT_MAX))
            return cli_refuse("%s: expected finite factors above 0, got %g at index %zu", file_in(call, IN_FREQ_FACTORS),
                              (double)s->freq_factors[i], i);
    return status;
}

/* A row of the table for each token. */
static int fill_table(const file_call *call, const rope_request *q, double *frequencies, float *table)
{
    double magnitude;
    nrg_status status = nrg_rope_frequencies(&q->spec, frequencies, &magnitude);
    if (status == NRG_ERR_CONSTANT)
        return cli_refuse(
            "--freq-base and --freq-scale: expected at most 2^18 turns of a pair from one position to the next, got more");
    if (status == NRG_ERR_DIM)
        return cli_refuse("--scaling ntk: expected --n-dims of at least 4, got %zu", q->spec.n_dims);
    nrg_rope_table_args args = nrg_rope_table_args_init(q->args.tokens, frequencies, magnitude, table);
    args.positions = call->in[IN_POSITIONS].data;
    args.first_position = args.positions ? 0 : q->first;
    return file_answer(call, status == NRG_OK ? nrg_rope_table(&q->spec, &args, 0, 1) : status);
}

/* The result takes the place of x. */
static int turn(file_call *call, rope_request *q, const float *table)
{
    nrg_rope_args *a = &q->args;
    const size_t row = a->dim * nrg_dtype_size(call->in[IN_X].dtype);
    a->dtype = q->norm.dtype = call->in[IN_X].dtype;
    a->table = table;
    a->table_rows = a->tokens;
    a->store = q->store;
    a->q_strides.row = q->heads_first ? row : row * a->q_heads;
    a->q_strides.head = q->heads_first ? row * a->tokens : row;
    call->operand[IN_X] = "Q";
    call->shape[IN_X] = &call->in[IN_X].shape;
    call->function = q->backward ? FILE_BACKWARD(rope_backward) : &invoke_rope_forward;
    call->part[0] = &q->spec;
    call->part[1] = a;
#ifndef NRG_NO_NORM
    if (call->value[OPT_NORM]) {
        q->heads = nrg_norm_args_init(a->tokens * a->q_heads, NULL, NULL, NULL);
        q->norm.dim = a->dim;
        call->operand[IN_W] = "Q'S W";
        call->operand[IN_B] = "Q'S B";
        call->function = &invoke_norm_rope_forward;
        void *const parts[] = {&q->norm, &q->spec, a, &q->heads, NULL};
        memcpy(call->part, parts, sizeof parts);
    }
#endif
    return file_run(call, IN_X);
}

static int compute(file_call *call)
{
    rope_request *q = call->request;
    const npy_array *p = &call->in[IN_POSITIONS];
    q->args.tokens = p->data && p->shape.ndim ? p->shape.dims[p->shape.ndim - 1] : q->tokens;
    int status = q->is_table ? CLI_DONE : read_shape(call, q);
    if (status == CLI_DONE)
        status = read_positions(call, q, q->args.tokens);
    if (status == CLI_DONE)
        status = check_factors(call, &q->spec);
    if (status != CLI_DONE)
        return status;
    const size_t pairs = nrg_rope_pairs(&q->spec), dims[2] = {q->args.tokens, 2 * pairs};
    const npy_shape wanted = file_shape(2, dims);
    if (!q->is_table)
        file_reuse(call, OUT_O, IN_X);
    else if ((status = file_reserve(call, OUT_O, NRG_F32, &wanted)) != CLI_DONE)
        return status;
    if (!q->is_table && (!q->args.tokens || !q->args.q_heads)) /* then there may be more of the others than memory */
        return CLI_DONE;
    /* frequencies, and the table where it is no result */
    const size_t bytes = 2 * pairs * sizeof(double), table_bytes = q->is_table ? 0 : dims[0] * dims[1] * sizeof(float);
    double *frequencies = call->workspace = malloc(bytes + table_bytes);
    if (!frequencies)
        return npy_no_memory(bytes + table_bytes);
    float *table = q->is_table ? call->out[OUT_O].data : (float *)(frequencies + 2 * pairs);
    status = fill_table(call, q, frequencies, table);
    return status == CLI_DONE && !q->is_table ? turn(call, q, table) : status;
}
