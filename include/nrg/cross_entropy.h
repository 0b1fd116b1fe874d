/* nrg/cross_entropy.h: cross-entropy, the loss of classifiers and language models, and its gradient.
 *
 * Neither pass stores a tensor of probabilities. For each row of logits x with class id:
 *
 *     lse = log Σ e^x        loss = lse - x[id]        dx = (e^(x - lse) - [j = id]) · d_loss
 *
 * Source: torch's cross_entropy without reduction. A row whose id is ignore_index has loss 0 and gradient 0, as in torch; one of
 * the classes is allowed as ignore_index. The program computes torch's reductions, mean and sum: d_loss is one number per row.
 *
 * Error bounds (proven) hold for every row of finite logits of any size. docs/ops/cross_entropy.md derives them.
 * - loss: 1.8 ulp. It is never below 0, and exactly 0 for one class.
 * - dx: 3.02 ulp, then rounded to a 16-bit dtype. The element of the row's class: 1.8 ulp, and exactly 0 for one class.
 *
 * The bound of dx holds for |d_loss| up to 256 and |d_loss|/Σ e^(x - max x) from 2^-80. The results of a row become NaN if it has
 * a NaN or +infinity, or only -infinity, among its logits. That excludes ignored rows.
 *
 * The forward pass stores two numbers per row for the backward pass:
 * - m, the largest logit.
 * - others, the sum of e^(x - base(m)) over the other classes, with the base of nrg_softmax_part.
 *
 * They lose no bits if one logit is far above the others, or if logits are large. Both are 0 for an ignored row. The log-sum-exp
 * is loss + x[id].
 *
 * Results are bit-identical on every path and for any (ith, nth), stride and alignment, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CROSS_ENTROPY_H
#define NRG_CROSS_ENTROPY_H

#include "softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands and options of both passes. Make one with nrg_cross_entropy_args_init, then change fields. Strides are in bytes; 0 is
 * dense. */
typedef struct nrg_cross_entropy_args {
    size_t size;          /* sizeof(nrg_cross_entropy_args) */
    size_t rows;          /* rows of logits; may be 0 */
    size_t classes;       /* elements of a row, at least 1 */
    nrg_dtype dtype;      /* of x and dx */
    int32_t ignore_index; /* rows with this id are ignored; any number, including a class. Default: -100. */
    const void *x;        /* [rows, classes] input: logits */
    size_t x_stride;
    const int32_t *ids;      /* [rows] input: the class of each row, or ignore_index */
    const float *m_in;       /* backward: [rows] input: m of the forward pass; forward: NULL */
    const double *others_in; /* backward: [rows] input: others of the forward pass; forward: NULL */
    const float *d_loss;     /* backward: [rows] input: gradient of loss; forward: NULL */
    float *loss;             /* forward: [rows] output; backward: NULL */
    float *m;                /* forward: [rows] output: the largest logit; backward: NULL */
    double *others;          /* forward: [rows] output: the sum of e^(x - base(m)) over the other classes; backward: NULL */
    void *dx;                /* backward: [rows, classes] output: gradient of x; forward: NULL */
    size_t dx_stride;
} nrg_cross_entropy_args;

/* Returns args for the forward pass, with torch's ignore_index. For the backward pass, set m_in, others_in, d_loss and dx, and
 * pass NULL for loss, m and others.
 *
 * Parameters:
 * - dtype, rows, classes, x, ids, loss, m, others: the fields of the same names. */
static inline nrg_cross_entropy_args nrg_cross_entropy_args_init(nrg_dtype dtype, size_t rows, size_t classes, const void *x,
                                                                 const int32_t *ids, float *loss, float *m, double *others)
{
    nrg_cross_entropy_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.classes = classes;
    args.dtype = dtype;
    args.ignore_index = -100;
    args.x = x;
    args.x_stride = 0;
    args.ids = ids;
    args.m_in = args.d_loss = NULL;
    args.others_in = NULL;
    args.loss = loss;
    args.m = m;
    args.others = others;
    args.dx = NULL;
    args.dx_stride = 0;
    return args;
}

/* Computes the loss of each row, and m and others for the backward pass.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless rows is 0, x, ids, loss, m and others must not be NULL. The
 *   operands of the backward pass must be NULL.
 * - ith, nth: the share, a range of rows. Each share validates the ids of all rows before it writes.
 *
 * Aliasing: no output shares a byte with another operand.
 *
 *               x     ids   loss  m
 *        loss   no    no
 *        m      no    no    no
 *        others no    no    no    no
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_ENUM: dtype has an unknown value.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_NULL: args is NULL; or rows is not 0, and x, ids, loss, m or others is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: classes is 0.
 * - NRG_ERR_POSITION: an id is neither ignore_index nor from 0 to classes - 1.
 * - NRG_ERR_STRIDE: a stride is shorter than a row.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: an output shares a byte with another operand.
 * - NRG_ERR_COMBINATION: m_in, others_in, d_loss or dx is set. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_forward(const nrg_cross_entropy_args *args, int ith, int nth);

/* Validates the arguments of nrg_cross_entropy_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_forward_check(const nrg_cross_entropy_args *args);

/* Computes dx, the gradient of the logits.
 *
 * Parameters:
 * - args: operands and options, described at their fields. Unless rows is 0, x, ids, m_in, others_in, d_loss and dx must not be
 *   NULL. The outputs of the forward pass must be NULL.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: dx may be x, with the same stride. No other overlap is allowed.
 *
 *               x     ids   m_in  others_in d_loss
 *        dx     yes   no    no    no        no
 *
 * Returns the statuses of nrg_cross_entropy_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: args is NULL; or rows is not 0, and x, ids, m_in, others_in, d_loss or dx is NULL.
 * - NRG_ERR_OVERLAP: dx overlaps an input in a way that the table does not allow.
 * - NRG_ERR_COMBINATION: loss, m or others is set. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_backward(const nrg_cross_entropy_args *args, int ith, int nth);

/* Validates the arguments of nrg_cross_entropy_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_backward_check(const nrg_cross_entropy_args *args);

#ifdef __cplusplus
}
#endif
#endif
