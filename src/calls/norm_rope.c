/* The public layer of a norm of each head and its rotation. Backward runs the two kernels in turn, a block of rows at a time.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_spec.h"
#include "rope_check.h"

enum {
    NORM_SIZE_MIN = offsetof(nrg_norm_args, r_stride) + sizeof(size_t),
    BACKWARD_SIZE_MIN = offsetof(nrg_norm_backward_args, reserved) + sizeof(uint32_t),
    PIECE_ROWS = 32 /* backward without dw and db; with them a block of rows */
};

enum operand { W = ROPE_NEXT, B = 2 * W, MEAN = 4 * W, RSTD = 8 * W, X = 16 * W, DW = 32 * W, DB = 64 * W, WORKSPACE = 128 * W };

/* A call here and there instead of thirty copies. */
static __attribute__((noinline)) nrg_status add(extents *all, unsigned name, unsigned in_place, const void *pointer,
                                                nrg_dtype dtype, size_t dim, size_t rows, size_t *stride)
{
    return add_operand(all, name, in_place, pointer, dtype, dim, rows, stride);
}

typedef struct specs {
    nrg_norm_spec norm_copy;
    nrg_rope_spec rope_spec_copy;
    nrg_rope_args rope_copy;
    const nrg_norm_spec *norm;
    const nrg_rope_spec *rope_spec;
    const nrg_rope_args *rope;
} specs;

/* What forward and backward check of the specs. */
static nrg_status read_specs(specs *s, const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec, const nrg_rope_args *rope)
{
    if (!norm || !rope_spec || !rope)
        return NRG_ERR_NULL;
    s->norm = norm = read_struct(norm, &s->norm_copy, sizeof s->norm_copy, SPEC_SIZE_MIN);
    s->rope_spec = read_struct(rope_spec, &s->rope_spec_copy, sizeof s->rope_spec_copy, ROPE_SPEC_SIZE_MIN);
    s->rope = rope = read_struct(rope, &s->rope_copy, sizeof s->rope_copy, ROPE_ARGS_SIZE_MIN);
    if (!norm || !s->rope_spec || !rope)
        return NRG_ERR_STRUCT_SIZE;
    if (!spec_is_sound(norm))
        return name_spec_error(norm);
    if (norm->dim != rope->dim)
        return NRG_ERR_DIM;
    if (norm->dtype != rope->dtype)
        return NRG_ERR_DTYPE;
    return norm->gate || norm->residual_mode || rope->backward ? NRG_ERR_COMBINATION : NRG_OK;
}

static const nrg_norm_args *read_norm(const nrg_norm_args *args, nrg_norm_args *copy, nrg_status *status)
{
    const nrg_norm_args none = nrg_norm_args_init(0, NULL, NULL);
    *copy = none;
    if (!args)
        return copy;
    const nrg_norm_args *a = read_struct(args, copy, sizeof *copy, NORM_SIZE_MIN);
    if (!a)
        *status = NRG_ERR_STRUCT_SIZE;
    else if (a->rows || a->x || a->y || a->z || a->o || a->r || a->x_stride || a->y_stride || a->z_stride || a->o_stride ||
             a->r_stride)
        *status = NRG_ERR_COMBINATION;
    return a;
}

/* The jobs of q and k. In a frame of its own: what checking takes shall not lie below the kernel. */
static __attribute__((noinline)) nrg_status make_jobs(nrg_norm_rope_job both[2], nrg_dtype *dtype_of, const nrg_norm_spec *norm,
                                                      const nrg_rope_spec *rope_spec, const nrg_rope_args *rope,
                                                      const nrg_norm_args *q, const nrg_norm_args *k, int ith, int nth)
{
    specs s;
    nrg_norm_args copy[2];
    nrg_rope_job job[2];
    nrg_status status = read_specs(&s, norm, rope_spec, rope);
    if (status != NRG_OK)
        return status;
    const nrg_norm_args *a[2] = {read_norm(q, &copy[0], &status), read_norm(k, &copy[1], &status)};
    if (status != NRG_OK)
        return status;
    const nrg_dtype w_dtype = s.norm->w_dtype ? s.norm->w_dtype : s.norm->dtype;
    const size_t groups = s.norm->groups ? s.norm->groups : 1, dim = s.norm->dim;
    const size_t heads[2] = {s.rope->q_heads, s.rope->k_heads};
    extent operands[ROPE_OPERANDS + 8];
    extents all = {0, operands};
    size_t rows[2];
    for (int i = 0; i < 2; i++) {
        size_t none = 0;
        if (!product(s.rope->tokens, heads[i], &rows[i]))
            return NRG_ERR_OVERFLOW;
        const size_t once = rows[i] != 0;
        if ((status = add(&all, W, ANY_OPERAND, a[i]->w, w_dtype, dim, once, &none)) != NRG_OK ||
            (none = 0, status = add(&all, B, ANY_OPERAND, a[i]->b, w_dtype, dim, once, &none)) != NRG_OK)
            return status;
    }
    if ((status = rope_make_jobs(job, &all, s.rope_spec, s.rope, ith, nth)) != NRG_OK)
        return status;
    for (int i = 0; i < 2; i++) {
        size_t none = 0;
        const size_t once = rows[i] != 0;
        if ((status = add(&all, MEAN, 0, a[i]->mean, NRG_F32, rows[i] * groups, once, &none)) != NRG_OK ||
            (none = 0, status = add(&all, RSTD, 0, a[i]->rstd, NRG_F32, rows[i] * groups, once, &none)) != NRG_OK)
            return status;
    }
    if ((status = check_overlap(&all)) != NRG_OK)
        return status;

    const size_t begin = share(rows[0] + rows[1], ith, nth), end = share(rows[0] + rows[1], ith + 1, nth);
    *dtype_of = s.norm->dtype;
    for (int i = 0; i < 2; i++) {
        both[i].rope = job[i];
        both[i].rope.begin = both[i].rope.end = 0;
        if (job[i].heads)
            rope_share(&both[i].rope, i ? rows[0] : 0, rows[i], begin, end);
        both[i].norm = (nrg_norm_job){
            .w = a[i]->w,
            .b = a[i]->b,
            .mean = a[i]->mean,
            .rstd = a[i]->rstd,
            .dim = dim / groups,
            .groups = groups,
            .y_f32 = s.norm->dtype == NRG_F32,
            .r_f32 = s.norm->dtype == NRG_F32,
            .w_f32 = w_dtype == NRG_F32,
            .activation = s.norm->activation,
        };
        set_formula(&both[i].norm.formula, s.norm, both[i].norm.dim);
    }
    return NRG_OK;
}

nrg_status nrg_norm_rope_forward(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec, const nrg_rope_args *rope,
                                 const nrg_norm_args *q, const nrg_norm_args *k, int ith, int nth)
{
    nrg_norm_rope_job job[2];
    nrg_dtype dtype;
    nrg_status status = make_jobs(job, &dtype, norm, rope_spec, rope, q, k, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_norm_rope_kernel *const norm_rope = NRG_ACTIVE_KERNEL(norm_rope, dtype);
    for (int i = 0; i < 2; i++)
        if (job[i].rope.begin < job[i].rope.end)
            norm_rope(&job[i]);
    return NRG_OK;
}

/* The two calls' arguments for q or k, and a job for the rotation. */
typedef struct half {
    nrg_norm_backward_args norm;
    nrg_rope_job job;
    size_t rows;
} half;

static nrg_status read_half(half *h, const nrg_norm_backward_args *args, const nrg_rope_args *rope, int k)
{
    h->norm = nrg_norm_backward_args_init(0, NULL, NULL, NULL);
    const size_t heads = k ? rope->k_heads : rope->q_heads;
    if (!product(rope->tokens, heads, &h->rows))
        return NRG_ERR_OVERFLOW;
    if (!args)
        return h->rows ? NRG_ERR_NULL : NRG_OK;
    nrg_norm_backward_args copy;
    const nrg_norm_backward_args *a = read_struct(args, &copy, sizeof copy, BACKWARD_SIZE_MIN);
    if (!a)
        return NRG_ERR_STRUCT_SIZE;
    if (a->rows != h->rows || a->d_o || a->dx || a->y || a->r || a->z || a->dr_in || a->dy || a->dz)
        return NRG_ERR_COMBINATION;
    h->norm = *a;
    h->norm.size = sizeof h->norm;
    return NRG_OK;
}

/* What the norms read and write beside the gradients of the rotation, for overlaps between q's and k's; nrg_norm_backward_check
 * says whatever else may be wrong with it. */
static nrg_status add_inputs(extents *all, const half *h, const nrg_norm_spec *s)
{
    const nrg_norm_backward_args *a = &h->norm;
    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    const size_t once = h->rows != 0, groups = s->groups ? s->groups : 1;
    size_t stride = a->x_stride, none = 0;
    nrg_status status;
    if ((status = add(all, X, ANY_OPERAND, a->x, s->dtype, s->dim, h->rows, &stride)) != NRG_OK ||
        (status = add(all, W, ANY_OPERAND, a->w, w_dtype, s->dim, once, &none)) != NRG_OK ||
        (none = 0, status = add(all, B, ANY_OPERAND, a->b, w_dtype, s->dim, once, &none)) != NRG_OK)
        return status;
    none = 0;
    return add(all, MEAN, ANY_OPERAND, s->centred ? a->mean : NULL, NRG_F32, h->rows * groups, once, &none);
}

static nrg_status add_outputs(extents *all, const half *h, const nrg_norm_spec *s)
{
    const nrg_norm_backward_args *a = &h->norm;
    size_t none = 0;
    nrg_status status;
    if ((status = add(all, DW, 0, a->dw, NRG_F32, s->dim, 1, &none)) != NRG_OK ||
        (none = 0, status = add(all, DB, 0, a->db, NRG_F32, s->dim, 1, &none)) != NRG_OK)
        return status;
    /* as much of it as is needed; the struct's size may be another version's */
    nrg_norm_spec own = *s;
    size_t bytes;
    own.size = sizeof own;
    if ((status = nrg_norm_backward_workspace(&own, a, &bytes)) != NRG_OK)
        return status;
    none = 0;
    return add(all, WORKSPACE, 0, bytes ? a->workspace : NULL, NRG_F32, bytes / 4, 1, &none);
}

/* Checks everything, and completes both halves: the rotated gradient is in dx, and norm_backward takes it from there. */
static nrg_status make_halves(half h[2], specs *s, const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec,
                              const nrg_rope_args *rope, const nrg_norm_backward_args *q, const nrg_norm_backward_args *k,
                              int ith, int nth)
{
    nrg_rope_job job[2];
    extent operands[ROPE_OPERANDS + 14];
    extents all = {0, operands};
    nrg_status status = read_specs(s, norm, rope_spec, rope);
    if (status != NRG_OK)
        return status;
    if ((status = read_half(&h[0], q, s->rope, 0)) != NRG_OK || (status = read_half(&h[1], k, s->rope, 1)) != NRG_OK ||
        (status = add_inputs(&all, &h[0], s->norm)) != NRG_OK || (status = add_inputs(&all, &h[1], s->norm)) != NRG_OK ||
        (status = rope_make_jobs(job, &all, s->rope_spec, s->rope, ith, nth)) != NRG_OK ||
        (status = add_outputs(&all, &h[0], s->norm)) != NRG_OK || (status = add_outputs(&all, &h[1], s->norm)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    nrg_norm_spec own = *s->norm; /* whose size may be another version's */
    own.size = sizeof own;
    for (int i = 0; i < 2; i++) {
        nrg_rope_job *r = &job[i];
        if (r->heads > 1 && s->rope->tokens > 1 && r->o_token_stride != r->heads * r->o_head_stride)
            return NRG_ERR_STRIDE;
        if (r->heads) {
            h[i].norm.d_o = h[i].norm.dx = r->o;
            h[i].norm.d_o_stride = h[i].norm.dx_stride = r->heads > 1 ? r->o_head_stride : r->o_token_stride;
            r->backward = 1;
            r->stream = 0; /* it is read again at once */
            h[i].job = *r;
        }
        if ((status = nrg_norm_backward_check(&own, &h[i].norm, ith, nth)) != NRG_OK)
            return status;
    }
    return NRG_OK;
}

nrg_status nrg_norm_rope_backward(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec, const nrg_rope_args *rope,
                                  const nrg_norm_backward_args *q, const nrg_norm_backward_args *k, int ith, int nth)
{
    specs s;
    half h[2];
    nrg_status status = make_halves(h, &s, norm, rope_spec, rope, q, k, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_rope_kernel *const rope_of = NRG_ACTIVE_KERNEL(rope, s.norm->dtype);
    nrg_norm_spec kept = *s.norm;
    kept.size = sizeof kept;
    kept.store = NRG_STORE_KEEP;
    for (int i = 0; i < 2; i++) {
        const size_t pieces = nrg_norm_backward_pieces(&h[i].norm, PIECE_ROWS);
        for (size_t piece = share(pieces, ith, nth); piece < share(pieces, ith + 1, nth); piece++) {
            nrg_norm_backward_rows(&h[i].norm, (int)piece, (int)pieces, &h[i].job.begin, &h[i].job.end);
            rope_of(&h[i].job);
            status = nrg_norm_backward(&kept, &h[i].norm, (int)piece, (int)pieces);
            if (status != NRG_OK)
                return status; /* cannot be: it was checked */
        }
    }
    return NRG_OK;
}

nrg_status nrg_norm_rope_backward_reduce(const nrg_norm_spec *norm, const nrg_rope_spec *rope_spec, const nrg_rope_args *rope,
                                         const nrg_norm_backward_args *q, const nrg_norm_backward_args *k, int ith, int nth)
{
    specs s;
    half h[2];
    nrg_status status = make_halves(h, &s, norm, rope_spec, rope, q, k, ith, nth);
    if (status != NRG_OK)
        return status;
    nrg_norm_spec own = *s.norm; /* whose size may be another version's */
    own.size = sizeof own;
    for (int i = 0; i < 2 && status == NRG_OK; i++)
        status = nrg_norm_backward_reduce(&own, &h[i].norm, ith, nth);
    return status;
}
