/* RMSNorm of every head and its rotation in one pass, for heads of up to 512 elements that are whole vectors. The arithmetic is
 * that of norm.h and rope.h; other heads, and rows that need the fallback, go through those (norm_rope_in_turn.h).
 *
 * Eight heads at a time: their sums, their scalars side by side, then their elements, which come from L1 a second time and are
 * rotated in registers.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_NORM_ROPE_ROW_H
#define NRG_TEMPLATE_ROPE_NORM_ROPE_ROW_H

#include "../norm/scalars.h"
#include "norm_rope_in_turn.h"
#include "rope_heads.h"

enum { HEAD_MAX = 512 };

/* What is the same for all rows, and the multipliers of the present token, as they are wanted. */
typedef struct norm_rope_plan {
    size_t dim, offset, pairs, past; /* past: the end of what is rotated */
    int interleaved, stream;
    const char *x, *table;
    char *o;
    size_t x_token_stride, x_head_stride, o_token_stride, o_head_stride, table_stride, heads;
    const int32_t *positions;
    float *mean, *rstd;
    const float *cosines, *sines; /* a half-split token's, in the table; otherwise of the arrays below */
    const float *w;               /* the caller's, or converted to f32 and w + weight_offset */
    float own_w[HEAD_MAX];
    float twice_cosine[HEAD_MAX], twice_sine[HEAD_MAX]; /* interleaved: c0 c0 c1 c1 …, -s0 s0 -s1 s1 … */
} norm_rope_plan;

NRG_INLINE int norm_rope_serves(const nrg_norm_rope_job *job, nrg_dtype D)
{
    const nrg_norm_job *n = &job->norm;
    const nrg_rope_job *r = &job->rope;
    const size_t rotated = 2 * r->pairs;
    return !nrg_norm_is_exact(&n->formula, D) && n->formula.divisor == NRG_DIV_ROOT && !n->formula.centred && n->w && !n->b &&
           n->groups == 1 && n->activation == NRG_ACT_IDENTITY && !r->backward && r->dim <= HEAD_MAX &&
           r->dim % EXACT_LANES == 0 && r->offset % VN == 0 && (r->interleaved ? rotated : r->pairs) % VN == 0;
}

static __attribute__((noinline)) void norm_rope_set_up(norm_rope_plan *p, const nrg_norm_rope_job *job, nrg_dtype D)
{
    const nrg_norm_job *n = &job->norm;
    const nrg_rope_job *r = &job->rope;
    p->dim = r->dim;
    p->offset = r->offset;
    p->pairs = r->pairs;
    p->past = r->offset + 2 * r->pairs;
    p->interleaved = r->interleaved;
    p->x = r->x;
    p->o = r->o;
    p->table = r->table;
    p->x_token_stride = r->x_token_stride;
    p->x_head_stride = r->x_head_stride;
    p->o_token_stride = r->o_token_stride;
    p->o_head_stride = r->o_head_stride;
    p->table_stride = r->table_stride;
    p->heads = r->heads;
    p->mean = n->mean;
    p->rstd = n->rstd;
    p->positions = r->positions;
    /* rows are whole lines, written from their first to their last */
    p->stream = r->stream && r->o != r->x &&
                (((uintptr_t)r->o | r->o_token_stride | r->o_head_stride | bytes_of(r->dim, D, 0)) & 63) == 0;
    p->w = (const float *)n->w;
    if ((D == NRG_F32 || n->w_f32) && n->formula.w_offset == 0)
        return;
    p->w = p->own_w;
    const vf offset = v_set1(n->formula.w_offset);
    for (size_t i = 0; i < r->dim; i += VN) {
        vf w;
        load_step_or_f32(&w, 1, n->w, i, VN, D, n->w_f32);
        v_st_f32(p->own_w + i, n->formula.w_offset != 0 ? v_add(w, offset) : w);
    }
}

/* The table's row of a token. */
NRG_INLINE void norm_rope_token(norm_rope_plan *p, size_t token)
{
    const size_t row = p->positions ? (size_t)p->positions[token] : token;
    const float *cosines = (const float *)(p->table + row * p->table_stride), *sines = cosines + p->pairs;
    p->cosines = cosines;
    p->sines = sines;
    if (!p->interleaved)
        return;
    p->cosines = p->twice_cosine;
    p->sines = p->twice_sine;
    const vf sign = rope_alternate();
    for (size_t i = 0; i < p->pairs; i += VN) {
        const size_t n = lanes_at(i, p->pairs);
        vf c = v_ldn_f32(cosines + i, n), s = v_ldn_f32(sines + i, n);
        v_st_f32(p->twice_cosine + 2 * i, v_twice_low(c));
        v_st_f32(p->twice_sine + 2 * i, v_mul(v_twice_low(s), sign));
        if (n <= VN / 2)
            break;
        v_st_f32(p->twice_cosine + 2 * i + VN, v_twice_high(c));
        v_st_f32(p->twice_sine + 2 * i + VN, v_mul(v_twice_high(s), sign));
    }
}

/* Σx² of a head, in eight lanes. */
NRG_INLINE vd8 squares_of_head(const char *x, size_t dim, nrg_dtype D)
{
    const norm_policy P = {.dtype = D, .least = 1, .most = HEAD_MAX, .multiple = EXACT_LANES};
    const summed_row from = {{.x = x}, v_zero(), NULL};
    block_lanes sum;
    folded_blocks all;
    if (dim <= FAST_BLOCK) {
        sum_block(&sum, &from, 0, dim, 0, P);
        return fast_widen(sum.tt, NULL);
    }
    clear_blocks(&all);
    for (size_t i = 0; i < dim; i += FAST_BLOCK) {
        sum_block(&sum, &from, i, lesser(i + FAST_BLOCK, dim), 0, P);
        add_block(&all, &sum, P);
    }
    return fast_widen(all.tt, all.tt_lost);
}

/* Normalized elements i to i + VN, as they would be read back. */
NRG_INLINE vf norm_rope_element(const norm_rope_plan *p, vf factor, const char *x, size_t i, nrg_dtype D)
{
    vf v = v_mul(v_mul(load_whole(x, i, D), factor), v_ld_f32(p->w + i));
    return D == NRG_F32 ? v : from_half(to_half(v, D), D);
}

NRG_INLINE void norm_rope_row(const norm_rope_plan *p, vf f, const char *x, char *o, nrg_dtype D, int stream)
{
    const size_t offset = p->offset, past = p->past, pairs = p->pairs;
    const float *cosines = p->cosines, *sines = p->sines;
    for (size_t i = 0; i < offset; i += VN) {
        vf v = norm_rope_element(p, f, x, i, D);
        store_whole(o, i, v, D, stream);
    }
    if (p->interleaved) {
        for (size_t i = offset; i < past; i += VN) {
            vf v = norm_rope_element(p, f, x, i, D);
            vf rotated = v_fma(v, v_ld_f32(cosines + (i - offset)), v_mul(v_swap_pairs(v), v_ld_f32(sines + (i - offset))));
            store_whole(o, i, rotated, D, stream);
        }
    } else {
        for (size_t i = offset; i < offset + pairs; i += VN) {
            vf c = v_ld_f32(cosines + (i - offset)), s = v_ld_f32(sines + (i - offset));
            vf a = norm_rope_element(p, f, x, i, D), b = norm_rope_element(p, f, x, i + pairs, D);
            vf first = v_fms(a, c, v_mul(b, s)), second = v_fma(b, c, v_mul(a, s));
            store_whole(o, i, first, D, stream);
            store_whole(o, i + pairs, second, D, stream);
        }
    }
    for (size_t i = past; i < p->dim; i += VN) {
        vf v = norm_rope_element(p, f, x, i, D);
        store_whole(o, i, v, D, stream);
    }
}

#endif
