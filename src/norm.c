/* The public layer of row normalization: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "internal.h"

enum {
    /* the sizes of the first version's structs: no caller can have smaller ones */
    SPEC_SIZE_MIN = offsetof(nrg_norm_spec, reserved) + sizeof(uint32_t),
    ARGS_SIZE_MIN = offsetof(nrg_norm_args, r_stride) + sizeof(size_t),
    /* no struct of any version is larger: such a size is an uninitialized field */
    SIZE_LIMIT = 4096
};

/* A caller's struct of any version, as this version's: fields it does not know yet are 0, which is their default; fields that
 * this library does not know yet must be 0, since what they ask for could not be done. Returns the caller's own where that is of
 * this version, else a copy in `copy`, or NULL. */
static inline const void *read_struct(const void *from, void *copy, size_t known, size_t least)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size == known)
        return from;
    if (size < least || size > SIZE_LIMIT)
        return NULL;
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return NULL;
    memset(copy, 0, known);
    memcpy(copy, from, size < known ? size : known);
    return copy;
}

typedef enum operand { X, Y, W, B, O, R, MEAN, RSTD, OPERANDS } operand;

/* An operand as memory: from first up to end, rows of `bytes` bytes, `stride` apart. */
typedef struct extent {
    operand name;
    size_t element, bytes, stride, rows;
    uintptr_t first, end;
} extent;

/* The operands that are there, inputs first. */
typedef struct extents {
    size_t count;
    extent e[OPERANDS];
} extents;

static int is_dtype(nrg_dtype dtype) { return dtype == NRG_F32 || dtype == NRG_F16 || dtype == NRG_BF16; }

static int is_beside(nrg_dtype other, nrg_dtype dtype) { return other == NRG_DTYPE_SAME || other == NRG_F32 || other == dtype; }

/* What is wrong with a spec that failed the test below. */
static __attribute__((noinline)) nrg_status name_spec_error(const nrg_norm_spec *s)
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
    if (!is_beside(s->y_dtype, s->dtype) || !is_beside(s->r_dtype, s->dtype) || !is_beside(s->w_dtype, s->dtype))
        return NRG_ERR_DTYPE;
    if (!(s->eps >= 0 && s->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    return s->reserved ? NRG_ERR_STRUCT_SIZE : NRG_ERR_CONSTANT;
}

/* One test without branches, since all of it holds in nearly every call. */
static inline int spec_is_sound(const nrg_norm_spec *s)
{
    return (s->dim != 0) & is_dtype(s->dtype) & is_beside(s->y_dtype, s->dtype) & is_beside(s->r_dtype, s->dtype) &
           is_beside(s->w_dtype, s->dtype) & ((unsigned)s->eps_mode <= NRG_EPS_NONE) &
           ((unsigned)s->residual_mode <= NRG_RESIDUAL_AFTER) & ((unsigned)s->store <= NRG_STORE_STREAM) & (s->eps >= 0) &
           (s->eps <= DBL_MAX) & (fabs(s->c) <= FLT_MAX) & (fabsf(s->weight_offset) <= FLT_MAX) & (s->reserved == 0);
}

/* a·b, or 0 where it does not fit. Divides only for numbers a tensor seldom has: 8 operands × 2 divisions would cost a small call
 * more than its row. */
static int product(size_t a, size_t b, size_t *result)
{
    const size_t half = (size_t)1 << (sizeof(size_t) * 4);
    if ((a | b) >= half && b && a > SIZE_MAX / b)
        return 0;
    *result = a * b;
    return 1;
}

/* Adds an operand, if it is there, and checks that its bytes can exist: size, stride, alignment. A stride of 0 becomes the real
 * one. */
static inline nrg_status add_operand(extents *all, operand name, const void *pointer, nrg_dtype dtype, size_t dim, size_t rows,
                                     size_t *stride)
{
    if (!pointer)
        return NRG_OK;
    size_t element = dtype == NRG_F32 ? 4 : 2, bytes, before_last;
    if (!product(dim, element, &bytes))
        return NRG_ERR_OVERFLOW;
    *stride = *stride ? *stride : bytes;
    if (!rows)
        return NRG_OK;
    if (*stride < bytes)
        return NRG_ERR_STRIDE;
    uintptr_t first = (uintptr_t)pointer;
    if ((first | *stride) & (element - 1))
        return NRG_ERR_ALIGNMENT;
    if (!product(rows - 1, *stride, &before_last) || before_last > SIZE_MAX - bytes || before_last + bytes > UINTPTR_MAX - first)
        return NRG_ERR_OVERFLOW;
    extent *e = &all->e[all->count++];
    e->name = name;
    e->element = element;
    e->bytes = bytes;
    e->stride = *stride;
    e->rows = rows;
    e->first = first;
    e->end = first + before_last + bytes;
    return NRG_OK;
}

/* Whether rows of two operands whose extents meet share a byte. */
static int rows_meet(const extent *a, const extent *b)
{
    if (a->stride != b->stride || a->rows == 1 || b->rows == 1)
        return 1;
    /* equal strides: where a row of b begins, counted from the start of the nearest row of a below it */
    size_t offset =
        a->first <= b->first ? (b->first - a->first) % a->stride : (a->stride - (a->first - b->first) % a->stride) % a->stride;
    return offset < a->bytes || offset > a->stride - b->bytes;
}

/* The alias matrix of the header. */
static int in_place(const extent *out, const extent *other)
{
    return (out->name == O || out->name == R) && (other->name == X || other->name == Y) && out->first == other->first &&
           out->element == other->element && (out->stride == other->stride || out->rows == 1);
}

static nrg_status check_overlap(const extents *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const extent *out = &all->e[i];
        if (out->name < O)
            continue;
        for (size_t j = 0; j < i; j++) {
            const extent *other = &all->e[j];
            if (out->end > other->first && other->end > out->first && !in_place(out, other) && rows_meet(out, other))
                return NRG_ERR_OVERLAP;
        }
    }
    return NRG_OK;
}

/* Non-temporal stores pay when the tensor does not come from cache and will not be found there again. Measured (docs/speed.md):
 * the call's bytes against the L2 of one core, since a shared L3 tells nothing about the share one gets of it. */
static int wants_stream(const nrg_norm_spec *s, const extents *all)
{
    if (s->store != NRG_STORE_AUTO)
        return s->store == NRG_STORE_STREAM;
    size_t room = nrg_l2_bytes() + nrg_l2_bytes() / 2;
    for (size_t i = 0; i < all->count; i++) {
        const extent *e = &all->e[i];
        size_t bytes = e->rows * e->bytes; /* fits: rows are no longer than their stride */
        if (bytes > room)
            return 1;
        room -= bytes;
    }
    return 0;
}

/* The divisor's three forms: a sum's eps is a mean's of eps/d, a length's of eps/√d. */
static inline void set_divisor(nrg_norm_job *job, const nrg_norm_spec *s)
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
    if (job->eps < 0x1p-600) /* beside floats it is 0, and 1/s would overflow where σ is 0 */
        job->eps = 0;
    job->d = dim;
    job->inv_dim = 1 / dim;
    job->k = s->c != 0 ? s->c / sqrt(dim) : 1;
}

/* Row n of ith's share: rows·ith/nth without the product, which may not fit. */
static inline size_t share(size_t rows, int ith, int nth)
{
    size_t i = (size_t)ith, n = (size_t)nth;
    size_t each = rows / n, left = rows % n;
    return each * i + (i < left ? i : left);
}

static nrg_status forward(const nrg_norm_spec *s, const nrg_norm_args *a, int ith, int nth)
{
    if (!spec_is_sound(s))
        return name_spec_error(s);
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const int after = s->residual_mode == NRG_RESIDUAL_AFTER;
    if (a->rows && (!a->x || !a->o || (after && !a->y)))
        return NRG_ERR_NULL;
    if (after && a->r)
        return NRG_ERR_COMBINATION;

    const nrg_dtype y_dtype = s->y_dtype ? s->y_dtype : s->dtype, r_dtype = s->r_dtype ? s->r_dtype : s->dtype;
    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    nrg_status status;
    const size_t once = a->rows ? 1 : 0;
    size_t x_stride = a->x_stride, y_stride = a->y_stride, o_stride = a->o_stride, r_stride = a->r_stride;
    size_t w_stride = 0, b_stride = 0, mean_stride = 0, rstd_stride = 0;
    extents all;
    all.count = 0;
    if ((status = add_operand(&all, X, a->x, s->dtype, s->dim, a->rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, Y, a->y, y_dtype, s->dim, a->rows, &y_stride)) != NRG_OK ||
        (status = add_operand(&all, W, a->w, w_dtype, s->dim, once, &w_stride)) != NRG_OK ||
        (status = add_operand(&all, B, a->b, w_dtype, s->dim, once, &b_stride)) != NRG_OK ||
        (status = add_operand(&all, O, a->o, s->dtype, s->dim, a->rows, &o_stride)) != NRG_OK ||
        (status = add_operand(&all, R, a->r, r_dtype, s->dim, a->rows, &r_stride)) != NRG_OK ||
        (status = add_operand(&all, MEAN, a->mean, NRG_F32, 1, a->rows, &mean_stride)) != NRG_OK ||
        (status = add_operand(&all, RSTD, a->rstd, NRG_F32, 1, a->rows, &rstd_stride)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;

    nrg_norm_job job = {
        .x = a->x,
        .y = a->y,
        .w = a->w,
        .b = a->b,
        .o = a->o,
        .r = a->r,
        .mean = a->mean,
        .rstd = a->rstd,
        .x_stride = x_stride,
        .y_stride = y_stride,
        .o_stride = o_stride,
        .r_stride = r_stride,
        .dim = s->dim,
        .row_begin = nth == 1 ? 0 : share(a->rows, ith, nth),
        .row_end = nth == 1 ? a->rows : share(a->rows, ith + 1, nth),
        .y_f32 = y_dtype == NRG_F32,
        .r_f32 = r_dtype == NRG_F32,
        .w_f32 = w_dtype == NRG_F32,
        .centred = s->centred != 0,
        .after = after,
        .stream = wants_stream(s, &all),
        .w_offset = s->weight_offset,
    };
    if (job.row_begin == job.row_end)
        return NRG_OK;
    set_divisor(&job, s);
    const nrg_table *table = nrg_active_table();
    if (s->dtype == NRG_F32)
        table->norm_forward_f32(&job);
    else if (s->dtype == NRG_F16)
        table->norm_forward_f16(&job);
    else
        table->norm_forward_bf16(&job);
    return NRG_OK;
}

nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    if (!spec || !args)
        return NRG_ERR_NULL;
    nrg_norm_spec spec_copy;
    nrg_norm_args args_copy;
    spec = read_struct(spec, &spec_copy, sizeof spec_copy, SPEC_SIZE_MIN);
    args = read_struct(args, &args_copy, sizeof args_copy, ARGS_SIZE_MIN);
    return spec && args ? forward(spec, args, ith, nth) : NRG_ERR_STRUCT_SIZE;
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
    return forward(&spec, &args, 0, 1);
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
