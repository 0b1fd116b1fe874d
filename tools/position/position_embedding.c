/* nrg position embedding: tokens, positions and types, and the norm after them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../npy/arrays.h"
#include "../library.h"
#include "position.h"

static const char help[] =
    "usage: nrg position embedding IDS.npy --table T.npy [--position-table P.npy]\n"
    "           [--types IDS.npy --type-table S.npy] [--norm KIND] [OPTION]... --o O.npy\n"
    "\n"
    "Adds the embeddings of tokens, positions and types from left to right. Each sum is rounded once. Then\n"
    "computes the norm, if there is one:\n"
    "\n"
    "  o = scale * T[id] + P[position] + S[type]\n"
    "\n"
    "example: tokens and positions, then LayerNorm\n"
    "  nrg position embedding ids.npy --table table.npy --position-table positions.npy --norm layer --o o.npy\n"
    "\n"
    "  IDS.npy, --ids FILE    ids of the tokens, of shape (tokens,) or (..., tokens)\n"
    "  --table FILE           T, of shape (rows, dim); all tables and o have one dtype\n"
    "  --scale S              multiplies T; default 1\n"
    "  --position-table FILE  P, of shape (rows, dim)\n"
    "  --positions FILE       rows of P, of shape (tokens,) or that of the ids; without it K, K + 1, ... in each\n"
    "                         sequence\n"
    "  --first K              default 0\n"
    "  --type-table FILE      S, of shape (rows, dim)\n"
    "  --types FILE           rows of S, of shape (tokens,) or that of the ids\n"
    "  --norm KIND            rms, layer or l2; default: no norm\n"
    "  --w, --b FILE          weight and bias of the norm, of shape (dim,), '<f4' or the dtype of the tables\n"
    "  --eps E                eps of the norm; default 1e-6, 1e-5 for layer, 1e-12 for l2\n"
    "  -o, --o FILE           the result, of shape ids.shape + (dim,) (required)\n" POSITION_HELP_END;

/* The ids of table i at IN_IDS + i. */
enum { IN_IDS, IN_POSITIONS, IN_TYPES, IN_TABLE, IN_POSITION_TABLE, IN_TYPE_TABLE, IN_W, IN_B, INPUTS, TABLES = 3 };
enum { OUT_O, OUTPUTS };
enum { OPT_FIRST = INPUTS + OUTPUTS, OPT_SCALE, OPT_NORM, OPT_EPS, OPT_ISA, OPT_HELP, OPTIONS };

static const cli_option options[OPTIONS + 1] = {
    [IN_IDS] = {"ids", 0, 1},
    [IN_POSITIONS] = {"positions", 0, 1},
    [IN_TYPES] = {"types", 0, 1},
    [IN_TABLE] = {"table", 0, 1},
    [IN_POSITION_TABLE] = {"position-table", 0, 1},
    [IN_TYPE_TABLE] = {"type-table", 0, 1},
    [IN_W] = {"w", 0, 1},
    [IN_B] = {"b", 0, 1},
    [INPUTS + OUT_O] = {"o", 'o', 1},
    [OPT_FIRST] = {"first", 0, 1},
    [OPT_SCALE] = {"scale", 0, 1},
    [OPT_NORM] = {"norm", 0, 1},
    [OPT_EPS] = {"eps", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

typedef struct request {
    long long first;
    float scale;
    nrg_norm_spec norm;
    nrg_embed_table tables[TABLES];
} request;

static int ask(file_call *call)
{
    request *q = call->request;
    q->scale = 1;
    if (file_excludes(call, IN_POSITIONS, OPT_FIRST) != CLI_DONE ||
        file_needs(call, IN_POSITIONS, IN_POSITION_TABLE) != CLI_DONE ||
        file_needs(call, OPT_FIRST, IN_POSITION_TABLE) != CLI_DONE || file_needs(call, IN_TYPES, IN_TYPE_TABLE) != CLI_DONE ||
        file_needs(call, IN_TYPE_TABLE, IN_TYPES) != CLI_DONE || file_needs(call, IN_W, OPT_NORM) != CLI_DONE ||
        file_needs(call, IN_B, OPT_NORM) != CLI_DONE || file_needs(call, OPT_EPS, OPT_NORM) != CLI_DONE ||
        !file_integer(call, OPT_FIRST, 0, INT32_MAX, &q->first) || !file_float(call, OPT_SCALE, &q->scale) ||
        !file_norm(call, OPT_NORM, OPT_EPS, &q->norm))
        return CLI_REFUSED;
    if (!isfinite(q->scale))
        complain("--scale: expected a finite number, got '%s'", call->value[OPT_SCALE]);
    else if (!file_in(call, IN_IDS))
        file_missing(call, IN_IDS, "");
    else if (!file_in(call, IN_TABLE))
        file_missing(call, IN_TABLE, "");
    else if (!file_out(call, OUT_O))
        file_missing(call, INPUTS + OUT_O, "");
    else
        return CLI_DONE;
    return CLI_REFUSED;
}

static int add_and_normalize(file_call *call, request *q, const position_shape *s)
{
    npy_array *o = &call->out[OUT_O];
    nrg_embed_args args = nrg_embed_args_init(o->dtype, s->batch * s->rows, s->columns, call->value[OPT_NORM] ? NULL : o->data);
    args.table_dtype = o->dtype;
    args.tables = q->tables;
    args.table_count = TABLES;
    if (!call->value[OPT_NORM])
        return file_answer(call, nrg_embed_forward(&args, 0, 1));
    nrg_norm_args norm = nrg_norm_args_init(args.rows, NULL, call->in[IN_W].data, o->data);
    norm.b = call->in[IN_B].data;
    q->norm.dim = s->columns;
    q->norm.dtype = o->dtype;
    q->norm.w_dtype = norm.w ? call->in[IN_W].dtype : call->in[IN_B].dtype;
    return file_answer(call, nrg_embed_norm_forward(&q->norm, &args, &norm, 0, 1));
}

/* Tables of one dtype and width, and the rows of each that the tokens take. */
static int read_tables(file_call *call, request *q, const position_shape *s)
{
    const npy_array *first = &call->in[IN_TABLE];
    for (int i = 0; i < TABLES; i++) {
        const npy_array *table = &call->in[IN_TABLE + i];
        q->tables[i] = nrg_embed_table_init(0, NULL, NULL);
        if (!table->data)
            continue;
        int status = position_check_table(call, IN_TABLE + i, s->columns, first->dtype, file_in(call, IN_TABLE));
        if (status == CLI_DONE && table->dtype != first->dtype)
            status = file_wrong_dtype(call, IN_TABLE + i, first->dtype, file_in(call, IN_TABLE));
        if (status == CLI_DONE)
            status = position_ids(call, IN_IDS + i, &call->out[OUT_O].shape, s, q->first, table->shape.dims[0], &q->tables[i]);
        q->tables[i].table = table->data;
        q->tables[i].scale = i ? 1 : q->scale;
        q->tables[i].rows = table->shape.dims[0];
        if (status != CLI_DONE)
            return status;
    }
    return CLI_DONE;
}

static int compute(file_call *call)
{
    request *q = call->request;
    const npy_array *ids = &call->in[IN_IDS], *table = &call->in[IN_TABLE];
    npy_shape shape = ids->shape;
    if (table->shape.ndim != 2 || !table->shape.dims[1])
        return file_wrong_shape(call, IN_TABLE, "(rows, dim)");
    if (!shape.ndim || shape.ndim == NPY_MAX_NDIM)
        return file_wrong_shape(call, IN_IDS, "(tokens,) or (..., tokens)");
    position_shape s = {0, 1, shape.dims[shape.ndim - 1], table->shape.dims[1]};
    s.batch = s.rows ? ids->count / s.rows : 0;
    shape.dims[shape.ndim++] = s.columns;
    int status = file_reserve(call, OUT_O, table->dtype, &shape);
    if (status == CLI_DONE)
        status = read_tables(call, q, &s);
    if (status == CLI_DONE)
        status = file_check_weights(call, IN_W, IN_B, s.columns, IN_TABLE);
    if (status == CLI_DONE)
        status = add_and_normalize(call, q, &s);
    return status;
}

int position_embedding(char **arguments)
{
    static const file_command command = {"position embedding",
                                         help,
                                         options,
                                         INPUTS,
                                         OUTPUTS,
                                         OPTIONS,
                                         IN_IDS,
                                         1u << IN_IDS | 1u << IN_POSITIONS | 1u << IN_TYPES,
                                         ask,
                                         compute};
    request q = {0};
    return file_command_run(&command, &q, arguments);
}
