/* The public layer of a norm of each head and its rotation. Backward runs the two kernels in turn, a block of rows at a time.
 *
 * SPDX-License-Identifier: MIT */
#include "../operands/norm_rope.h"
#include "../operands/place.h"
#include "norm_backward.h"
#include "norm_formula.h"
#include "rope_job.h"

#define NRG_MAKE_TABLES
#include "../operands/norm_rope_calls.def"

_Static_assert(sizeof(nrg_norm_spec) + sizeof(nrg_rope_spec) + sizeof(nrg_rope_args) + 2 * sizeof(nrg_norm_backward_args) <=
                   NRG_COPIES,
               "copies of all structs fit");
/* rope_make_jobs reads the rotation's numbers and operands */
_Static_assert((int)NRG_NORM_ROPE_N_TABLE_ROWS == (int)NRG_ROPE_N_TABLE_ROWS && (int)NRG_NORM_ROPE_K == (int)NRG_ROPE_K &&
                   (int)NRG_NORM_ROPE_BACKWARD_N_TABLE_ROWS == (int)NRG_ROPE_N_TABLE_ROWS,
               "they are the same");

static const nrg_norm_args none = {.size = sizeof none}; /* which NULL stands for */

/* Whether the norm is plainly sound, and so are w and b of q and k beside the outputs of a plain rotation. */
static inline int is_plain(const nrg_norm_spec *s, const nrg_rope_args *rope, const nrg_norm_args *const of[2],
                           const quick_operand o[2])
{
    if (s->size != sizeof *s || (unsigned)s->activation >= NRG_ACTIVATION_COUNT || (unsigned)s->eps_mode > NRG_EPS_NONE ||
        (unsigned)s->c_mode > NRG_C_GIVEN || (unsigned)s->accuracy > NRG_ACCURACY_EXACT ||
        ((unsigned)s->residual_mode | (unsigned)s->gate | (unsigned)s->weights | (unsigned)s->format | s->reserved) ||
        s->dim != rope->dim || s->dtype != rope->dtype || nrg_norm_check_spec(s) != NRG_OK)
        return 0;
    const size_t element = nrg_own_dtype(s->w_dtype, s->dtype) == NRG_F32 ? 4 : 2, row = s->dim * element;
    for (int i = 0; i < 2; i++) {
        const nrg_norm_args *const a = of[i];
        const size_t rows = rope->tokens * (i ? rope->k_heads : rope->q_heads);
        quick_operand w, b;
        if (!rows && a == &none)
            continue;
        if (a->size != sizeof *a || !rows || !nrg_norm_rope_is_weights_only(a, rows) || a->mean || a->rstd ||
            !nrg_norm_offset_fits(s, a->w) || !quick_rows(&w, a->w, 0, 1, row, element - 1) ||
            !quick_rows(&b, a->b, 0, 1, row, element - 1) ||
            !(quick_apart(&o[0], &w, 0) & quick_apart(&o[1], &w, 0) & quick_apart(&o[0], &b, 0) & quick_apart(&o[1], &b, 0)))
            return 0;
    }
    return 1;
}

NRG_OWN_FRAME nrg_status make_jobs(nrg_norm_rope_job both[2], rope_batches batches[2], const nrg_norm_spec *norm,
                                   const nrg_rope_spec *spec, const nrg_rope_args *rope, const nrg_norm_args *q,
                                   const nrg_norm_args *k, int ith, int nth)
{
    nrg_rope_job *const jobs[2] = {&both[0].rope, &both[1].rope};
    quick_operand o[2];
    q = q ? q : &none;
    k = k ? k : &none;
    jobs[0]->heads = jobs[1]->heads = 0;
    if (!(norm && spec && rope && (ith >= 0) & (ith < nth) && rope_is_plain(jobs, o, spec, rope, 0, 0) &&
          is_plain(norm, rope, (const nrg_norm_args *const[]){q, k}, o) && rope_plain_ids_fit(rope))) {
        nrg_laid l;
        nrg_status status = NRG_LAY(&l, norm_rope_forward, norm, spec, rope, q, k);
        if (status != NRG_OK || (status = rope_check_ids(rope, &l)) != NRG_OK)
            return status;
        rope_make_jobs(jobs, batches, &l, spec, rope, NRG_NORM_ROPE_Q_O, 0, nrg_wants_stream(rope->store, l.bytes));
    }
    const size_t tokens = rope->batch * rope->tokens, rows[2] = {tokens * rope->q_heads, tokens * rope->k_heads};
    const size_t begin = nrg_share(rows[0] + rows[1], ith, nth), end = nrg_share(rows[0] + rows[1], ith + 1, nth);
    for (int i = 0; i < 2; i++) {
        both[i].rope.begin = both[i].rope.end = 0;
        if (!both[i].rope.heads)
            continue;
        rope_share(&both[i].rope, i ? rows[0] : 0, rows[i], begin, end);
        const nrg_norm_args *const of = i ? k : q;
        begin_norm(&both[i].norm, norm, of->w, of->b);
        both[i].norm.mean = of->mean;
        both[i].norm.rstd = of->rstd;
    }
    return NRG_OK;
}

/* A share of all batches, which has rows. Statistics of the batches lie one after the other. */
NRG_OWN_FRAME void run_batches(nrg_norm_rope_kernel *norm_rope, const nrg_norm_rope_job *all, const rope_batches *b)
{
    nrg_norm_rope_job one = *all;
    for (size_t batch = all->rope.begin / b->rows; batch * b->rows < all->rope.end; batch++) {
        const size_t before = batch * b->rows * all->norm.groups;
        rope_take_batch(&one.rope, &all->rope, b, batch);
        one.norm.mean = all->norm.mean ? all->norm.mean + before : NULL;
        one.norm.rstd = all->norm.rstd ? all->norm.rstd + before : NULL;
        norm_rope(&one);
    }
}

NRG_TABLES(norm_rope)

nrg_status nrg_norm_rope_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_rope_args *rope_args,
                                 const nrg_norm_args *q, const nrg_norm_args *k, int ith, int nth)
{
    nrg_norm_rope_job job[2];
    rope_batches batches[2];
    const nrg_status status = make_jobs(job, batches, norm, rope, rope_args, q, k, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_norm_rope_kernel *const norm_rope = NRG_ACTIVE_KERNEL(norm_rope, norm->dtype);
    for (int i = 0; i < 2; i++)
        if (job[i].rope.begin < job[i].rope.end) {
            if (rope_args->batch == 1)
                norm_rope(&job[i]);
            else
                run_batches(norm_rope, &job[i], &batches[i]);
        }
    return NRG_OK;
}

nrg_status nrg_norm_rope_forward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_rope_args *rope_args,
                                       const nrg_norm_args *q, const nrg_norm_args *k)
{
    return rope_ask(&nrg_call_norm_rope_forward, (const void *const[]){norm, rope, rope_args, q, k}, rope_args);
}

#ifndef NRG_NO_BACKWARD
/* The two jobs of q or k: the rotated gradient is in dx, and norm_backward takes it from there. */
typedef struct half {
    nrg_norm_backward_job norm;
    nrg_planes planes;
    nrg_rope_job job;
    rope_batches batches;
} half;

/* Checks everything, and makes both halves. */
NRG_OWN_FRAME nrg_status make_halves(half h[2], const void *const *part, int ith, int nth)
{
    nrg_checked c;
    nrg_rope_job job[2];
    rope_batches batches[2];
    nrg_status status = nrg_check(&c, &nrg_call_norm_rope_backward, part, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_rope_args *rope = c.part[NRG_NORM_ROPE_ARGS];
    if ((status = rope_check_ids(rope, &c.laid)) != NRG_OK)
        return status;
    rope_make_jobs((nrg_rope_job *const[]){&job[0], &job[1]}, batches, &c.laid, c.part[NRG_NORM_ROPE_SPEC], rope,
                   NRG_NORM_ROPE_BACKWARD_Q_O, 1, 0);
    for (int k = 0; k < 2; k++) {
        nrg_norm_spec spec = *(const nrg_norm_spec *)c.part[NRG_NORM_ROPE_NORM];
        nrg_norm_backward_args a = *(const nrg_norm_backward_args *)c.part[NRG_NORM_ROPE_Q_ARGS + k];
        h[k].norm.row_end = 0;
        h[k].norm.dw = h[k].norm.db = NULL;
        if (!job[k].heads)
            continue;
        if (!a.w) /* the other one has weights, and the offset is theirs */
            spec.weight_offset = 0;
        h[k].job = job[k];
        h[k].job.far = 0; /* nor is it streamed: it is read again at once */
        h[k].batches = batches[k];
        a.store = NRG_STORE_KEEP;
        a.d_o = a.dx = job[k].o;
        a.rows = a.rows ? job[k].heads : 0;
        a.rows2 = rope->tokens;
        a.rows3 = batches[k].count;
        const size_t *const x = c.laid.stride[NRG_NORM_ROPE_BACKWARD_Q_X + k];
        const size_t o[NRG_LEVELS] = {job[k].o_head_stride, job[k].o_token_stride, batches[k].o_stride};
        const nrg_laid l = {.bytes = c.laid.bytes,
                            .stride = {[NRG_NORM_BACKWARD_X] = {x[0], x[1], x[2]},
                                       [NRG_NORM_BACKWARD_D_O] = {o[0], o[1], o[2]},
                                       [NRG_NORM_BACKWARD_DX] = {o[0], o[1], o[2]}}};
        nrg_norm_backward_fill(&h[k].norm, &h[k].planes, &spec, &a, &l, 0, 1);
    }
    return NRG_OK;
}

nrg_status nrg_norm_rope_backward(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_rope_args *rope_args,
                                  const nrg_norm_backward_args *q, const nrg_norm_backward_args *k, int ith, int nth)
{
    half h[2];
    const nrg_status status = make_halves(h, (const void *const[]){norm, rope, rope_args, q, k}, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_rope_kernel *const rope_of = NRG_ACTIVE_KERNEL(rope, norm->dtype);
    for (int i = 0; i < 2; i++) {
        const nrg_norm_backward_args *const args = i ? k : q;
        const size_t rows = h[i].norm.row_end, each = nrg_norm_backward_each(h[i].norm.dw || h[i].norm.db, rows);
        size_t begin, end;
        nrg_norm_backward_share(each, rows, ith, nth, &begin, &end);
        for (size_t row = begin; row < end; row += each) {
            h[i].job.begin = row;
            h[i].job.end = end - row > each ? row + each : end;
            rope_turn_batches(rope_of, &h[i].job, &h[i].batches);
            nrg_norm_backward_piece(&h[i].norm, norm->dtype, row, h[i].job.end);
        }
        if (nth == 1 && args)
            nrg_norm_backward_finish(norm, args);
    }
    return NRG_OK;
}

nrg_status nrg_norm_rope_backward_workspace(const nrg_norm_spec *norm, const nrg_norm_backward_args *q,
                                            const nrg_norm_backward_args *k, size_t *q_bytes, size_t *k_bytes)
{
    const nrg_norm_backward_args *const args[2] = {q, k};
    size_t bytes[2] = {0, 0};
    if (!norm || !q_bytes || !k_bytes)
        return NRG_ERR_NULL;
    for (int i = 0; i < 2; i++) {
        const nrg_status status = args[i] ? nrg_norm_backward_workspace(norm, args[i], &bytes[i]) : NRG_OK;
        if (status != NRG_OK)
            return status;
    }
    *q_bytes = bytes[0];
    *k_bytes = bytes[1];
    return NRG_OK;
}

nrg_status nrg_norm_rope_backward_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_rope_args *rope_args,
                                        const nrg_norm_backward_args *q, const nrg_norm_backward_args *k)
{
    return rope_ask(&nrg_call_norm_rope_backward, (const void *const[]){norm, rope, rope_args, q, k}, rope_args);
}

nrg_status nrg_norm_rope_backward_reduce(const nrg_norm_spec *norm, const nrg_rope_spec *rope, const nrg_rope_args *rope_args,
                                         const nrg_norm_backward_args *q, const nrg_norm_backward_args *k, int ith, int nth)
{
    half h[2];
    const nrg_status status = make_halves(h, (const void *const[]){norm, rope, rope_args, q, k}, ith, nth);
    if (status == NRG_OK && q)
        nrg_norm_backward_sum(norm, q, ith, nth);
    if (status == NRG_OK && k)
        nrg_norm_backward_sum(norm, k, ith, nth);
    return status;
}

nrg_status nrg_norm_rope_backward_reduce_check(const nrg_norm_spec *norm, const nrg_rope_spec *rope,
                                               const nrg_rope_args *rope_args, const nrg_norm_backward_args *q,
                                               const nrg_norm_backward_args *k)
{
    return nrg_norm_rope_backward_check(norm, rope, rope_args, q, k); /* the same operands */
}
#endif
