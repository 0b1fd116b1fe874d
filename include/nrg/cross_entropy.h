/* nrg/cross_entropy.h: the loss of classifiers and language models, and its gradient, without a tensor of probabilities between:
 *
 *     lse = log Σ e^x        loss = lse - x[id]        dx = (e^(x - lse) - [j = id]) · d_loss
 *
 * a row of logits x and a class each. A row whose id is ignore_index has the loss 0 and the gradient 0, as in torch;
 * ignore_index may be one of the classes. The program computes torch's reductions, mean and sum: d_loss is one number a row.
 *
 * Error bounds, for every row of finite logits of any size; docs/ops/softmax.md derives them:
 *   - loss: 1.8 ulp. It is never below 0, and exactly 0 for one class.
 *   - dx: 3.02 ulp, and then rounded to a 16-bit dtype. The element of the row's class: 1.8 ulp; exactly 0 for one class.
 *
 * That of dx holds for |d_loss| up to 256 and |d_loss|/Σ e^(x - max x) from 2^-80. A NaN or +infinity among the logits of a row
 * that is not ignored, or nothing but -infinity, makes the row's results NaN.
 *
 * The forward pass saves two numbers of a row for the backward pass, from which no bits are lost where one logit is far ahead, or
 * logits are large: m, the largest logit, and the sum of e^(x - base(m)) over the other classes, where base(m) is that of
 * nrg_softmax_part. They are 0 where a row is ignored. The log-sum-exp is loss + x[id].
 *
 * The bits are the same on every path and for any (ith, nth), stride and alignment, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CROSS_ENTROPY_H
#define NRG_CROSS_ENTROPY_H

#include "softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_cross_entropy_args_init, then change fields. Strides are in bytes, 0 for dense. */
typedef struct nrg_cross_entropy_args {
    size_t size;          /* sizeof(nrg_cross_entropy_args) */
    size_t rows;          /* 0 is fine */
    size_t classes;       /* at least 1 */
    nrg_dtype dtype;      /* of x and dx */
    int32_t ignore_index; /* rows with this id are ignored; any number, a class too. Default: -100. */
    const void *x;        /* [rows, classes] logits, input */
    size_t x_stride;
    const int32_t *ids;      /* [rows] input */
    const float *m_in;       /* backward: [rows] input, m of the forward pass; forward: NULL */
    const double *others_in; /* backward: [rows] input, others of the forward pass; forward: NULL */
    const float *d_loss;     /* backward: [rows] input; forward: NULL */
    float *loss;             /* forward: [rows] output; backward: NULL */
    float *m;                /* forward: [rows] output, the largest logit; backward: NULL */
    double *others;          /* forward: [rows] output, the sum of e^(x - base(m)) over other classes; backward: NULL */
    void *dx;                /* backward: [rows, classes] output; forward: NULL */
    size_t dx_stride;
} nrg_cross_entropy_args;

/* Forward, with torch's ignore_index. For the backward pass loss, m and others are NULL; m_in, others_in, d_loss and dx are set.
 */
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

/* loss, m and others of the rows of share ith of nth. Ids are looked at, those of all rows, before anything is written.
 *
 *               x     ids   loss  m
 *        loss   no    no
 *        m      no    no    no
 *        others no    no    no    no
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         dtype unknown
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args, or (with something to do) x, ids, loss, m or others
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          classes is 0
 *   NRG_ERR_POSITION     an id that is neither ignore_index nor from 0 to classes - 1
 *   NRG_ERR_STRIDE       a stride shorter than a row
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      an output shares a byte with another operand
 *   NRG_ERR_COMBINATION  an operand of the backward pass is there */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_forward(const nrg_cross_entropy_args *args, int ith, int nth);

/* Validates the arguments of nrg_cross_entropy_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_forward_check(const nrg_cross_entropy_args *args);

/* dx of the rows of share ith of nth. dx may be x, with its stride:
 *
 *               x     ids   m_in  others_in d_loss
 *        dx     yes   no    no    no        no
 *
 * Returns the statuses of nrg_cross_entropy_forward: NRG_OK, NRG_ERR_ENUM, NRG_ERR_THREAD, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_DIM, NRG_ERR_POSITION, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP; NRG_ERR_COMBINATION where
 * loss, m or others is there. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_backward(const nrg_cross_entropy_args *args, int ith, int nth);

/* Validates the arguments of nrg_cross_entropy_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_cross_entropy_backward_check(const nrg_cross_entropy_args *args);

#ifdef __cplusplus
}
#endif
#endif
