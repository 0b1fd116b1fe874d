/* The embedding layer and the norm after it in one call: a few tokens at a time through the two kernels of the active path.
 *
 * SPDX-License-Identifier: MIT */
#include "embed_inputs.h"
#include "norm_spec.h"

enum {
    /* The first version's. */
    NORM_ARGS_SIZE_MIN = offsetof(nrg_norm_args, r_stride) + sizeof(size_t),
    /* Sums that wait for the norm: in L2, and mostly in L1. Measured with LayerNorm of 512×768 f32, AVX-512: 0.28 ns an element
     * with 16 KB, 0.27 with 32, 0.26 with 64, and 0.33 with two calls. */
    TURN_BYTES = 64 << 10,
    /* A turn of more rows is a multiple of this, since kernels take short rows by eights. */
    ROW_BATCH = 8
};

enum operand { W = EMBED_AFTER, B = W << 1, O = W << 2, R = W << 3, MEAN = W << 4, RSTD = W << 5 };

static size_t turn_rows(size_t row_bytes)
{
    size_t rows = TURN_BYTES / row_bytes;
    if (rows > ROW_BATCH)
        rows -= rows % ROW_BATCH;
    return rows ? rows : 1;
}

/* What the two have to agree on, and what has no place here. */
static nrg_status combination(const nrg_embed_args *a, const nrg_norm_spec *s, const nrg_norm_args *n)
{
    if (a->dim != s->dim || a->dtype != s->dtype || a->rows != n->rows || a->o || n->x || n->y || n->z)
        return NRG_ERR_COMBINATION;
    return s->gate != NRG_GATE_NONE || s->residual_mode != NRG_RESIDUAL_BEFORE ? NRG_ERR_COMBINATION : NRG_OK;
}

/* Everything up to the share. */
static __attribute__((noinline)) nrg_status make_jobs(nrg_embed_job *embed, nrg_norm_job *norm, const nrg_embed_args *a,
                                                      const nrg_norm_spec *s, const nrg_norm_args *n)
{
    const nrg_dtype dtype = a->dtype, r_dtype = s->r_dtype ? s->r_dtype : dtype, w_dtype = s->w_dtype ? s->w_dtype : dtype;
    const size_t rows = a->rows, dim = a->dim, groups = s->groups ? s->groups : 1, once = rows ? 1 : 0;
    size_t o_stride = n->o_stride, r_stride = n->r_stride, none = 0;
    extent operands[EMBED_INPUTS + 6];
    extents all = {0, operands};
    nrg_status status;
    if ((status = embed_pointers(a)) != NRG_OK || (status = embed_inputs(embed, &all, a)) != NRG_OK ||
        (status = add_operand(&all, W, ANY_OPERAND, n->w, w_dtype, dim, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, n->b, w_dtype, dim, once, &none)) != NRG_OK ||
        (status = add_operand(&all, O, EMBED_X, n->o, dtype, dim, rows, &o_stride)) != NRG_OK ||
        (status = add_operand(&all, R, EMBED_X, n->r, r_dtype, dim, rows, &r_stride)) != NRG_OK ||
        (none = 0, status = add_operand(&all, MEAN, 0, n->mean, NRG_F32, rows * groups, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, RSTD, 0, n->rstd, NRG_F32, rows * groups, once, &none)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK || (status = embed_positions(embed, a)) != NRG_OK)
        return status;

    embed_touched(&all, rows);
    /* The sum has a place of its own where it is asked for in its own dtype. Otherwise it is made where o will be, and an r in
     * f32 is stored by the norm. */
    const int apart = n->r && r_dtype == dtype;
    embed->o = apart ? n->r : n->o;
    embed->o_stride = apart ? r_stride : o_stride;
    embed->dim = dim;
    embed->stream = 0;
    *norm = (nrg_norm_job){
        .x = embed->o,
        .w = n->w,
        .b = n->b,
        .o = n->o,
        .r = apart ? NULL : n->r,
        .mean = n->mean,
        .rstd = n->rstd,
        .x_stride = embed->o_stride,
        .o_stride = o_stride,
        .r_stride = r_stride,
        .dim = groups == 1 ? dim : dim / groups,
        .groups = groups,
        .y_f32 = dtype == NRG_F32,
        .r_f32 = r_dtype == NRG_F32,
        .w_f32 = w_dtype == NRG_F32,
        .stream = wants_stream(s->store, &all),
        .gate = s->gate,
        .activation = s->activation,
    };
    set_formula(&norm->formula, s, norm->dim);
    return NRG_OK;
}

static nrg_status forward(const nrg_embed_args *a, const nrg_norm_spec *s, const nrg_norm_args *n, int ith, int nth)
{
    nrg_embed_job embed;
    nrg_norm_job norm;
    nrg_status status = embed_options(a);
    if (status != NRG_OK)
        return status;
    if (!spec_is_sound(s))
        return name_spec_error(s);
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    if ((status = combination(a, s, n)) != NRG_OK)
        return status;
    if (a->rows && !n->o)
        return NRG_ERR_NULL;
    if ((status = make_jobs(&embed, &norm, a, s, n)) != NRG_OK)
        return status;

    const unsigned path = nrg_active_path();
    nrg_embed_kernel *const sum = NRG_KERNEL_ON(path, embed, a->dtype);
    nrg_norm_forward_kernel *const normalize = NRG_KERNEL_ON(path, norm_forward, a->dtype);
    const size_t end = share(a->rows, ith + 1, nth), turn = turn_rows(a->dim * nrg_dtype_size(a->dtype));
    embed.ahead_end = end;
    for (size_t row = share(a->rows, ith, nth); row < end; row = embed.row_end) {
        embed.row_begin = row;
        embed.row_end = end - row > turn ? row + turn : end;
        norm.row_begin = embed.row_begin * norm.groups;
        norm.row_end = embed.row_end * norm.groups;
        sum(&embed);
        normalize(&norm);
    }
    return NRG_OK;
}

nrg_status nrg_embed_norm_forward(const nrg_embed_args *args, const nrg_norm_spec *spec, const nrg_norm_args *norm, int ith,
                                  int nth)
{
    if (!args || !spec || !norm)
        return NRG_ERR_NULL;
    nrg_embed_args args_copy;
    nrg_norm_spec spec_copy;
    nrg_norm_args norm_copy;
    args = read_struct(args, &args_copy, sizeof args_copy, EMBED_SIZE_MIN);
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    norm = read_struct(norm, &norm_copy, sizeof norm_copy, NORM_ARGS_SIZE_MIN);
    return args && spec && norm ? forward(args, spec, norm, ith, nth) : NRG_ERR_STRUCT_SIZE;
}
