/* The public layer of row normalization: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "internal.h"

/* The sizes of the first version's structs: no caller can have smaller ones. */
enum { SPEC_SIZE_MIN = sizeof(nrg_norm_spec), ARGS_SIZE_MIN = sizeof(nrg_norm_args) };

/* Copies a caller's struct of any version: fields it does not know yet are 0, which is their default; fields that this
 * library does not know yet must be 0, since what they ask for could not be done. */
static int read_struct(void *to, size_t known, size_t least, const void *from)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < least || size > 4096)
        return 0;
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return 0;
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return 1;
}

/* An operand as memory: rows of `bytes` bytes, `stride` apart. */
typedef struct extent {
    uintptr_t first;
    size_t element, bytes, stride, rows;
} extent;

static int is_dtype(nrg_dtype dtype) { return dtype == NRG_F32 || dtype == NRG_F16 || dtype == NRG_BF16; }

static nrg_status check_spec(const nrg_norm_spec *s)
{
    if (s->dim == 0)
        return NRG_ERR_DIM;
    const nrg_dtype others[] = {s->y_dtype, s->r_dtype, s->w_dtype};
    for (size_t i = 0; i < 3; i++)
        if (others[i] != NRG_DTYPE_SAME && !is_dtype(others[i]))
            return NRG_ERR_ENUM;
    if (!is_dtype(s->dtype) || (unsigned)s->eps_mode > NRG_EPS_NONE || (unsigned)s->residual_mode > NRG_RESIDUAL_AFTER ||
        (unsigned)s->store > NRG_STORE_STREAM)
        return NRG_ERR_ENUM;
    for (size_t i = 0; i < 3; i++)
        if (others[i] != NRG_DTYPE_SAME && others[i] != NRG_F32 && others[i] != s->dtype)
            return NRG_ERR_DTYPE;
    if (!(s->eps >= 0) || isinf(s->eps))
        return NRG_ERR_EPS;
    if (!isfinite(s->c) || !isfinite(s->weight_offset))
        return NRG_ERR_CONSTANT;
    return NRG_OK;
}

/* Describes an operand and checks that its bytes can exist: size, stride, alignment. An absent one has no rows. */
static nrg_status describe(extent *e, const void *pointer, nrg_dtype dtype, size_t dim, size_t rows, size_t stride)
{
    e->first = (uintptr_t)pointer;
    e->element = nrg_dtype_size(dtype);
    e->rows = pointer ? rows : 0;
    if (dim > SIZE_MAX / e->element)
        return NRG_ERR_OVERFLOW;
    e->bytes = dim * e->element;
    e->stride = stride ? stride : e->bytes;
    if (!e->rows)
        return NRG_OK;
    if (e->stride < e->bytes)
        return NRG_ERR_STRIDE;
    if (e->first % e->element || e->stride % e->element)
        return NRG_ERR_ALIGNMENT;
    if (rows - 1 > (SIZE_MAX - e->bytes) / e->stride || (rows - 1) * e->stride + e->bytes > UINTPTR_MAX - e->first)
        return NRG_ERR_OVERFLOW;
    return NRG_OK;
}

static int overlap(const extent *a, const extent *b)
{
    if (!a->rows || !b->rows)
        return 0;
    uintptr_t a_end = a->first + (a->rows - 1) * a->stride + a->bytes, b_end = b->first + (b->rows - 1) * b->stride + b->bytes;
    if (a_end <= b->first || b_end <= a->first)
        return 0;
    if (a->stride != b->stride || a->rows == 1)
        return 1;
    /* equal strides: where a row of b begins, counted from the start of the nearest row of a below it */
    size_t offset =
        a->first <= b->first ? (b->first - a->first) % a->stride : (a->stride - (a->first - b->first) % a->stride) % a->stride;
    return offset < a->bytes || offset > a->stride - b->bytes;
}

static int same(const extent *a, const extent *b)
{
    return a->first == b->first && a->element == b->element && (a->stride == b->stride || a->rows == 1);
}

enum { X, Y, W, B, O, R, MEAN, RSTD, OPERANDS };

static nrg_status check_overlap(const extent e[OPERANDS])
{
    for (int out = O; out < OPERANDS; out++)
        for (int other = 0; other < out; other++) {
            int in_place = (out == O || out == R) && (other == X || other == Y) && same(&e[out], &e[other]);
            if (!in_place && overlap(&e[out], &e[other]))
                return NRG_ERR_OVERLAP;
        }
    return NRG_OK;
}

/* Non-temporal stores pay when the tensor does not come from cache and will not be found there again. Measured (docs/speed.md):
 * the call's bytes against the L2 of one core, since a shared L3 tells nothing about the share one gets of it. */
static int wants_stream(const nrg_norm_spec *s, const extent e[OPERANDS])
{
    if (s->store != NRG_STORE_AUTO)
        return s->store == NRG_STORE_STREAM;
    size_t total = 0, limit = 2 * nrg_l2_bytes();
    static const int tensors[] = {X, Y, O, R};
    for (size_t i = 0; i < 4; i++) {
        const extent *t = &e[tensors[i]];
        if (t->rows && t->bytes > (limit - total) / t->rows)
            return 1;
        total += t->rows * t->bytes;
    }
    return 0;
}

/* The divisor's three forms: a sum's eps is a mean's of eps/d, a length's of eps/√d. */
static void set_divisor(nrg_norm_job *job, const nrg_norm_spec *s)
{
    double dim = (double)s->dim;
    job->divisor = NRG_DIV_ROOT;
    job->eps = s->eps;
    switch (s->eps_mode) {
    case NRG_EPS_MEAN:
        break;
    case NRG_EPS_SUM:
        job->eps = s->eps / dim;
        break;
    case NRG_EPS_NONE:
        job->eps = 0;
        break;
    case NRG_EPS_SIGMA:
        job->divisor = NRG_DIV_SIGMA;
        break;
    case NRG_EPS_MAX:
        job->divisor = NRG_DIV_MAX;
        job->eps = s->eps / sqrt(dim);
        break;
    }
    job->inv_dim = 1 / dim;
    job->k = s->c != 0 ? s->c / sqrt(dim) : 1;
}

/* Row n of ith's share: rows·ith/nth without the product, which may not fit. */
static size_t share(size_t rows, int ith, int nth)
{
    size_t i = (size_t)ith, n = (size_t)nth, each = rows / n, left = rows % n;
    return each * i + (i < left ? i : left);
}

nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_norm_spec s;
    nrg_norm_args a;
    if (!read_struct(&s, sizeof s, SPEC_SIZE_MIN, spec) || !read_struct(&a, sizeof a, ARGS_SIZE_MIN, args))
        return NRG_ERR_STRUCT_SIZE;
    nrg_status status = check_spec(&s);
    if (status != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    int after = s.residual_mode == NRG_RESIDUAL_AFTER;
    if ((a.rows && (!a.x || !a.o)) || (after && a.rows && !a.y))
        return NRG_ERR_NULL;
    if (after && a.r)
        return NRG_ERR_COMBINATION;

    nrg_dtype y_dtype = s.y_dtype ? s.y_dtype : s.dtype, r_dtype = s.r_dtype ? s.r_dtype : s.dtype;
    nrg_dtype w_dtype = s.w_dtype ? s.w_dtype : s.dtype;
    extent e[OPERANDS];
    const struct {
        const void *pointer;
        nrg_dtype dtype;
        size_t dim, rows, stride;
    } operands[OPERANDS] = {
        [X] = {a.x, s.dtype, s.dim, a.rows, a.x_stride}, [Y] = {a.y, y_dtype, s.dim, a.rows, a.y_stride},
        [W] = {a.w, w_dtype, s.dim, a.rows ? 1 : 0, 0},  [B] = {a.b, w_dtype, s.dim, a.rows ? 1 : 0, 0},
        [O] = {a.o, s.dtype, s.dim, a.rows, a.o_stride}, [R] = {a.r, r_dtype, s.dim, a.rows, a.r_stride},
        [MEAN] = {a.mean, NRG_F32, 1, a.rows, 0},        [RSTD] = {a.rstd, NRG_F32, 1, a.rows, 0},
    };
    for (int i = 0; i < OPERANDS; i++) {
        status = describe(&e[i], operands[i].pointer, operands[i].dtype, operands[i].dim, operands[i].rows, operands[i].stride);
        if (status != NRG_OK)
            return status;
    }
    status = check_overlap(e);
    if (status != NRG_OK)
        return status;

    nrg_norm_job job = {
        .x = a.x,
        .y = a.y,
        .w = a.w,
        .b = a.b,
        .o = a.o,
        .r = a.r,
        .mean = a.mean,
        .rstd = a.rstd,
        .x_stride = e[X].stride,
        .y_stride = e[Y].stride,
        .o_stride = e[O].stride,
        .r_stride = e[R].stride,
        .dim = s.dim,
        .row_begin = share(a.rows, ith, nth),
        .row_end = share(a.rows, ith + 1, nth),
        .y_f32 = y_dtype == NRG_F32,
        .r_f32 = r_dtype == NRG_F32,
        .w_f32 = w_dtype == NRG_F32,
        .centred = s.centred != 0,
        .after = after,
        .stream = wants_stream(&s, e),
        .w_offset = s.weight_offset,
    };
    if (job.row_begin == job.row_end)
        return NRG_OK;
    set_divisor(&job, &s);
    const nrg_table *table = nrg_active_table();
    switch (s.dtype) {
    case NRG_F16:
        table->norm_forward_f16(&job);
        break;
    case NRG_BF16:
        table->norm_forward_bf16(&job);
        break;
    default:
        table->norm_forward_f32(&job);
        break;
    }
    return NRG_OK;
}

/* What the shortcuts share: dense f32, all rows. */
static nrg_status forward_f32(nrg_norm_spec spec, size_t rows, const float *x, const float *y, const float *w, const float *b,
                              float *r, float *o)
{
    nrg_norm_args args = nrg_norm_args_init(rows, x, o);
    args.y = y;
    args.w = w;
    args.b = b;
    args.r = r;
    return nrg_norm_forward(&spec, &args, 0, 1);
}

nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o, double eps)
{
    return forward_f32(nrg_rms_norm_spec(dim, eps), rows, x, NULL, w, NULL, NULL, o);
}

nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, float *r, float *o,
                                double eps)
{
    if (rows && !y)
        return NRG_ERR_NULL;
    return forward_f32(nrg_rms_norm_spec(dim, eps), rows, x, y, w, NULL, r, o);
}

nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b, float *o, double eps)
{
    return forward_f32(nrg_layer_norm_spec(dim, eps), rows, x, NULL, w, b, NULL, o);
}

nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, const float *b,
                                  float *r, float *o, double eps)
{
    if (rows && !y)
        return NRG_ERR_NULL;
    return forward_f32(nrg_layer_norm_spec(dim, eps), rows, x, y, w, b, r, o);
}

nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps)
{
    return forward_f32(nrg_l2_norm_spec(dim, eps), rows, x, NULL, NULL, NULL, NULL, o);
}
