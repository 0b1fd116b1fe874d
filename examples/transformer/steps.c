/* Calls of nrg that the passes and the generator share. See model.h. SPDX-License-Identifier: MIT */
#include <math.h>
#include <nrg/nrg.h>

#include "model.h"

const double norm_eps = 1e-6, rope_base = 10000;

float embedding_scale(const shape *s) { return sqrtf((float)s->dim); }

/* r = x + y where there is y; o = rms_norm(r) ⊙ w */
void norm_rows(size_t rows, size_t dim, const float *x, const float *y, const float *w, float *r, float *o, int ith, int nth)
{
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, dim, norm_eps);
    nrg_norm_args args = nrg_norm_args_init(rows, x, w, o);
    args.y = y;
    args.r = r;
    require(nrg_norm_forward(&spec, &args, ith, nth), "norm");
}

/* Rows of the table of positions first … first + tokens - 1, by one thread. */
void make_rope_table(const shape *s, size_t first, size_t tokens, float *table)
{
    const nrg_rope_spec spec = nrg_rope_spec_init(s->head, NRG_ROPE_NEOX, rope_base);
    double frequencies[1024], magnitude; /* two for each pair of a head, whose dim is at most 1024 */
    require(nrg_rope_frequencies(&spec, frequencies, &magnitude), "rope's frequencies");
    nrg_rope_table_args args = nrg_rope_table_args_init(tokens, frequencies, magnitude, table);
    args.first_position = (int32_t)first;
    require(nrg_rope_table(&spec, &args, 0, 1), "rope's table");
}

/* q and k out of the rows of qkv, normalized head by head and rotated; both dense. */
void rotate_heads(const shape *s, size_t sequences, size_t tokens, const float *table, const float *qkv, const layer_tensors *w,
                  float *q, float *k, int ith, int nth)
{
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, s->head, norm_eps);
    const nrg_rope_spec rope = nrg_rope_spec_init(s->head, NRG_ROPE_NEOX, rope_base);
    nrg_rope_args args = nrg_rope_args_init(NRG_F32, tokens, s->head, table);
    const nrg_norm_args of_q = nrg_norm_args_init(sequences * tokens * s->heads, NULL, w->q_norm, NULL);
    const nrg_norm_args of_k = nrg_norm_args_init(sequences * tokens * s->kv_heads, NULL, w->k_norm, NULL);
    args.batch = sequences;
    args.q_heads = s->heads;
    args.k_heads = s->kv_heads;
    args.q = qkv;
    args.k = qkv + q_width(s);
    args.q_o = q;
    args.k_o = k;
    args.q_strides.row = args.k_strides.row = qkv_width(s) * sizeof *qkv;
    require(nrg_norm_rope_forward(&norm, &rope, &args, &of_q, &of_k, ith, nth), "norm and rotation of heads");
}

/* silu of the first half of a row times the second */
void gate_rows(const shape *s, size_t rows, const float *up, float *o, int ith, int nth)
{
    const nrg_glu_args args = nrg_glu_args_halves(NRG_ACT_SILU, NRG_F32, rows, s->ff, up, 0, o);
    require(nrg_glu_forward(&args, ith, nth), "SwiGLU");
}
