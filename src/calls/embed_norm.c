/* The embedding layer and the norm after it in one call: a few tokens at a time through the two kernels of the active path.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/norm.h"
#include "call.h"
#include "embed_inputs.h"
#include "norm_formula.h"

enum {
    /* Sums that wait for the norm: in L2, and mostly in L1. Measured with LayerNorm of 512×768 f32, AVX-512: 0.28 ns an element
     * with 16 KB, 0.27 with 32, 0.26 with 64, and 0.33 with two calls. */
    TURN_BYTES = 64 << 10,
    /* A turn of more rows is a multiple of this, since kernels take short rows by eights. */
    ROW_BATCH = 8
};

static size_t turn_rows(size_t row_bytes)
{
    size_t rows = TURN_BYTES / row_bytes;
    if (rows > ROW_BATCH)
        rows -= rows % ROW_BATCH;
    return rows ? rows : 1;
}

/* Everything up to the share. */
NRG_OWN_FRAME nrg_status make_jobs(nrg_embed_job *embed, nrg_norm_job *norm, const nrg_norm_spec *s, const nrg_embed_args *a,
                                   const nrg_norm_args *n, int ith, int nth)
{
    nrg_laid l;
    const nrg_embed_terms terms = nrg_embed_terms_of(a);
    nrg_status status = NRG_LAY(&l, embed_norm_forward, a, &terms, s, n);
    if (status != NRG_OK)
        return status;
    const embed_call call = embed_call_of(a, &terms, &l);
    if ((status = embed_terms(embed, &call)) != NRG_OK)
        return status;
    const nrg_dtype r_dtype = nrg_own_dtype(s->r_dtype, s->dtype);
    const size_t o_stride = l.stride[NRG_EMBED_NORM_O][0], r_stride = l.stride[NRG_EMBED_NORM_R][0];
    /* The sum has a place of its own where it is asked for in its own dtype. Otherwise it is made where o will be, and an r in
     * f32 is stored by the norm. */
    const int apart = n->r && r_dtype == a->dtype;
    embed->o = apart ? n->r : n->o;
    embed->o_stride = apart ? r_stride : o_stride;
    embed->dim = a->dim;
    embed->stream = 0;
    begin_norm(norm, s, n->w, n->b);
    norm->x = embed->o;
    norm->o = n->o;
    norm->r = apart ? NULL : n->r;
    norm->mean = n->mean;
    norm->rstd = n->rstd;
    norm->x_stride = embed->o_stride;
    norm->o_stride = o_stride;
    norm->r_stride = r_stride;
    norm->r_f32 = r_dtype == NRG_F32;
    norm->stream = nrg_wants_stream(n->store, call.bytes);
    return NRG_OK;
}

nrg_status nrg_embed_norm_forward(const nrg_norm_spec *spec, const nrg_embed_args *args, const nrg_norm_args *norm_args, int ith,
                                  int nth)
{
    nrg_embed_job embed;
    nrg_norm_job norm;
    const nrg_status status = make_jobs(&embed, &norm, spec, args, norm_args, ith, nth);
    if (status != NRG_OK)
        return status;

    const unsigned path = nrg_active_path();
    nrg_embed_kernel *const sum = NRG_KERNEL_ON(path, embed, args->dtype);
    nrg_norm_forward_kernel *const normalize =
        nrg_norm_is_gated(&norm) ? NRG_KERNEL_ON(path, norm_gated, args->dtype) : NRG_KERNEL_ON(path, norm_forward, args->dtype);
    const size_t end = nrg_share(args->rows, ith + 1, nth), turn = turn_rows(embed.dim * nrg_dtype_size(args->dtype));
    embed.prefetch_end = end;
    for (size_t row = nrg_share(args->rows, ith, nth); row < end; row = embed.row_end) {
        embed.row_begin = row;
        embed.row_end = end - row > turn ? row + turn : end;
        norm.row_begin = embed.row_begin * norm.groups;
        norm.row_end = embed.row_end * norm.groups;
        sum(&embed);
        normalize(&norm);
    }
    return NRG_OK;
}

nrg_status nrg_embed_norm_forward_check(const nrg_norm_spec *spec, const nrg_embed_args *args, const nrg_norm_args *norm_args)
{
    nrg_embed_job embed;
    nrg_norm_job norm;
    return nrg_asked(make_jobs(&embed, &norm, spec, args, norm_args, 0, 1));
}
